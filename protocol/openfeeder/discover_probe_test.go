package openfeeder

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

func names(from, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("/p%d", from+i))
	}
	return out
}

// Offers of sites that implement different parts of the specification.
func TestProbe(t *testing.T) {
	pages := func(total int) map[string]string {
		out := map[string]string{discovery: discoveryOf(usual)}
		for i := range 120 {
			u := fmt.Sprintf("/p%d", i)
			out["/openfeeder?url=%2Fp"+fmt.Sprint(i)+"&limit=50"] = chunked(u, "2026-01-01T00:00:00Z", total, 0, min(total, 50))
		}
		return out
	}
	for name, c := range map[string]struct {
		total    int // number of chunks of a page
		answers  map[string]string
		want     func(o *offered) bool
		requests int
	}{
		"tokens": {1, map[string]string{
			pageURL(1): strings.Replace(list(1, 3, names(0, 50)...), `"items"`, `"sync_token":"now","items"`, 1), pageURL(3): list(3, 3, names(100, 20)...),
			"/openfeeder?since=now": reply("now", `},"added":[],"updated":[],"deleted":[]`),
		}, func(o *offered) bool {
			return o.pages == 120 && o.deletes && o.still == 1 && o.moved == 1 && o.each == 1 && o.first == 1+1+1+1+120
		}, 7},
		"dates alone": {1, map[string]string{
			pageURL(1): list(1, 1, names(0, 20)...), "/openfeeder": reply("now", `},"added":[],"updated":[],"deleted":[]`),
		}, func(o *offered) bool {
			return o.pages == 20 && !o.deletes && o.still == 1 && o.moved == 1
		}, 6},
		"an index alone": {1, map[string]string{
			pageURL(1): list(1, 2, names(0, 50)...), pageURL(2): list(2, 2, names(50, 7)...),
		}, func(o *offered) bool {
			return o.pages == 57 && o.deletes && o.still == 5 && o.moved == 5
		}, 7},
		"long pages": {120, map[string]string{
			pageURL(1): list(1, 1, names(0, 20)...),
		}, func(o *offered) bool { return o.pages == 20 && o.each == 3 && o.first >= 60 }, 6},
		"no parameters": {1, map[string]string{
			"/openfeeder": list(1, 3, names(0, 50)...),
		}, nil, 7},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stranger{answers: pages(c.total)}
			for k, v := range c.answers {
				s.answers[k] = v
			}
			if c.want == nil { // the pages cannot be fetched, either
				s.answers = map[string]string{discovery: discoveryOf(usual), "/openfeeder": c.answers["/openfeeder"]}
			}
			offer, err := Protocol().Probe(t.Context(), &http.Client{Transport: s}, strange+"/some/page", nil)
			if len(s.asked) > c.requests {
				t.Errorf("asked for %q", s.asked)
			}
			if c.want == nil {
				if !errors.Is(err, millrace.ErrInvalid) {
					t.Errorf("%+v, %v", offer, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			o := &offered{
				pages: offer.Pages, deletes: offer.Deletes, still: offer.Unchanged.Requests, moved: offer.Changed.Requests,
				each: offer.PerChange.Requests, first: offer.First.Requests,
			}
			if !c.want(o) || offer.Entry != strange+"/openfeeder" {
				t.Errorf("%+v", offer)
			}
		})
	}
}

// offered contains the compared parts of an offer.
type offered struct {
	pages                     int
	deletes                   bool
	still, moved, each, first int64
}
