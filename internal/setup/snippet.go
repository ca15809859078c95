package setup

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"text/template"

	"github.com/millrace/millrace/internal/canon"
)

//go:embed snippets
var snippets embed.FS

// snippet contains the values of a template.
type snippet struct {
	Source, Base, Listen, Exec string
	Path                       string // path of the base URL, without a trailing "/"
	Port                       string // port of Listen
	Low                        bool   // the port needs a privilege
	Fields                     []string
}

// pageFields are the header fields that the web server copies from responses of the gateway to
// pages.
var pageFields = []string{"Link", "Vary", "X-Markdown-Missing", "Content-Signal", "Content-Usage"}

// SnippetOptions configure [Snippet].
type SnippetOptions struct {
	Source string // source of millrace serve. If empty, Base.
	Listen string // address of millrace
	Base   string // public URL of the site. If empty, Source, if that is a URL.
	Exec   string // path of the millrace program. If empty, /usr/local/bin/millrace.
}

// Snippet returns the configuration of nginx, caddy or systemd for a server. For systemd, it
// depends on Listen and Exec only. Errors begin with the name of an option as a key of
// millrace.yaml.
func Snippet(program string, o *SnippetOptions) (string, error) {
	s := snippet{Fields: pageFields, Source: cmp.Or(o.Source, o.Base), Base: o.Base, Exec: cmp.Or(o.Exec, "/usr/local/bin/millrace")}
	if s.Base == "" && strings.Contains(o.Source, "://") {
		s.Base = o.Source
	}
	switch {
	case s.Base != "":
		base, err := canon.URL(s.Base)
		if err != nil {
			return "", fmt.Errorf("base-url: %w", err)
		}
		u, err := url.Parse(base)
		if err != nil || u.RawQuery != "" {
			return "", errors.New("base-url: the URL has a query; remove it")
		}
		if s.Path = strings.TrimSuffix(u.EscapedPath(), "/"); strings.ContainsFunc(s.Path, special) {
			return "", errors.New("base-url: the path has special characters; write the configuration by hand: " + s.Path)
		}
	case program != "systemd":
		return "", errors.New("base-url: the address of the site is unknown; give it as SOURCE, with --base-url or in millrace.yaml")
	}
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	number, _ := strconv.Atoi(port) // 0 for a name such as "http"
	s.Low = number > 0 && number < 1024
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	s.Listen, s.Port = net.JoinHostPort(host, port), port
	file := map[string]string{"nginx": "nginx.conf", "caddy": "Caddyfile", "systemd": "millrace.service"}[program]
	t, err := template.New(file).Funcs(template.FuncMap{
		"variable": func(field string) string { return strings.ToLower(strings.ReplaceAll(field, "-", "_")) },
	}).ParseFS(snippets, "snippets/"+file)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, s)
	return b.String(), err
}

// special reports whether a character of a path may have a special meaning in nginx or Caddy.
func special(c rune) bool {
	return !strings.ContainsRune("/-_.~", c) && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
}
