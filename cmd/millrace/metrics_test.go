package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

// serve shows metrics only to this machine, and none with --metrics off.
func TestMetrics(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "millrace.yaml")
	if err := os.WriteFile(conf, []byte("metrics: off\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, copySite(t, "handbook"))
	get(t, s.url+"docs/llm.json", "User-Agent", gptBot)
	status, h, body := get(t, s.url+"metrics")
	for _, line := range []string{
		`millrace_requests_total{bot="openai",endpoint="fetch",outcome="sent",protocol="tct-01"} 1`,
		"millrace_events_dropped_total 0", "millrace_source_scan_failed 0", "millrace_edition_pages ", "go_goroutines ",
	} {
		if !strings.Contains(body, line) {
			t.Errorf("%d %v: %q is missing in\n%s", status, h, line, body)
		}
	}
	if status, _, _ := get(t, s.url+"metrics", "X-Forwarded-For", "127.0.0.1"); status != 404 {
		t.Errorf("for another client: %d", status)
	}
	if _, _, robots := get(t, s.url+"robots.txt"); strings.Contains(robots, "metrics") {
		t.Error(robots)
	}
	s.stop()

	s = serve(t, copySite(t, "handbook"), "--config", conf)
	if status, _, _ := get(t, s.url+"metrics"); status != 404 {
		t.Errorf("with --metrics off: status %d", status)
	}
	s.stop()
}

func TestMetricsFlag(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		values []string
		off    bool
		code   string // of the error; "" = none
	}{
		{nil, false, ""},
		{[]string{"198.51.100.7", "2001:db8::/32"}, false, ""},
		{[]string{"off"}, true, ""},
		{[]string{"off", "10.0.0.0/8"}, false, "usage/metrics"},
		{[]string{"0.0.0.0/0"}, false, "usage/metrics"},
		{[]string{"everybody"}, false, "usage/metrics"},
		{[]string{""}, false, "usage/metrics"},
		{[]string{"::ffff:10.0.0.0/104"}, false, "usage/metrics"},
	} {
		c := metricsFlags{Metrics: tt.values}
		if err := c.validate(); millrace.ErrorCode(err) != tt.code {
			t.Errorf("%q: %v", tt.values, err)
		} else if c.metered() == tt.off || err == nil && !tt.off && len(c.readers) != len(tt.values) {
			t.Errorf("%q: %v, metered %t", tt.values, c.readers, c.metered())
		}
	}
}
