package openfeeder

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/kit"
)

// The examples of the specification, with values in place of its dots.
const (
	specIndex = `{"schema":"openfeeder/1.0","type":"index","page":1,"total_pages":42,"items":[
		{"url":"/article/my-post","title":"My Post","published":"2026-02-21T20:00:00Z","summary":"Short description..."}]}`
	specPage = `{"schema":"openfeeder/1.0","url":"https://example.com/a","title":"T","author":null,"published":null,
		"updated":"2026-02-21T20:00:00Z","language":"en","summary":"S.",
		"chunks":[{"id":"c1","text":"Clean.","type":"paragraph","relevance":null},{"id":"c2","text":"H","type":"heading","relevance":0.94}],
		"meta":{"total_chunks":2,"returned_chunks":2,"cached":true,"cache_age_seconds":120}}`
	specSync = `{"openfeeder_version":"1.0","sync":{"since":"2026-02-01T00:00:00Z","until":"2026-02-15T00:00:00Z",
		"as_of":"2026-02-23T02:00:00Z","sync_token":"eyJ0IjoiMjAyNi0wMi0yMyJ9","counts":{"added":5,"updated":3,"deleted":2}},
		"added":[],"updated":[],"deleted":[{"url":"https://example.com/old-post","deleted_at":"2026-02-21T14:30:00Z"}]}`
	specAbout = `{"version":"1.0","site":{"name":"N","url":"https://example.com","language":"en"},
		"feed":{"endpoint":"/openfeeder","type":"paginated"},"capabilities":["search"],"contact":null}`
	specError = `{"schema":"openfeeder/1.0","error":{"code":"NOT_FOUND","message":"No."}}`
)

func TestDecode(t *testing.T) {
	if x, err := decodeIndex([]byte(specIndex)); err != nil || x.TotalPages != 42 || x.Items[0].URL != "/article/my-post" {
		t.Errorf("index: %+v, %v", x, err)
	}
	w, err := decodePage([]byte(specPage))
	if err != nil || len(w.Chunks) != 2 || w.Author != "" || w.Chunks[0].Relevance != nil || *w.Chunks[1].Relevance != .94 {
		t.Errorf("page: %+v, %v", w, err)
	}
	c, err := decodeChanges([]byte(specSync))
	if err != nil || c.Sync.Counts.Added != 5 || c.Deleted[0].DeletedAt != "2026-02-21T14:30:00Z" || c.Sync.DeletedTracking != nil {
		t.Errorf("sync: %+v, %v", c, err)
	}
	if a, err := decodeAbout([]byte(specAbout)); err != nil || a.Feed.Endpoint != endpoint || a.Contact != "" {
		t.Errorf("discovery: %+v, %v", a, err)
	}
	if f, ok := decodeFailure([]byte(specError)); !ok || f.Code != notFound {
		t.Errorf("error: %+v", f)
	}
	for _, c := range []struct {
		doc, where string
		decode     func([]byte) error
	}{
		{`{"schema":"x"}`, "/items", func(b []byte) error { _, err := decodeIndex(b); return err }},
		{`{"items":[]}`, "/schema", func(b []byte) error { _, err := decodeIndex(b); return err }},
		{`{"schema":"x","items":[{"url":1}]}`, "/items/0/url", func(b []byte) error { _, err := decodeIndex(b); return err }},
		{`{"schema":"x","items":[],"items":[]}`, "/items", func(b []byte) error { _, err := decodeIndex(b); return err }},
		{`{"schema":"x","items":[]`, "byte", func(b []byte) error { _, err := decodeIndex(b); return err }},
		{`{"schema":"x","chunks":[]}`, "/url", func(b []byte) error { _, err := decodePage(b); return err }},
		{`{"schema":"x","url":"/a"}`, "/chunks", func(b []byte) error { _, err := decodePage(b); return err }},
		{`{"added":[]}`, "/sync", func(b []byte) error { _, err := decodeChanges(b); return err }},
		{`{"sync":{}}`, "/sync/sync_token", func(b []byte) error { _, err := decodeChanges(b); return err }},
		{`{"version":"1.0"}`, "/feed/endpoint", func(b []byte) error { _, err := decodeAbout(b); return err }},
		{`{"feed":{"endpoint":"/"}}`, "/version", func(b []byte) error { _, err := decodeAbout(b); return err }},
		{`<html>`, "byte 0", func(b []byte) error { _, err := decodeAbout(b); return err }},
		{strings.Repeat("[", 99), "", func(b []byte) error { _, err := decodeAbout(b); return err }},
	} {
		err := c.decode([]byte(c.doc))
		f, ok := errors.AsType[*millrace.FormatError](err)
		if c.where == "" && errors.Is(err, millrace.ErrTooLarge) {
			continue
		}
		if !ok || !strings.Contains(f.Position, c.where) || f.Protocol != Name || f.Section == "" {
			t.Errorf("%s: %v, want an error at %s", c.doc, err, c.where)
		}
	}
}

