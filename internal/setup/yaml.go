package setup

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/config"
)

// YAML returns the configuration, with now as its date. Comments show further options.
func (r *Report) YAML(now time.Time) (string, error) {
	t, err := template.New("millrace.yaml").Funcs(template.FuncMap{
		"quoted":  config.Quote,
		"line":    canon.OneLine,
		"private": func() bool { return r.private },
	}).Parse(initYAML)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, map[string]any{
		"R": r, "Hash": r.Hash, "Day": now.Format(time.DateOnly), "Purposes": slices.Sorted(maps.Keys(r.Purposes)),
		"Example": cmp.Or(r.Site, "https://www.example.com/"),
	})
	return b.String(), err
}

const initYAML = `{{$place := print .R.Place}}# Configuration of millrace for {{line .R.Source}}, written on {{.Day}}.
#
# Each key is a flag of the same name, which "millrace help serve" explains.
# "millrace config" shows the values in use. Lines that start with # are comments.

# The site: its URL, or the folder of its files.
source: {{quoted .R.Source}}

# URL of the site for visitors. The documents for machines are below it.
{{if .R.Site}}base-url: {{quoted .R.Site}}{{else}}# base-url: "https://www.example.com/"{{end}}

{{if eq $place "alongside" -}}
# The site's own server serves the pages, and asks millrace about requests by
# machines. "millrace up --apply nginx" (or caddy) configures that server.
{{- else if eq $place "front" -}}
# Visitors connect to millrace, which passes their requests on to origin.
{{- else -}}
# No other server is involved. The other places are alongside and front.
{{- end}}
place: {{.R.Place}}
{{if .R.Origin}}
# The site's own server.
origin: {{quoted .R.Origin}}
{{end}}
# The address on which millrace listens.
listen: {{quoted .R.Listen}}
{{- if eq $place "alongside"}}

# Proxies whose X-Forwarded-For is trusted: the site's server.
proxies: ["127.0.0.1", "::1"]
{{- end}}
{{- if and .R.Plain (eq $place "alongside")}}

# The server cannot change HTML, so pages have no link elements.
head-elements: false
{{- end}}
{{if private}}
# The site has a private address.
allow-private: true
{{end}}
{{- if eq $place "alongside"}}
# To run in front of the site, let its own server listen at origin, set place to
# front, and remove proxies.
# origin: "http://127.0.0.1:8000"
# listen: ":443"
# tls-cert: /etc/ssl/site.pem
# tls-key: /etc/ssl/site.key
{{end}}
# Paths that machines do not see, with everything below them. Accounts, carts,
# logins and administration are hidden by default, unless exclude-defaults is
# false. Pages with noindex or behind a login are always hidden.
{{- range .R.Hides}}{{if eq .Reason "exclude"}}
# Hidden now: {{line .URL}}{{end}}{{end}}
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
  # terms: "{{.Example}}terms"
  # contact: "mailto:owner@example.com"
  # requirements:
  #   attribution: true
{{- else}}
# policy:
#   purposes:
#     ai-train: false
#     ai-input: true
#     search: true
#   terms: "{{.Example}}terms"
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
{{if .R.Dashboard -}}
dashboard: {{quoted .R.Dashboard}}
dashboard-password: {{quoted .Hash}}
{{- else -}}
# dashboard: /millrace
{{- end}}

# Published contact for operators of machines.
# site-contact: "owner@example.com"
`
