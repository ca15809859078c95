package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/millrace/millrace/internal/fetch"
)

// siteKey is the access key of a command, with its site.
type siteKey struct {
	origin string // such as "https://example.com"
	key    string
}

// keyOf returns the key for an origin, or "".
func (k siteKey) keyOf(origin string) string {
	if k.key == "" || origin != k.origin {
		return ""
	}
	return k.key
}

// keyClient returns a client that sends the key to its site, both for pages and for documents of
// protocols.
func (k siteKey) keyClient(c *fetch.Client) *http.Client { return fetch.WithKeys(c.HTTP(), k.keyOf) }

// checkClient returns a client that sends the key, except to URLs that must be public, so a checker
// gets their response for clients without a key.
func (k siteKey) checkClient(c *fetch.Client) *http.Client {
	if k.key == "" {
		return c.HTTP()
	}
	client := *c.HTTP()
	client.Transport = checkTransport{withoutKey: client.Transport, withKey: k.keyClient(c).Transport}
	return &client
}

type checkTransport struct{ withoutKey, withKey http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (v checkTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.Path, "/.well-known/") {
		return v.withoutKey.RoundTrip(r)
	}
	return v.withKey.RoundTrip(r)
}

// maxKeyFile is the maximum size of a key file in bytes.
const maxKeyFile = 4096

// loadKey reads the key of the sites to pull.
func (c *pullCommand) loadKey(p *process) error { return c.load(p, c.KeyFile, c.URL...) }

// load reads the key from a file or the environment. A key belongs to one origin, so load
// rejects sites of several origins.
func (k *siteKey) load(p *process, file string, sites ...string) error {
	key, _ := p.lookup("MILLRACE_KEY")
	from := "MILLRACE_KEY"
	if file != "" {
		from = "--key-file " + file
		b, err := readStart(file, maxKeyFile+1)
		if err != nil {
			return usageError("--key-file: " + err.Error())
		}
		if len(b) > maxKeyFile {
			return usageError(from + ": too long for a key")
		}
		key, _, _ = strings.Cut(string(b), "\n")
	}
	if key = strings.TrimSpace(key); key == "" {
		if file != "" {
			return usageError(from + ": the first line is empty")
		}
		return nil
	}
	// Errors must not contain the key.
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return usageError(from + ": not a key: it contains white space or characters that HTTP headers do not allow")
	}
	for _, u := range sites {
		root, err := siteRoot(u)
		if err != nil {
			return err
		}
		origin := strings.TrimSuffix(root, "/")
		if k.origin != "" && origin != k.origin {
			return usageError(fmt.Sprintf("%s: a key belongs to one site; use separate commands for %s and %s", from, k.origin, origin))
		}
		k.origin = origin
	}
	k.key = key
	return nil
}

// readStart reads at most the given number of bytes of a file.
func readStart(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}