func TestToken(t *testing.T) {
	n := uint64(7)
	tok := token{T: "2026-02-23T02:00:00Z", N: &n, E: "epoch"}
	s := tok.String()
	want, _ := time.Parse(time.RFC3339, tok.T)
	forms := []string{
		s, strings.TrimRight(s, "="), strings.NewReplacer("+", "-", "/", "_").Replace(s), strings.ReplaceAll(s, "+", " "), s + "==",
	}
	for _, form := range forms {
		got, at, err := parseToken(form)
		if diff := cmp.Diff(tok, got); diff != "" || err != nil || !at.Equal(want) {
			t.Errorf("%s: %v %v\n%s", form, at, err, diff)
		}
	}
	// The form that the specification defines.
	if got, _, err := parseToken("eyJ0IjoiMjAyNi0wMi0yM1QwMjowMDowMFoifQ=="); err != nil || got.N != nil || got.T != tok.T {
		t.Errorf("%+v, %v", got, err)
	}
	// The form in the example of section 3.4.
	if _, at, err := parseToken("eyJ0IjoiMjAyNi0wMi0yMyJ9"); err != nil || kit.FormatTime(at) != "2026-02-23T00:00:00Z" {
		t.Errorf("a day: %v, %v", at, err)
	}
	for _, bad := range []string{"", "=", "x", "e30=", "bnVsbA==", "eyJ0IjoiMjAyNi0wMi0zMCJ9", "eyJ0IjoiIn0", strings.Repeat("eyJ0", 999)} {
		if got, _, err := parseToken(bad); err == nil {
			t.Errorf("%q is a token: %+v", bad, got)
		}
	}
}

func TestTimes(t *testing.T) {
	want := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, s := range []string{"2026-02-03T04:05:06Z", "2026-02-03T05:05:06+01:00", "2026-02-03T04:05:06.789Z", "2026-02-03T04:05:06", "2026-02-03 04:05:06"} {
		if got := parseTime(s); !got.Equal(want) {
			t.Errorf("%s: %v", s, got)
		}
	}
	for _, s := range []string{"", "null", "yesterday", "2026-13-01", "1770000000"} {
		if got := parseTime(s); !got.IsZero() {
			t.Errorf("%s: %v", s, got)
		}
	}
	for _, bad := range []time.Time{{}, time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if got := kit.FormatTime(bad); got != "" {
			t.Errorf("%v: %s", bad, got)
		}
	}
}

// Any input is decoded or refused. A decoded document can be encoded and decoded again.
func FuzzDecode(f *testing.F) {
	for _, doc := range []string{specIndex, specPage, specSync, specAbout, specError} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		again := func(what string, written []byte, err error, same func() string) {
			t.Helper()
			if err != nil || !json.Valid(written) {
				t.Fatalf("%s: %v: %s", what, err, written)
			}
			if diff := same(); diff != "" {
				t.Errorf("%s (-read +read again):\n%s", what, diff)
			}
		}
		if x, err := decodeIndex(doc); err == nil {
			back, err := decodeIndex(x.encode())
			again("index", x.encode(), err, func() string {
				if x.Meta == nil {
					x.Chunks = nil // chunks are only encoded in a response to q
				}
				return cmp.Diff(x, back, cmpopts.EquateEmpty())
			})
		}
		if w, err := decodePage(doc); err == nil {
			back, err := decodePage(w.encode())
			again("page", w.encode(), err, func() string { return "" })
			if diff := cmp.Diff(w.read(), back.read(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("page (-read +read again):\n%s", diff)
			}
		}
		if c, err := decodeChanges(doc); err == nil {
			back, err := decodeChanges(c.encode())
			again("sync", c.encode(), err, func() string {
				c.Sync.Counts = back.Sync.Counts
				return cmp.Diff(c, back, cmpopts.EquateEmpty())
			})
		}
		if a, err := decodeAbout(doc); err == nil {
			back, err := decodeAbout(a.encode())
			again("discovery", a.encode(), err, func() string { return cmp.Diff(a, back, cmpopts.EquateEmpty()) })
		}
		if e, ok := decodeFailure(doc); ok {
			back, ok := decodeFailure(e.encode())
			if !ok || back != e {
				t.Errorf("error: %+v becomes %+v", e, back)
			}
		}
	})
}

func FuzzToken(f *testing.F) {
	n := uint64(1 << 60)
	f.Add(token{T: "2026-02-23T02:00:00Z", N: &n, E: "e"}.String())
	f.Add("eyJ0IjoiMjAyNi0wMi0yM1QwMjowMDowMFoifQ==")
	f.Add(resumePoint{Epoch: "e", Edition: 3, Seq: 2, After: "https://mill.example/"}.String())
	f.Fuzz(func(t *testing.T, s string) {
		if tok, at, err := parseToken(s); err == nil {
			back, then, err := parseToken(tok.String())
			if err != nil || !then.Equal(at) || (back.N == nil) != (tok.N == nil) || back.N != nil && *back.N != *tok.N {
				t.Errorf("%+v becomes %+v, %v", tok, back, err)
			}
		}
		if p, err := parsePlace(s); err == nil {
			if back, err := parsePlace(p.String()); err != nil || back != p {
				t.Errorf("%+v becomes %+v, %v", p, back, err)
			}
		}
	})
}
