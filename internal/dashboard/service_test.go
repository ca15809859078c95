package dashboard

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	artifactmemory "github.com/millrace/millrace/artifact/memory"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/store"
)

// owner returns a logged-in client of a site's dashboard.
func owner(t *testing.T, s *SiteOptions) *guest {
	t.Helper()
	d, err := New(s, &Options{Path: boardPath, Password: cheap(), Sessions: newSessions(), Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return seedTime }})
	if err != nil {
		t.Fatal(err)
	}
	v := &guest{t, d, strings.TrimSuffix(s.Base, "/"), "192.0.2.7:0", map[string]string{}, http.Header{}}
	if v.logIn(boardPassword); !v.in() {
		t.Fatal("the login failed")
	}
	return v
}

var servicePages = []string{"/changes", "/searches", "/protocols", "/policy", "/errors", "/unusual"}

// If a site has no data, its pages say so.
func TestServicePagesWithoutData(t *testing.T) {
	t.Parallel()
	h := newHandbook(t, "https://handbook.test/", false)
	server := edition.NewServer(h.from, nil, artifactmemory.New(nil), nil)
	s := &SiteOptions{Name: h.Name, Base: h.Base, EndpointBase: h.EndpointBase, Pages: h.Pages, Server: server, Gateway: h.Gateway, Key: h.Key}
	v := owner(t, s)
	for path, want := range map[string]string{
		"/changes": "added", "/searches": emptyList, "/protocols": "<h1>", "/policy": emptyList,
		"/errors": emptyList, "/unusual": emptyList,
	} {
		if w := v.ask(http.MethodGet, path, nil); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d, without %q: %s", path, w.Code, want, w.Body)
		}
	}
	token := v.token("/protocols")
	for _, path := range []string{"/policy/keys", "/policy/revoke"} {
		if w := v.ask(http.MethodPost, path, url.Values{"csrf": {token}, "name": {"x"}, "read": {"1"}}); w.Code != http.StatusNotFound {
			t.Errorf("a site without keys responds to %s with %d", path, w.Code)
		}
	}
	if w := v.ask(http.MethodPost, "/protocols", url.Values{"csrf": {token}, "protocol": {"gopher"}}); w.Code != http.StatusNotFound {
		t.Errorf("an unknown protocol is checked: %d", w.Code)
	}
}

