package tct

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

func TestScanList00(t *testing.T) {
	for _, c := range []struct {
		name, doc string
		n         int   // items
		is        error // nil = valid
		not       error
	}{
		{"ours", listHead + `{"cUrl":"https://e.com/","mUrl":"https://e.com/llm.json","modified":"2026-01-02T03:04:05Z","contentHash":"x"}` + listTail, 1, nil, nil},
		{"version last", `{"items":[{},{}],"version":1}`, 2, nil, nil},
		{"empty", `{"version":1,"items":[]}`, 0, nil, nil},
		{"1.0 is the integer 1", `{"version":1.0,"items":[]}`, 0, nil, nil},
		{"items that are none", `{"version":1,"items":[5,null,{"cUrl":7},[]]}`, 4, nil, nil},
		{"version 2", `{"version":2,"items":[{}]}`, 1, errVersion, errNoList},
		{"version 2, items of another shape", `{"version":2,"items":{}}`, 0, errVersion, errNoList},
		{"version 1, items of another shape", `{"version":1,"items":{}}`, 0, millrace.ErrInvalid, errNoList},
		{"version null", `{"version":null,"items":[]}`, 0, errNoList, nil},
		{"something else", `{"version":2,"paths":{}}`, 0, errNoList, nil},
		{"a feed", `{"version":"https://jsonfeed.org/version/1.1","items":[]}`, 0, errNoList, errVersion},
		{"an array", `[1]`, 0, errNoList, nil},
		{"html", `<html>`, 0, errNoList, nil},
		{"nothing", ``, 0, errNoList, nil},
		{"no version", `{"items":[{}]}`, 1, nil, nil},
		{"cut", `{"version":1,"items":[{}`, 1, millrace.ErrInvalid, errNoList},
		{"cut after the items", `{"version":1,"items":[{}]`, 1, millrace.ErrInvalid, errNoList},
		{"more after it", `{"version":1,"items":[]}{}`, 0, millrace.ErrInvalid, errNoList},
		{"twice", `{"version":1,"items":[],"items":[{}]}`, 0, millrace.ErrInvalid, errNoList},
		{"bad UTF-8", "{\"version\":1,\"items\":[{\"cUrl\":\"\xff\"}]}", 0, millrace.ErrInvalid, errNoList},
		{"a huge item", `{"version":1,"items":["` + strings.Repeat("x", 2<<20) + `"]}`, 0, millrace.ErrTooLarge, errNoList},
		{"deep", `{"version":1,"items":[` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `]}`, 0, millrace.ErrTooLarge, errNoList},
	} {
		n := 0
		err := draft00.ScanList(strings.NewReader(c.doc), 0, func(int, *listItem, error) bool { n++; return true })
		if !errors.Is(err, c.is) || c.not != nil && errors.Is(err, c.not) {
			t.Errorf("%s: %v, want %v", c.name, err, c.is)
		}
		if c.is == nil && n != c.n {
			t.Errorf("%s: %d items, want %d", c.name, n, c.n)
		}
	}
}

func FuzzScanList00(f *testing.F) {
	f.Add([]byte(listHead + `{"cUrl":"https://e.com/","mUrl":"https://e.com/llm.json","modified":"2026-01-02T03:04:05Z","contentHash":"x"}` + listTail))
	f.Add([]byte(`{"items":[{"cUrl":1},[]],"version":1}`))
	f.Add([]byte(`{"version":2,"items":[]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var items []listItem
		err := draft00.ScanList(strings.NewReader(string(doc)), 0, func(_ int, it *listItem, err error) bool {
			if err == nil {
				if ok, err := it.Check([]string{"https://e.com"}); err == nil {
					items = append(items, ok)
				}
			}
			return true
		})
		if err != nil {
			if !errors.Is(err, errNoList) && !errors.Is(err, errVersion) && !errors.Is(err, millrace.ErrInvalid) && !errors.Is(err, millrace.ErrTooLarge) {
				t.Fatalf("unexpected error %v", err)
			}
			return
		}
		again := []byte(listHead)
		for i := range items {
			if i > 0 {
				again = append(again, ',')
			}
			items[i].ETag = ""
			again = draft00.appendItem(again, &items[i])
		}
		i := 0
		err = draft00.ScanList(strings.NewReader(string(again)+listTail), 0, func(_ int, it *listItem, err error) bool {
			if err != nil || *it != items[i] {
				t.Fatalf("item %d is %+v, was %+v (%v)", i, it, items[i], err)
			}
			i++
			return true
		})
		if err != nil || i != len(items) {
			t.Fatalf("%q: %d of %d items, %v", again, i, len(items), err)
		}
	})
}
