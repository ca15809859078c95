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

// generated is a list of n items that is generated while it is read.
type generated struct {
	n, i   int
	item   string // format of an item; arguments: separator, origin, number
	origin string
	buf    []byte
}

func (g *generated) Read(p []byte) (int, error) {
	for len(g.buf) == 0 {
		switch {
		case g.i == 0:
			g.buf = append(g.buf, listHead...)
		case g.i <= g.n:
			sep := ","
			if g.i == 1 {
				sep = ""
			}
			g.buf = fmt.Appendf(g.buf, g.item, sep, g.origin, g.i)
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

// largeLists maps drafts to sites with a list of n items.
var largeLists = map[string]struct {
	protocol protocol.Protocol
	serve    func(w http.ResponseWriter, r *http.Request, n int)
}{
	"draft00": {Draft00(), func(w http.ResponseWriter, r *http.Request, n int) {
		if r.URL.Path != listName00 {
			http.NotFound(w, r)
			return
		}
		_, _ = io.Copy(w, &generated{n: n, item: `%s{"cUrl":"%s/section/%d/a-page-with-a-name","mUrl":"%[2]s/section/%[3]d/a-page-with-a-name/llm/","contentHash":"sha256-%064[3]d"}`, origin: "http://" + r.Host})
	}},
	"draft01": {Draft01(), func(w http.ResponseWriter, r *http.Request, n int) {
		w.Header().Set("Link", `</list>; rel="index"; type="application/json"`)
		if r.URL.Path == "/list" {
			_, _ = io.Copy(w, &generated{n: n, item: `%s{"cUrl":"%s/section/%d/a-page-with-a-name","mUrl":"%[2]s/section/%[3]d/a-page-with-a-name/llm.json","etag":"sha256-%064[3]d"}`, origin: "http://" + r.Host})
		}
	}},
}

// A list of any length is read in constant memory plus 8 bytes per item.
func TestListInFlatMemory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for name, l := range largeLists {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l.serve(w, r, *items) }))
		client := fetch.New(&fetch.Options{AllowPrivate: true, MaxBody: 1 << 20}).HTTP()
		t.Run(name, func(t *testing.T) {
			flat(t, l.protocol.NewReader(client, srv.URL, &protocol.ReaderOptions{MaxList: 1 << 30}), *items)
		})
		srv.Close()
	}
}

// flat reads n items.
func flat(t *testing.T, src millrace.Source, n int) {
	t.Helper()
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

// A list over the limit, such as an endless one, is rejected, and nothing of the list is applied,
// both with the client of millrace and with another client.
func TestHugeList(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for draft, l := range largeLists {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l.serve(w, r, 1<<40) }))
		for name, client := range map[string]*http.Client{
			"ours":   fetch.New(&fetch.Options{AllowPrivate: true}).HTTP(),
			"theirs": srv.Client(),
		} {
			puts, skips, marks, err := collect(t, l.protocol.NewReader(client, srv.URL, &protocol.ReaderOptions{MaxList: 3 << 20}))
			if !errors.Is(err, millrace.ErrTooLarge) || len(puts)+len(skips)+marks > 0 {
				t.Errorf("%s, %s: %d puts, %v", draft, name, len(puts), err)
			}
		}
		srv.Close()
	}
}