// Texts from clients are shown as text. Invalid query parameters are refused or ignored.
func TestServicePagesEscapeTexts(t *testing.T) {
	t.Parallel()
	h := newHandbook(t, "https://handbook.test/", false)
	h.Usage, h.Keys = h.store, h.store.Keys()
	const evil = `<script>alert(1)</script>"'&{{.}}` + "\u202e\u0007"
	var events []store.Event
	for i := range 40 {
		e := store.Event{
			Time: seedTime.Add(-time.Duration(i) * time.Minute), Bot: evil, Family: evil, Protocol: evil, Path: "/" + evil, Query: evil, Intent: evil,
			Status: 200, Bytes: 1000, Size: 1000, Endpoint: store.EndpointFetch, Identity: store.Forged,
		}
		switch i % 4 {
		case 1:
			e.Endpoint = store.EndpointSearch
		case 2:
			e.Status = 404
		case 3:
			e.Status = 0
		}
		events = append(events, e)
	}
	if err := h.Usage.Record(t.Context(), h.Name, events); err != nil {
		t.Fatal(err)
	}
	look := &SourceScan{Time: seedTime, As: "folder", Err: fmt.Errorf("%s: %w", evil, millrace.ErrUnavailable)}
	for i := range 250 {
		u := fmt.Sprintf("https://handbook.test/%d/%s", i, evil)
		look.Skipped = append(look.Skipped, mirror.Skip{URL: u, Reason: "page " + u + " of " + evil})
	}
	look.SkippedN = len(look.Skipped)
	h.LastScan = func(context.Context) (*SourceScan, error) { return look, nil }
	if _, hash := store.NewKey(); h.store.Keys().Add(t.Context(), store.Key{Name: `<script>"'&`, Hash: hash, Scopes: []millrace.Scope{millrace.ScopeRead}}) != nil {
		t.Fatal("no key")
	}
	v := owner(t, h.SiteOptions)
	pages := []string{
		"/changes?what=%3Cscript%3E&before=5", "/searches?days=-1", "/searches?days=zzz", "/protocols?days=99999999999999999999",
		"/errors?reason=" + url.QueryEscape("<script>"), "/errors?part=999999", "/errors?part=3", "/unusual?days=30", "/policy",
	}
	for _, path := range append(pages, servicePages...) {
		w := v.ask(http.MethodGet, path, nil)
		body := w.Body.String()
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
		if strings.Contains(body, "<script>alert") || strings.Contains(body, "\u202e") || strings.Contains(body, "\a") || strings.Contains(body, `<script>"`) {
			t.Errorf("%s does not escape text from clients: %s", path, body)
		}
	}
	body := v.ask(http.MethodGet, "/errors", nil).Body.String()
	if !strings.Contains(body, "1 of 3") || strings.Count(body, `data-label="Pages"`) != 1 {
		t.Errorf("the problem of 250 pages is not shown as one reason in three parts: %s", body)
	}
	for _, path := range []string{"/changes?before=x", "/changes?before=-1", "/changes?before=99999999999999999999999", "/errors?part=0", "/errors?part=x"} {
		if w := v.ask(http.MethodGet, path, nil); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	token := v.token("/policy")
	for name, form := range map[string]url.Values{
		"no name":                  {"read": {"1"}},
		"no right":                 {"name": {"x"}},
		"a day in the past":        {"name": {"x"}, "read": {"1"}, "expires": {"2020-01-01"}},
		"no day":                   {"name": {"x"}, "read": {"1"}, "expires": {"tomorrow"}},
		"a key in place of a name": {"name": {store.KeyPrefix + "abc"}, "read": {"1"}},
		"control characters":       {"name": {"a\x00b"}, "read": {"1"}},
		"a name too long":          {"name": {strings.Repeat("x", store.MaxKeyName+1)}, "read": {"1"}},
	} {
		form.Set("csrf", token)
		if w := v.ask(http.MethodPost, "/policy/keys", form); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), badMessage) {
			t.Errorf("a key with %s: %d", name, w.Code)
		}
	}
	if w := v.ask(http.MethodPost, "/policy/keys", url.Values{"name": {"y"}, "read": {"1"}}); w.Code != http.StatusForbidden {
		t.Errorf("a form without a token creates a key: %d", w.Code)
	}
	w := v.ask(http.MethodPost, "/policy/keys", url.Values{"csrf": {token}, "name": {"y"}, "update": {"1"}, "expires": {"2026-12-24"}})
	if w.Code != http.StatusOK || strings.Count(w.Body.String(), store.KeyPrefix) != 1 {
		t.Errorf("the new key is not shown: %d %s", w.Code, w.Body)
	}
	if w := v.ask(http.MethodPost, "/policy/keys", url.Values{"csrf": {token}, "name": {"y"}, "read": {"1"}}); w.Code != http.StatusConflict {
		t.Errorf("two keys with one name: %d", w.Code)
	}
	for range 2 { // the second time, the key is already revoked
		if w := v.ask(http.MethodPost, "/policy/revoke", url.Values{"csrf": {token}, "name": {"y"}}); w.Code != http.StatusSeeOther {
			t.Errorf("revoked: %d", w.Code)
		}
	}
	keys, err := h.Keys.List(t.Context())
	if err != nil || len(keys) != 2 || keys[1].Revoked.IsZero() || keys[1].HasScope(millrace.ScopeRead) || keys[1].Expires.Day() != 24 {
		t.Errorf("%+v, %v", keys, err)
	}
}

