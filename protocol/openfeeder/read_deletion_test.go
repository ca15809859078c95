package openfeeder

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
)

// gonePages returns the deletions that a reader reports, in short form, and the final cursor.
func gonePages(t *testing.T, src millrace.Source, since millrace.Cursor, from time.Time) (urls []string, cursor millrace.Cursor, err error) {
	t.Helper()
	for c, err := range src.(*reader).Deletions(t.Context(), since, from) {
		switch {
		case err != nil:
			return urls, "", err
		case c.Kind == millrace.Delete && c.Page == nil:
			urls = append(urls, strings.TrimPrefix(c.URL, strange))
		case c.Kind == millrace.KindCheckpoint && !c.Checkpoint.Complete && cursor == "":
			cursor = c.Checkpoint.Cursor
		default:
			t.Errorf("%+v", c)
		}
	}
	return urls, cursor, nil
}

func tombstones(urls ...string) string {
	for i, u := range urls {
		urls[i] = fmt.Sprintf(`{"url":%q,"deleted_at":"2026-01-01T00:00:00Z"}`, u)
	}
	return `"deleted":[` + strings.Join(urls, ",") + `]`
}

// Deletions of other sites, within the specification and outside it.
func TestDeletionsOfStrangers(t *testing.T) {
	day := time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
	dated := "/openfeeder?since=2026-01-10T11%3A50%3A00Z" // minus the tolerated clock skew
	items := func(urls ...string) string { return list(1, 1, urls...) }
	withToken := strings.Replace(items("/a"), `"items"`, `"sync_token":"now","items"`, 1)
	many := make([]string, recommendedTombstones)
	for i := range many {
		many[i] = fmt.Sprint(strange, "/", i)
	}
	for name, c := range map[string]struct {
		answers map[string]string
		want    string
		err     error
	}{
		"two":          {map[string]string{dated: reply("t", `},"added":[],"updated":[],`+tombstones(strange+"/b", strange+"/a"))}, "/a /b", nil},
		"it came back": {map[string]string{dated: reply("t", `},"added":[{"url":"/a","title":"A"}],"updated":[],`+tombstones(strange+"/b", strange+"/a"))}, "/b", nil},
		"it came back on the next page": {map[string]string{
			dated:              reply("t", `,"next":"/openfeeder?next"},"added":[],"updated":[],`+tombstones(strange+"/b", strange+"/a")),
			"/openfeeder?next": reply("u", `},"added":[{"url":"/a","title":"A"}],"updated":[]`),
		}, "/b", nil},
		"it went on the next page": {map[string]string{
			dated:              reply("t", `,"next":"/openfeeder?next"},"added":[{"url":"/a","title":"A"}],"updated":[]`),
			"/openfeeder?next": reply("u", `},"added":[],"updated":[],`+tombstones(strange+"/a")),
		}, "/a", nil},
		"foreign":              {map[string]string{dated: reply("t", `},"added":[],"updated":[],`+tombstones("https://other.example/a", strange+"/b"))}, "/b", nil},
		"nothing, by a token":  {map[string]string{dated: reply("t", `},"added":[],"updated":[],"deleted":[]`), "/openfeeder?limit=1&page=1": withToken}, "", nil},
		"nothing, as it says":  {map[string]string{dated: reply("t", `,"deleted_tracking":true},"added":[],"updated":[],"deleted":[]`)}, "", nil},
		"nothing to go by":     {map[string]string{dated: reply("t", `},"added":[],"updated":[],"deleted":[]`), "/openfeeder?limit=1&page=1": items("/a")}, "", errors.ErrUnsupported},
		"it does not track":    {map[string]string{dated: reply("t", `,"deleted_tracking":false},"added":[],"updated":[],"deleted":[]`), "/openfeeder?limit=1&page=1": items("/a")}, "", errors.ErrUnsupported},
		"it does not reach":    {map[string]string{dated: reply("t", `,"deleted_tracking":false},"added":[],"updated":[],"deleted":[]`), "/openfeeder?limit=1&page=1": withToken}, "", millrace.ErrConflict},
		"as many as there are": {map[string]string{dated: reply("t", `},"added":[],"updated":[],`+tombstones(many...))}, "", millrace.ErrConflict},
		"it looks at nothing":  {map[string]string{"/openfeeder": items("/a")}, "", errors.ErrUnsupported},
		"no dates":             {map[string]string{dated: "400 x"}, "", errors.ErrUnsupported},
		"no such thing":        {map[string]string{}, "", millrace.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stranger{answers: map[string]string{discovery: discoveryOf(usual)}}
			maps.Copy(s.answers, c.answers)
			notes := 0
			src := s.reader(&ReaderOptions{ReaderOptions: protocol.ReaderOptions{Note: func(n protocol.Note) {
				if n.Rule == Name+"/3.4/tombstone" {
					notes++
				}
			}}})
			got, cursor, err := gonePages(t, src, "", day)
			if !errors.Is(err, c.err) || strings.Join(got, " ") != c.want || (err == nil) != (cursor != "") {
				t.Errorf("%q, %q, %v after %q", got, cursor, err, s.asked)
			}
			if err != nil && errors.Is(err, errors.ErrUnsupported) && errors.Is(err, millrace.ErrConflict) {
				t.Errorf("two things to do: %v", err)
			}
			if (notes > 0) != (name == "foreign") {
				t.Errorf("%d notes", notes)
			}
		})
	}
}

