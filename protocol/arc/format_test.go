package arc

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

func TestDecodeEntry(t *testing.T) {
	half := 0.5
	yes := true
	for _, c := range []struct {
		in    string
		want  *entry
		nulls []string
		at    string // position of the error
	}{
		{in: `{"url":"https://x.test/","ai_indexable":false}`, want: &entry{URL: "https://x.test/"}},
		{
			in: `{"url":"https://x.test/","lastmod":"2025-11-08t12:00:00.5+02:00","ai_indexable":true,"ai_summary":"S","ai_tags":["a","b"],
				"ai_checksum":"sha256:af3c...","ai_snapshot":{"page":"p","a":1.0},"crawl_priority":0.5,"auth_required":true,"robots_directive":"noindex","x":1}`,
			want: &entry{
				URL: "https://x.test/", Lastmod: "2025-11-08t12:00:00.5+02:00", Indexable: true, Summary: "S", Tags: []string{"a", "b"},
				Checksum: "sha256:af3c...", Snapshot: []byte(`{"a":1,"page":"p"}`), Priority: &half, Auth: &yes, Robots: "noindex",
			},
		},
		{
			in:    `{"url":"https://x.test/","ai_indexable":true,"ai_summary":null,"ai_snapshot":null,"lastmod":null}`,
			want:  &entry{URL: "https://x.test/", Indexable: true},
			nulls: []string{"lastmod", "ai_summary", "ai_snapshot"},
		},
		{in: `{"ai_indexable":true}`, at: "/url"},
		{in: `{"url":null,"ai_indexable":true}`, at: "/url"},
		{in: `{"url":"/relative","ai_indexable":true}`, at: "/url"},
		{in: `{"url":"https://x.test/a b","ai_indexable":true}`, at: "/url"},
		{in: `{"url":7,"ai_indexable":true}`, at: "/url"},
		{in: `{"url":"https://x.test/"}`, at: "/ai_indexable"},
		{in: `{"url":"https://x.test/","ai_indexable":"true"}`, at: "/ai_indexable"},
		{in: `{"url":"https://x.test/","ai_indexable":null}`, at: "/ai_indexable"},
		{in: `{"url":"https://x.test/","ai_indexable":true,"lastmod":"yesterday"}`, at: "/lastmod"},
		{in: `{"url":"https://x.test/","ai_indexable":true,"lastmod":"2025-02-30T00:00:00Z"}`, at: "/lastmod"},
		{in: `{"url":"https://x.test/","ai_indexable":true,"lastmod":"2025-11-09"}`, at: "/lastmod"},
		{in: `{"url":"https://x.test/","ai_indexable":true,"ai_tags":"a"}`, at: "/ai_tags"},
		{in: `{"url":"https://x.test/","ai_indexable":true,"ai_tags":["a",null]}`, at: "/ai_tags"},
		{in: `{"url":"https://x.test/","ai_indexable":true,"ai_snapshot":[]}`, at: "/ai_snapshot"},
		{in: `{"url":"https://x.test/","ai_indexable":true,"ai_snapshot":{"a":1e999}}`, at: "/ai_snapshot"},
		{in: `{"url":"https://x.test/","ai_indexable":true,"crawl_priority":1.5}`, at: "/crawl_priority"},
		{in: `{"url":"https://x.test/","ai_indexable":true,"crawl_priority":"1"}`, at: "/crawl_priority"},
		{in: `{"url":"https://x.test/","ai_indexable":true,"auth_required":0}`, at: "/auth_required"},
		{in: `{"url":"https://x.test/","ai_indexable":true,"robots_directive":["noindex"]}`, at: "/robots_directive"},
	} {
		e, nulls, err := decodeEntry([]byte(c.in))
		if c.at != "" {
			if f, ok := errors.AsType[*millrace.FormatError](err); !ok || f.Position != c.at || f.Protocol != Name || f.Section != "E.9" {
				t.Errorf("%s: %v, want one at %s", c.in, err, c.at)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if diff := cmp.Diff(c.want, e); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.in, diff)
		}
		if diff := cmp.Diff(c.nulls, nulls); diff != "" {
			t.Errorf("%s: nulls (-want +got):\n%s", c.in, diff)
		}
		again, _, err := decodeEntry(e.append(nil))
		if diff := cmp.Diff(e, again); diff != "" || err != nil {
			t.Errorf("%s: written and read (-once +twice): %v\n%s", c.in, err, diff)
		}
	}
}

func TestRate(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"1/s": time.Second, "30 / MIN": 2 * time.Second, "0.5/s": 2 * time.Second, "86400/day": time.Second, "2/sec": time.Second / 2,
		"": 0, "1": 0, "x/s": 0, "-1/s": 0, "0/s": 0, "NaN/s": 0, "1/fortnight": 0, "1e-300/d": 0, "Inf/s": 0,
	} {
		if got, ok := parseRate(in); got != want || ok != (want > 0) {
			t.Errorf("%q: %v, %t, want %v", in, got, ok, want)
		}
	}
}
