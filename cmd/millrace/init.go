package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/discover"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/humanize"
	origins "github.com/millrace/millrace/origin/all"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
)

type initCommand struct {
	common
	remote
	URL  string `arg:"" name:"url" help:"Your site, by the address that visitors know."`
	File string `arg:"" optional:"" default:"millrace.yaml" help:"File to write; one that is there stays as it is (default: ${default})."`
}

// initReport is what `millrace init --json` prints.
type initReport struct {
	Site      string                    `json:"site"`
	File      string                    `json:"file"`
	As        string                    `json:"as"`        // how serve is going to read it: wordpress or crawl
	Generator string                    `json:"generator"` // as the site's home page says; "" = it does not
	Server    string                    `json:"server"`
	Pages     int                       `json:"pages"`  // about; -1 = not known
	Has       []string                  `json:"has"`    // protocols that the site has already
	Seen      int                       `json:"seen"`   // addresses that were seen, of which
	Hides     []initHidden              `json:"hides"`  // these would be hidden
	Serves    []initServed              `json:"serves"` // what is going to be served
	Purposes  map[millrace.Purpose]bool `json:"purposes"`
	Reasons   []string                  `json:"reasons"`   // for the purposes
	Next      []string                  `json:"next"`      // commands
	Dashboard string                    `json:"dashboard"` // its path
	Password  string                    `json:"password"`  // of the dashboard, now and never again
	Requests  int64                     `json:"requests"`
	Seconds   float64                   `json:"seconds"`

	hash     string // of the password
	private  bool   // the site is at a private address
	unlisted bool   // it has no sitemap.xml that is not of millrace
	program  string // that serves it, as far as snippet knows it; "" = another
}

// initHidden is an address that machines would not see.
type initHidden struct {
	URL    string `json:"url"`
	Reason string `json:"reason"`
}

// initServed is a way for machines that is going to be there.
type initServed struct {
	Protocol string `json:"protocol"`
	Title    string `json:"title"`
	Entry    string `json:"entry"`          // where it begins
	Note     string `json:"note,omitempty"` // where it is not
}

// Run looks at a site, and writes a configuration for it.
func (c *initCommand) Run(ctx context.Context, p *process) error {
	p.start(&c.common)
	if err := c.remote.validate(); err != nil {
		return err
	}
	at, err := siteFolder(c.URL)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(c.File); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("%s: %w, and stays as it is: name another FILE behind the URL, and compare", c.File, fs.ErrExist)
		}
		return err
	}
	start := time.Now()
	client := c.client(p, forgetful{})
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	robots, err := fetch.RobotsOf(ctx, client.HTTP(), u)
	if err != nil {
		return err
	}
	if wait := robots.CrawlDelay(); wait > longWait {
		p.log.Warn("robots.txt wants so long a wait between two requests: this takes a while, and so does reading the site", "wait", wait)
	}
	// Before the look, which may find so much that fails that the host is left alone.
	text, err := robotsText(ctx, client.HTTP(), at)
	if err != nil {
		return err
	}
	bar := p.progress("looking at " + at)
	bar.of("requests")
	site, err := discover.Probe(ctx, client.HTTP(), at, &discover.Options{
		Protocols: all.Protocols(), Reader: &protocol.ReaderOptions{}, IgnorePolicy: true, Logger: p.log, Progress: func(n int) { bar.show(n, n) },
	})
	bar.end()
	if err != nil {
		return err
	}
	if site.Moved != "" {
		return millrace.Coded("site-moved", fmt.Errorf("%s leads to %s: run init for that address", at, site.Moved))
	}
	r := &initReport{
		Site: at, File: c.File, Generator: site.Seen.Generator, Server: site.Seen.Server, Pages: -1,
		Has: []string{}, Hides: []initHidden{}, Reasons: []string{}, Purposes: map[millrace.Purpose]bool{},
	}
	r.private = c.AllowPrivate && isPrivate(ctx, r.host())
	if err := r.look(ctx, client.HTTP(), site, text); err != nil {
		return err
	}
	made, err := newPassword()
	if err != nil {
		return err
	}
	r.Dashboard, r.Password, r.hash = initDashboard, made.Password, made.Hash
	if err := r.write(c); err != nil {
		return err
	}
	stats := client.Stats()
	r.Requests, r.Seconds = stats.Requests, time.Since(start).Round(time.Millisecond).Seconds()
	return p.report(r, r.text)
}

