package arc

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol"
)

// plainSite is a site of another implementation whose list has no snapshots.
type plainSite struct {
	*httptest.Server
	texts map[string]string // by path
	asked []string
}

func newPlainSite(t *testing.T, n int) *plainSite {
	b := &plainSite{texts: map[string]string{}}
	for i := range n {
		b.texts[fmt.Sprintf("/p/%d", i)] = fmt.Sprintf("This is what page %d says, in so many words that somebody may read them.", i)
	}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *plainSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" || r.URL.Path == pathPolicy || r.URL.Path == "/" {
		http.NotFound(w, r)
		return
	}
	var body string
	typ := "text/html"
	if r.URL.Path == pathList {
		var pages []string
		for path, text := range b.texts {
			pages = append(pages, fmt.Sprintf(`{"url":"http://%s%s","ai_indexable":true,"ai_checksum":"sha256:%s"}`, r.Host, path, canon.SHA256Hex([]byte(text))))
		}
		h := head{Version: version, Site: "http://" + r.Host, Generated: "2026-01-01T00:00:00Z"}
		body, typ = string(h.append(nil))+strings.Join(pages, ",")+listTail, contentType
	} else if text, ok := b.texts[r.URL.Path]; ok {
		body = "<html lang=en><head><title>A page</title></head><body><main><h1>A page</h1><p>" + text + "</p></main></body></html>"
	} else {
		http.NotFound(w, r)
		return
	}
	b.asked = append(b.asked, r.URL.Path)
	w.Header().Set("Content-Type", typ)
	w.Header().Set("ETag", `"`+canon.SHA256Hex([]byte(body))+`"`)
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(body))
}

// Pages without snapshots are fetched once, and again when their checksum changes.
func TestMirrorWithoutSnapshots(t *testing.T) {
	b := newPlainSite(t, 30)
	copied := opened(t, b.URL+"/", nil)
	client := fetch.New(&fetch.Options{AllowPrivate: true}).HTTP()
	sync := func(added, updated, deleted, asked int) {
		t.Helper()
		b.asked = nil
		o := &ReaderOptions{ReaderOptions: protocol.ReaderOptions{Note: func(n protocol.Note) { t.Errorf("%+v", n) }}}
		rep, err := mirror.Sync(t.Context(), "b arc", NewReader(client, b.URL, o), copied, &mirror.Options{Concurrency: 1})
		if err != nil {
			t.Fatal(err)
		}
		if rep.Added != added || rep.Updated != updated || rep.Deleted != deleted || rep.SkippedN > 0 || rep.UnconfirmedDeletions > 0 {
			t.Errorf("%+v", rep)
		}
		if len(b.asked) != asked {
			t.Errorf("requested %q, want %d", b.asked, asked)
		}
	}
	sync(30, 0, 0, 31)
	sync(0, 0, 0, 1)
	b.texts["/p/7"] += " And this."
	delete(b.texts, "/p/8")
	sync(0, 1, 1, 2)
	sync(0, 0, 0, 1)
	for u, p := range pagesOf(t, copied, func(_ millrace.Site, p *millrace.Page) *millrace.Page { return p }) {
		if want := b.texts[strings.TrimPrefix(u, b.URL)]; p.Text() != want || p.Title != "A page" {
			t.Errorf("%s says %q", u, p.Text())
		}
	}
}
