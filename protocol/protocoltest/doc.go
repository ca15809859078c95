// Package protocoltest tests the law of the protocols: a reader gets exactly what the
// publisher carries, over real HTTP, on generated sites.
//
//	func TestLaw(t *testing.T) { protocoltest.Run(t, tct.Draft01()) }
//
// [View] is a millrace.View in memory, for the tests of publishers. [Serve] serves a view in
// one protocol as the gateway does.
package protocoltest