// Once the reader knows that a site reports deletions, a check without changes is one request
// and a 304. An unknown token is a conflict. If the state of the primary source is older than
// the token, the reader requests the deletions since the time of that state.
func TestDeletionsByToken(t *testing.T) {
	s := &stranger{answers: map[string]string{
		discovery: discoveryOf(usual), "/openfeeder?since=one": reply("one", `},"added":[],"updated":[],"deleted":[]`),
		"/openfeeder": reply("one", `},"added":[],"updated":[],`+tombstones(strange+"/a")),
	}, header: map[string]http.Header{"/openfeeder": {}}}
	now := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	src := s.reader(&ReaderOptions{ReaderOptions: protocol.ReaderOptions{Now: func() time.Time { return now }}})
	ask := func(since millrace.Cursor, from time.Time, want, asked string) millrace.Cursor {
		t.Helper()
		s.asked = nil
		got, cursor, err := gonePages(t, src, since, from)
		if err != nil || strings.Join(got, " ") != want || strings.Join(s.asked, " ") != asked {
			t.Fatalf("%q, %v after %q, want %q after %q", got, err, s.asked, want, asked)
		}
		return cursor
	}
	c := ask("", time.Time{}, "/a", discovery+" /openfeeder?since=2026-01-10T00%3A00%3A00Z")
	s.header["/openfeeder"]["Etag"] = []string{`"e"`}
	c = ask(c, time.Time{}, "", "/openfeeder?since=one")
	s.answers["/openfeeder?since=one"] = "500 it was asked without its tag"
	s.header["/openfeeder"] = http.Header{"Etag": {`"e"`}}
	c = ask(c, now, "", "/openfeeder?since=one")
	s.header = nil
	old := time.Date(2025, 12, 31, 0, 0, 0, 0, time.UTC)
	ask(c, old, "/a", "/openfeeder?since=2025-12-30T23%3A50%3A00Z")
	s.answers["/openfeeder?since=one"] = "410 x"
	if _, _, err := gonePages(t, src, c, now); !errors.Is(err, millrace.ErrConflict) {
		t.Error(err)
	}
	if _, _, err := gonePages(t, src, "{}", now); !errors.Is(err, millrace.ErrConflict) {
		t.Error(err)
	}
	s.answers[discovery] = discoveryOf(`{"endpoint":"/x.json","type":"static"}`)
	if _, _, err := gonePages(t, src, "", now); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	// After a day, discovery runs again. If the feed has moved, deletions are requested by
	// date, because the old tokens may be another store's.
	now = now.AddDate(0, 0, 2)
	s.answers = map[string]string{
		discovery:                             discoveryOf(`{"endpoint":"/new","type":"paginated"}`),
		"/new?since=2025-12-31T23%3A50%3A00Z": reply("two", `},"added":[],"updated":[],`+tombstones(strange+"/b")),
		"/openfeeder?since=one":               "404 x",
	}
	ask(c, time.Time{}, "/b", discovery+" /new?since=2025-12-31T23%3A50%3A00Z")
}

// A primary source that lists only pages, with a delay, and a deletion reader together always
// have the pages of the site, in any order of writes, compaction and new stores.
func TestDeletionsProperty(t *testing.T) {
	seeds := uint64(2)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := &host{shop: openShop(t), truth: map[string]string{}}
			rng := rand.New(rand.NewPCG(seed, 17))
			for range 5 {
				h.edit(rng)
			}
			src := NewReader(&http.Client{Transport: h}, base, &ReaderOptions{ReaderOptions: protocol.ReaderOptions{Now: h.clock}})
			mirrored := map[string]bool{}
			var cursor millrace.Cursor
			var snapshot map[string]string // snapshot published earlier by the primary source
			var made, from time.Time
			publish := func() { snapshot, made = maps.Clone(h.truth), h.view().Site().Time }
			readSnapshot := func() {
				mirrored, from, cursor = map[string]bool{}, made, ""
				for u := range snapshot {
					mirrored[u] = true
				}
			}
			publish()
			readSnapshot()
			rereads := 0
			for n := range 40 {
				for range rng.IntN(4) {
					h.edit(rng)
				}
				switch rng.IntN(12) {
				case 0:
					h.reopen(fmt.Sprintf("store%d.db", n))
				case 1:
					h.compact(t)
				case 2, 3:
					publish()
				}
				for try := range 4 {
					for u := range h.truth { // pages that the primary source lists now
						mirrored[u] = true
					}
					urls, c, err := gonePages(t, src, cursor, from)
					if errors.Is(err, millrace.ErrConflict) && try < 3 {
						rereads++
						publish()
						readSnapshot()
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					for _, u := range urls {
						delete(mirrored, relative(base, u))
					}
					cursor, from = c, time.Time{}
					break
				}
				if diff := cmp.Diff(slices.Sorted(maps.Keys(h.truth)), slices.Sorted(maps.Keys(mirrored))); diff != "" {
					t.Fatalf("step %d (-site +held):\n%s", n, diff)
				}
				if rng.IntN(10) == 0 { // read a snapshot older than the last changes
					readSnapshot()
				}
			}
			if rereads > 15 {
				t.Errorf("everything was read again %d times", rereads)
			}
		})
	}
}
