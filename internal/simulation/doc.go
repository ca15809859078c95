// Package simulation holds no code: its tests run a whole house at once in a
// testing/synctest bubble, on a clock of its own and a network in memory.
//
// Writers change a site, two replicas publish it from one store file, a load
// balancer picks one of them for each request, and clients of every protocol
// keep mirrors. Meanwhile processes are killed, the machine loses its power in
// the middle of a transaction, connections break and the configuration
// changes. What must hold all the time is said in oracle_test.go and
// client_test.go; what must hold at the end, in settle_test.go.
//
// A run follows from its seed, but for the order in which goroutines are
// scheduled that are awake at one instant of the bubble's clock:
//
//	go test ./internal/simulation -sim.seed 7          one seed
//	go test ./internal/simulation -sim.seed 100 -sim.n 500
package simulation
