package protocoltest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol"
)

// agreementBase is the URL of the servers of an [Agreement].
const agreementBase = "https://site.example/"

// Agreement tests that a protocol's reader and checker agree about faulty servers. If the reader
// rejects or loses a page, or reads another page than from the valid server, the checker must
// report a finding. If a server violates a MUST, the reader must report an error or a note, or read
// something else.
//
// Run applies the faults of the checker's rules. It also makes each document that the reader
// requests absent, broken or truncated, or replaces it with a document of another site.
type Agreement struct {
	Protocol protocol.Protocol
	Good     func() http.Handler // the valid server at https://site.example/; if nil, a server of what the protocol publishes
	Faults   []Fault
	Hosts    []string         // other hosts of the server
	Now      func() time.Time // clock of the checker; if nil, time.Now
	// Document returns a name for the requested document, so a fault applies to all URLs of one
	// document. If nil, the name is the path and query.
	Document func(*http.Request) string
	// Unread maps rules, or faults as RULE#NAME, to the reason why they affect no reader. Keys are
	// patterns of path.Match without the protocol's name.
	Unread map[string]string
	// Unseen maps faults, as DOCUMENT#NAME, to the reason why only the reader detects them. Keys
	// are patterns of path.Match.
	Unseen map[string]string

	used map[string]bool // patterns that matched
}

// outcome is the result of reading a server.
type outcome struct {
	refused []string // errors of the stream and of single pages
	absent  bool     // the site does not have the protocol
	notes   []string
	pages   map[string]string // the pages that were read, by URL
}

// Run runs each fault.
func (c Agreement) Run(t *testing.T) {
	c.used = map[string]bool{}
	change := func() {}
	if c.Good == nil {
		s := Serve(c.Protocol, nil)
		v := NewView(millrace.Site{Base: agreementBase, Title: "A site", Seq: 1}, plainPages(), c.Protocol.Tagger)
		show := func() {
			if err := s.Show(t.Context(), v); err != nil {
				t.Fatal(err)
			}
		}
		show()
		c.Good = func() http.Handler { return s }
		change = func() {
			pages := plainPages()
			pages[1].Title, pages[1].Modified = "Another title", pages[1].Modified.Add(time.Minute)
			pages[2].URL = "/new"
			v = v.Next(v.Site().Time.Add(time.Hour), pages, c.Protocol.Tagger)
			show()
		}
	}
	if c.Document == nil {
		c.Document = func(r *http.Request) string { return r.URL.RequestURI() }
	}
	var cursor millrace.Cursor
	asked := map[string]bool{}
	var mu sync.Mutex
	good := c.Good()
	spy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[c.Document(r)] = true
		mu.Unlock()
		good.ServeHTTP(w, r)
	})
	c.read(t, good, &cursor)
	change()
	want, since := c.read(t, spy, new(millrace.Cursor)), cursor
	later := c.read(t, spy, &since)
	if len(want.refused)+len(later.refused) > 0 || len(want.pages) == 0 || cursor == "" {
		t.Fatalf("valid server: got %+v, then %+v", want, later)
	}
	ran, all := 0, 0
	run := func(t *testing.T, name string, f Fault) {
		ran++
		h, since := f.Break(good), cursor
		got := c.read(t, h, new(millrace.Cursor))
		again := c.read(t, h, &since)
		harm := append(slices.Concat(got.refused, again.refused), differ(want.pages, got.pages)...)
		for u, is := range later.pages { // unchanged pages may be yielded again
			if again.pages[u] != is {
				harm = append(harm, fmt.Sprintf("then %s is %q, not %q", u, again.pages[u], is))
			}
		}
		for u, is := range again.pages {
			if is != want.pages[u] && is != later.pages[u] {
				harm = append(harm, fmt.Sprintf("then %s is %q", u, is))
			}
		}
		c.compare(t, name, c.check(t, h), harm, slices.Concat(got.notes, again.notes), got.absent)
	}
	for _, f := range c.Faults {
		all++
		name := strings.TrimSuffix(strings.TrimPrefix(f.Rule, c.Protocol.Name+"/")+"#"+f.Name, "#")
		t.Run(name, func(t *testing.T) { run(t, name, f) })
	}
	for _, doc := range slices.Sorted(maps.Keys(asked)) {
		for _, f := range c.faultsOf(doc) {
			all++
			t.Run(doc+"#"+f.Name, func(t *testing.T) { run(t, doc+"#"+f.Name, f) })
		}
	}
	for _, list := range []map[string]string{c.Unread, c.Unseen} {
		for pattern := range list {
			if ran == all && !c.used[pattern] {
				t.Errorf("unused exception %s", pattern)
			}
		}
	}
}

// compare compares the results of the reader and the checker for one server.
func (c Agreement) compare(t *testing.T, name string, report *check.Report, harm, notes []string, absent bool) {
	t.Helper()
	var found, musts []string
	missing := report == nil || !report.Protocols[c.Protocol.Name].Found
	if report != nil {
		for _, finding := range report.Findings {
			rule := strings.TrimPrefix(finding.Rule, c.Protocol.Name+"/")
			if found = append(found, rule); finding.Level == check.Must && !slices.Contains(musts, rule) {
				musts = append(musts, rule)
			}
		}
	}
	if len(harm) > 0 && len(found) == 0 && !(absent && missing) && !c.excepted(c.Unseen, name) {
		t.Errorf("the checker found nothing, but the reader got %q", harm)
	}
	if len(harm)+len(notes) > 0 {
		return
	}
	_, fault, _ := strings.Cut(name, "#")
	for _, rule := range musts {
		if !c.excepted(c.Unread, rule) && !c.excepted(c.Unread, rule+"#"+fault) {
			t.Errorf("the checker found %s, but the reader had no error, note or difference", rule)
		}
	}
}

