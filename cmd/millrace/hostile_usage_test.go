package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// What is no URL of a site is refused in one line, before anything is asked
// for, and without what is secret in it.
func TestPullWrongURL(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"handbook", `"handbook" is no URL; write http:// or https:// in front of a host`},
		{"./site", `"./site" is no URL`},
		{"", `"" is no URL`},
		{"handbook.example/docs", `is no URL`},
		{"mailto:somebody@handbook.example", `is no URL`},
		{"somebody:topsecret@handbook.example", `"handbook.example" is no URL`},
		{"ftp://handbook.example/", "the scheme is not http or https"},
		{"file:///etc/passwd", "the scheme is not http or https"},
		{"javascript://alert(1)", "the scheme is not http or https"},
		{"http://", "there is no valid host"},
		{"http:///docs", "there is no valid host"},
		{"http://:80/", "there is no valid host"},
		{"http://.example/", "there is no valid host"},
		{"http://a b/", "there is no valid host"},
		{"http://%41/", "there is no valid host"},
		{"http://[fe80::1%25eth0]/", "there is no valid host"},
		{"http://[::1/", "there is no valid host"},
		{"http://127.0.0.1:0/", "the port is not a number from 1 to 65535"},
		{"http://127.0.0.1:65536/", "the port is not a number from 1 to 65535"},
		{"http://127.0.0.1:http/", "the port is not a number from 1 to 65535"},
		{"http://handbook.example/" + strings.Repeat("x", 9000), "it is longer than 8000 bytes"},
		{"http://" + strings.Repeat("x", 300) + ".example/", "there is no valid host"},
		{"http://handbook.example/\n", "control character"},
		{" http://handbook.example/", "the scheme is not http or https"},
		{"http://xn--zz-\u00fc/", "there is no valid host"},
		{"http://somebody:topsecret@handbook.example/", "http://handbook.example/: a URL with a user name or password is not fetched: leave them out"},
		{"https://topsecret@handbook.example/a?b", "https://handbook.example/a?b: a URL with a user name or password"},
		{"http://somebody:top%zzsecret@handbook.example/", "http://handbook.example/: a URL with a user name"},
		{"http://somebody:topsecret@", "user name or password"},
		{"http://somebody:topsecret/x@handbook.example/", "the port is not a number"},
		{"ftp://somebody:topsecret@handbook.example/", "a URL with a user name or password"},
	} {
		for _, args := range [][]string{{tt.url}, {"http://127.0.0.1:9/", tt.url}} {
			file := filepath.Join(t.TempDir(), "m.db")
			code, out, errs := command(t, nil, append([]string{"pull", "--store", file, "--"}, args...)...)
			if code != exitUsage || out != "" || !strings.HasPrefix(errs, "millrace pull: ") || !strings.Contains(errs, tt.want) {
				t.Errorf("%q: exit %d: %s%s", tt.url, code, out, errs)
			}
			if strings.Count(errs, "\n") != 1 || len(errs) > 300 || strings.Contains(errs, "secret") || strings.Contains(errs, "somebody") {
				t.Errorf("%q: not one line that keeps secrets: %s", tt.url, errs)
			}
			if _, err := filepath.Glob(file); err != nil {
				t.Error(err)
			}
		}
	}
}

// Names of hosts are shown as they are looked up, so that one which looks like
// another is told apart.
func TestPullLookAlike(t *testing.T) {
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
			lines := got.trouble()
			if got.code != exitFailure || got.report.Site != site || len(lines) != 1 || !strings.Contains(lines[0], "there is no host "+host+": DNS does not know the name") {
				t.Errorf("%s: exit %d, %s: %q", url, got.code, got.report.Site, lines)
			}
		})
	}
}

// Of several sites, one that fails holds up no other.
func TestPullOneOfTwoFails(t *testing.T) {
	g := newPolicySite(t, 2, says(404, "text/plain", ""))
	code, out, _ := command(t, nil, "pull", "--store", filepath.Join(t.TempDir(), "m.db"), "--allow-private", "--via", "tct-01", "http://127.0.0.1:1/", g.URL)
	if code != exitFailure || !strings.Contains(out, "127.0.0.1:1/ failed") || !strings.Contains(out, "connection refused") || !strings.Contains(out, "2 added") {
		t.Errorf("exit %d: %s", code, out)
	}
}
