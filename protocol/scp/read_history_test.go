package scp

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol"
)

// serverTransport is a transport that sends all requests to a server.
type serverTransport struct {
	*published
	asked []string
}

// RoundTrip returns the server's response.
func (p *serverTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	done, err := p.server.Serve(w, r)
	if err != nil {
		return nil, err
	}
	if !done {
		http.NotFound(w, r)
	}
	p.asked = append(p.asked, fmt.Sprint(w.Code, " ", r.URL.Path))
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

// A reader that follows a site by deltas and snapshots always has the current state of every
// page. Deleted pages disappear within a few deltas.
func TestReadHistory(t *testing.T) {
	seeds := uint64(testkit.Size(1, 1, 4))
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { history(t, seed) })
	}
}

func history(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	p := &serverTransport{published: publishing(t, nil)}
	text := func() string { return strings.Repeat(fmt.Sprintf("%d words ", r.Uint64()), 5+r.IntN(5)) }
	name := func() string { return fmt.Sprintf("/%s/%d", []string{"blog", "docs"}[r.IntN(2)], r.IntN(150)) }
	var first []string
	for range 200 {
		first = append(first, name(), text())
	}
	p.put(t, first...)
	var cursor millrace.Cursor
	mirrored := map[string]*millrace.Page{}
	snapshots, deltas, behind := 0, 0, 0
	for step := range 25 {
		if step > 0 {
			p.now = p.now.Add(time.Duration(r.IntN(10*3600*1000)) * time.Millisecond)
			var edits []string
			for range r.IntN(4) {
				edits = append(edits, name(), text())
			}
			if r.IntN(3) == 0 {
				edits = append(edits, name(), "")
			}
			if len(edits) > 0 {
				p.put(t, edits...)
			}
			p.now = p.now.Add(time.Duration(r.IntN(1500)) * time.Millisecond)
		}
		p.publish(t)
		if r.IntN(4) == 0 {
			continue // the reader skips this edition
		}
		p.asked = nil
		src := NewReader(&http.Client{Transport: p}, "https://x.test/", &ReaderOptions{ReaderOptions: protocol.ReaderOptions{Now: func() time.Time { return p.now }}})
		named := map[string]bool{}
		for c, err := range src.Changes(t.Context(), cursor) {
			if err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
			switch c.Kind {
			case millrace.Put:
				named[c.URL] = true
				if have := mirrored[c.URL]; !c.Newer || have == nil || c.Page.Modified.After(have.Modified) {
					mirrored[c.URL] = c.Page
				}
			case millrace.KindCheckpoint:
				cursor = c.Checkpoint.Cursor
				for u := range mirrored {
					if c.Checkpoint.Complete && !named[u] {
						delete(mirrored, u)
					}
				}
			}
		}
		v, err := p.site.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]*millrace.Page{}
		for page, err := range v.Scan(t.Context(), millrace.Scan{WithBlocks: true}) {
			if err != nil {
				t.Fatal(err)
			}
			if c := carry(v.Site(), page); c != nil {
				want[c.URL] = c
			}
		}
		gone := 0
		for u := range mirrored {
			if want[u] == nil {
				gone++
				want[u] = mirrored[u]
			}
		}
		switch {
		case gone == 0:
			behind = 0
		case len(named) > 0: // otherwise no delta was read
			behind++
		}
		if behind > defaultDeltas+1 {
			t.Errorf("step %d: %d deleted pages still exist after %d deltas", step, gone, behind)
		}
		if d := cmp.Diff(want, mirrored, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("step %d, at %s: (-want +held)\n%s\n%s", step, p.now, d, strings.Join(p.asked, "\n"))
		}
		if named := len(named); named > 100 {
			snapshots++
		} else if named > 0 {
			deltas++
		}
	}
	t.Logf("%d snapshots, %d times by deltas alone", snapshots, deltas)
	if deltas == 0 {
		t.Error("no deltas were read")
	}
}
