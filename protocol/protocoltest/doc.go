// Package protocoltest tests the equation that every protocol satisfies, over real HTTP and on
// generated sites: a reader gets exactly the pages that Carry returns.
//
//	func TestLaw(t *testing.T) { protocoltest.Run(t, tct.Draft01()) }
//
// [View] is a millrace.View in memory, for tests of publishers. [Serve] serves a view in one
// protocol like the gateway.
package protocoltest
