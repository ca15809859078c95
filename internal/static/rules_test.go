package static

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The rules of a _headers file set only fields that the file of a path should have, each once.
// The report counts the documents with missing fields.
func TestRules(t *testing.T) {
	s := mill()
	for i := range 40 {
		for _, kind := range []string{"snapshot", "delta"} {
			d := data(fmt.Sprint(kind, i), fmt.Sprint(kind, i), "Content-Type", "application/scp", "Content-Encoding", "zstd", "Cache-Control", "of a "+kind)
			s[fmt.Sprintf("/scp/%s%d.scp.zst", kind, i)] = d
		}
		s[fmt.Sprintf("/p%d/doc.json", i)] = data("{}", "p", "Link", fmt.Sprintf("<%sp%d/>; rel=\"canonical\"", base, i))
		s[fmt.Sprintf("/q%d.html/doc.json", i)] = data("{}", "q", "Link", fmt.Sprintf("<%sq%d.html>; rel=\"canonical\"", base, i))
		s[fmt.Sprintf("/twin%d.md", i)] = data("#", "m", "Content-Type", "text/markdown")
	}
	s["/own.md"] = page("own.md", "# own")
	s["/_headers"] = page("_headers", "# ours\n/own.md\n  X-Own: yes")
	for _, host := range []string{netlify, cloudflare, vercel} {
		dir := t.TempDir()
		b, err := begun(t, dir, s, &Options{Host: host})
		if err == nil {
			err = b.Finish(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		incomplete := 0
		err = b.each(func(l *line) error {
			want := b.settable(l.Set)
			if l.Link != "" {
				want = append(want, field{"Link", l.Link})
			}
			var got []field
			for _, r := range b.rules {
				if r.matches(l.Path) {
					got = append(got, r.fieldsFor(l.Path, host == cloudflare)...)
				}
			}
			for i, f := range got {
				if !slices.Contains(want, f) || slices.Contains(got[i+1:], f) {
					t.Errorf("for %q: %s sets %v, want %v", host, l.Path, got, want)
				}
			}
			if len(got) < len(want) && l.Protocol != "" {
				incomplete++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		most := maxRules - 1
		if host != cloudflare {
			most = b.kind.rules
		}
		if incomplete != b.Report.IncompleteHeaders || len(b.rules) > most || (incomplete == 0) != (host != cloudflare) {
			t.Errorf("for %q: %d rules, %d documents with missing fields, reported %d", host, len(b.rules), incomplete, b.Report.IncompleteHeaders)
		}
		text := files(t, dir)["_headers"]
		if host == vercel {
			continue // see TestVercel
		}
		if !strings.Contains(text, "# ours\n/own.md\n  X-Own: yes\n\n# Written by") || !strings.Contains(text, "/*.scp.zst\n  Content-Type: application/scp\n") {
			t.Errorf("for %q:\n%.800s", host, text)
		}
	}
}

// The rules for a folder match no other paths of the host.
func TestRulesBelow(t *testing.T) {
	s := site{"/m/a/doc.json": data("{}", "a"), "/m/b/doc.json": data("{}", "b"), "/m/doc.json": data("{}", "c")}
	b, err := Open(t.TempDir(), base+"m/", s, &Options{Host: cloudflare})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, p := range []string{"/a/doc.json", "/b/doc.json", "/doc.json"} {
		if err := b.Add(t.Context(), Item{Path: p, Protocol: "protocol"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(b.rules) != 1 || b.rules[0].path != "/m/*.json" || b.Report.Unchanged+b.Report.LeftOutCount != 0 {
		t.Errorf("%+v %+v", b.rules, b.Report)
	}
}
