package setup

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"text/template"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol/all"
)

//go:embed snippets
var snippets embed.FS

// snippet holds the values of a template.
type snippet struct {
	Source, Base, Listen, Exec string
	Path, Pattern              string // path of the base URL, plain and in a regular expression
	Links                      string // Link header of the home page
	Dashboard                  string // its path in a regular expression; "" = none
	Sitemap                    bool
	Low                        bool // the port requires a privilege
}

// SnippetOptions are the options of [Snippet].
type SnippetOptions struct {
	Source    string // source of millrace serve. If empty, Base.
	Listen    string // address of millrace
	Base      string // the site's address. If empty, an example.
	Dashboard string // path of the dashboard. If empty, none.
	Sitemap   bool   // millrace serves sitemap.xml too
	Exec      string // the program. If empty, /usr/local/bin/millrace.
}

// Snippet returns the configuration of nginx, caddy or systemd for a server. Errors
// begin with the name of an option as a key of millrace.yaml.
func Snippet(program string, o *SnippetOptions) (string, error) {
	s := snippet{
		Source: o.Source, Sitemap: o.Sitemap,
		Base: cmp.Or(o.Base, "https://www.example.com/"), Exec: cmp.Or(o.Exec, "/usr/local/bin/millrace"),
	}
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
	s.Pattern = regexp.QuoteMeta(s.Path)
	if at := strings.TrimRight(o.Dashboard, "/"); at != "" {
		if !strings.HasPrefix(at, "/") || strings.ContainsFunc(at, special) {
			return "", fmt.Errorf("dashboard %q: the path has special characters; use one such as /dashboard", o.Dashboard)
		}
		s.Dashboard = regexp.QuoteMeta(at)
	}
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
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
	for _, proto := range all.Published(nil) {
		if l := proto.HomeLink; l.Rel != "" {
			l.URL = s.Path + proto.Home
			links = append(links, l.String())
		}
	}
	links = append(links, "<"+strings.TrimSuffix(base, "/")+`/feed.atom>; rel="alternate"; type="application/atom+xml"`)
	s.Links = strings.Join(links, ", ")
	file := map[string]string{"nginx": "nginx.conf", "caddy": "Caddyfile", "systemd": "millrace.service"}[program]
	t, err := template.ParseFS(snippets, "snippets/"+file)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, s)
	return b.String(), err
}

// special reports whether a character of a path has a meaning in nginx, Caddy or a
// regular expression, other than a dot.
func special(c rune) bool {
	return !strings.ContainsRune("/-_.~", c) && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
}
