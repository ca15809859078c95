package discover_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/discover"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// compressed wraps a handler like a compressing proxy: it changes entity tags but not digests.
func compressed(h http.Handler, tag func(tag string) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner := r.Clone(r.Context())
		inner.Header.Set("Accept-Encoding", "identity")
		got := httptest.NewRecorder()
		h.ServeHTTP(got, inner)
		for name, values := range got.Header() {
			w.Header()[name] = values
		}
		if got.Code != http.StatusOK {
			w.WriteHeader(got.Code)
			return
		}
		if v := got.Header().Get("ETag"); v != "" {
			w.Header().Set("ETag", tag(v))
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(got.Body.Bytes())
		_ = z.Close()
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", fmt.Sprint(b.Len()))
		_, _ = w.Write(b.Bytes())
	})
}

// A TCT site behind a proxy that weakens its entity tags, or adds a suffix per coding, costs as
// much as without the proxy: one request if nothing has changed, and one more for each changed
// page. The same is true if the proxy replaces the entity tags by its own.
func TestWeakenedTags(t *testing.T) {
	t.Parallel()
	const pages = 29
	const moved = 2 // requests when one page has changed
	for name, retag := range map[string]func(tag string) string{
		"as it is":  func(tag string) string { return tag },
		"weakened":  func(tag string) string { return "W/" + tag },
		"suffixed":  func(tag string) string { return strings.TrimSuffix(tag, `"`) + `-gzip"` },
		"without":   func(tag string) string { return strings.Replace(tag, "sha256-", "", 1) },
		"other tag": func(tag string) string { return strings.Replace(tag, "sha256-", "v", 1) },
	} {
		for _, proto := range all.Protocols() {
			if !strings.HasPrefix(proto.Name, "tct-") {
				continue
			}
			t.Run(proto.Name+" "+name, func(t *testing.T) {
				t.Parallel()
				at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
				srv := protocoltest.Serve(proto, nil)
				var requests atomic.Int64
				proxied := compressed(srv, retag)
				site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					requests.Add(1)
					proxied.ServeHTTP(w, r)
				}))
				t.Cleanup(site.Close)
				client := fetch.New(&fetch.Options{AllowPrivate: true})
				t.Cleanup(client.CloseIdleConnections)
				show := func(changed string) {
					t.Helper()
					var list []*millrace.Page
					for i := range pages {
						list = append(list, &millrace.Page{
							URL: fmt.Sprintf("/p%d/", i), Title: fmt.Sprintf("Page %d", i), Modified: at, Known: millrace.AllFields,
							Blocks: millrace.TextBlocks(strings.Repeat("Words of a page. ", 20)), Detail: millrace.DetailText,
						})
					}
					list[0].URL, list[3].Title = "/", "Page 3"+changed
					if err := srv.Show(t.Context(), protocoltest.NewView(millrace.Site{Base: site.URL + "/"}, list, proto.Tagger)); err != nil {
						t.Fatal(err)
					}
				}
				var stored mirror.Pages
				pull := func() int64 {
					t.Helper()
					requests.Store(0)
					r, err := mirror.Sync(t.Context(), proto.Name, proto.NewReader(client.HTTP(), site.URL, nil), &stored, nil)
					if err != nil || r.SkippedN+r.Unconfirmed > 0 || stored.Len() != pages {
						t.Fatalf("%d pages, %+v, %v", stored.Len(), r, err)
					}
					return requests.Load()
				}
				show("")
				pull()
				if n := pull(); n != 1 {
					t.Errorf("a pull of an unchanged site takes %d requests", n)
				}
				found, err := discover.Probe(t.Context(), client.HTTP(), site.URL, &discover.Options{Protocols: []protocol.Protocol{proto}})
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(found.Ways, func(w discover.Way) bool { return w.Protocol == proto.Name })
				if i < 0 || found.Ways[i].Offer == nil {
					t.Fatalf("%+v", found.Ways)
				}
				offer := found.Ways[i].Offer
				show(" is another one")
				if n := pull(); n != moved {
					t.Errorf("a pull of one changed page takes %d requests", n)
				}
				estimate := offer.Changed.Add(offer.PerChange, 1).Requests
				if estimate < moved || estimate > moved+1 || offer.Unchanged.Requests != 1 {
					t.Errorf("the estimate is %d requests, or %d without changes; a refresh takes %d", estimate, offer.Unchanged.Requests, moved)
				}
			})
		}
	}
}
