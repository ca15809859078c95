package main

import (
	"bytes"
	"context"
	"os"

	"github.com/millrace/millrace/internal/setup"
)

// snippetCommand prints what other programs need to know of a server.
type snippetCommand struct {
	common
	For       string `arg:"" enum:"nginx,caddy,systemd" help:"Whose: nginx or caddy, to run beside a site that they serve, or systemd."`
	Source    string `arg:"" optional:"" help:"What serve publishes (default: the base URL)."`
	Listen    string `default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"Where serve listens (default: ${default})."`
	BaseURL   string `name:"base-url" placeholder:"URL" help:"The site's address (default: an example)."`
	Dashboard string `placeholder:"PATH" help:"Where the owner's dashboard is, as serve has it (default: there is none)."`
	Sitemap   bool   `help:"Have millrace serve sitemap.xml, too, with its collections for SCP: for a site that has none of its own."`
}

// Run prints the snippet.
func (c *snippetCommand) Run(_ context.Context, p *process) error {
	o := &setup.SnippetOptions{Source: c.Source, Listen: c.Listen, Base: c.BaseURL, Dashboard: c.Dashboard, Sitemap: c.Sitemap}
	o.Exec, _ = os.Executable()
	text, err := setup.Snippet(c.For, o)
	if err != nil {
		return usageError("--" + err.Error())
	}
	return p.report(map[string]string{"for": c.For, "text": text}, func(w *bytes.Buffer) { w.WriteString(text) })
}