// The page says if queries are stored as hashes.
func TestHashedSearches(t *testing.T) {
	t.Parallel()
	h := newHandbook(t, "https://handbook.test/", false)
	h.Usage = h.store
	v := owner(t, h.SiteOptions)
	record := func(queries ...string) {
		t.Helper()
		for _, q := range queries {
			e := store.Event{
				Time: seedTime.Add(-time.Hour), Bot: "GPTBot", Protocol: "openfeeder", Endpoint: store.EndpointSearch, Query: q, Status: 200,
			}
			if err := h.Usage.Record(t.Context(), h.Name, []store.Event{e}); err != nil {
				t.Fatal(err)
			}
		}
	}
	says := func() bool {
		return strings.Contains(v.ask(http.MethodGet, "/searches", nil).Body.String(), `<p class="message warn">`)
	}
	record("#fedcba")
	if says() {
		t.Error("a query with a # is shown as a hash")
	}
	record("#0123456789abcdef01234567", "#0123456789abcdef01234567")
	if !says() {
		t.Error("the page does not say that the query is a hash")
	}
}

// While a check runs, the page says so, so that a missing result is not mistaken for a final
// one.
func TestCheckRunning(t *testing.T) {
	t.Parallel()
	h := newHandbook(t, "https://handbook.test/", false)
	handler := h.Gateway()
	come, leave := make(chan struct{}, 1), make(chan struct{})
	h.Gateway = func() http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case come <- struct{}{}:
			default:
			}
			<-leave
			handler.ServeHTTP(w, r)
		})
	}
	v := owner(t, h.SiteOptions)
	token := v.token("/protocols")
	first := v.d.checks.run(t.Context(), v.d.config, h.SiteOptions, h.Protocols)
	<-come
	w := v.ask(http.MethodPost, "/protocols", url.Values{"csrf": {token}})
	if w.Code != http.StatusSeeOther {
		t.Errorf("started while a check runs: %d", w.Code)
	}
	if body := v.ask(http.MethodGet, "/protocols", nil).Body.String(); strings.Count(body, " disabled>Check") != len(h.Protocols)+1 {
		t.Errorf("the page does not say that a check is running: %s", body)
	}
	close(leave)
	<-first
	if body := v.ask(http.MethodGet, "/protocols", nil).Body.String(); strings.Contains(body, " disabled>Check") {
		t.Errorf("the page has no result: %s", body)
	}
}

// A dashboard that replaces another one keeps its check results. It marks each as previous
// until the protocol is checked again.
func TestCheckResultsOutliveConfiguration(t *testing.T) {
	t.Parallel()
	h := newHandbook(t, "https://handbook.test/", false)
	h.Protocols = h.Protocols[:2]
	v := owner(t, h.SiteOptions)
	<-v.d.checks.run(t.Context(), v.d.config, h.SiteOptions, h.Protocols)
	before := func(want int) {
		t.Helper()
		reply, err := v.d.protocols(httptest.NewRequest(http.MethodGet, "/protocols", http.NoBody))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, at := range reply.Data.(*protocolsPage).Protocols {
			if at.Check == nil {
				t.Errorf("%s has no result", at.Name)
			}
			if at.BeforeReload {
				n++
			}
		}
		if n != want {
			t.Errorf("%d results are from the previous configuration, want %d", n, want)
		}
	}
	before(0)
	next, err := New(h.SiteOptions, &Options{
		Path: boardPath, Password: cheap(), Sessions: v.d.sessions, CheckResults: v.d.checks,
		Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return seedTime },
	})
	if err != nil {
		t.Fatal(err)
	}
	v.d = next
	before(2)
	token := v.token("/protocols")
	if w := v.ask(http.MethodPost, "/protocols", url.Values{"csrf": {token}, "protocol": {h.Protocols[0].Name}}); w.Code != http.StatusSeeOther {
		t.Errorf("a request for a check: %d", w.Code)
	}
	before(1)
}
