package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/internal/testkit"
)

// tryPull runs `millrace pull --json` and returns its report and exit status.
func tryPull(t *testing.T, url, file string, args ...string) (agent.Report, int) {
	t.Helper()
	env := map[string]string{"HOME": filepath.Dir(file)}
	code, out, errs := command(t, env, append([]string{"pull", url, "--store", file, "--allow-private", "--json"}, args...)...)
	var r agent.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("exit %d, %v:\n%s%s", code, err, out, errs)
	}
	return r, code
}

// A site's usage policy applies to every way of reading it.
func TestPullPolicy(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, conf, "policy:\n  terms: https://example.com/terms\n  contact: rights@example.com\n  purposes: {ai-train: false, ai-input: true}\n  requirements: {attribution: true}\n")
	addr := "127.0.0.1:" + testkit.FreePort(t)
	s := serve(t, copySite(t, "handbook"), "--config", conf, "--listen", addr, "--store", filepath.Join(t.TempDir(), "s.db"))
	document := s.url + "llm-policy.json"
	ways := []string{"", "tct-00", "crawl", "scp", "openfeeder", "tct-01", "arc"}
	if testing.Short() {
		ways = ways[:3]
	}
	for _, via := range ways {
		file := filepath.Join(t.TempDir(), "mirror.db")
		args := []string{}
		if via != "" {
			args = append(args, "--via", via)
		}
		r, code := tryPull(t, s.url, file, append(args, "--purpose", "ai-train")...)
		for _, part := range []string{document, "purposes.allow_ai_train", "mailto:rights@example.com"} {
			if code != exitFailure || r.Code != "policy-refuses" || !strings.Contains(r.Error, part) {
				t.Errorf("by %q: exit %d %s, %q does not name %s", via, code, r.Code, r.Error, part)
			}
		}
		if r.Added != 0 || r.Requests > 2 || len(r.Ways) != 0 || len(storedPages(t, file, s.url, s.url)) != 0 {
			t.Errorf("by %q: a forbidden pull fetched %+v", via, r)
		}
		want := &agent.Policy{
			Terms: "https://example.com/terms", Contact: "mailto:rights@example.com", Requirements: []string{"attribution"},
		}
		r = pullBest(t, s.url, file, args...)
		if r.Policy == nil || !slices.Contains(r.Policy.Documents, document) {
			t.Fatalf("by %q: %+v", via, r)
		}
		r.Policy.Documents = nil // other protocols may have more
		if diff := cmp.Diff(want, r.Policy); diff != "" || r.Added == 0 || r.PolicyIgnored {
			t.Errorf("by %q: %+v (-want +got):\n%s", via, r, diff)
		}
		if via != "crawl" && via != "openfeeder" {
			if r := pullBest(t, s.url, file, args...); r.Requests != 1 || r.Policy == nil {
				t.Errorf("by %q, nothing changed: %+v", via, r)
			}
		}
		// A stored policy also forbids reading, and the document is requested again.
		if r, code := tryPull(t, s.url, file, append(args, "--purpose", "ai-train")...); code != exitFailure || r.Requests != 1 {
			t.Errorf("by %q, with a stored policy: exit %d, %+v", via, code, r)
		}
		if r := pullBest(t, s.url, file, append(args, "--purpose", "search")...); r.Purpose != millrace.Search {
			t.Errorf("by %q, for an unmentioned purpose: %+v", via, r)
		}
		if r := pullBest(t, s.url, filepath.Join(t.TempDir(), "m.db"), append(args, "--purpose", "ai-train", "--ignore-policy")...); r.Added == 0 || !r.PolicyIgnored || r.Policy != nil {
			t.Errorf("by %q, ignoring the policy: %+v", via, r)
		}
	}

	file := filepath.Join(t.TempDir(), "mirror.db")
	_, out, _ := command(t, nil, "pull", s.url, "--store", file, "--allow-private")
	if !strings.Contains(out, " attribution ") || !strings.Contains(out, "https://example.com/terms") || !strings.Contains(out, document) {
		t.Errorf("a pull prints\n%s", out)
	}
	_, out, _ = command(t, nil, "pull", s.url, "--store", file, "--allow-private", "--purpose", "ai-train", "--ignore-policy")
	if !strings.Contains(out, "--ignore-policy") {
		t.Errorf("a pull that ignores the policy prints\n%s", out)
	}

	// A relaxed policy applies at once.
	s.stop()
	write(t, conf, "policy:\n  purposes: {ai-train: true}\n")
	s = serve(t, copySite(t, "handbook"), "--config", conf, "--listen", addr, "--store", filepath.Join(t.TempDir(), "s.db"))
	if r, code := tryPull(t, s.url, file, "--purpose", "ai-train"); code != exitGood {
		t.Errorf("after the policy allows it: %+v", r)
	}
}

