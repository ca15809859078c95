// Package conns limits the connections of a server, and lets the pieces of a response
// go out together.
package conns
