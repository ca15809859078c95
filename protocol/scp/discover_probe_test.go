package scp

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
)

// A probe's offer is computed from the elements of the sitemap.
func TestProbe(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Second)
	at := func(days int) time.Time { return now.AddDate(0, 0, days) }
	pages := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("/p%d", i))
		}
		return out
	}
	for name, c := range map[string]struct {
		offers func(h *host) []string
		want   protocol.Offer // in Bytes, 1 means any positive number
	}{
		"a snapshot and a delta": {func(h *host) []string {
			return []string{
				h.collection("all.scp.gz", at(-5), time.Time{}, pages(10)...),
				h.collection("all-delta.scp.gz", at(-2), at(-6), pages(2)...),
			}
		}, protocol.Offer{
			Pages: 10, First: protocol.Cost{Requests: 3, Bytes: 1}, Unchanged: protocol.Cost{Requests: 1}, Changed: protocol.Cost{Requests: 2, Bytes: 1}, PerChange: protocol.Cost{Bytes: 1},
		}},
		"a delta of few bytes": {func(h *host) []string {
			snapshot := h.collection("all.scp.gz", at(-5), time.Time{}, pages(10)...)
			h.put("/all-delta.scp.gz", []byte("delta"))
			return []string{snapshot, h.element("all-delta.scp.gz", at(-2), at(-6), 2)}
		}, protocol.Offer{
			Pages: 10, First: protocol.Cost{Requests: 3, Bytes: 1}, Unchanged: protocol.Cost{Requests: 1}, Changed: protocol.Cost{Requests: 2, Bytes: 1}, PerChange: protocol.Cost{Bytes: 1},
		}},
		"deltas that are to come": {func(h *host) []string {
			return []string{`<scp:section name="all" updateFreq="daily" pages="10"/>`, h.collection("all.scp.gz", at(-5), time.Time{}, pages(10)...)}
		}, protocol.Offer{
			Pages: 10, First: protocol.Cost{Requests: 2, Bytes: 1}, Unchanged: protocol.Cost{Requests: 1}, Changed: protocol.Cost{Requests: 2, Bytes: 1}, PerChange: protocol.Cost{Bytes: 1},
		}},
		"snapshots alone": {func(h *host) []string {
			return []string{h.collection("blog.scp", at(-5), time.Time{}, pages(4)...), h.collection("docs.scp", at(-5), time.Time{}, pages(7)[4:]...)}
		}, protocol.Offer{
			Pages: 7, First: protocol.Cost{Requests: 3, Bytes: 1}, Unchanged: protocol.Cost{Requests: 1}, Changed: protocol.Cost{Requests: 3, Bytes: 1}, Deletes: true,
		}},
		"sizes and counts unknown": {func(h *host) []string {
			e := h.collection("all.scp", at(-5), time.Time{}, pages(3)...)
			e = strings.NewReplacer(`pages="3"`, "", `size="`, `sighs="`).Replace(e)
			return []string{e, strings.Replace(h.element("all-delta.scp", at(-1), at(-5), 1), `size="0"`, "", 1)}
		}, protocol.Offer{
			Pages: -1, First: protocol.Cost{Requests: 3, Bytes: 1}, Unchanged: protocol.Cost{Requests: 1}, Changed: protocol.Cost{Requests: 2, Bytes: 1},
		}},
		"expired": {func(h *host) []string {
			return []string{h.collection("all.scp", at(-90), time.Time{}, pages(3)...)}
		}, protocol.Offer{
			Pages: 3, First: protocol.Cost{Requests: 3, Bytes: 1}, Unchanged: protocol.Cost{Requests: 1}, Changed: protocol.Cost{Requests: 2, Bytes: 1}, Deletes: true,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.offers(c.offers(h)...)
			got, err := Protocol().Probe(t.Context(), &http.Client{}, h.url+"any/page", nil)
			if name == "sizes and counts unknown" {
				if !errors.Is(err, millrace.ErrNotFound) { // the delta does not exist
					t.Errorf("%+v, %v", got, err)
				}
				h.put("/all-delta.scp", []byte("x"))
				got, err = Protocol().Probe(t.Context(), &http.Client{}, h.url+"any/page", nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			c.want.Entry, c.want.Detail, c.want.Fields, c.want.Basis = h.url+"sitemap.xml", millrace.DetailBlocks, fields, got.Basis
			for _, path := range []string{"all.scp", "blog.scp"} {
				if h.files["/"+path] != nil {
					c.want.Collection = h.url + path
				}
			}
			if got.Basis == "" {
				t.Error("no Basis")
			}
			first := got.First.Bytes
			for _, n := range []*int64{&got.First.Bytes, &got.Changed.Bytes, &got.PerChange.Bytes, &got.Unchanged.Bytes} {
				*n = min(*n, 1)
			}
			if d := cmp.Diff(&c.want, got); d != "" {
				t.Error(d)
			}
			if len(h.log) > 6 {
				t.Errorf("asked for %q", h.log)
			}
			want := int64(0)
			for path, f := range h.files {
				want += int64(len(f.body))
				if path == "/sitemap.xml" && name == "expired" {
					want += int64(len(f.body))
				}
			}
			if first != want {
				t.Errorf("First is %d bytes, want %d", first, want)
			}
		})
	}
}

// A probe reads only the start of a long sitemap, which contains the SCP elements.
func TestProbeLongSitemap(t *testing.T) {
	h := newHost(t)
	element := h.collection("all.scp", time.Now().Add(-time.Hour), time.Time{}, "/p")
	text := string(sitemapOf(element))
	more := strings.Repeat("<url><loc>https://example.com/a/page/of/the/site</loc></url>\n", 20_000)
	h.put("/sitemap.xml", []byte(strings.Replace(text, "<url>", more+"<url>", 1)))
	notes := 0
	offer, err := Protocol().Probe(t.Context(), &http.Client{}, h.url, &protocol.ReaderOptions{Note: func(protocol.Note) { notes++ }})
	if err != nil {
		t.Fatal(err)
	}
	if size := int64(len(h.files["/sitemap.xml"].body)); offer.Pages != 1 || offer.Changed.Bytes < size || notes > 0 {
		t.Errorf("%+v with %d notes; the sitemap has %d bytes", offer, notes, size)
	}
}

// The Time of a checkpoint is the generation time of the oldest collection that was read.
func TestMarkTime(t *testing.T) {
	h := newHost(t)
	snapshot := h.collection("all.scp", day(5, 0), time.Time{}, "/a 1", "/b 1")
	delta := h.collection("all-delta.scp", day(7, 0), day(4, 0), "/a 6")
	h.offers(snapshot, delta)
	src := NewReader(&http.Client{}, h.url, &ReaderOptions{ReaderOptions: protocol.ReaderOptions{Now: func() time.Time { return day(20, 12) }}})
	var cursor millrace.Cursor
	read := func(want time.Time) {
		t.Helper()
		marks := 0
		for c, err := range src.Changes(t.Context(), cursor) {
			if err != nil {
				t.Fatal(err)
			}
			if c.Kind == millrace.KindCheckpoint {
				if marks++; !c.Time.Equal(want) {
					t.Errorf("the time of the checkpoint is %s, want %s", c.Time, want)
				}
				cursor = c.Checkpoint.Cursor
			}
		}
		if marks == 0 {
			t.Error("no mark")
		}
	}
	read(day(5, 0))
	read(time.Time{}) // nothing was read
	h.offers(snapshot, delta, h.collection("all-delta-2.scp", day(8, 0), day(7, 0), "/a 8"), h.collection("all-delta-3.scp", day(9, 0), day(8, 0), "/a 9"))
	read(day(8, 0))
}
