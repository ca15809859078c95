package web

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

// A feed of changes may be newer than the sitemaps, if they are cached or built once a day. Pages
// in the feed exist even if the sitemaps do not contain them. Pages that the feed reports as
// deleted are deleted.
func TestReadFeedAhead(t *testing.T) {
	s := newSite("/", "/a", "/b", "/c")
	s.lists = map[string][]string{"/sitemap.xml": {"/", "/a", "/b", "/c"}}
	gone := map[string]time.Time{}
	s.feed = atom(gone, 10)
	c := &copied{site: s, now: otherDay.Add(48 * time.Hour)}
	later := func() { c.now = c.now.Add(25 * time.Hour) } // the next run reads everything again

	s.set("/new", "Text of /new", otherDay.Add(time.Hour))
	c.sync(t)
	c.holds(t) // after the first run

	later()
	s.set("/newer", "Text of /newer", otherDay.Add(26*time.Hour))
	s.lists["/sitemap.xml"] = []string{"/", "/a", "/b"} // the sitemap now lacks a page that the feed has
	for range 3 {
		if rep, _ := c.sync(t); rep.Deleted+rep.UnconfirmedDeletions > 0 {
			t.Errorf("%d deleted, %d unconfirmed", rep.Deleted, rep.UnconfirmedDeletions)
		}
		c.holds(t)
		later()
	}

	delete(s.pages, "/new")
	delete(s.pages, "/c")
	gone[goodSite+"/new"], gone[goodSite+"/c"] = c.now.Add(-time.Hour), c.now.Add(-time.Hour)
	c.sync(t)
	c.holds(t)
}

// A mirror that was read only from the sitemaps has pages that no sitemap contains now, and that
// the feed reports as deleted.
func TestReadUnseen(t *testing.T) {
	s := newSite("/", "/a", "/b", "/c", "/d", "/e", "/f", "/g")
	c := &copied{site: s, now: otherDay.Add(48 * time.Hour)}
	c.sync(t)
	c.holds(t)
	s.feed = atom(map[string]time.Time{goodSite + "/b": otherDay.Add(50 * time.Hour), goodSite + "/c": otherDay.Add(50 * time.Hour)}, 10)
	delete(s.pages, "/b") // a loss of a fifth or more would be unconfirmed
	delete(s.pages, "/c")
	c.now = c.now.Add(72 * time.Hour)
	if rep, _ := c.sync(t); rep.UnconfirmedDeletions > 0 {
		t.Errorf("%d unconfirmed", rep.UnconfirmedDeletions)
	}
	c.holds(t)
}

// Names are guessed for each form of path, until several pages of the form turn out to have no
// Markdown.
func TestReadGuess(t *testing.T) {
	s := newSite("/", "/a", "/b", "/docs/", "/docs/c", "/x/", "/1.html", "/2.html", "/3.html", "/4.html", "/5.html", "/6.html")
	s.links, s.llms = false, true
	s.name = func(p string) string {
		switch {
		case strings.HasSuffix(p, ".html"):
			return ""
		case strings.HasSuffix(p, "/"):
			return p + "index.html.md"
		}
		return p + ".md"
	}
	c := &copied{site: s, now: otherDay.Add(48 * time.Hour)}
	_, asked := c.sync(t)
	for path := range s.pages {
		if got, want := c.pages.Page(goodSite+path) != nil, !strings.HasSuffix(path, ".html"); got != want {
			t.Errorf("%s: held %v, want %v", path, got, want)
		}
	}
	var guesses []string
	for _, at := range asked {
		if strings.HasSuffix(at, ".html.md") && !strings.HasSuffix(at, "index.html.md") {
			guesses = append(guesses, at)
		}
	}
	if len(guesses) != 1+maxFailed {
		t.Errorf("guessed %v", guesses)
	}
	if n := len(slices.DeleteFunc(slices.Clone(asked), func(at string) bool { return at != "/x/index.md" })); n > 0 {
		t.Errorf("%d guesses for a form with a known rule", n)
	}
}

func TestJSONFeedDeleted(t *testing.T) {
	at, err := url.Parse("https://x.test/feed.json")
	if err != nil {
		t.Fatal(err)
	}
	const start = `{"version":"https://jsonfeed.org/version/1.1","title":"x","items":[{"id":"https://x.test/a","date_modified":"2026-01-01T00:00:00Z"}]`
	for _, c := range []struct {
		more       string
		tombstones bool
		n          int
	}{
		{"", false, 1},
		{`,"_deleted":{"about":"https://x.test/","items":[]}`, true, 1},
		{`,"_deleted":{"items":[{"id":"https://x.test/c","date_deleted":"2026-01-02T03:04:05Z"}]}`, true, 2},
		{`,"_deleted":["https://x.test/c"]`, false, 1}, // another party's extension
		{`,"_deleted":{"items":true}`, false, 1},
		{`,"_deleted":true`, false, 1},
		{`,"_deleted":null`, false, 1},
	} {
		doc, err := decodeJSONFeed([]byte(start+c.more+"}"), at)
		if err != nil || doc.Tombstones != c.tombstones || len(doc.Entries) != c.n {
			t.Errorf("%s: %+v, %v", c.more, doc, err)
		}
	}
}

// The Markdown of a new page is requested under the name that the rule for a stored page of the
// same form determines, even if names of deleted pages were tried before.
func TestReadStoredName(t *testing.T) {
	s := newSite("/", "/1.html", "/2.html", "/3.html", "/4.html")
	s.links, s.llms = false, true
	c := &copied{site: s, now: otherDay.Add(48 * time.Hour)}
	c.sync(t)
	c.holds(t)
	r := c.reader()
	r.way.Names = map[string]string{formFolder: "index.html.md"}
	r.failed = map[string]int{formHTML: maxFailed}
	s.set("/9.html", "Text of /9.html", otherDay.Add(50*time.Hour))
	var stored millrace.Ref
	for ref, err := range c.pages.KnownRefs(t.Context(), Name, goodSite+"/1.html") {
		if err != nil {
			t.Fatal(err)
		}
		stored = ref
	}
	if _, err := r.Page(t.Context(), stored); err != nil && !errors.Is(err, millrace.ErrUnmodified) {
		t.Fatal(err)
	}
	if _, err := r.Page(t.Context(), millrace.Ref{URL: goodSite + "/9.html"}); err != nil {
		t.Error(err)
	}
}
