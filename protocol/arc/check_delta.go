package arc

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

// large is the minimum number of pages of a list that should have deltas.
const large = 5000

// newest returns the delta of the day on which the list was generated, or nil if there is no such
// delta.
func (s *siteContext) newest(ctx context.Context) (*seenList, string, error) {
	day, ok := s.list.generated()
	if s.list.fields == nil || !ok {
		return nil, "", check.ErrNotApplicable
	}
	u := deltaURL(s.list.url, day)
	resp, err := s.Target.Get(ctx, u)
	if check.IsInconclusive(err) || ctx.Err() != nil {
		return nil, u, err
	}
	var l *seenList
	if err == nil && readable(resp) {
		l = readList(u, resp)
	}
	return l, u, nil
}

func checkDeltas(ctx context.Context, s *siteContext, fail check.Fail) error {
	d, u, err := s.newest(ctx)
	if err != nil {
		return err
	}
	if len(s.list.entries) < large {
		return check.ErrNotApplicable
	}
	if d == nil {
		fail(u, fmt.Sprintf("no delta for a list of %d pages", len(s.list.entries)), "a delta with the pages that changed that day")
	}
	return nil
}

// checkDelta checks a delta by the rules that a reader applies to lists.
func checkDelta(ctx context.Context, s *siteContext, fail check.Fail) error {
	d, u, err := s.newest(ctx)
	if err != nil {
		return err
	}
	if d == nil {
		return check.ErrNotApplicable
	}
	if d.fields == nil {
		fail(u, d.why, "a list of the pages that changed")
		return nil
	}
	strict := func(l *seenList, fail check.Fail) {
		checkVersionMember(l, fail)
		checkSite(l, fail)
		checkGenerated(l, fail)
		checkPages(l, fail)
		for _, e := range l.entries {
			for _, name := range []string{"url", "ai_indexable"} {
				if e.fields[name] == nil {
					fail(l.url, e.at+": no "+name, "the member in each page")
				}
			}
			for _, m := range memberTypes {
				if got, want, _ := m.check(e); got != "" {
					fail(l.url, e.at+": "+kit.Short(got), want)
				}
			}
		}
	}
	strict(d, fail)
	return nil
}

func checkDeltaParity(ctx context.Context, s *siteContext, fail check.Fail) error {
	d, u, err := s.newest(ctx)
	if err != nil {
		return err
	}
	if d == nil || d.fields == nil {
		return check.ErrNotApplicable
	}
	if string(d.fields["generated_at"]) != string(s.list.fields["generated_at"]) {
		return check.ErrNotApplicable // the list or the delta is older
	}
	states := map[string]string{}
	for _, e := range s.list.entries {
		states[e.url] = e.state()
	}
	for _, e := range d.entries {
		is, listed := states[e.url]
		switch {
		case e.url == "", !kit.IsBool.OK(e.fields["ai_indexable"]): // the rule "delta" reports the invalid entry
		case !listed && e.open():
			fail(u, e.at+": "+e.url+", which is not in the list", "ai_indexable: false, or the page in the list")
		case listed && is != e.state():
			fail(u, e.at+": "+e.state(), is+", as in the list")
		}
	}
	return nil
}
