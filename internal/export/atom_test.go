package export

import (
	"encoding/xml"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/store/memory"
)

// The feed of a site has its newest changes first, without hidden pages. An export leaves the
// files of other formats, unchanged feeds, and the feeds of other sites.
func TestAtom(t *testing.T) {
	t.Parallel()
	const mill, lock = "https://mill.example/", "https://lock.example/"
	st := memory.New(nil)
	apply := func(name, path string, kind millrace.Kind, hidden bool) {
		t.Helper()
		site, err := st.Site(t.Context(), name, name)
		if err != nil {
			t.Fatal(err)
		}
		c := millrace.Change{Kind: kind, Ref: millrace.Ref{URL: name + path}}
		if kind == millrace.Put {
			c.Page = &millrace.Page{URL: c.URL, Title: path, Known: millrace.FieldTitle | millrace.FieldAccess, Access: millrace.Access{NoIndex: hidden}}
		}
		if _, err := site.Apply(t.Context(), "test", []millrace.Change{c}); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	run := func(format string, sites ...string) Counts {
		t.Helper()
		all, err := ingest.SiteNames(t.Context(), st)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(t.Context(), st, &Request{Sites: sites, All: all, Format: format, Out: dir, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return r.Counts
	}
	for _, path := range []string{"wheel", "gate", "sluice"} {
		apply(mill, path, millrace.Put, false)
	}
	apply(mill, "secret", millrace.Put, true)
	apply(mill, "gate", millrace.Delete, false)
	apply(lock, "basin", millrace.Put, false)
	run("markdown", mill, lock)
	if c := run("atom", mill, lock); c.Files != 2 || c.Removed != 0 {
		t.Errorf("%+v", c)
	}
	var feed struct {
		ID      string `xml:"id"`
		Deleted []struct {
			Ref string `xml:"ref,attr"`
		} `xml:"http://purl.org/atompub/tombstones/1.0 deleted-entry"`
		Entries []struct {
			ID string `xml:"id"`
		} `xml:"entry"`
	}
	b, err := os.ReadFile(filepath.Join(dir, "mill.example", "feed.atom"))
	if err == nil {
		err = xml.Unmarshal(b, &feed)
	}
	if err != nil {
		t.Fatal(err)
	}
	got := []string{feed.ID}
	for _, e := range feed.Entries {
		got = append(got, e.ID)
	}
	for _, e := range feed.Deleted {
		got = append(got, "deleted "+e.Ref)
	}
	if d := cmp.Diff([]string{mill, mill + "sluice", mill + "wheel", "deleted " + mill + "gate"}, got); d != "" {
		t.Error(d)
	}
	apply(lock, "weir", millrace.Put, false)
	if c := run("atom", mill, lock); c.Files != 2 || c.Unchanged != 1 || c.Pages != 5 {
		t.Errorf("%+v", c)
	}
	if c := run("atom", mill); c.Files != 1 || c.Unchanged != 1 || c.Removed != 0 {
		t.Errorf("%+v", c)
	}
	if c := run("markdown", mill, lock); c.Unchanged != 3 || c.Files != 4 || c.Removed != 0 {
		t.Errorf("%+v", c)
	}
	if found, err := filepath.Glob(filepath.Join(dir, "*", "feed.atom")); len(found) != 2 || err != nil {
		t.Errorf("%v, %v", found, err)
	}
}