// policySite is a TCT draft-01 site with a policy.
type policySite struct {
	*httptest.Server
	mu     sync.Mutex
	policy http.HandlerFunc
	robots string
	also   map[string]http.HandlerFunc // by path
	slow   time.Duration               // delay of each page
	asked  []time.Time                 // times of requests, except for robots.txt
	paths  []string
}

func newPolicySite(t *testing.T, pages int, policy http.HandlerFunc) *policySite {
	t.Helper()
	s := &policySite{policy: policy}
	mux := http.NewServeMux()
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.paths = append(s.paths, r.URL.Path)
		if r.URL.Path != "/robots.txt" {
			s.asked = append(s.asked, time.Now())
		}
		s.mu.Unlock()
		if h, ok := s.also[r.URL.Path]; ok {
			h(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	type hashed struct{ body, hash string }
	document := func(n int) hashed {
		head := fmt.Sprintf(`{"canonical_url":"%s/%d/","content":"The words of page %[2]d."`, s.URL, n)
		tail := fmt.Sprintf(`,"profile":"tct-1","title":"Page %d"}`, n)
		hash := "sha256-" + canon.SHA256Hex([]byte(head+tail))
		return hashed{head + `,"hash":"` + hash + `"` + tail, hash}
	}
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", `</list>; rel="index"; type="application/json"`)
	})
	mux.HandleFunc("/robots.txt", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s.robots) })
	mux.HandleFunc("/llm-policy.json", func(w http.ResponseWriter, r *http.Request) { s.policy(w, r) })
	mux.HandleFunc("/list", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"list"`)
		if r.Header.Get("If-None-Match") == `"list"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		var items []string
		for i := range pages {
			items = append(items, fmt.Sprintf(`{"cUrl":"%[1]s/%[2]d/","mUrl":"%[1]s/%[2]d/llm.json","etag":"%[3]s"}`, s.URL, i, document(i).hash))
		}
		fmt.Fprintf(w, `{"version":1,"items":[%s]}`, strings.Join(items, ","))
	})
	mux.HandleFunc("/{n}/llm.json", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(s.slow)
		n := r.PathValue("n")
		w.Header().Set("Content-Type", "application/json")
		i, err := strconv.Atoi(n)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("ETag", `"`+document(i).hash+`"`)
		w.Header().Set("Link", "<"+s.URL+"/"+n+`/>; rel="canonical"`)
		fmt.Fprint(w, document(i).body)
	})
	return s
}

// since returns the paths requested since the last call.
func (s *policySite) since() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.paths
	s.paths, s.asked = nil, nil
	return out
}

