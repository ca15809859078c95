// Package accesslog reads the access logs of web servers.
//
//   - A [Parser] reads one line: the combined and the common format of nginx and Apache, JSON of
//     Caddy, JSON of Cloudflare Logpush, and JSON whose members are variables of nginx.
//   - A [Scanner] reads whole logs, which may be compressed by gzip. It skips and counts lines that
//     it cannot read.
//   - A [Follower] reads a log while another server writes it, and records the requests of bots.
//
// Memory does not grow with a log. Lines may contain any bytes.
package accesslog
