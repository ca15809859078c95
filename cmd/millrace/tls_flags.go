package main

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/conns"
	"github.com/millrace/millrace/internal/fetch"
	stores "github.com/millrace/millrace/store/all"
)

// tlsFlags holds the flags of a server with TLS.
type tlsFlags struct {
	TLSCert string `name:"tls-cert" placeholder:"FILE" help:"PEM file with the certificate chain for https (default: serve http). It is read again when it changes."`
	TLSKey  string `name:"tls-key" placeholder:"FILE" help:"PEM file with the private key of the certificate."`
}

// validate rejects a certificate without a key, and a key without a certificate.
func (c *tlsFlags) validate() error {
	switch {
	case c.TLSCert == "" && c.TLSKey != "":
		return usageError("--tls-key needs --tls-cert")
	case c.TLSCert != "" && c.TLSKey == "":
		return usageError("--tls-cert needs --tls-key")
	}
	return nil
}

// scheme returns the scheme of the server's own URLs.
func (c *tlsFlags) scheme() string {
	if c.TLSCert == "" {
		return "http"
	}
	return "https"
}

// certificates reads the certificate. It returns nil if none is configured.
func (c *tlsFlags) certificates(p *process) (*conns.Certificates, error) {
	if c.TLSCert == "" {
		return nil, nil //nolint:nilnil // http
	}
	return conns.LoadCertificates(c.TLSCert, c.TLSKey, p.log)
}

// own returns the URL of this server, which listens on address.
func (c *tlsFlags) own(address string) string {
	host, port, _ := net.SplitHostPort(address) // valid, because the server listens on it
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return c.scheme() + "://" + net.JoinHostPort(host, port) + "/"
}

// endpointBase returns the base URL of the machine documents, for a server that listens on addr.
func (c *serveCommand) endpointBase(addr net.Addr) (string, error) {
	if c.BaseURL == "" {
		if site := c.front(); site != "" {
			return site, nil
		}
		return c.own(addr.String()), nil
	}
	u, err := canon.URL(c.BaseURL)
	if err != nil {
		return "", usageError("--base-url: " + err.Error())
	}
	if strings.Contains(u, "?") {
		return "", usageError("--base-url: a base URL must not have a query")
	}
	return strings.TrimSuffix(u, "/") + "/", nil
}

// secure logs warnings about insecure URLs, and about a certificate that clients will reject.
func secure(p *process, endpointBase string, certs *conns.Certificates) {
	u, err := url.Parse(endpointBase)
	if err != nil {
		return
	}
	host := u.Hostname()
	switch {
	case u.Scheme != "https" && !fetch.IsLoopback(host) && certs != nil:
		p.log.Warn("base URL is not https but the server uses TLS; give an https --base-url", "url", endpointBase)
	case u.Scheme != "https" && !fetch.IsLoopback(host):
		p.log.Warn("base URL is not https; use --tls-cert and --tls-key, or a proxy with a certificate, and an https --base-url", "url", endpointBase)
	case u.Scheme == "https" && certs != nil:
		if err := certs.Covers(host); err != nil {
			p.log.Warn("certificate does not cover the base URL; clients will not connect", "url", endpointBase, "err", err)
		}
	}
}

// checkImmutable rejects a configuration that changes settings that are fixed while a server
// runs.
func (c *serveCommand) checkImmutable(next *serveCommand) error {
	for _, f := range []struct{ flag, was, is string }{
		{"--listen", c.Listen, next.Listen},
		{"--store", stores.Name(c.Store), stores.Name(next.Store)},
		{"--as", c.As, next.As},
		{"--tls-cert", c.scheme(), next.scheme()},
	} {
		if f.was != f.is {
			return usageError(fmt.Sprintf("%s: changed from %q to %q; restart the server to apply it", f.flag, f.was, f.is))
		}
	}
	return nil
}
