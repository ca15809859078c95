package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/millrace/millrace/internal/fetch"
)

// keyed is the key that a command shows, and to whom.
type keyed struct {
	origin string // such as "https://example.com"
	key    string
}

// keyOf gives the key that an origin has given, "" if it has given none.
func (k keyed) keyOf(origin string) string {
	if k.key == "" || origin != k.origin {
		return ""
	}
	return k.key
}

// showing gives a client that shows the key to the site that has given it: for
// its pages as well as for the documents of a protocol.
func (k keyed) showing(c *fetch.Client) *http.Client { return fetch.WithKeys(c.HTTP(), k.keyOf) }

// visitor gives a client that shows the key, but not where everybody is to be
// let in: so whoever checks a site sees what strangers see there.
func (k keyed) visitor(c *fetch.Client) *http.Client {
	if k.key == "" {
		return c.HTTP()
	}
	client := *c.HTTP()
	client.Transport = visiting{stranger: client.Transport, guest: k.showing(c).Transport}
	return &client
}

type visiting struct{ stranger, guest http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (v visiting) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.Path, "/.well-known/") {
		return v.stranger.RoundTrip(r)
	}
	return v.guest.RoundTrip(r)
}

// maxKeyFile is what is read of a file with a key, in bytes.
const maxKeyFile = 4096

// loadKey finds the key of the sites that are pulled.
func (c *pullCommand) loadKey(p *process) error { return c.load(p, c.KeyFile, c.URL...) }

// load finds the key, in a file or in the environment. It belongs to one site,
// so that with sites of several addresses nobody knows whose it is.
func (k *keyed) load(p *process, file string, sites ...string) error {
	key, _ := p.lookup("MILLRACE_KEY")
	from := "MILLRACE_KEY"
	if file != "" {
		from = "--key-file " + file
		b, err := readStart(file, maxKeyFile+1)
		if err != nil {
			return usageError("--key-file: " + err.Error())
		}
		if len(b) > maxKeyFile {
			return usageError(from + ": it is longer than any key")
		}
		key, _, _ = strings.Cut(string(b), "\n")
	}
	if key = strings.TrimSpace(key); key == "" {
		if file != "" {
			return usageError(from + ": its first line is empty")
		}
		return nil
	}
	// The error must not repeat it.
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return usageError(from + ": what is there is no key: it has white space, or characters that no header of HTTP has")
	}
	for _, u := range sites {
		root, err := siteRoot(u)
		if err != nil {
			return err
		}
		origin := strings.TrimSuffix(root, "/")
		if k.origin != "" && origin != k.origin {
			return usageError(fmt.Sprintf("%s: a key belongs to one site; name %s and %s one after the other", from, k.origin, origin))
		}
		k.origin = origin
	}
	k.key = key
	return nil
}

// readStart reads at most so many bytes of a file.
func readStart(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}
