package tct

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// generated01 is a list of n items that is made while it is read.
type generated01 struct {
	n, i   int
	origin string
	buf    []byte
}

func (g *generated01) Read(p []byte) (int, error) {
	for len(g.buf) == 0 {
		switch {
		case g.i == 0:
			g.buf = append(g.buf, listHead...)
		case g.i <= g.n:
			sep := ","
			if g.i == 1 {
				sep = ""
			}
			g.buf = fmt.Appendf(g.buf, `%s{"cUrl":"%s/section/%d/a-page-with-a-name","mUrl":"%[2]s/section/%[3]d/a-page-with-a-name/llm.json","etag":"sha256-%064[3]d"}`, sep, g.origin, g.i)
		case g.i == g.n+1:
			g.buf = append(g.buf, listTail...)
		default:
			return 0, io.EOF
		}
		g.i++
	}
	n := copy(p, g.buf)
	g.buf = append(g.buf[:0], g.buf[n:]...)
	return n, nil
}

// A list of any length goes through in flat memory: 8 bytes an item, and what
// a few items need.
func TestListInFlatMemory01(t *testing.T) {
	n := *items
	t.Setenv("TMPDIR", t.TempDir())
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", `</list>; rel="index"; type="application/json"`)
		if r.URL.Path == "/list" {
			_, _ = io.Copy(w, &generated01{n: n, origin: "http://" + r.Host})
		}
	}))
	defer srv.Close()
	client := fetch.New(&fetch.Options{AllowPrivate: true, MaxBody: 1 << 30}).HTTP()
	src := Draft01().NewReader(client, srv.URL, nil)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, peak, puts, marks := m.HeapAlloc, uint64(0), 0, 0
	began := time.Now()
	for c, err := range src.Changes(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if c.Kind == millrace.KindCheckpoint {
			marks++
			continue
		}
		if puts++; puts%(n/10) == 1 {
			runtime.GC()
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc-min(before, m.HeapAlloc))
		}
	}
	if puts != n || marks != 1 {
		t.Fatalf("%d puts and %d marks", puts, marks)
	}
	if limit := uint64(8 << 20); peak > limit {
		t.Errorf("%d items hold %d bytes, more than %d", n, peak, limit)
	}
	t.Logf("%d items in %s, %d KB held", n, time.Since(began).Round(time.Millisecond), peak>>10)
}

// A list over the client's limit is refused, with nothing of it applied.
func TestHugeList01(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", `</list>; rel="index"; type="application/json"`)
		if r.URL.Path == "/list" {
			_, _ = io.Copy(w, &generated01{n: 1 << 40})
		}
	}))
	defer srv.Close()
	client := fetch.New(&fetch.Options{AllowPrivate: true, MaxBody: 3 << 20}).HTTP()
	puts, skips, marks, err := collect01(t, Draft01().NewReader(client, srv.URL, nil))
	if !errors.Is(err, millrace.ErrTooLarge) || len(puts)+len(skips)+marks > 0 {
		t.Errorf("%d puts, %v", len(puts), err)
	}
}
