package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/millrace/millrace/internal/fetch"
)

// readyTimeout is the time limit of the command, so that a health check ends.
const readyTimeout = 5 * time.Second

// readyCommand checks whether a running server serves the site.
type readyCommand struct {
	commonFlags
	tlsFlags
	Listen  string `default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"Address that serve listens on (default: ${default})."`
	BaseURL string `name:"base-url" placeholder:"URL" help:"Base URL of serve. With --tls-cert, its host must be in the certificate."`
}

// readyReport is the report of `millrace ready --json`.
type readyReport struct {
	URL    string `json:"url"`    // requested URL
	Answer string `json:"answer"` // the response of the server
}

// Run requests /readyz of the server that listens on the address. It fails if no edition is
// published yet.
func (c *readyCommand) Run(ctx context.Context, p *process) error {
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return usageError("--listen: " + err.Error())
	}
	at, err := url.Parse(c.own(c.Listen) + "readyz")
	if err != nil {
		return usageError("--listen: " + err.Error())
	}
	address := at.Host
	if base, err := url.Parse(c.BaseURL); err == nil && c.TLSCert != "" && base.Host != "" {
		at.Host = base.Host
	}
	dial := p.dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	client := fetch.New(&fetch.Options{
		AllowPrivate: true, IgnoreRobots: true, Delay: -1, MaxRedirects: -1,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, address) },
	})
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return err
	}
	resp, err := client.HTTP().Do(req) // without retries
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := fetch.ReadBody(resp, 1<<20)
	if err != nil {
		return err
	}
	if err := fetch.CheckStatus(resp); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(answer))
	}
	return p.report(readyReport{at.String(), string(answer)}, func(w *bytes.Buffer) { w.Write(answer) })
}
