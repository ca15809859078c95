package check_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/check"
)

// rule returns a rule of a protocol named p.
func rule(id string, level check.Level, f func(ctx context.Context, t *check.Target, fail check.Fail) error) check.Rule {
	return check.Rule{ID: id, Level: level, Section: "1", Sentence: "The page is valid.", Check: f}
}

func pass(context.Context, *check.Target, check.Fail) error { return nil }

// serve starts a server and returns a target for its root.
func serve(t *testing.T, h http.HandlerFunc, o *check.TargetOptions) *check.Target {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	target, err := check.NewTarget(srv.URL, srv.Client(), o)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

func TestReportJSON(t *testing.T) {
	target := serve(t, hello, nil)
	suites := []check.Suite{
		{Name: "p", Rules: []check.Rule{
			rule("p/1/good", check.Must, pass),
			rule("p/1/bad", check.Must, func(_ context.Context, _ *check.Target, fail check.Fail) error {
				fail("http://x/", "a\nb", "c")
				return nil
			}),
			rule("p/1/weak", check.Should, func(_ context.Context, _ *check.Target, fail check.Fail) error {
				fail("http://y/", "d", "e")
				return errors.New("connection lost")
			}),
			rule("p/1/soft", check.Should, pass),
			rule("p/1/none", check.Should, func(context.Context, *check.Target, check.Fail) error {
				return fmt.Errorf("no pages: %w", check.ErrNotApplicable)
			}),
			rule("p/1/broken", check.Must, func(context.Context, *check.Target, check.Fail) error {
				panic("broken rule")
			}),
			rule("p/1/unsure", check.Must, func(context.Context, *check.Target, check.Fail) error {
				return errors.New("no route")
			}),
		}},
		{Name: "q", Rules: []check.Rule{
			rule("q/1/early", check.Must, func(_ context.Context, _ *check.Target, fail check.Fail) error {
				fail("http://z/", "void", "void")
				return nil
			}),
			rule("q/1/absent", check.Must, func(context.Context, *check.Target, check.Fail) error {
				return fmt.Errorf("no link: %w", check.ErrAbsent)
			}),
			rule("q/1/late", check.Must, func(context.Context, *check.Target, check.Fail) error {
				t.Error("a rule ran after the protocol was found to be absent")
				return nil
			}),
		}},
	}
	r, err := check.Run(t.Context(), target, suites, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := `{
 "site": "` + target.Root() + `",
 "protocols": {
  "p": {
   "label": "p",
   "found": true,
   "must": {
    "pass": 1,
    "fail": 1
   },
   "should": {
    "pass": 1,
    "fail": 1
   },
   "not_applicable": 1,
   "not_run": 2
  },
  "q": {
   "label": "q",
   "found": false,
   "must": {
    "pass": 0,
    "fail": 0
   },
   "should": {
    "pass": 0,
    "fail": 0
   },
   "not_applicable": 0,
   "not_run": 3
  }
 },
 "findings": [
  {
   "rule": "p/1/bad",
   "protocol": "p",
   "level": "MUST",
   "section": "1",
   "url": "http://x/",
   "got": "a` + "\uFFFD" + `b",
   "want": "c"
  },
  {
   "rule": "p/1/weak",
   "protocol": "p",
   "level": "SHOULD",
   "section": "1",
   "url": "http://y/",
   "got": "d",
   "want": "e"
  }
 ]
}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if !r.Failed() {
		t.Error("a report with a violated MUST has not failed")
	}

	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	want = target.Root() + `
  p  MUST 1 of 2 passed, SHOULD 1 of 2 passed, 1 not applicable, 2 not run
  q  not found: no link: the site does not have the protocol

MUST  p/1/bad
  rule  section 1: The page is valid.
  at    http://x/
  got   a` + "\uFFFD" + `b
  want  c

SHOULD  p/1/weak
  rule  section 1: The page is valid.
  at    http://y/
  got   d
  want  e
  then  the rule stopped: connection lost

not run
  p/1/broken: panic: broken rule
  p/1/unsure: no route
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
}

func TestNothingFound(t *testing.T) {
	target := serve(t, hello, nil)
	r, err := check.Run(t.Context(), target, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"site":"` + target.Root() + `","protocols":{},"findings":[]}`; string(b) != want {
		t.Errorf("got %s, want %s", b, want)
	}
	if r.Failed() {
		t.Error("a report without checks has failed")
	}
}

// If no rule of a protocol could run, the protocol is reported as not found.
func TestAllNotRun(t *testing.T) {
	target := serve(t, hello, nil)
	broken := rule("p/1/x", check.Must, func(context.Context, *check.Target, check.Fail) error { return io.ErrUnexpectedEOF })
	r, err := check.Run(t.Context(), target, []check.Suite{{Name: "p", Rules: []check.Rule{broken}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&check.Result{Label: "p", NotRun: 1}, r.Protocols["p"]); diff != "" {
		t.Error(diff)
	}
}

func TestFindingsAreBounded(t *testing.T) {
	target := serve(t, hello, nil)
	noisy := rule("p/1/noisy", check.Must, func(_ context.Context, _ *check.Target, fail check.Fail) error {
		for i := range 57 {
			fail(fmt.Sprintf("http://x/%d", i), strings.Repeat("é", 5000), "less")
		}
		return nil
	})
	suites := []check.Suite{{Name: "p", Rules: []check.Rule{noisy}}}
	r, err := check.Run(t.Context(), target, suites, &check.RunOptions{MaxFindings: 5})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 6 || !strings.HasPrefix(r.Findings[5].Got, "52 ") || r.Findings[5].URL != "" {
		t.Errorf("got %d findings, the last %+v", len(r.Findings), r.Findings[len(r.Findings)-1])
	}
	if n := len([]rune(r.Findings[0].Got)); n != 301 {
		t.Errorf("a finding quotes %d characters", n)
	}
	if r.Protocols["p"].Must.Fail != 1 || r.Outcomes[0].Failures != 57 {
		t.Errorf("got %+v and %d failures", r.Protocols["p"], r.Outcomes[0].Failures)
	}
	if r, err = check.Run(t.Context(), target, suites, nil); err != nil || len(r.Findings) != 21 {
		t.Errorf("by default: %d findings, %v", len(r.Findings), err)
	}
}

func TestUnreachable(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	target, err := check.NewTarget(srv.URL, srv.Client(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := check.Run(t.Context(), target, []check.Suite{{Name: "p", Rules: []check.Rule{rule("p/1/x", check.Must, pass)}}}, nil)
	if e, ok := errors.AsType[*url.Error](err); !ok || r != nil || e.URL != target.Site() {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestCancellation(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			cancel(stop)
			<-r.Context().Done()
		}
	}, nil)
	slow := rule("p/1/slow", check.Must, func(ctx context.Context, t *check.Target, _ check.Fail) error {
		_, err := t.Get(ctx, t.Root()+"slow")
		return err
	})
	late := rule("p/1/late", check.Must, func(context.Context, *check.Target, check.Fail) error {
		t.Error("a rule ran after the context had ended")
		return nil
	})
	r, err := check.Run(ctx, target, []check.Suite{{Name: "p", Rules: []check.Rule{slow, late}}}, nil)
	if r != nil || !errors.Is(err, stop) {
		t.Errorf("got %v, %v", r, err)
	}
	// A canceled request is sent again.
	if _, err := target.Get(t.Context(), target.Root()+"fast"); err != nil {
		t.Error(err)
	}
}

func TestRequestsAreSentOnce(t *testing.T) {
	n := 0
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		if r.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("Accept-Encoding: %s", r.Header.Get("Accept-Encoding"))
		}
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusFound)
			return
		}
		fmt.Fprintf(w, "%s %d %s", r.URL.Path, n, r.Header.Get("If-None-Match"))
	}, nil)
	ctx := t.Context()
	a, err := target.Get(ctx, target.Root()+"old")
	if err != nil {
		t.Fatal(err)
	}
	if a.URL != target.Root()+"new" || a.Status != 200 || string(a.Body) != "/new 2 " || a.TLS {
		t.Errorf("got %+v", a)
	}
	b, _ := target.Get(ctx, target.Root()+"old")
	if a != b || n != 2 {
		t.Errorf("the same request was sent again: %d", n)
	}
	conditional := http.Header{"If-None-Match": {`"x"`}}
	c, _ := target.Do(ctx, http.MethodGet, target.Root()+"old", conditional)
	if string(c.Body) != `/new 4 "x"` {
		t.Errorf("got %s", c.Body)
	}
	if len(conditional) != 1 {
		t.Errorf("the caller's header was changed: %v", conditional)
	}
	if _, err := target.Do(ctx, http.MethodHead, target.Root()+"old", nil); err != nil || n != 6 {
		t.Errorf("%v, %d requests", err, n)
	}
	d, _ := target.DoUncached(ctx, http.MethodGet, target.Root()+"old", nil)
	if string(d.Body) != "/new 8 " || target.Requests() != 8 {
		t.Errorf("got %s, %d requests", d.Body, target.Requests())
	}
}

func TestRequestLimit(t *testing.T) {
	n := 0
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		http.Redirect(w, r, fmt.Sprintf("/%d", n), http.StatusFound)
	}, &check.TargetOptions{MaxRequests: 4})
	if _, err := target.Get(t.Context(), target.Root()); !errors.Is(err, check.ErrLimit) || n != 4 {
		t.Errorf("after %d requests: %v", n, err)
	}
}

// TestBodyLimit checks that the memory for the responses of a site is limited, however many
// requests are sent.
func TestBodyLimit(t *testing.T) {
	n := 0
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		b := bytes.Repeat([]byte{'x'}, 1000)
		if r.URL.Path != "/same" {
			b[0] = byte(n)
		}
		_, _ = w.Write(b)
	}, &check.TargetOptions{MaxBody: 1000})
	for range 20 {
		if _, err := target.DoUncached(t.Context(), http.MethodGet, target.Root()+"same", nil); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	for n = 0; n < 20 && err == nil; {
		_, err = target.DoUncached(t.Context(), http.MethodGet, target.Root(), nil)
	}
	if !errors.Is(err, check.ErrLimit) || n != 2 {
		t.Errorf("after %d bodies: %v", n, err)
	}
}

func TestBusy(t *testing.T) {
	for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		target := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }, nil)
		if r, err := target.Get(t.Context(), target.Root()); r != nil || !errors.Is(err, check.ErrBusy) {
			t.Errorf("%d: %v, %v", code, r, err)
		}
	}
}

func TestBodies(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, strings.Repeat("hello ", 100))
	_ = z.Close()
	for _, tt := range []struct {
		name, coding string
		sent         []byte
		body         string
		broken       bool
	}{
		{"plain", "", []byte("hello"), "hello", false},
		{"empty", "", nil, "", false},
		{"gzip", "gzip", zipped.Bytes(), strings.Repeat("hello ", 100), false},
		{"gzip by its old name", "X-Gzip", zipped.Bytes(), strings.Repeat("hello ", 100), false},
		{"cut gzip", "gzip", zipped.Bytes()[:20], "", true},
		{"not gzip", "gzip", []byte("hello"), "", true},
		{"unknown coding", "br", []byte("hello"), "", true},
		{"coded too long", "", make([]byte, 1001), "", true},
		{"decoded too long", "gzip", bomb(t), "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if tt.coding != "" {
					w.Header().Set("Content-Encoding", tt.coding)
				}
				_, _ = w.Write(tt.sent)
			}, &check.TargetOptions{MaxBody: 1000})
			r, err := target.Get(t.Context(), target.Root())
			if err != nil {
				t.Fatal(err)
			}
			if string(r.Body) != tt.body || (r.BodyErr != nil) != tt.broken {
				t.Errorf("got %q, %v", r.Body, r.BodyErr)
			}
			if long := len(tt.sent) > 1000; (r.CutErr != nil) != long || long && !errors.Is(r.CutErr, check.ErrLimit) {
				t.Errorf("the coded body: %v", r.CutErr)
			}
			if !tt.broken && !bytes.Equal(r.Coded, tt.sent) {
				t.Errorf("the coded body is %q", r.Coded)
			}
		})
	}
}

// bomb returns a small body that decodes to more than any limit of these tests.
func bomb(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(make([]byte, 50_000))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDecodeOption(t *testing.T) {
	o := &check.TargetOptions{Decode: func(r *http.Response) (io.ReadCloser, error) {
		b, err := io.ReadAll(r.Body)
		return io.NopCloser(strings.NewReader(strings.ToUpper(string(b)))), err
	}}
	target := serve(t, hello, o)
	r, err := target.Get(t.Context(), target.Root())
	if err != nil || string(r.Body) != "HELLO" || string(r.Coded) != "hello" {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestMemo(t *testing.T) {
	target := serve(t, hello, nil)
	n := 0
	count := func(context.Context) (int, error) { n++; return n, errors.New("odd") }
	for range 2 {
		if v, err := check.Memo(t.Context(), target, "p", count); v != 1 || err == nil {
			t.Errorf("got %d, %v", v, err)
		}
	}
	if v, _ := check.Memo(t.Context(), target, "q", count); v != 2 {
		t.Errorf("another key returned %d", v)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = check.Memo(ended, target, "r", count)
	if v, _ := check.Memo(t.Context(), target, "r", count); v != 4 {
		t.Errorf("the result for a canceled context was cached: %d", v)
	}
}

func TestSample(t *testing.T) {
	list := make([]int, 101)
	for i := range list {
		list[i] = i
	}
	for _, tt := range []struct {
		sample, n int
		want      []int
	}{
		{3, 0, []int{}},
		{3, 2, []int{0, 1}},
		{3, 3, []int{0, 1, 2}},
		{3, 101, []int{0, 50, 100}},
		{1, 101, []int{0}},
		{0, 101, []int{0, 11, 22, 33, 44, 55, 66, 77, 88, 100}},
	} {
		target, err := check.NewTarget("http://localhost/", new(http.Client), &check.TargetOptions{Sample: tt.sample})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, check.Sample(target, list[:tt.n])); diff != "" {
			t.Errorf("%d of %d: %s", tt.sample, tt.n, diff)
		}
	}
}

func TestNewTarget(t *testing.T) {
	for _, tt := range []struct{ in, site, root string }{
		{"https://example.com", "https://example.com/", "https://example.com/"},
		{" http://example.com:81/a/?q=1#f ", "http://example.com:81/a/?q=1", "http://example.com:81/"},
		{in: ""},
		{in: "example.com"},
		{in: "/a"},
		{in: "ftp://example.com/"},
		{in: "https:///a"},
		{in: "https://user:secret@example.com/"},
		{in: "http://[::1"},
	} {
		target, err := check.NewTarget(tt.in, new(http.Client), nil)
		if err != nil {
			if tt.site != "" || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: %v", tt.in, err)
			}
			continue
		}
		if target.Site() != tt.site || target.Root() != tt.root {
			t.Errorf("%q: got %s and %s", tt.in, target.Site(), target.Root())
		}
	}
}

func TestClock(t *testing.T) {
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	target, err := check.NewTarget("http://localhost/", new(http.Client), &check.TargetOptions{Now: func() time.Time { return at }})
	if err != nil || !target.Now().Equal(at) {
		t.Error(err)
	}
}

// If the site fails, the report has no results for its protocols.
func TestRunOutOfOrder(t *testing.T) {
	for status, want := range map[int]error{
		http.StatusTooManyRequests: check.ErrBusy, http.StatusInternalServerError: check.ErrDown, http.StatusServiceUnavailable: check.ErrBusy,
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		target, err := check.NewTarget(srv.URL, srv.Client(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := check.Run(t.Context(), target, nil, nil); !errors.Is(err, want) {
			t.Errorf("%d: %v, %v", status, r, err)
		}
		srv.Close()
	}
}

// If a limit ends a check, the report is inconclusive, and unchecked protocols are not reported as
// absent.
func TestInconclusive(t *testing.T) {
	target := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
		}
	}, nil)
	slow := rule("p/1/slow", check.Must, func(ctx context.Context, t *check.Target, _ check.Fail) error {
		_, err := t.Get(ctx, t.Root()+"slow")
		return err
	})
	late := rule("q/1/late", check.Must, func(context.Context, *check.Target, check.Fail) error { return check.ErrAbsent })
	r, err := check.Run(t.Context(), target, []check.Suite{{Name: "p", Rules: []check.Rule{slow}}, {Name: "q", Rules: []check.Rule{late}}}, &check.RunOptions{MaxTime: 50 * time.Millisecond})
	if err != nil || r.Inconclusive == "" || r.Failed() || !errors.Is(r.Outcomes[1].Err, check.ErrLimit) {
		t.Fatalf("%+v, %v", r, err)
	}
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil || strings.Contains(b.String(), "not found") {
		t.Errorf("%v: %s", err, b.String())
	}
}
