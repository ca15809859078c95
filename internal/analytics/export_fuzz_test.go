package analytics

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// A target is valid or rejected, and its printed form contains no secrets.
func FuzzParseTarget(f *testing.F) {
	for _, text := range []string{
		"umami=https://stats.example.com/?website=" + websiteID, "plausible=https://plausible.io?domain=example.com",
		"ga4=https://www.google-analytics.com/mp/collect?measurement_id=G-ABC1234567&api_secret=x", "webhook=http://u:p@[::1]:1/%2f?a=b#c", "=", "umami=",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := ParseTarget(text)
		if err != nil {
			if !errors.Is(err, millrace.ErrInvalid) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		u := target.url
		if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
			t.Errorf("%q leads to %s", text, u)
		}
		if again, err := url.Parse(u.String()); err != nil || again.String() != u.String() {
			t.Errorf("%q leads to %s, which is %v: %v", text, u, again, err)
		}
		if printed := target.String(); strings.ContainsAny(printed, "?#") || u.Path != "" && u.Path != "/" && strings.HasSuffix(printed, u.Path) {
			t.Errorf("%q prints as %s", text, printed)
		}
		if target.Kind != Webhook && !strings.HasSuffix(u.Path, receivers[target.Kind].endpoint) {
			t.Errorf("%q leads to %s", text, u)
		}
	})
}

// Every requested path has a URL that receivers can parse.
func FuzzEventURL(f *testing.F) {
	for _, path := range []string{"/a", "//b/c", "/?q=%zz", "https://evil.example/x", "javascript:1", "/%00", "", "/\xff?\x00", "http://[::1", "/a%2fb?c#d"} {
		f.Add(path, 80)
	}
	f.Fuzz(func(t *testing.T, path string, most int) {
		most = 40 + max(most, 0)%4000
		p := provider{base: "https://www.example.com/"}
		u := p.page(&store.Event{Path: path}, most)
		text := u.String()
		if u.Host == "www.example.com" {
			if err := plainURL(text, most); err != nil {
				t.Errorf("%q: %v", path, err)
			}
		}
		if again, err := url.Parse(text); err != nil || again.String() != text || again.User != nil {
			t.Errorf("%q is %q, which is %v: %v", path, text, again, err)
		}
	})
}
