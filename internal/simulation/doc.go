// Package simulation holds no code. Its tests run a complete deployment in a testing/synctest
// bubble, with a fake clock and an in-memory network.
//
// Writers change a site, and replicas publish it from one store: a file, or the server of a
// database, which is sometimes down. Work takes time, more on slow processors, and clocks differ.
// A load balancer picks one of the replicas for each request, and clients of every protocol keep
// mirrors. Meanwhile processes are killed, the machine loses power in the middle of a transaction,
// connections break, clocks are set and the configuration changes. oracle_test.go and
// client_test.go check what must always hold; settle_test.go checks what must hold at the end.
// time_test.go checks the time from a save to its visibility.
//
// The seed determines a run, except for the order of goroutines that run at the same instant
// of the bubble's clock:
//
//	go test ./internal/simulation -sim.seed 7          one seed
//	go test ./internal/simulation -sim.seed 100 -sim.n 500
package simulation
