// Command caddy is Caddy with its standard modules and those of millrace.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
	_ "github.com/millrace/millrace/caddy"
)

func main() { caddycmd.Main() }