func says(status int, typ, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", typ)
		w.Header().Set("Retry-After", "100") // longer than any pull waits
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func TestPullUnusualPolicy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		policy http.HandlerFunc
		robots string
		code   string // "strict" = the strictest rules apply; "" = none apply; or the code of the error
		part   string // expected in the error or note
	}{
		{"none", says(404, "text/plain", "no"), "", "", ""},
		{"a page for every path", says(200, "text/html", "<!DOCTYPE html><p>Hello"), "", "", ""},
		{"a word for every path", says(200, "text/plain", "ok"), "", "", ""},
		{"closed", says(403, "text/plain", "no"), "", "", ""},
		{"disallowed", says(200, "application/json", `{"purposes":{"allow_ai_input":false}}`), "User-agent: *\nDisallow: /llm-policy.json\n", "", ""},
		{"nothing said", says(200, "application/json", `{}`), "", "", ""},
		{"forbidden", says(200, "application/json", `{"purposes":{"allow_ai_input":false}}`), "", "policy-refuses", "purposes.allow_ai_input"},
		{"another type", says(200, "application/json", `{"purposes":{"allow_ai_input":"no"}}`), "", "strict", "/purposes/allow_ai_input"},
		{"cut off", says(200, "application/json", `{"purposes":{"allow_ai_input":`), "", "strict", "line 1"},
		{"of another protocol", says(200, "application/json", `{"profile":"privacy-7"}`), "", "strict", "/profile"},
		{"without its end", says(200, "application/json", `{"x":"`+strings.Repeat("x", 2<<20)+`"}`), "", "strict", ""},
		{"in trouble", says(500, "text/plain", "oh"), "", "strict", ""},
		{"for later", says(503, "text/plain", "oh"), "", "strict", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newPolicySite(t, 2, tt.policy)
			s.robots = tt.robots
			file := filepath.Join(t.TempDir(), "mirror.db")
			if tt.code == "strict" {
				bubble(t, 0, func(t *testing.T, n *internet) { // requests wait for a long time
					n.put(s.Listener.Addr().String(), &place{handler: s.Config.Handler})
					r := n.pull(t, file, s.URL, "--via", "tct-01", "--allow-private")
					notes := fmt.Sprint(r.report.Notes)
					if r.code != exitGood || r.report.Added != 2 || r.report.Policy == nil || r.report.Policy.PerSecond != 0.1 || r.took < 20*time.Second {
						t.Errorf("exit %d after %s: %+v", r.code, r.took, r.report)
					}
					if !strings.Contains(notes, "strictest rules") || !strings.Contains(notes, tt.part) || strings.Contains(notes+r.stderr, "ignore-policy") {
						t.Errorf("the report contains %s", notes)
					}
				})
				return
			}
			r, code := tryPull(t, s.URL, file, "--via", "tct-01")
			if tt.code == "" {
				if code != exitGood || r.Added != 2 {
					t.Fatalf("exit %d: %+v", code, r)
				}
				s.since()
				if r, _ := tryPull(t, s.URL, file, "--via", "tct-01"); r.Requests != 1 {
					t.Errorf("the second time: %q", s.since())
				}
				return
			}
			if code != exitFailure || r.Code != tt.code || !strings.Contains(r.Error, tt.part) || !strings.Contains(r.Error, "/llm-policy.json") {
				t.Errorf("exit %d %s, want %s with %q: %s", code, r.Code, tt.code, tt.part, r.Error)
			}
			if paths := s.since(); r.Added != 0 || slices.Contains(paths, "/list") {
				t.Errorf("requested %q: %+v", paths, r)
			}
			if r, code := tryPull(t, s.URL, file, "--via", "tct-01", "--ignore-policy"); code != exitGood || r.Added != 2 || !r.PolicyIgnored {
				t.Errorf("ignoring the policy: exit %d, %+v", code, r)
			}
			if paths := s.since(); slices.Contains(paths, "/llm-policy.json") {
				t.Errorf("requested %q", paths)
			}
		})
	}
}

