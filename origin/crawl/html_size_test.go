package crawl

import (
	"compress/gzip"
	"net/http"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

// The HTML size of a page is measured in every response, even if the page is unchanged. It stays
// the same if the page is extracted again without a request.
func TestHTMLSize(t *testing.T) {
	s := newSite(t)
	padding := func(n int) string { return strings.Repeat("<!-- the miller's own hand -->", n) }
	var packed string
	page := doc("Packed", words("packed"), "/plain", "/none") + padding(200)
	pack := func() {
		var b strings.Builder
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(page))
		_ = z.Close()
		packed = b.String()
	}
	pack()
	s.set("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("ETag", `"`+hex(hash(fnvStart, packed))+`"`)
		_, _ = w.Write([]byte(packed))
	})
	plain := doc("Plain", words("plain")) + promo
	s.set("/plain", document(plain))
	m := newMill(t, s.URL+"/")
	check := func(when string) {
		t.Helper()
		got, err := m.site.HTMLSizes(t.Context(), []string{"/", "/plain", "/none"})
		want := []millrace.HTMLSize{{Bytes: int64(len(page)), Received: int64(len(packed))}, {Bytes: int64(len(plain)), Received: int64(len(plain))}, {}}
		if err != nil || len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
			t.Errorf("%s: %v, %v, want %v", when, got, err, want)
		}
	}
	m.run(m.keeping(Options{}))
	check("first run")
	page += padding(30)
	pack()
	if rep := m.run(m.keeping(Options{})); rep.Updated != 0 {
		t.Errorf("%d pages have changed", rep.Updated)
	}
	check("another HTML size of the same page; the other page is unmodified")
	again := m.keeping(Options{})
	again.setRules(dropping(t, ".offer"))
	if names := m.reread(again); len(names) != 2 {
		t.Errorf("made again: %q", names)
	}
	check("made again")
}
