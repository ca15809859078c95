package mcp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/millrace/millrace"
)

func TestChanges(t *testing.T) {
	s := newTestLibrary(t)
	s.add(mill)
	var first []millrace.Change
	for i := range 7 {
		first = append(first, put(fmt.Sprintf("/%d", i), fmt.Sprint("Page ", i), text("Text.")))
	}
	s.apply(mill, first...)
	c := connect(t, New(s, nil), nil)
	// all lists every part, as a client does.
	all := func(since string, limit int) (got []string, cursor string) {
		for range 50 {
			args := map[string]any{"limit": limit}
			if since != "" {
				args["since"] = since
			}
			out, _ := asked[changesOut](t, c, "list_changes", args)
			if len(out.Changes) > limit {
				t.Errorf("%d changes, limit %d", len(out.Changes), limit)
			}
			for _, ch := range out.Changes {
				got = append(got, ch.Kind+" "+strings.TrimPrefix(ch.URL, mill))
			}
			if since = out.Cursor; !out.More {
				return got, out.Cursor
			}
		}
		t.Fatal("the list has no end")
		return nil, ""
	}
	got, cursor := all("", 3)
	if want := []string{"added 0", "added 1", "added 2", "added 3", "added 4", "added 5", "added 6"}; !slices.Equal(got, want) {
		t.Errorf("everything: %v", got)
	}
	if got, again := all(cursor, 3); len(got) != 0 || again != cursor {
		t.Errorf("nothing has changed: %v, %s after %s", got, again, cursor)
	}
	before := s.clock.Add(time.Millisecond)
	s.apply(mill, put("/1", "Other", text("Text.")), put("/7", "New", text("Text.")), put("/8", "New", text("Text.")), gone("/2"))
	s.apply(mill, put("/9", "New", text("Text.")), gone("/3"))
	s.apply(mill, put("/brief", "Brief", text("Text.")))
	s.apply(mill, gone("/brief"))
	want := []string{"updated 1", "added 7", "added 8", "deleted 2", "added 9", "deleted 3"}
	for _, limit := range []int{1, 2, 3, 4, 5, 50} {
		got, end := all(cursor, limit)
		slices.Sort(got)
		sorted := slices.Sorted(slices.Values(want))
		if !slices.Equal(got, sorted) {
			t.Errorf("by %d: %v, want %v", limit, got, sorted)
		}
		if got, _ := all(end, limit); len(got) != 0 {
			t.Errorf("by %d, after the end: %v", limit, got)
		}
	}
	if got, _ := all(before.UTC().Format(time.RFC3339Nano), 50); len(got) != len(want) {
		t.Errorf("since a time: %v", got)
	}
	if got, _ := all(s.clock.Add(time.Hour).UTC().Format(time.RFC3339), 50); len(got) != 0 {
		t.Errorf("since tomorrow: %v", got)
	}
	if got, _ := all("2020-01-01", 50); len(got) != 8 {
		t.Errorf("since long ago: %v", got)
	}
}

// No change is lost if the site changes between two parts.
func TestChangesWhileListing(t *testing.T) {
	for _, since := range []bool{false, true} {
		s := newTestLibrary(t)
		s.add(mill)
		c := connect(t, New(s, nil), nil)
		cursor := ""
		if since {
			s.apply(mill, put("/", "Home", text("Text.")))
			out, _ := asked[changesOut](t, c, "list_changes", nil)
			cursor = out.Cursor
		}
		var first []millrace.Change
		for i := range 20 {
			first = append(first, put(fmt.Sprintf("/%02d", i), fmt.Sprint("Page ", i), text("Text.")))
		}
		s.apply(mill, first...)
		known := map[string]string{} // the client's state: URL and time
		for i := range 200 {
			args := map[string]any{"limit": 3}
			if cursor != "" {
				args["since"] = cursor
			}
			out, _ := asked[changesOut](t, c, "list_changes", args)
			for _, ch := range out.Changes {
				if known[ch.URL] = ch.Time; ch.Kind == "deleted" {
					delete(known, ch.URL)
				}
			}
			cursor = out.Cursor
			switch i {
			case 1: // edits the last page sent, one before and one after it, and deletes one
				s.apply(mill, put("/05", "Other", text("Text.")), put("/01", "Other", text("Text.")), put("/15", "Other", text("Text.")), gone("/02"))
			case 3:
				s.apply(mill, put("/00", "Other", text("Text.")), put("/99", "New", text("Text.")), gone("/16"))
			}
			if !out.More && i > 4 {
				break
			}
		}
		v, err := s.pubs[mill].Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var want, got []string
		for p, err := range v.Scan(t.Context(), millrace.Scan{}) {
			if err != nil {
				t.Fatal(err)
			}
			if !since || p.URL != mill {
				want = append(want, p.URL)
			}
		}
		for url := range known {
			got = append(got, url)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("since %v:\n%s", since, diff)
		}
	}
}

func TestCursorsOfOthers(t *testing.T) {
	s, other := mills(t), mills(t)
	c, d := connect(t, New(s, nil), nil), connect(t, New(other, nil), nil)
	out, _ := asked[changesOut](t, c, "list_changes", map[string]any{"site": mill})
	for _, q := range []struct {
		client *sdk.ClientSession
		site   string
		since  string
		want   string
	}{
		{d, mill, out.Cursor, "conflict"},
		{c, river, out.Cursor, "other-site"},
		{c, mill, out.Cursor[:len(out.Cursor)-3], "bad-cursor"},
		{c, mill, markPrefix, "bad-cursor"},
		{c, mill, mark{Site: sum(mill), Epoch: "nonsense", Seq: 1}.String(), "conflict"},
		{c, mill, mark{Site: sum(mill), Epoch: epochOf(t, s), Seq: 1 << 62}.String(), "conflict"},
		{c, mill, "yesterday\x1b[2J", "bad-time"},
	} {
		if code, why := refused(t, q.client, "list_changes", map[string]any{"site": q.site, "since": q.since}); code != q.want || strings.ContainsRune(why, 0x1b) {
			t.Errorf("since %s: %s, want %s: %s", q.since, code, q.want, why)
		}
	}
}

func TestCompacted(t *testing.T) {
	s := mills(t)
	c := connect(t, New(s, nil), nil)
	out, _ := asked[changesOut](t, c, "list_changes", map[string]any{"site": mill})
	for i := range 5 {
		s.apply(mill, put("/", fmt.Sprint("Home ", i), text("Text.")), put("/x", "X", text(fmt.Sprint(i))))
		s.apply(mill, gone("/x"))
	}
	s.clock = s.clock.Add(48 * time.Hour)
	if err := s.sites[mill].Compact(t.Context(), time.Hour, 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	if code, why := refused(t, c, "list_changes", map[string]any{"site": mill, "since": out.Cursor}); code != "conflict" {
		t.Error(why)
	}
}

func epochOf(t *testing.T, s *testLibrary) string {
	t.Helper()
	v, err := s.pubs[mill].Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v.Site().Epoch
}
