package setup

import (
	"maps"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/millrace/millrace/internal/config"
	"github.com/millrace/millrace/internal/humanize"
)

// YAML returns the configuration, dated now. Comments show further options.
func (r *Report) YAML(now time.Time) (string, error) {
	t, err := template.New("millrace.yaml").Funcs(template.FuncMap{
		"quoted":  config.Quote,
		"line":    func(s string) string { return strings.Join(strings.Fields(humanize.Printable(s)), " ") },
		"private": func() bool { return r.private },
	}).Parse(initYAML)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, map[string]any{
		"R": r, "Hash": r.Hash, "Day": now.Format(time.DateOnly), "Purposes": slices.Sorted(maps.Keys(r.Purposes)),
	})
	return b.String(), err
}

const initYAML = `# Configuration of millrace for {{line .R.Site}}, written by "millrace init" on {{.Day}}.
#
# Each key is a flag of the same name, which "millrace help serve" explains.
# "millrace config" shows the values in use. Lines that start with # are comments.

# URL of the site for visitors. The documents for machines are below it.
base-url: {{quoted .R.Site}}

# The server of the site serves the pages, and asks millrace what machines get:
# see "millrace snippet nginx", or caddy.
place: alongside

# Where millrace itself listens, for that server.
listen: "127.0.0.1:8080"

# Proxies whose X-Forwarded-For is trusted: the site's server.
proxies: ["127.0.0.1", "::1"]
{{if private}}
# The site is at a private address.
allow-private: true
{{end}}
# Stand in front of the site instead: visitors connect to millrace, and the site's
# own server listens here. Then the place is front; leave proxies out.
# origin: "http://127.0.0.1:8000"
# listen: ":443"
# tls-cert: /etc/ssl/site.pem
# tls-key: /etc/ssl/site.key

# Hidden from machines, each with everything below it: accounts, carts, logins and
# administration, and the paths of exclude. Pages with noindex and pages that require
# a login are always hidden. exclude-defaults: false hides only exclude.
{{- range .R.Hides}}{{if eq .Reason "exclude"}}
# Seen: {{line .URL}}{{end}}{{end}}
# exclude: [/drafts]
# hide-kinds: [forum]
# authors: hidden

# Permitted uses of the content. They are published in robots.txt and in each
# protocol, and applied to bots.
{{- range .R.Reasons}}
# - {{line .}}
{{- end}}
{{- if .Purposes}}
policy:
  purposes:
{{- range $p := .Purposes}}
    {{$p}}: {{index $.R.Purposes $p}}
{{- end}}
  # terms: "{{.R.Site}}terms"
  # contact: "mailto:owner@example.com"
  # requirements:
  #   attribution: true
{{- else}}
# policy:
#   purposes:
#     ai-train: false
#     ai-input: true
#     search: true
#   terms: "{{.R.Site}}terms"
#   contact: "mailto:owner@example.com"
#   requirements:
#     attribution: true
{{- end}}

# Access of bots by name, operator or purpose: allow, 402, 403 or a rate.
# bot: ["training=403", "unverified=2/s"]

# Maximum number of content requests per second for one client.
# rate: 10

# Feed hubs and search engines to notify of changes.
# hub: ["https://hub.example.com/"]
# indexnow: true

# Path of the dashboard, which requires a login. It shows which machines read the
# site, and the cost and savings. "millrace keys password" creates another password.
dashboard: {{quoted .R.Dashboard}}
dashboard-password: {{quoted .Hash}}

# Published contact for operators of machines.
# site-contact: "owner@example.com"
`
