package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/agent"
)

// A quota ends a pull without failure: the mirror keeps what was fetched, and the next
// pull continues.
func TestPullQuotas(t *testing.T) {
	t.Parallel()
	b := serveBehind(t, manyPages(t, 12))
	for _, c := range [][]string{
		{"tct-01", "--max-pages", "5"},
		{"crawl", "--max-pages", "5"},
		{"openfeeder", "--max-pages", "5"},
		{"tct-01", "--max-bytes", "14kB"},
		{"crawl", "--max-bytes", "12kB"},
	} {
		t.Run(strings.Join(c, " "), func(t *testing.T) {
			mirror, reference := filepath.Join(t.TempDir(), "mirror.db"), filepath.Join(t.TempDir(), "whole.db")
			whole := pullBest(t, b.url, reference, "--via", c[0])
			got, pulls, bounded, last := 0, 0, 0, agent.Report{}
			for ended := true; ended; pulls++ {
				r := pullBest(t, b.url, mirror, append([]string{"--via"}, c...)...)
				if r.Deleted+r.UnconfirmedDeletions > 0 || pulls > 10 || c[1] == "--max-pages" && r.Added > 5 || c[1] == "--max-bytes" && r.BytesReceived > 12_000+20_000 {
					t.Fatalf("pull %d: %+v", pulls, r)
				}
				if s := r.Savings; s.Unmodified > int64(got) || s.Unmodified > r.Requests-s.Fetched {
					t.Errorf("pull %d: %d of %d stored pages are unmodified, after %d requests", pulls, s.Unmodified, got, r.Requests)
				}
				got, last = got+r.Added, r
				if ended = r.Quota != ""; ended {
					bounded++
				}
				if ended && (!strings.HasPrefix(r.Quota, c[1]) || r.Via != c[0] || r.Added == 0 && c[0] != "crawl") {
					t.Errorf("pull %d: %+v", pulls, r)
				}
				if got >= whole.Added && c[0] == "crawl" {
					break // each pull probes some of the addresses again
				}
			}
			// A crawl fetches up to eight pages at once.
			if want := map[bool]int{false: 2, true: 1}[c[0] == "crawl"]; bounded < want {
				t.Errorf("%d pages in %d pulls, %d of which ended early", got, pulls, bounded)
			}
			if wantSame(t, mirror, reference, b.url); t.Failed() {
				t.Logf("last pull: %+v", last)
			}
		})
	}
}

// A pull skips collections that are larger than the quota.
func TestPullQuotaRefuses(t *testing.T) {
	t.Parallel()
	b := serveBehind(t, manyPages(t, 40))
	for _, args := range [][]string{{"--max-pages", "39"}, {"--max-pages", "39", "--via", "scp"}, {"--max-bytes", "6kB", "--via", "scp"}} {
		b.paths()
		code, out, errs := command(t, nil, append([]string{"pull", b.url, "--allow-private", "--json", "--store", filepath.Join(t.TempDir(), "m.db")}, args...)...)
		var r agent.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v: %s%s", err, out, errs)
		}
		if code != exitFailure || r.Added != 0 || r.Code != "too-large" || !strings.Contains(r.Error, args[0]) {
			t.Errorf("%v: exit %d: %+v", args, code, r)
		}
		for _, p := range b.paths() {
			if strings.HasPrefix(p, "/scp/") {
				t.Errorf("%v: %s was requested", args, p)
			}
		}
	}
	if exit, code, out := failure(t, nil, "pull", b.url, "--max-bytes", "many"); exit != exitUsage || code != "usage/max-bytes" {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
}
