package arc

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/store"
)

// lived is a published site with a history, and the transport to it.
type lived struct {
	*protocoltest.Stored
	server *protocoltest.Server
	now    time.Time
	asked  []string
}

// RoundTrip returns the site's response.
func (l *lived) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := protocoltest.Answer(l.server).RoundTrip(r)
	if err == nil {
		l.asked = append(l.asked, fmt.Sprintf("%s %s %d", r.Method, r.URL.Path, resp.StatusCode))
	}
	return resp, err
}

func opened(t *testing.T, base string, now func() time.Time) *protocoltest.Stored {
	t.Helper()
	return protocoltest.Open(t, store.Config{Base: base, Taggers: []millrace.Tagger{Protocol().Tagger}}, now)
}

const livedBase = "https://x.test/"

func newLived(t *testing.T) *lived {
	l := &lived{now: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), server: protocoltest.Serve(Protocol(), nil)}
	l.Stored = opened(t, livedBase, func() time.Time { return l.now })
	return l
}

// edit writes pages, or deletes those with an empty text, and publishes.
func (l *lived) edit(t *testing.T, pairs ...string) {
	t.Helper()
	var batch []millrace.Change
	for i := 0; i < len(pairs); i += 2 {
		c := millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: pairs[i]}}
		if pairs[i+1] != "" {
			c.Kind = millrace.Put
			c.Page = &millrace.Page{
				URL: pairs[i], Title: "Page " + pairs[i], Kind: millrace.Article, Known: millrace.AllFields, Detail: millrace.DetailBlocks,
				Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: pairs[i+1]}},
			}
		}
		batch = append(batch, c)
	}
	if len(batch) > 0 {
		if _, err := l.Apply(t.Context(), "editor", batch); err != nil {
			t.Fatal(err)
		}
	}
	v, err := protocoltest.Publish(t.Context(), l.Pub)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.server.Show(t.Context(), v); err != nil {
		t.Fatal(err)
	}
}

func (l *lived) reader(o *ReaderOptions) *reader {
	o.Now = func() time.Time { return l.now }
	return newReader(&http.Client{Transport: l}, livedBase, o)
}

// carried returns the expected pages of a copy.
func (l *lived) carried(t *testing.T) map[string]*millrace.Page {
	t.Helper()
	return pagesOf(t, l.Site, carry)
}

func pagesOf(t *testing.T, s store.Site, as func(millrace.Site, *millrace.Page) *millrace.Page) map[string]*millrace.Page {
	t.Helper()
	v, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*millrace.Page{}
	for p, err := range v.Scan(t.Context(), millrace.Scan{WithBlocks: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if c := as(v.Site(), p); c != nil {
			out[c.URL] = c
		}
	}
	return out
}

// A reader that follows a site by deltas and lists always has the current state of every page,
// and no deleted page.
func TestReadHistory(t *testing.T) {
	seeds := uint64(testkit.Size(1, 1, 4))
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { history(t, seed) })
	}
}

func history(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	l := newLived(t)
	text := func() string { return fmt.Sprintf("It says %d and %d.", r.Uint64(), r.Uint64()) }
	name := func() string { return fmt.Sprintf("/%s/%d", []string{"blog", "docs"}[r.IntN(2)], r.IntN(60)) }
	var first []string
	for range 80 {
		first = append(first, name(), text())
	}
	l.edit(t, first...)
	l.now = l.now.Add(time.Minute)
	copied := opened(t, livedBase, func() time.Time { return l.now })
	lists, deltas, quiet := 0, 0, 0
	for step := range 40 {
		if step > 0 {
			l.now = l.now.Add(time.Duration(r.IntN(20*3600)+1) * time.Second)
			var edits []string
			for range r.IntN(4) {
				edits = append(edits, name(), text())
			}
			if r.IntN(3) == 0 {
				edits = append(edits, name(), "")
			}
			l.edit(t, edits...)
			l.now = l.now.Add(10 * time.Second)
		}
		if r.IntN(4) == 0 {
			continue // the reader skips this edition
		}
		l.asked = nil
		rep, err := mirror.Sync(t.Context(), "x arc", l.reader(&ReaderOptions{Deltas: 1}), copied, nil)
		if err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		if rep.SkippedN > 0 || rep.UnconfirmedDeletions > 0 {
			t.Fatalf("step %d: %+v", step, rep)
		}
		got := pagesOf(t, copied, func(_ millrace.Site, p *millrace.Page) *millrace.Page { return p })
		opt := cmpopts.IgnoreFields(millrace.Page{}, "Version")
		if d := cmp.Diff(l.carried(t), got, cmpopts.EquateEmpty(), opt); d != "" {
			t.Fatalf("step %d, at %s: (-want +held)\n%s\n%s", step, l.now, d, strings.Join(l.asked, "\n"))
		}
		full := slices.Contains(l.asked, "GET "+pathList+" 200")
		switch part := strings.Contains(strings.Join(l.asked, "\n"), "GET "+pathDeltas); {
		case full:
			lists++
		case part:
			deltas++
		default:
			quiet++
		}
	}
	t.Logf("%d lists, %d times by deltas alone, %d times nothing new", lists, deltas, quiet)
	if deltas == 0 || quiet == 0 {
		t.Error("no deltas were read, or every read returned changes")
	}
}

// A second read of an unchanged site is one conditional request, also by another reader.
func TestReadUnchanged(t *testing.T) {
	l := newLived(t)
	l.edit(t, "/a", "One.", "/b", "Two.")
	copied := opened(t, livedBase, func() time.Time { return l.now })
	for _, o := range []*ReaderOptions{{}, {}, {Deltas: 1}, {Deltas: -1}} {
		l.asked = nil
		rep, err := mirror.Sync(t.Context(), "x arc", l.reader(o), copied, nil)
		if err != nil || rep.Requested > 0 || rep.SkippedN > 0 {
			t.Fatal(rep, err)
		}
		if rep.Added > 0 {
			continue
		}
		if len(l.asked) != 1 || !strings.HasSuffix(l.asked[0], pathList+" 304") {
			t.Errorf("%+v: %q", o, l.asked)
		}
	}
}
