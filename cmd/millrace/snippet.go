package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"text/template"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol/all"
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

//go:embed snippets
var snippets embed.FS

// snippet is what is said in one.
type snippet struct {
	Source, Base, Listen, Exec string
	Path, Pattern              string // of the base URL, as such and in a regular expression
	Links                      string // of the home page, as one field
	Dashboard                  string // its path in a regular expression; "" = there is none
	Sitemap                    bool
	Low                        bool // the port needs a privilege
}

// Run prints the snippet.
func (c *snippetCommand) Run(_ context.Context, p *process) error {
	s := snippet{Source: c.Source, Base: c.BaseURL, Sitemap: c.Sitemap, Exec: "/usr/local/bin/millrace"}
	if exe, err := os.Executable(); err == nil {
		s.Exec = exe
	}
	if s.Base == "" {
		s.Base = "https://www.example.com/"
	}
	base, err := canon.URL(s.Base)
	if err != nil {
		return usageError("--base-url: " + err.Error())
	}
	u, err := url.Parse(base)
	if err != nil || u.RawQuery != "" {
		return usageError("--base-url: a base has no query")
	}
	if s.Path = strings.TrimSuffix(u.EscapedPath(), "/"); strings.ContainsFunc(s.Path, special) {
		return usageError("--base-url: its path has characters that mean something in the snippet: write it by hand: " + s.Path)
	}
	s.Pattern = regexp.QuoteMeta(s.Path)
	if at := strings.TrimRight(c.Dashboard, "/"); at != "" {
		if !strings.HasPrefix(at, "/") || strings.ContainsFunc(at, special) {
			return usageError(fmt.Sprintf("--dashboard %q: name a path without special characters, such as /dashboard", c.Dashboard))
		}
		s.Dashboard = regexp.QuoteMeta(at)
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return usageError("--listen: " + err.Error())
	}
	s.Low = len(port) < 4 && port != "0"
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	s.Listen = net.JoinHostPort(host, port)
	if s.Source == "" {
		s.Source = s.Base
	}
	var links []string
	for _, room := range all.Published() {
		if l := room.HomeLink; l.Rel != "" {
			l.URL = s.Path + room.Home
			links = append(links, l.String())
		}
	}
	links = append(links, "<"+strings.TrimSuffix(base, "/")+`/feed.atom>; rel="alternate"; type="application/atom+xml"`)
	s.Links = strings.Join(links, ", ")
	text, err := s.text(c.For)
	if err != nil {
		return err
	}
	return p.report(map[string]string{"for": c.For, "text": text}, func(w *bytes.Buffer) { w.WriteString(text) })
}

// special reports whether a character of a path means something to nginx, to
// Caddy or in a regular expression, other than a dot.
func special(c rune) bool {
	return !strings.ContainsRune("/-_.~", c) && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
}

// text gives the snippet for a program.
func (s *snippet) text(program string) (string, error) {
	file, ok := map[string]string{"nginx": "nginx.conf", "caddy": "Caddyfile", "systemd": "millrace.service"}[program]
	if !ok {
		return "", usageError(fmt.Sprintf("there is no snippet for %q", program))
	}
	t, err := template.ParseFS(snippets, "snippets/"+file)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := t.Execute(&b, s); err != nil {
		return "", err
	}
	return b.String(), nil
}
