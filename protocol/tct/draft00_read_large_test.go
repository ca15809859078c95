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

	"github.com/millrace/millrace/protocol"
)

// generated00 is a list of n items that is made while it is read.
type generated00 struct {
	n, i   int
	origin string
	buf    []byte
}

func (g *generated00) Read(p []byte) (int, error) {
	for len(g.buf) == 0 {
		switch {
		case g.i == 0:
			g.buf = append(g.buf, listHead...)
		case g.i <= g.n:
			sep := ","
			if g.i == 1 {
				sep = ""
			}
			g.buf = fmt.Appendf(g.buf, `%s{"cUrl":"%s/section/%d/a-page-with-a-name","mUrl":"%[2]s/section/%[3]d/a-page-with-a-name/llm/","contentHash":"sha256-%064[3]d"}`, sep, g.origin, g.i)
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
func TestListInFlatMemory00(t *testing.T) {
	n := *items
	t.Setenv("TMPDIR", t.TempDir())
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != listName00 {
			http.NotFound(w, r)
		} else {
			_, _ = io.Copy(w, &generated00{n: n, origin: "http://" + r.Host})
		}
	}))
	defer srv.Close()
	client := fetch.New(&fetch.Options{AllowPrivate: true, MaxBody: 1 << 20}).HTTP()
	src := Draft00().NewReader(client, srv.URL, &protocol.ReaderOptions{MaxList: 1 << 30})
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

// A list over the limit, such as one that never ends, is refused, with nothing
// of it applied, whoever's client reads it.
func TestHugeList00(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != listName00 {
			http.NotFound(w, r)
		} else {
			_, _ = io.Copy(w, &generated00{n: 1 << 40})
		}
	}))
	defer srv.Close()
	t.Setenv("TMPDIR", t.TempDir())
	for name, client := range map[string]*http.Client{
		"ours":   fetch.New(&fetch.Options{AllowPrivate: true}).HTTP(),
		"theirs": srv.Client(),
	} {
		puts, skips, marks, err := collect00(t, Draft00().NewReader(client, srv.URL, &protocol.ReaderOptions{MaxList: 3 << 20}))
		if !errors.Is(err, millrace.ErrTooLarge) || len(puts)+len(skips)+marks > 0 {
			t.Errorf("%s: %d puts, %v", name, len(puts), err)
		}
	}
}
