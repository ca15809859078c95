package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
)

// webCrawl is the agent's name for reading a site without a protocol.
const webCrawl = agent.Crawl

// fetchFlags holds the flags of commands that fetch.
type fetchFlags struct {
	AllowPrivate bool           `help:"Allow loopback and private addresses."`
	Delay        *time.Duration `placeholder:"DURATION" help:"Delay between two requests to one host (default: none on loopback, 250ms elsewhere)."`
	UserAgent    string         `placeholder:"TEXT" help:"User agent of requests (default: millrace/VERSION)." hidden:""`
	Contact      string         `placeholder:"ADDRESS" help:"E-mail address or URL for owners of sites, sent with the user agent."`
}

func (r *fetchFlags) fetching() *fetchFlags { return r }

// validate rejects invalid values.
func (r *fetchFlags) validate() error {
	if r.Delay != nil && *r.Delay < 0 {
		return usageError(fmt.Sprintf("--delay %s: must not be negative; 0 is no delay", *r.Delay))
	}
	for _, f := range [][2]string{{"--user-agent", r.UserAgent}, {"--contact", r.Contact}} {
		if strings.ContainsFunc(f[1], func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return usageError(fmt.Sprintf("%s %q: must not contain control characters", f[0], f[1]))
		}
	}
	if c := r.Contact; c != "" && !strings.Contains(c, "@") && !strings.Contains(c, "://") {
		return usageError(fmt.Sprintf("--contact %q: must be an e-mail address or a URL, such as bots@example.com", c))
	}
	return nil
}

// client returns the guarded client that the flags configure. It obeys robots.txt and stores it in
// robots. If robots is nil, the client ignores robots.txt, and is only for URLs that a user names.
func (r *fetchFlags) client(p *process, robots fetch.RobotsMemory) *fetch.Client {
	return fetch.New(r.clientOptions(p, robots))
}

// notificationTimeout is the timeout of each request of a notification client.
const notificationTimeout = 30 * time.Second

// notificationClient returns a client for webhooks and pings. It ignores robots.txt and does not log,
// because URLs may contain secrets.
func (r *fetchFlags) notificationClient(p *process) *fetch.Client {
	return fetch.New(&fetch.Options{
		AllowPrivate: r.AllowPrivate, UserAgent: r.UserAgent, Contact: r.Contact, IgnoreRobots: true, Delay: -1, Timeout: notificationTimeout, Dial: p.dial,
	})
}

func (r *fetchFlags) clientOptions(p *process, robots fetch.RobotsMemory) *fetch.Options {
	o := &fetch.Options{
		AllowPrivate: r.AllowPrivate, UserAgent: r.UserAgent, Contact: r.Contact,
		Robots: robots, IgnoreRobots: robots == nil, Logger: p.log, Dial: p.dial,
	}
	if r.Delay != nil {
		if o.Delay = *r.Delay; o.Delay == 0 {
			o.Delay = -1
		}
	}
	return o
}

// protocols returns the protocol with a name, or all protocols if the name is "". also lists other
// valid names for the error text.
func protocols(name string, also ...string) ([]protocol.Protocol, error) {
	every := all.Protocols()
	if name == "" {
		return every, nil
	}
	var names []string
	for _, p := range every {
		if p.Name == name {
			return []protocol.Protocol{p}, nil
		}
		names = append(names, p.Name)
	}
	names = append(names, also...)
	return nil, usageError(fmt.Sprintf("unknown protocol %q; use one of %s", name, strings.Join(names, ", ")))
}

// siteURL returns a URL from the command line in canonical form.
func siteURL(raw string) (string, error) { return usage(ingest.URL(raw)) }

// siteFolder returns the folder of a URL from the command line, in canonical form.
func siteFolder(raw string) (string, error) { return usage(ingest.Folder(raw)) }

// siteRoot returns the root of the origin of a URL from the command line.
func siteRoot(raw string) (string, error) { return usage(ingest.Root(raw)) }

// orFolder adds to the error for an argument without a scheme that it may also be a folder.
func orFolder(arg string, err error) error {
	if strings.Contains(arg, "://") {
		return err
	}
	return usageOf(fmt.Errorf("%w, or name an existing folder", err))
}

func usage(s string, err error) (string, error) {
	if err != nil {
		return "", usageOf(err)
	}
	return s, nil
}

// storePath returns the default store of a source: a file in the user's state folder, named
// after the source. It creates the folder and logs the path.
func (p *process) storePath(source string) (string, error) {
	file, err := p.statePath(source)
	if err == nil {
		p.log.Info("using default store", "path", file)
	}
	return file, err
}

// statePath returns a file in the user's state folder, and creates the folder.
func (p *process) statePath(source string) (string, error) {
	dir, ok := p.lookup("XDG_STATE_HOME")
	if !ok || !filepath.IsAbs(dir) {
		home, ok := p.lookup("HOME")
		if !ok || home == "" {
			return "", usageError("no home folder for the store; set HOME, or name a file with --store FILE")
		}
		dir = filepath.Join(home, ".local", "state")
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, strings.Trim(source, "/"))
	// The hash distinguishes names that are equal after truncation.
	name = name[max(0, len(name)-60):] + "-" + canon.SHA256Hex([]byte(source))[:8]
	file := filepath.Join(dir, "millrace", name+".db")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("create folder for the store: %w; make %s writable, or name a file with --store FILE", err, dir)
	}
	return file, nil
}

// mirrorPath returns the default mirror of a site. It is never the store of serve for the same
// site, because a pull deletes the pages that its way of reading the site does not list.
func (p *process) mirrorPath(root string) (string, error) { return p.storePath("mirror of " + root) }

// listen listens on the address of a flag.
func listen(ctx context.Context, flag, address string) (net.Listener, error) {
	ln, err := gateway.Listen(ctx, address)
	if bad, ok := errors.AsType[*net.AddrError](err); ok {
		return nil, usageError(fmt.Sprintf("%s %s: %s; use HOST:PORT, such as 127.0.0.1:8080", flag, address, bad.Err))
	}
	return ln, err
}
