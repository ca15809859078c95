package arc

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol"
)

// generated is a list of n pages that is generated during reading.
type generated struct {
	n, i     int
	origin   string
	snapshot string // snapshot of each page; "" = none
	buf      []byte
}

func (g *generated) Read(p []byte) (int, error) {
	for len(g.buf) == 0 {
		switch {
		case g.i == 0:
			h := head{Version: version, Site: g.origin, Generated: "2026-01-01T00:00:00Z"}
			g.buf = h.append(g.buf)
		case g.i <= g.n:
			sep := ","
			if g.i == 1 {
				sep = ""
			}
			g.buf = fmt.Appendf(g.buf, `%s{"url":"%s/section/%d/a-page-with-a-name","ai_indexable":true,"ai_checksum":"sha256:%064[3]d","ai_snapshot":%s}`, sep, g.origin, g.i, g.snapshot)
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

const someSnapshot = `{"page":"article","title":"A page","sections":[{"name":"one","title":"One","summary":"What it says, in some words."}]}`

// listing returns a server that serves only a list.
func listing(t *testing.T, list func(r *http.Request) io.Reader) *httptest.Server {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != pathList {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = io.Copy(w, list(r))
	}))
	t.Cleanup(srv.Close)
	return srv
}

// read reads a stream. It returns the numbers of pages, skips and checkpoints, and the error.
func read(t *testing.T, src millrace.Source) (puts, skips, marks int, err error) {
	t.Helper()
	for c, e := range src.Changes(t.Context(), "") {
		skip := (*millrace.SkipError)(nil)
		switch {
		case errors.As(e, &skip):
			skips++
		case e != nil:
			err = e
		case c.Kind == millrace.KindCheckpoint:
			marks++
		default:
			puts++
		}
	}
	return puts, skips, marks, err
}

// A list of any length is read in constant memory, apart from 8 bytes per page.
func TestListInFlatMemory(t *testing.T) {
	n := *items
	if testing.Short() {
		n /= 4
	}
	srv := listing(t, func(r *http.Request) io.Reader {
		return &generated{n: n, origin: "http://" + r.Host, snapshot: someSnapshot}
	})
	client := fetch.New(&fetch.Options{AllowPrivate: true, MaxBody: 1 << 20}).HTTP()
	src := NewReader(client, srv.URL, &ReaderOptions{ReaderOptions: protocol.ReaderOptions{MaxList: 1 << 30}})
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
	if limit := uint64(8<<20 + 8*n); peak > limit {
		t.Errorf("%d pages hold %d bytes, more than %d", n, peak, limit)
	}
	t.Logf("%d pages in %s, %d KB held", n, time.Since(began).Round(time.Millisecond), peak>>10)
}

// A list over the limit, such as an endless one, is refused with any HTTP client, and none of
// its pages is applied.
func TestHugeList(t *testing.T) {
	srv := listing(t, func(r *http.Request) io.Reader {
		return &generated{n: 1 << 40, origin: "http://" + r.Host, snapshot: someSnapshot}
	})
	for name, client := range map[string]*http.Client{
		"ours":   fetch.New(&fetch.Options{AllowPrivate: true}).HTTP(),
		"theirs": srv.Client(),
	} {
		puts, skips, marks, err := read(t, NewReader(client, srv.URL, &ReaderOptions{ReaderOptions: protocol.ReaderOptions{MaxList: 3 << 20}}))
		if !errors.Is(err, millrace.ErrTooLarge) || puts+skips+marks > 0 {
			t.Errorf("%s: %d puts, %v", name, puts, err)
		}
	}
}

// A page with a snapshot over the limit is skipped by URL, wherever the URL is in the entry.
// The other pages are read.
func TestOverlongPage(t *testing.T) {
	many := func(n int64) io.Reader {
		return io.MultiReader(strings.NewReader(`{"page":"x","sections":[`), io.LimitReader(&nodes{}, n*int64(len(aNode))), strings.NewReader(`{}]}`))
	}
	for name, n := range map[string]int64{"50 MB": 50 << 20 / int64(len(aNode)), "a little more": maxEntry / int64(len(aNode))} {
		if testing.Short() && name == "50 MB" {
			continue
		}
		for _, first := range []bool{true, false} {
			srv := listing(t, func(r *http.Request) io.Reader {
				origin := "http://" + r.Host
				before, after := `,{"url":"`+origin+`/huge","ai_indexable":true,"ai_snapshot":`, "}"
				if !first {
					before, after = `,{"ai_indexable":true,"ai_snapshot":`, `,"url":"`+origin+`/huge"}`
				}
				return io.MultiReader(&limited{generated{n: 10, origin: origin, snapshot: someSnapshot}}, strings.NewReader(before), many(n),
					strings.NewReader(after+`,{"url":"`+origin+`/last","ai_indexable":true,"ai_snapshot":{"page":"last"}}]}`))
			})
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			before := m.TotalAlloc
			var puts, skips, marks int
			for c, err := range NewReader(fetch.New(&fetch.Options{AllowPrivate: true}).HTTP(), srv.URL, nil).Changes(t.Context(), "") {
				skip, is := errors.AsType[*millrace.SkipError](err)
				switch {
				case is && skip.URL == srv.URL+"/huge" && errors.Is(err, millrace.ErrTooLarge) && strings.Contains(err.Error(), "/pages/"):
					skips++
				case err != nil:
					t.Errorf("%s, %t: %v", name, first, err)
				case c.Kind == millrace.KindCheckpoint && c.Checkpoint.Complete:
					marks++
				default:
					puts++
				}
			}
			runtime.ReadMemStats(&m)
			if puts != 11 || skips != 1 || marks != 1 || m.TotalAlloc-before > 60<<20 {
				t.Errorf("%s, %t: %d puts, %d skips, %d marks, %d bytes allocated", name, first, puts, skips, marks, m.TotalAlloc-before)
			}
		}
	}
}

// nodes is a reader that repeats aNode endlessly.
type nodes struct{ at int }

const aNode = `{"name":"a section","summary":"What it says."},`

func (n *nodes) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = aNode[n.at]
		n.at = (n.at + 1) % len(aNode)
	}
	return len(p), nil
}

