package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/snapshot"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
)

// remote are the flags of every command that fetches.
type remote struct {
	AllowPrivate bool           `help:"Allow loopback and private addresses."`
	Delay        *time.Duration `placeholder:"DURATION" help:"Gap between two requests to one host (default: none on loopback, 250ms elsewhere)."`
	UserAgent    string         `placeholder:"TEXT" help:"Name to give to servers (default: millrace/VERSION)."`
	Contact      string         `placeholder:"ADDRESS" help:"Mail address or URL for the owners of sites, sent with the name."`
}

// validate refuses values that would be taken for something else.
func (r *remote) validate() error {
	if r.Delay != nil && *r.Delay < 0 {
		return usageError(fmt.Sprintf("--delay %s: a gap is not negative; 0 is none", *r.Delay))
	}
	for _, f := range [][2]string{{"--user-agent", r.UserAgent}, {"--contact", r.Contact}} {
		if strings.ContainsFunc(f[1], func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return usageError(fmt.Sprintf("%s %q: a header of HTTP has no control characters", f[0], f[1]))
		}
	}
	if c := r.Contact; c != "" && !strings.Contains(c, "@") && !strings.Contains(c, "://") {
		return usageError(fmt.Sprintf("--contact %q: name a mail address or a URL, such as bots@example.com", c))
	}
	return nil
}

// client makes the guarded client that the flags ask for. It obeys the
// robots.txt of sites and remembers it in robots; nil = it is no crawler, and
// asks for what a person has named.
func (r *remote) client(p *process, robots fetch.RobotsMemory) *fetch.Client {
	return fetch.New(r.clientOptions(p, robots))
}

func (r *remote) clientOptions(p *process, robots fetch.RobotsMemory) *fetch.Options {
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

// rooms gives the protocols with one of the names, or all of them. also are
// names that the caller knows beside them.
func rooms(name string, also ...string) ([]protocol.Protocol, error) {
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
	return nil, usageError(fmt.Sprintf("unknown protocol %q; there is %s", name, strings.Join(names, ", ")))
}

// label gives the name of a protocol for people; of another way to read a site,
// its name.
func label(name string) string {
	if p, err := rooms(name); err == nil && name != "" {
		return p[0].Label
	}
	return name
}

// siteURL gives a URL from the command line in canonical form. Errors do not
// repeat a user name or password.
func siteURL(raw string) (string, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return "", millrace.Coded("bad-url", usageError(fmt.Sprintf("%q is no URL; write http:// or https:// in front of a host", raw[strings.LastIndexByte(raw, '@')+1:])))
	}
	u, err := canon.URL(raw)
	if err == nil {
		return u, nil
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	at := strings.LastIndexByte(rest, '@')
	switch shown := rest[at+1:]; {
	case strings.Contains(authority, "@"):
		return "", millrace.Coded("url-credentials", usageError(fmt.Sprintf("%s://%.100s: a URL with a user name or password is not fetched: leave them out", scheme, shown)))
	case at >= 0: // a password with a slash makes the rest look like a path
		err = fmt.Errorf("URL \"%s://…@%.100s\": %w", scheme, shown, errors.Unwrap(err))
	}
	return "", usageOf(err)
}

// siteFolder gives the folder that a URL names, or that the file it names is
// in: what has no "." in its last part is a folder.
func siteFolder(raw string) (string, error) {
	u, err := siteURL(raw)
	if err != nil {
		return "", err
	}
	u, _, _ = strings.Cut(u, "?")
	last := u[strings.LastIndexByte(u, '/')+1:]
	switch {
	case last == "":
		return u, nil
	case strings.Contains(last, "."):
		return strings.TrimSuffix(u, last), nil
	}
	return u + "/", nil
}

// siteRoot gives the root of the origin that a URL is on.
func siteRoot(raw string) (string, error) {
	u, err := siteURL(raw)
	if err != nil {
		return "", err
	}
	root, err := url.Parse(u)
	if err != nil {
		return "", usageOf(err)
	}
	return root.Scheme + "://" + root.Host + "/", nil
}

// page gets one page of a site from its HTML. What an https site lists over
// http is refused, and what another site has in its place.
func page(ctx context.Context, client *http.Client, root, pageURL string) (*millrace.Page, error) {
	if strings.HasPrefix(root, "https:") && !strings.HasPrefix(pageURL, "https:") {
		return nil, fmt.Errorf("page %s of %s: it leaves https for http: %w", pageURL, root, millrace.ErrForbidden)
	}
	body, address, contentType, err := document(ctx, client, pageURL)
	if err != nil {
		return nil, err
	}
	_, from, _ := strings.Cut(canon.Origin(pageURL), "://")
	if _, to, _ := strings.Cut(canon.Origin(address), "://"); to != from {
		return nil, fmt.Errorf("page %s of %s: it leads to another site, %s: %w", pageURL, root, to, millrace.ErrInvalid)
	}
	rules, err := extract.NewRules(&extract.RulesOptions{Extra: snapshot.Extra()})
	if err != nil {
		return nil, err
	}
	res, err := extract.HTML(ctx, body, address, &extract.Options{ContentType: contentType, Rules: rules})
	if err != nil {
		return nil, err
	}
	res.Page.URL = pageURL
	return res.Page, nil
}

// storePath gives the default store of a source: a file under the user's
// state folder, named after the source. It makes the folder and tells the user.
func (p *process) storePath(source string) (string, error) {
	dir, ok := p.lookup("XDG_STATE_HOME")
	if !ok || !filepath.IsAbs(dir) {
		home, ok := p.lookup("HOME")
		if !ok || home == "" {
			return "", usageError("there is no home folder to keep the store in: set HOME, or name a file with --store FILE")
		}
		dir = filepath.Join(home, ".local", "state")
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, strings.Trim(source, "/"))
	// The hash keeps two long or odd names apart.
	name = name[max(0, len(name)-60):] + "-" + canon.SHA256Hex([]byte(source))[:8]
	file := filepath.Join(dir, "millrace", name+".db")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("there is no folder to keep the store in (%w): make %s writable, or name a file with --store FILE", err, dir)
	}
	p.log.Info("store", "file", file)
	return file, nil
}

// listen listens on the address that a flag gives.
func listen(ctx context.Context, flag, address string) (net.Listener, error) {
	ln, err := gateway.Listen(ctx, address)
	if bad, ok := errors.AsType[*net.AddrError](err); ok {
		return nil, usageError(fmt.Sprintf("%s %s: %s; want HOST:PORT, such as 127.0.0.1:8080", flag, address, bad.Err))
	}
	return ln, err
}