// age makes a stored policy older.
func age(t *testing.T, file, site, by string) {
	t.Helper()
	st := openStore(t, file, false)
	d, err := time.ParseDuration(by)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(site)
	if err != nil {
		t.Fatal(err)
	}
	err = ingest.Terms(st.State(), u).Update(t.Context(), func(r *ingest.TermsRecord) error {
		if r.Time.IsZero() {
			return millrace.ErrNotFound
		}
		r.Time = r.Time.Add(-d)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// pull uses a stored policy for a day. An older one still applies while a newer one is
// unavailable.
func TestPullPolicyStored(t *testing.T) {
	t.Parallel()
	allows := says(200, "application/json", `{"purposes":{"allow_ai_input":true},"requirements":{"notice_required":true}}`)
	s := newPolicySite(t, 2, allows)
	file := filepath.Join(t.TempDir(), "mirror.db")
	pull(t, s.URL, file)
	if paths := s.since(); !slices.Equal(paths[:3], []string{"/robots.txt", "/llm-policy.json", "/"}) {
		t.Errorf("at first: %q", paths)
	}
	age(t, file, s.URL, "23h")
	s.policy = says(200, "application/json", `{"purposes":{"allow_ai_input":false}}`)
	r := pull(t, s.URL, file)
	if paths := s.since(); !slices.Equal(paths, []string{"/list"}) || r.Policy == nil || !slices.Equal(r.Policy.Requirements, []string{"notice"}) {
		t.Errorf("within the day: %q, %+v", paths, r.Policy)
	}
	age(t, file, s.URL, "2h")
	s.policy = says(500, "text/plain", "oh")
	if r := pull(t, s.URL, file); r.Policy == nil {
		t.Errorf("while the policy is unavailable: %+v", r)
	}
	s.since()
	s.policy = says(200, "application/json", `{"purposes":{"allow_ai_input":false}}`)
	if r, code := tryPull(t, s.URL, file, "--via", "tct-01"); code != exitFailure || r.Code != "policy-refuses" {
		t.Errorf("after a day: exit %d: %+v", code, r)
	}
	if paths := s.since(); !slices.Equal(paths, []string{"/llm-policy.json"}) {
		t.Errorf("after a day: %q", paths)
	}
	s.policy = says(404, "text/plain", "")
	if r := pull(t, s.URL, file); r.Policy != nil {
		t.Errorf("gone: %+v", r)
	}
	s.since()
	pull(t, s.URL, file)
	if paths := s.since(); !slices.Equal(paths, []string{"/list"}) {
		t.Errorf("after the policy was removed: %q", paths)
	}
}

// If a site is down, pull reports that, not a missing policy.
func TestPullPolicyDown(t *testing.T) {
	t.Parallel()
	s := newPolicySite(t, 2, says(500, "text/plain", "oh"))
	fresh, known := filepath.Join(t.TempDir(), "fresh.db"), filepath.Join(t.TempDir(), "known.db")
	tryPull(t, s.URL, known, "--max-time", "500ms") // robots.txt is stored, but no policy
	s.Close()
	for _, file := range []string{fresh, known} {
		r, code := tryPull(t, s.URL, file)
		if code != exitFailure || r.Code != "connection-refused" || r.Requests > 2 {
			t.Errorf("%s: exit %d: %+v", filepath.Base(file), code, r)
		}
	}
}

// pull obeys the rate that a site requests.
func TestPullPolicyRate(t *testing.T) {
	t.Parallel()
	const gap = 40 * time.Millisecond
	s := newPolicySite(t, 10, says(200, "application/json", `{"rate_hints":{"max_requests_per_second":25}}`))
	file := filepath.Join(t.TempDir(), "mirror.db")
	r := pull(t, s.URL, file)
	if r.Added != 10 || r.Policy == nil || r.Policy.PerSecond != 25 {
		t.Errorf("%+v", r)
	}
	times := s.asked // arrival times: may be late, but early only by less than this
	if n := len(times); n < 13 || times[n-1].Sub(times[0]) < time.Duration(n-1)*gap-gap/2 {
		t.Errorf("%d requests in %s", n, times[n-1].Sub(times[0]))
	}
}

func nextDay() time.Time { return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1) }

// A daily limit of requests applies across pulls.
func TestPullPolicyPerDay(t *testing.T) {
	t.Parallel()
	s := newPolicySite(t, 30, says(200, "application/json", `{"rate_hints":{"max_requests_per_day":12}}`))
	s.slow = 20 * time.Millisecond // requests are in flight when the limit is reached
	file := filepath.Join(t.TempDir(), "mirror.db")
	if left := time.Until(nextDay()); left < 30*time.Second {
		time.Sleep(left) // all pulls must be on one day
	}
	midnight := nextDay()
	r, code := tryPull(t, s.URL, file, "--via", "tct-01")
	if code != exitFailure || r.ContinueAfter == nil || !r.ContinueAfter.Equal(midnight) || !strings.Contains(r.Error, midnight.Format(time.RFC3339)) || !strings.Contains(r.Error, "rate_hints.max_requests_per_day") {
		t.Errorf("exit %d: %+v", code, r)
	}
	// The stored count equals the number of requests.
	first := s.since()
	pages := 0
	for _, path := range first {
		if strings.HasSuffix(path, "/llm.json") {
			pages++
		}
	}
	if len(first) != 12 || r.Requests != 12 || pages == 0 || r.Added != pages {
		t.Errorf("%d requests %q: %+v", len(first), first, r)
	}
	// The limit applies to the whole machine, and thus also to another mirror.
	r, code = tryPull(t, s.URL, filepath.Join(filepath.Dir(file), "other.db"), "--via", "tct-01")
	if paths := s.since(); len(paths) > 2 || code != exitFailure || r.ContinueAfter == nil {
		t.Errorf("second pull on the same day: %q, exit %d, %+v", paths, code, r)
	}
	got := len(storedPages(t, file, s.URL+"/", s.URL+"/"))
	if r, code := tryPull(t, s.URL, file, "--via", "tct-01", "--ignore-policy"); code != exitGood || r.Added != 30-got {
		t.Errorf("ignoring the limit, after %d pages: exit %d, %+v", got, code, r)
	}
}

// Requests that a pull reserved but did not use remain for the next pull.
func TestPullPolicyPerDayReturned(t *testing.T) {
	t.Parallel()
	s := newPolicySite(t, 2, says(200, "application/json", `{"rate_hints":{"max_requests_per_day":1000}}`))
	file := filepath.Join(t.TempDir(), "mirror.db")
	n := 0
	for range 3 {
		r, _ := tryPull(t, s.URL, file)
		n += int(r.Requests)
	}
	p := newProcess(environment(map[string]string{"HOME": filepath.Dir(file)}), nil, t.Output(), t.Output())
	p.start(&commonFlags{LogLevel: "info"})
	counts, err := p.counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = counts.Close() })
	st := counts
	r, err := state.JSON[struct{ Used int }]{State: st.State(), Namespace: strings.TrimPrefix(s.URL, "http://"), Key: "requests"}.Load(t.Context())
	if err != nil || r.Used != n {
		t.Errorf("%d requests made, %+v counted (%v)", n, r, err)
	}
}

// If a site requires a long delay, pull logs why it waits.
func TestPullLongGap(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/llm-policy.json" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"rate_hints":{"max_requests_per_second":0.01}}`)
	}))
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errs buffer
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"pull", srv.URL, "--store", filepath.Join(t.TempDir(), "m.db"), "--allow-private"},
			environment(map[string]string{"HOME": t.TempDir()}), strings.NewReader(""), io.Discard, &errs)
	}()
	for deadline := time.Now().Add(5 * time.Minute); !strings.Contains(errs.String(), "gap=1m0s url="+srv.URL+"/llm-policy.json"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the log contains\n%s", errs.String())
		}
	}
	cancel()
	if code := <-done; code != exitFailure {
		t.Errorf("exit %d", code)
	}
}