// initDashboard is where a new configuration has the dashboard. Few sites have
// something of the name.
const initDashboard = "/millrace"

// longWait is a Crawl-delay that makes twenty requests long.
const longWait = 3 * time.Second

// write writes the file, which nobody else has made meanwhile.
func (r *initReport) write(c *initCommand) error {
	text, err := r.yaml(time.Now())
	if err != nil {
		return err
	}
	// It has the hash of a password, and is where secrets go.
	f, err := os.OpenFile(c.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(c.File))
	}
	return nil
}

// shownHidden is how many hidden addresses are printed.
const shownHidden = 10

// text prints the report for a person.
func (r *initReport) text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: looked at with %s, %.1f s\n", r.Site, humanize.Quantity(r.Requests, "request"), r.Seconds)
	if r.Generator != "" {
		fmt.Fprintf(&b, "made by %s\n", printable(r.Generator))
	}
	if r.Server != "" {
		fmt.Fprintf(&b, "sent by %s\n", printable(r.Server))
	}
	fmt.Fprintf(&b, "millrace reads it by %s", origins.ByName(r.As).Title)
	if r.Pages >= 0 {
		fmt.Fprintf(&b, ": about %s", humanize.Quantity(int64(r.Pages), "page"))
	}
	b.WriteByte('\n')
	if len(r.Has) > 0 {
		fmt.Fprintf(&b, "it has %s already\n", strings.Join(r.Has, ", "))
	}
	b.WriteString("\nWill be hidden: pages with noindex or behind a login, what robots.txt disallows,\naccounts, carts, logins and administration. ")
	fmt.Fprintf(&b, "Of %d addresses that were seen, that is %d.\n", r.Seen, len(r.Hides))
	for i, h := range r.Hides {
		if i == shownHidden {
			fmt.Fprintf(&b, "  and %d more\n", len(r.Hides)-i)
			break
		}
		fmt.Fprintf(&b, "  %s: %s\n", printable(h.URL), printable(h.Reason))
	}
	b.WriteString("\nWill be served, of every other page:\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, s := range r.Serves {
		title := s.Title
		if s.Note != "" {
			title += ", " + s.Note
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", label(s.Protocol), s.Entry, title)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(r.Reasons) > 0 {
		b.WriteString("\nThe policy says what robots.txt says already:\n")
		for _, why := range r.Reasons {
			fmt.Fprintf(&b, "  %s\n", printable(why))
		}
	}
	fmt.Fprintf(&b, "\n%s is written. Read it, change it, and then:\n", printable(r.File))
	for _, n := range r.Next {
		fmt.Fprintf(&b, "  %s\n", printable(n))
	}
	fmt.Fprintf(&b, "\nThe dashboard is going to be at %s/, below the host. Its password, which is shown this once:\n  %s\n", r.Dashboard, r.Password)
	_, err := io.WriteString(w, b.String())
	return err
}

// inShell gives a word as a shell takes it.
func inShell(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,") == "" && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// follow gives the commands that come next.
func (r *initReport) follow() (next []string) {
	file := ""
	if r.File != configFile {
		file = " --config " + inShell(r.File)
	}
	site, sitemap := inShell(r.Site), ""
	if r.unlisted {
		sitemap = " --sitemap"
	}
	next = append(next, "millrace config"+file, "millrace serve "+site+file)
	switch r.program {
	case "":
		next = append(next, "millrace snippet nginx "+site+sitemap+file+"   # or caddy: what the server of the site has to pass on")
	default:
		next = append(next, "millrace snippet "+r.program+" "+site+sitemap+file+"   # what "+r.program+" has to pass on")
	}
	next = append(next, "millrace snippet systemd "+site+file, "millrace check "+site+r.privately())
	return next
}

func (r *initReport) privately() string {
	if r.private {
		return " --allow-private"
	}
	return ""
}

// host gives the host of the site.
func (r *initReport) host() string {
	u, err := url.Parse(r.Site)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
