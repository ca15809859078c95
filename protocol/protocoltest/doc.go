// Package protocoltest tests the law of the protocols, over real HTTP and on generated sites: a
// reader gets exactly what the publisher carries.
//
//	func TestLaw(t *testing.T) { protocoltest.Run(t, tct.Draft01()) }
//
// [View] is a millrace.View in memory, for tests of publishers. [Serve] serves a view in one
// protocol like the gateway.
package protocoltest
