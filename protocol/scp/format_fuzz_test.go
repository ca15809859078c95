package scp

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// ours reads a line twice, with and without storing its values, and returns the result.
func ours(t *testing.T, line []byte) (lineResult, *page, issue) {
	t.Helper()
	read := func(keep bool) (lineResult, *parser) {
		p := &parser{limits: new(OpenOptions).resolve(), keep: keep}
		switch ok := p.parsePage(line); {
		case !ok && p.fatal.reason == "":
			t.Fatalf("%q: refused without a reason", line)
		case !ok:
			return fatalLine, p
		case p.skip.reason != "":
			return skipped, p
		}
		return taken, p
	}
	dry, q := read(false)
	v, p := read(true)
	if v != dry || p.fatal != q.fatal || p.skip != q.skip || p.counts != q.counts {
		t.Fatalf("%q: kept %v %v %v, not kept %v %v %v", line, v, p.fatal, p.skip, dry, q.fatal, q.skip)
	}
	why := p.fatal
	if v == skipped {
		why = p.skip
	}
	if e := formatError(7, line, why); v != taken && !strings.HasPrefix(e.Position, "line 7") {
		t.Fatalf("%q: %v", line, e)
	}
	return v, &p.page, why
}

// agree fails unless the parser and the oracle return the same result for a line.
func agree(t *testing.T, line []byte) lineResult {
	t.Helper()
	got, w, why := ours(t, line)
	if got == skipped && why.reason == duplicateName {
		return got // the oracle does not detect duplicates
	}
	want, p := new(oracle).read(line)
	if want == undecided {
		return got
	}
	if got != want {
		t.Fatalf("%q: %d, want %d: %v", line, got, want, why)
	}
	if want == taken {
		same := cmp.Options{cmpopts.EquateEmpty(), cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })}
		if diff := cmp.Diff(p, w, same); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", line, diff)
		}
	}
	return got
}

// seeds returns lines of every form.
func seeds() [][]byte {
	var out [][]byte
	for _, c := range lineCases {
		out = append(out, []byte(c.line()))
	}
	site := millrace.Site{Base: "https://example.com/"}
	for _, p := range protocoltest.Pages(3) {
		if w := pageOf(site, p); w != nil {
			out = append(out, appendPage(nil, w))
		}
	}
	return out
}

func FuzzLine(f *testing.F) {
	for _, line := range seeds() {
		if len(line) < 4000 {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) { agree(t, line) })
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte(strings.SplitAfter(vector, "\n")[0]))
	f.Add([]byte(`{"x":[1],"collection":{"checksum" : "sha256:BE42285ADEDE447D7486BD0AD029C2A4634CA5F129F74F422AC11165B21CD15C" , "id":"a","section":"b","type":"delta","since":"2026-11-20T00:00:00Z","generated":"2026-11-21T00:00:00+01:00","version":"0.2"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		p := &parser{limits: new(OpenOptions).resolve()}
		m, at, ok := p.parseMetadata(line)
		if !ok {
			if e := formatError(1, line, p.fatal); p.fatal.reason == "" || !errors.Is(e, millrace.ErrInvalid) {
				t.Fatalf("%q: %v", line, e)
			}
			return
		}
		if !isName(m.ID) || !isName(m.Section) || m.Generated.IsZero() && m.Generated.Year() != 1 || m.Type == "delta" && m.Since.IsZero() && m.Since.Year() != 1 {
			t.Fatalf("%q: %+v", line, m)
		}
		if m.Checksum == "" {
			return
		}
		// Without the checksum, the rest of the metadata is the same.
		cut := append(append([]byte(nil), line[:at.from]...), line[at.to:]...)
		n, _, ok := p.parseMetadata(cut)
		if m.Checksum = ""; !ok || m != n {
			t.Fatalf("%q: without the checksum %q: %+v, %v", line, cut, n, p.fatal)
		}
	})
}

func FuzzFile(f *testing.F) {
	f.Add([]byte(vector))
	f.Add(packed([]byte(vector)))
	f.Add(zipped([]byte(vector)))
	f.Add(append([]byte{0x50, 0x2A, 0x4D, 0x18, 1, 0, 0, 0, 7}, packed([]byte(vector))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Open(bytes.NewReader(b), int64(len(b)), &OpenOptions{MaxBytes: 1 << 20})
		if err != nil {
			invalid(t, err)
			return
		}
		v, err := c.Verify(t.Context())
		if err != nil {
			invalid(t, err)
		}
		pages, skips := 0, 0
		var last error
		for p, err := range c.Pages(t.Context()) {
			_, skip := errors.AsType[*millrace.SkipError](err)
			switch {
			case skip:
				skips++
			case err != nil:
				last = err
			case p.URL == "":
				t.Fatal("a page has no URL")
			default:
				pages++
			}
		}
		if pages != v.Pages || skips != v.Skipped || (last == nil) != (err == nil || v.Checksum == "bad") {
			t.Fatalf("Verify %+v, %v; Pages gives %d and %d, %v", v, err, pages, skips, last)
		}
	})
}

func invalid(t *testing.T, err error) {
	t.Helper()
	f, ok := errors.AsType[*millrace.FormatError](err)
	if !ok || f.Protocol != Name || f.Section == "" || f.Error() == "" {
		t.Fatalf("%#v", err)
	}
}
