package dashboard

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/scp"
	"github.com/millrace/millrace/store"
)

// gated adds access settings, rules for bots, and a protocol that is off to a site.
func gated(t *testing.T, s *SiteOptions) *SiteOptions {
	t.Helper()
	table, err := bots.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Access = &AccessSettings{
		Rate: 5, FilesRate: 2e6, FilesRateTotal: 1e7, Bots: table,
		BotRules: []BotRule{{"training", "403"}, {"GPTBot", "2/s"}, {"unverified", "1/s"}},
	}
	s.Off = []Off{{Protocol: protocol.Protocol{Name: scp.Name + "-x", Title: "Another one", Version: "1"}, Why: "It is off in this test."}}
	return s
}

// withoutTag is a response writer that removes the ETag.
type withoutTag struct{ http.ResponseWriter }

func (w *withoutTag) WriteHeader(status int) {
	w.Header().Del("Etag")
	w.ResponseWriter.WriteHeader(status)
}

// The forms of the service pages work in a browser: a check of the protocols, and a key that
// is created, refused as a duplicate, and revoked.
func TestRealBrowserService(t *testing.T) {
	t.Parallel()
	h := newHandbook(t, "https://handbook.test/", false)
	h.Keys = h.store.Keys()
	var broken atomic.Bool // responses have no ETag
	handler := h.Gateway()
	h.Gateway = func() http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if broken.Load() {
				w = &withoutTag{w}
			}
			handler.ServeHTTP(w, r)
		})
	}
	b := newBoard(t, gated(t, h.SiteOptions), time.Time{})
	open := chromium(t)
	for _, view := range []struct {
		name, theme string
		width       int64
	}{{"wide-light", "light", 1280}, {"narrow-dark", "dark", 390}} {
		t.Run(view.name, func(t *testing.T) {
			w := open(t, view.width, view.theme)
			w.logIn(b)
			at := strings.TrimSuffix(b.url, "/")
			look := func(name string, holds ...string) {
				t.Helper()
				w.shoot(name + "-" + view.name)
				text := w.eval("document.querySelector('main').innerText")
				for _, f := range w.flaws() {
					t.Errorf("%s: %s", name, f)
				}
				for _, s := range holds {
					if !strings.Contains(text, s) {
						t.Errorf("%s does not say %q: %s", name, s, text)
					}
				}
			}
			w.open(at + "/protocols")
			look("protocols-before", "Check all", "It is off in this test.")
			// checked presses a button, and reloads the page until the check has ended.
			checked := func(name, button, proto, word string) {
				t.Helper()
				w.send(button)
				for w.eval("String(document.querySelector('main button:disabled'))") != "null" {
					w.open(at + "/protocols")
				}
				look(name)
				if text := w.eval("document.querySelector('#" + proto + "').innerText"); !strings.Contains(text, word) {
					t.Errorf("%s does not say %q: %s", name, word, text)
				}
			}
			checked("protocols-checked", "form.row button", "tct-01", "conforms")
			checked("protocols-one", "#openfeeder form button", "openfeeder", "conforms")
			broken.Store(true)
			checked("protocols-broken", "#tct-01 form button", "tct-01", "failed")
			broken.Store(false)
			checked("protocols-mended", "#tct-01 form button", "tct-01", "conforms")

			w.open(at + "/policy")
			look("policy", "https://handbook.test/terms", "ai-train")
			name := "reader " + view.name + " <b>"
			w.do(chromedp.SendKeys(chromedp.CSS("#key-name"), name))
			w.send("form[action$='/policy/keys'] button")
			look("key-made", "mill_", name)
			keys, err := h.Keys.List(t.Context())
			if err != nil || !slices.ContainsFunc(keys, func(k store.Key) bool { return k.Name == name && k.Revoked.IsZero() }) {
				t.Fatalf("no key was created: %v, %v", keys, err)
			}
			w.open(at + "/policy")
			look("policy-keys", name)
			if strings.Contains(w.eval("document.documentElement.outerHTML"), "mill_") {
				t.Error("the key is shown again")
			}
			w.do(chromedp.SendKeys(chromedp.CSS("#key-name"), name))
			w.send("form[action$='/policy/keys'] button")
			look("key-refused")
			w.open(at + "/policy")
			w.do(chromedp.Click(chromedp.CSS("#keys table summary")))
			look("key-revoke", name)
			w.send("#keys table button")
			look("key-revoked", name)
			if keys, err = h.Keys.List(t.Context()); err != nil || slices.ContainsFunc(keys, func(k store.Key) bool { return k.Name == name && k.Revoked.IsZero() }) {
				t.Errorf("the key is still valid: %v, %v", keys, err)
			}
		})
	}
}
