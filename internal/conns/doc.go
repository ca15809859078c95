// Package conns limits the connections of a server, and combines the pieces of a
// response into fewer writes.
package conns
