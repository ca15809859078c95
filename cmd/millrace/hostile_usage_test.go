package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/agent"
)

// pull rejects a wrong URL with one line, before any request and without secrets.
func TestPullWrongURL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ url, code string }{
		{"handbook", "bad-url"},
		{"./site", "bad-url"},
		{"", "bad-url"},
		{"handbook.example/docs", "bad-url"},
		{"mailto:somebody@handbook.example", "bad-url"},
		{"somebody:topsecret@handbook.example", "bad-url"},
		{"ftp://handbook.example/", "bad-scheme"},
		{"file:///etc/passwd", "bad-scheme"},
		{"javascript://alert(1)", "bad-scheme"},
		{"http://", "bad-host"},
		{"http:///docs", "bad-host"},
		{"http://:80/", "bad-host"},
		{"http://.example/", "bad-host"},
		{"http://a b/", "bad-host"},
		{"http://%41/", "bad-host"},
		{"http://[fe80::1%25eth0]/", "bad-host"},
		{"http://[::1/", "bad-host"},
		{"http://127.0.0.1:0/", "bad-port"},
		{"http://127.0.0.1:65536/", "bad-port"},
		{"http://127.0.0.1:http/", "bad-port"},
		{"http://handbook.example/" + strings.Repeat("x", 9000), "url-size"},
		{"http://" + strings.Repeat("x", 300) + ".example/", "bad-host"},
		{"http://handbook.example/\n", "url-control"},
		{" http://handbook.example/", "bad-scheme"},
		{"http://xn--zz-\u00fc/", "bad-host"},
		{"http://somebody:topsecret@handbook.example/", "url-credentials"},
		{"https://topsecret@handbook.example/a?b", "url-credentials"},
		{"http://somebody:top%zzsecret@handbook.example/", "url-credentials"},
		{"http://somebody:topsecret@", "url-credentials"},
		{"http://somebody:topsecret/x@handbook.example/", "bad-port"},
		{"ftp://somebody:topsecret@handbook.example/", "url-credentials"},
	} {
		for _, args := range [][]string{{tt.url}, {"http://127.0.0.1:9/", tt.url}} {
			file := filepath.Join(t.TempDir(), "m.db")
			exit, code, out := failure(t, nil, append([]string{"pull", "--store", file}, args...)...)
			if exit != exitUsage || code != tt.code {
				t.Errorf("%q: exit %d %s: %s", tt.url, exit, code, out)
			}
			if strings.Count(out, "\n") != 2 || len(out) > 700 || strings.Contains(out, "secret") || strings.Contains(out, "somebody") {
				t.Errorf("%q: want one line without secrets: %s", tt.url, out)
			}
			if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		}
	}
}

// Host names are shown in ASCII form, so that lookalikes can be distinguished.
func TestPullLookAlike(t *testing.T) {
	t.Parallel()
	for url, site := range map[string]string{
		"http://B\u00fccher.example/":      "http://xn--bcher-kva.example/",
		"http://xn--bcher-kva.example":     "http://xn--bcher-kva.example/",
		"http://\u0430pple.example/a":      "http://xn--pple-43d.example/", // a Cyrillic letter
		"http://HANDBOOK.example:80/":      "http://handbook.example/",
		"http://[2606:4700:0::1]:8080/":    "http://[2606:4700::1]:8080/",
		"https://handbook.example:443/a/b": "https://handbook.example/",
	} {
		bubble(t, 0, func(t *testing.T, n *internet) {
			got := n.pull(t, filepath.Join(t.TempDir(), "m.db"), url, "--via", "tct-01")
			host, _, _ := strings.Cut(strings.Trim(strings.SplitN(site, "//", 2)[1], "/"), "]")
			host = strings.TrimPrefix(host, "[")
			lines, codes := got.trouble()
			if got.code != exitFailure || got.report.Site != site || len(lines) != 1 || codes[0] != "dns-unknown" || !strings.Contains(lines[0], host) {
				t.Errorf("%s: exit %d, %s: %q", url, got.code, got.report.Site, lines)
			}
		})
	}
}

// A site that fails does not block the other sites.
func TestPullOneOfTwoFails(t *testing.T) {
	t.Parallel()
	g := newPolicySite(t, 2, says(404, "text/plain", ""))
	code, out, _ := command(t, nil, "pull", "--store", filepath.Join(t.TempDir(), "m.db"), "--allow-private", "--via", "tct-01", "--json", "http://127.0.0.1:1/", g.URL)
	var r []agent.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitFailure || len(r) != 2 || r[0].Code != "connection-refused" || r[1].Added != 2 {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
}