// A text of 50 MB and an endlessly nested snapshot are not stored in memory.
func TestHugeSnapshot(t *testing.T) {
	for name, c := range map[string]struct {
		snapshot func() io.Reader
		kind     error // error for the list
	}{
		"long": {func() io.Reader {
			return io.MultiReader(strings.NewReader(`{"page":"`), io.LimitReader(repeated('a'), 50<<20), strings.NewReader(`"}`))
		}, millrace.ErrTooLarge},
		"deep": {func() io.Reader {
			return io.MultiReader(strings.NewReader(`{"page":`), io.LimitReader(repeated('['), 50<<20))
		}, millrace.ErrInvalid},
	} {
		srv := listing(t, func(r *http.Request) io.Reader {
			origin := "http://" + r.Host
			return io.MultiReader(
				&limited{generated{n: 10, origin: origin, snapshot: someSnapshot}},
				strings.NewReader(`,{"url":"`+origin+`/huge","ai_indexable":true,"ai_snapshot":`), c.snapshot(), strings.NewReader("}]}"),
			)
		})
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		before := m.TotalAlloc
		puts, skips, marks, err := read(t, NewReader(fetch.New(&fetch.Options{AllowPrivate: true}).HTTP(), srv.URL, nil))
		runtime.ReadMemStats(&m)
		if !errors.Is(err, c.kind) || puts+skips+marks > 0 {
			t.Errorf("%s: %d puts, %d skips, %v", name, puts, skips, err)
		}
		if got := m.TotalAlloc - before; got > 40<<20 {
			t.Errorf("%s: %d bytes were allocated", name, got)
		}
	}
}

// limited is a list that is truncated after its last page.
type limited struct{ generated }

func (l *limited) Read(p []byte) (int, error) {
	if l.i > l.n && len(l.buf) == 0 {
		return 0, io.EOF
	}
	return l.generated.Read(p)
}

type repeated byte

func (r repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}