// excepted reports whether a pattern in the list matches a name. A * matches any text, including
// slashes.
func (c Agreement) excepted(list map[string]string, name string) bool {
	for pattern := range list {
		if ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\n"), strings.ReplaceAll(name, "/", "\n")); err == nil && ok {
			c.used[pattern] = true
			return true
		}
	}
	return false
}

func (c Agreement) client(h http.Handler) *http.Client {
	return &http.Client{Transport: Answer(h, append([]string{"site.example"}, c.Hosts...)...)}
}

func (c Agreement) check(t *testing.T, h http.Handler) *check.Report {
	t.Helper()
	target, err := check.NewTarget(agreementBase, c.client(h), &check.TargetOptions{Decode: fetch.Decode, Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	report, err := check.Run(t.Context(), target, []check.Suite{{Name: c.Protocol.Name, Rules: c.Protocol.Rules()}}, nil)
	if err != nil {
		return nil // the site is unreachable
	}
	return report
}

// read reads all changes since a cursor, and sets the cursor to the last one.
func (c Agreement) read(t *testing.T, h http.Handler, cursor *millrace.Cursor) outcome {
	t.Helper()
	out := outcome{pages: map[string]string{}}
	var mu sync.Mutex
	src := c.Protocol.NewReader(c.client(h), agreementBase, &protocol.ReaderOptions{Note: func(n protocol.Note) {
		mu.Lock()
		defer mu.Unlock()
		out.notes = append(out.notes, n.Rule)
	}})
	for change, err := range src.Changes(t.Context(), *cursor) {
		switch {
		case err != nil:
			out.absent = errors.Is(err, millrace.ErrNotFound) || errors.Is(err, millrace.ErrUnavailable)
			out.refused = append(out.refused, err.Error())
		case change.Kind == millrace.KindCheckpoint:
			*cursor = change.Checkpoint.Cursor
		case change.Kind == millrace.Delete:
			out.pages[change.URL] = "deleted"
		default:
			p := change.Page
			if _, again := out.pages[change.URL]; again && p == nil {
				continue
			}
			if p == nil {
				if p, err = src.Page(t.Context(), millrace.Ref{URL: change.URL, Location: change.Location}); err != nil {
					out.refused = append(out.refused, err.Error())
					continue
				}
			}
			out.pages[change.URL] = fmt.Sprintf("%s %s %+v", p.URL, p.Revision(), p.Modified)
		}
	}
	return out
}

// differ returns the URLs of the pages that are not equal in want and got.
func differ(want, got map[string]string) (out []string) {
	for u := range want {
		if got[u] != want[u] {
			out = append(out, u+" is "+got[u]+", not "+want[u])
		}
	}
	for u := range got {
		if _, ok := want[u]; !ok {
			out = append(out, u+" does not belong to the site")
		}
	}
	return out
}

// faultsOf returns the faults of one document. Every document gets the same kinds of faults.
func (c Agreement) faultsOf(doc string) (out []Fault) {
	for name, f := range map[string]func(rec *httptest.ResponseRecorder){
		"404": func(rec *httptest.ResponseRecorder) { rec.Code, rec.Body = http.StatusNotFound, new(bytes.Buffer) },
		"500": func(rec *httptest.ResponseRecorder) {
			rec.Code, rec.Body = http.StatusInternalServerError, new(bytes.Buffer)
		},
		"empty": func(rec *httptest.ResponseRecorder) { rec.Body = new(bytes.Buffer) },
		"cut":   func(rec *httptest.ResponseRecorder) { rec.Body.Truncate(rec.Body.Len() / 2) },
		"another site": func(rec *httptest.ResponseRecorder) {
			rec.Body = bytes.NewBuffer(bytes.ReplaceAll(rec.Body.Bytes(), []byte("//site.example"), []byte("//other.example")))
		},
		"HTML": func(rec *httptest.ResponseRecorder) {
			rec.Header().Set("Content-Type", "text/html; charset=utf-8")
			rec.Body = bytes.NewBufferString("<!doctype html><title>Error</title><p>Something went wrong.")
		},
	} {
		out = append(out, Fault{Name: name, Break: func(good http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.Document(r) != doc {
					good.ServeHTTP(w, r)
					return
				}
				rec := httptest.NewRecorder()
				r = r.Clone(r.Context())
				for _, h := range []string{"If-None-Match", "If-Modified-Since", "Range", "Accept-Encoding"} {
					r.Header.Del(h)
				}
				good.ServeHTTP(rec, r)
				before := canon.SHA256Hex(rec.Body.Bytes())
				f(rec)
				if canon.SHA256Hex(rec.Body.Bytes()) != before {
					for _, h := range []string{"Content-Length", "Content-Digest", "Repr-Digest"} {
						rec.Header().Del(h)
					}
				}
				maps.Copy(w.Header(), rec.Header())
				w.WriteHeader(rec.Code)
				_, _ = w.Write(rec.Body.Bytes())
			})
		}})
	}
	slices.SortFunc(out, func(a, b Fault) int { return strings.Compare(a.Name, b.Name) })
	return out
}
