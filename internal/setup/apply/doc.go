// Package apply installs millrace's configuration into nginx, Caddy and systemd, and undoes it.
//
// A journal names each file before it changes, so that an interrupted run can be undone.
package apply
