package setup

import (
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/internal/sites"
	origins "github.com/millrace/millrace/origin/all"
)

// Report contains the results of the probe and the contents of the configuration. millrace init
// --json prints it.
type Report struct {
	Source    string                    `json:"source"`    // URL or folder of the site
	Site      string                    `json:"site"`      // public URL of the site; "" if unknown
	File      string                    `json:"file"`      // configuration file that was written
	As        string                    `json:"as"`        // kind of the source, such as wordpress or crawl
	Generator string                    `json:"generator"` // generator that the home page names
	Server    string                    `json:"server"`    // Server header field of the site
	Pages     int                       `json:"pages"`     // estimated number of pages; -1 if unknown
	Has       []string                  `json:"has"`       // protocols that the site already has
	Seen      int                       `json:"seen"`      // number of URLs that the probe has seen
	Hides     []Hidden                  `json:"hides"`     // URLs that will be hidden
	Serves    []Served                  `json:"serves"`    // protocols that will be published
	Purposes  map[millrace.Purpose]bool `json:"purposes"`  // whether each purpose is allowed
	Reasons   []string                  `json:"reasons"`   // reasons for the purposes
	Place     sites.Place               `json:"place"`     // where millrace runs
	Next      []string                  `json:"next"`      // commands to run next
	Dashboard string                    `json:"dashboard"` // path of the dashboard
	Password  string                    `json:"password"`  // password of the dashboard, which is shown only once
	Requests  int64                     `json:"requests"`
	Seconds   float64                   `json:"seconds"`

	Hash    string `json:"-"` // hash of the password
	Listen  string `json:"-"` // address of millrace
	Origin  string `json:"-"` // URL of the site's own server, with sites.Front
	Plain   bool   `json:"-"` // the site's server cannot add elements to pages
	private bool   // the site is at a private address
	program string // program of the site's server, as in millrace snippet. If empty, unknown.
}

// Hidden is an address that will not be published.
type Hidden struct {
	URL    string `json:"url"`
	Reason string `json:"reason"` // reason why it is hidden
}

// Served is a protocol that millrace will publish for the site.
type Served struct {
	Protocol string `json:"protocol"`
	Title    string `json:"title"` // title of the protocol
	Entry    string `json:"entry"` // URL of the first document

	label string // display name of the protocol
}

// maxHidden is the maximum number of printed hidden addresses.
const maxHidden = 10

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	r.summary(&b)
	b.WriteString("\nWill be hidden: pages with noindex or behind a login, what robots.txt disallows,\naccounts, carts, logins and administration. ")
	fmt.Fprintf(&b, "Of %d addresses seen, %d will be hidden.\n", r.Seen, len(r.Hides))
	for i, h := range r.Hides {
		if i == maxHidden {
			fmt.Fprintf(&b, "  and %d more\n", len(r.Hides)-i)
			break
		}
		fmt.Fprintf(&b, "  %s: %s\n", h.URL, canon.OneLine(h.Reason))
	}
	b.WriteString("\nWill be served for every other page:\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, s := range r.Serves {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", s.label, s.Entry, s.Title)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(r.Reasons) > 0 {
		b.WriteString("\nThe policy contains the rules of the current robots.txt:\n")
		for _, why := range r.Reasons {
			fmt.Fprintf(&b, "  %s\n", canon.OneLine(why))
		}
	}
	fmt.Fprintf(&b, "\nConfiguration written to %s. Check and edit it, then run:\n", r.File)
	for _, n := range r.Next {
		fmt.Fprintf(&b, "  %s\n", n)
	}
	if r.Dashboard != "" {
		fmt.Fprintf(&b, "\nThe dashboard will be at %s/ on the site's host. Its password, which is shown only once:\n  %s\n", r.Dashboard, r.Password)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Summary returns the findings of the probe for people.
func (r *Report) Summary() string {
	var b strings.Builder
	r.summary(&b)
	return b.String()
}

func (r *Report) summary(b *strings.Builder) {
	if r.Folder() {
		fmt.Fprintf(b, "%s\n", r.Source)
	} else {
		fmt.Fprintf(b, "%s: probed with %s, %.1f s\n", r.Site, humanize.Quantity(r.Requests, "request"), r.Seconds)
	}
	if r.Generator != "" {
		fmt.Fprintf(b, "generator: %s\n", canon.OneLine(r.Generator))
	}
	if r.Server != "" {
		fmt.Fprintf(b, "server: %s\n", canon.OneLine(r.Server))
	}
	fmt.Fprintf(b, "source: %s", origins.ByName(r.As).Title)
	if r.Pages >= 0 {
		fmt.Fprintf(b, ", about %s", humanize.Quantity(int64(r.Pages), "page"))
	}
	b.WriteByte('\n')
	if len(r.Has) > 0 {
		fmt.Fprintf(b, "protocols found: %s\n", strings.Join(r.Has, ", "))
	}
}

// inShell quotes a word for a shell.
func inShell(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,") == "" && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// follow returns the commands to run next.
func (r *Report) follow() (next []string) {
	file := ""
	if r.File != "millrace.yaml" {
		file = " --config " + inShell(r.File)
	}
	next = append(next, "millrace config"+file, "millrace serve"+file)
	if r.Site == "" {
		return next
	}
	site := inShell(r.Site)
	switch {
	case r.Folder():
	case r.program == "":
		next = append(next, "millrace snippet nginx"+file+"   # or caddy: configuration for the site's server")
	default:
		next = append(next, "millrace snippet "+r.program+file+"   # configuration for "+r.program)
	}
	next = append(next, "millrace snippet systemd"+file, "millrace check "+site+r.privately())
	return next
}

func (r *Report) privately() string {
	if r.private {
		return " --allow-private"
	}
	return ""
}

// host returns the host of the site.
func (r *Report) host() string {
	u, err := url.Parse(r.Site)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
