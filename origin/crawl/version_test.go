package crawl

import (
	"net/http"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	for _, v := range []version{
		{kind: isPage, depth: 3, nothingNew: true, sketch: 1 << 63, revision: strings.Repeat("a", revisionLength), modified: 1700000000, claim: 7, etag: `W/"a.b c"`},
		{kind: isPage, revision: "t1x"},
		{kind: isPage},
		{kind: isAlias, day: 20000, target: 1<<64 - 1, nothingNew: true},
		{kind: isPending, depth: 30, listed: true},
	} {
		if got := parseVersion(v.String(), v.by); got != v {
			t.Errorf("%q is read as %+v, want %+v", v.String(), got, v)
		}
	}
	for s, kind := range map[string]byte{"": isPage, "x": isPage, "p0.0.1": isPage, "m1": isAlias, "q9.9.9": isPending, `p1.2.0.0.0.0.0. "x`: isPage} {
		v := parseVersion(s, "2")
		if v.kind != kind || v.kind == isPage && v.conditions(http.Header{}, false) {
			t.Errorf("%q is read as %+v", s, v)
		}
	}
}

// A page of another extractor is stale, but its stored version is kept. Names without a page have
// no extractor.
func TestVersionOfOthers(t *testing.T) {
	was := version{kind: isPage, by: "2", depth: 3, nothingNew: true, sketch: 5, revision: "t1", etag: `"x"`}
	v := parseVersion(was.String(), "2-abc")
	if !v.stale || v.old == nil || *v.old != was || v.depth != 3 || !v.nothingNew || v.sketch != 0 || v.revision != "" {
		t.Errorf("a page is read as %+v", v)
	}
	if h := (http.Header{}); v.conditions(h, false) || !v.conditions(h, true) || h.Get("If-None-Match") != `"x"` {
		t.Errorf("the conditions of the request are %v", h)
	}
	for _, was := range []version{{kind: isAlias, by: "1", day: 1, target: 2}, {kind: isPending, by: "2", depth: 2}} {
		if v := parseVersion(was.String(), "2-abc"); v != was {
			t.Errorf("%+v is read as %+v", was, v)
		}
	}
	for _, s := range []string{"p2.2.0.0.0.0.0.", "p1.2.0.0.0.0.0", "p1.2.00.0.0.0.0.", "p1", "p1."} {
		if v := parseVersion(s, "3"); !v.stale || v.old != nil {
			t.Errorf("%q is read as %+v", s, v)
		}
	}
}

func FuzzParseVersion(f *testing.F) {
	f.Add((&version{kind: isPage, revision: "t1", etag: `"x"`}).String())
	f.Add((&version{kind: isAlias, day: 1, target: 2}).String())
	f.Add((&version{kind: isPending, depth: 2}).String())
	f.Add("p1.2-abc.0.0.0.0.0.t1")
	f.Add("p1")
	f.Fuzz(func(t *testing.T, s string) {
		v := parseVersion(s, "2")
		if v.old != nil {
			if !v.stale || v.old.by == "2" {
				t.Errorf("with another extractor, %q is read as %+v", s, v)
			}
			v = *v.old
		}
		if !v.stale && v.String() != s {
			t.Errorf("%q is read as %q", s, v.String())
		}
	})
}

func TestValidators(t *testing.T) {
	for _, c := range []struct {
		name, tag, modified, date string
		wantTag                   string
		wantModified              int64
	}{
		{name: "both", tag: `W/"x"`, modified: "Sat, 01 Jan 2022 00:00:00 GMT", date: "Sun, 02 Jan 2022 00:00:00 GMT", wantTag: `W/"x"`, wantModified: 1640995200},
		{name: "the time of the request", modified: "Sat, 01 Jan 2022 00:00:00 GMT", date: "Sat, 01 Jan 2022 00:00:01 GMT"},
		{name: "no tag", tag: `x`},
		{name: "two tags", tag: `"x", "y"`},
		{name: "a long tag", tag: `"` + strings.Repeat("x", 300) + `"`},
		{name: "no date", modified: "yesterday"},
	} {
		h := http.Header{}
		for k, s := range map[string]string{"ETag": c.tag, "Last-Modified": c.modified, "Date": c.date} {
			if s != "" {
				h.Set(k, s)
			}
		}
		var v version
		if v.validators(h); v.etag != c.wantTag || v.modified != c.wantModified {
			t.Errorf("%s: %q, %d", c.name, v.etag, v.modified)
		}
	}
}
