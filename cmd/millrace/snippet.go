package main

import (
	"bytes"
	"context"
	"os"

	"github.com/millrace/millrace/internal/setup"
)

// snippetCommand prints the configuration for other servers.
type snippetCommand struct {
	commonFlags
	For     string `arg:"" enum:"nginx,caddy,systemd" help:"Program to configure: nginx or caddy alongside serve, or systemd."`
	Source  string `arg:"" optional:"" help:"SOURCE of serve (default: the base URL). For systemd, millrace.yaml names the source."`
	Listen  string `default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"Address that serve listens on (default: ${default})."`
	BaseURL string `name:"base-url" placeholder:"URL" help:"Base URL of the site (default: SOURCE, if it is a URL)."`
}

// Run prints the snippet.
func (c *snippetCommand) Run(_ context.Context, p *process) error {
	o := &setup.SnippetOptions{Source: c.Source, Listen: c.Listen, Base: c.BaseURL}
	o.Exec, _ = os.Executable()
	text, err := setup.Snippet(c.For, o)
	if err != nil {
		return usageError("--" + err.Error())
	}
	return p.report(map[string]string{"for": c.For, "text": text}, func(w *bytes.Buffer) { w.WriteString(text) })
}
