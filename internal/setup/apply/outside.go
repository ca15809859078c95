package apply

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol/all"
)

// Check checks a site at its public address, as millrace check does. The home page must be
// available as Markdown.
func Check(ctx context.Context, client *http.Client, docs string) error {
	reloading, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for !responds(reloading, client, docs, "text/markdown") { // a server may need a moment to reload
		select {
		case <-reloading.Done():
			return fmt.Errorf("check %s: %w: the home page is not available as Markdown (Accept: text/markdown); is this the machine that serves the site?", docs, millrace.ErrUnavailable)
		case <-time.After(50 * time.Millisecond):
		}
	}
	target, err := check.NewTarget(docs, client, &check.TargetOptions{Decode: fetch.Decode})
	if err != nil {
		return err
	}
	var suites []check.Suite
	for _, proto := range all.Protocols() {
		suites = append(suites, proto.Suite())
	}
	var failed error
	for range 2 { // the first response may be from a process that the reload is replacing
		report, err := check.Run(ctx, target, suites, nil)
		if err != nil {
			return err
		}
		if !report.Failed() {
			return nil
		}
		f := report.Findings[max(0, slices.IndexFunc(report.Findings, func(f check.Finding) bool { return f.Level == check.Must }))]
		failed = fmt.Errorf("check %s: rule %s fails at %s: got %s, want %s; run millrace check for all findings", docs, f.Rule, f.URL, f.Got, f.Want)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
	return failed
}

// responds reports whether a URL returns 200. If media is not empty, the request prefers that
// media type, and the response must have it.
func responds(ctx context.Context, client *http.Client, url, media string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	if media != "" {
		req.Header.Set("Accept", media)
	}
	resp, err := fetch.Do(ctx, client, req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), media)
}

// serviceWait is the maximum time for the first edition of the service.
const serviceWait = 30 * time.Minute

// Started waits until the service at an address is ready, if Apply has started it.
func (a *Applier) Started(ctx context.Context, listen string) error {
	if s, ok := a.target.(*systemd); !ok || !s.live {
		return nil
	}
	client := fetch.New(&fetch.Options{AllowPrivate: true, IgnoreRobots: true, Delay: -1})
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, serviceWait)
	defer cancel()
	for {
		if responds(ctx, client.HTTP(), "http://"+listen+"/readyz", "") {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("service millrace: %w: not ready; see journalctl -u millrace", millrace.ErrUnavailable)
		case <-time.After(time.Second):
		}
	}
}
