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

const initYAML = `# What millrace does with {{line .R.Site}}, by "millrace init" of {{.Day}}.
#
# Each key is a flag of the same name, which "millrace help serve" explains.
# "millrace config" shows what they come to. A # makes a line a comment.

# Where visitors find the site. What machines read is below it.
base-url: {{quoted .R.Site}}

# The server of the site serves the pages, and asks millrace what machines get:
# see "millrace snippet nginx", or caddy.
place: alongside

# Where millrace itself listens, for that server.
listen: "127.0.0.1:8080"

# Whose X-Forwarded-For is believed: that server.
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
# administration, and the paths of exclude. Pages that say noindex, or that want a
# login, are hidden in any case. exclude-defaults: false hides only exclude.
{{- range .R.Hides}}{{if eq .Reason "exclude"}}
# Seen: {{line .URL}}{{end}}{{end}}
# exclude: [/drafts]
# hide-kinds: [forum]
# authors: hidden

# What the content may be used for. It goes into robots.txt, into each protocol,
# and into what bots get.
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

# What bots get: allow, 402, 403 or a rate, by name, operator or purpose.
# bot: ["training=403", "unverified=2/s"]

# How many requests for content a second one client may make.
# rate: 10

# Hubs of feeds, and search engines, to notify of changes.
# hub: ["https://hub.example.com/"]
# indexnow: true

# Where you see which machines read the site, and what that costs and saves, behind
# a login. "millrace keys password" makes another password.
dashboard: {{quoted .R.Dashboard}}
dashboard-password: {{quoted .Hash}}

# Whom the operators of machines can ask. It is published.
# site-contact: "owner@example.com"
`
