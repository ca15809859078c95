package tct

import (
	"context"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

// siteRule is the function of a rule that reads the shared siteContext.
type siteRule = check.SiteCheck[*siteContext]

// newRule is the type of [draft.Rule], which returns a rule of the draft.
type newRule func(section, word string, level check.Level, sentence string, f siteRule) check.Rule

// Rule returns a rule of the draft.
func (d *draft) Rule(section, word string, level check.Level, sentence string, f siteRule) check.Rule {
	return kit.Rule(d.Name, func(ctx context.Context, t *check.Target) (*siteContext, error) {
		s := &siteContext{SiteContext: kit.NewSiteContext(t), d: d}
		return s, s.run(ctx)
	})(section, word, level, sentence, f)
}

// onLists returns a rule that runs f on every list.
func onLists(f func(l *seenList, fail check.Fail)) siteRule {
	return func(_ context.Context, s *siteContext, fail check.Fail) error {
		if len(s.Lists) == 0 {
			return check.ErrNotApplicable
		}
		for _, l := range s.Lists {
			f(l, fail)
		}
		return nil
	}
}

// otherTag is a well-formed ETag that no document has.
const otherTag = `"sha256-0000000000000000000000000000000000000000000000000000000000000000"`

// askProbes returns a rule that runs f on the M-URL of every sampled page.
func askProbes(f kit.Condition) siteRule {
	return kit.Probes(func(s *siteContext) (out []*kit.Probe) {
		for _, p := range s.Pages {
			if p.OK() {
				tag := p.Tag
				if tag != "" {
					tag = `"` + tag + `"` // even if it is malformed, which another rule reports
				}
				out = append(out, &kit.Probe{Target: s.Target, URL: p.MURL, First: p.Resp, What: "JSON", Tag: tag, Other: otherTag})
			}
		}
		return out
	}, f)
}

// onPages returns a rule that runs f on every sampled page. f reports whether the rule applies to
// the page.
func onPages(f func(p *seenPage, fail check.Fail) bool) siteRule {
	return askPages(func(_ context.Context, _ *siteContext, p *seenPage, fail check.Fail) (bool, error) {
		return f(p, fail), nil
	})
}

// askPages is like [onPages], for rules that send requests. A failed request for one page does not
// prevent the checks of the others.
func askPages(f func(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error)) siteRule {
	return check.Each(func(s *siteContext) []*seenPage { return s.Pages }, f)
}
