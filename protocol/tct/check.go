package tct

import (
	"context"

	"github.com/millrace/millrace/check"
)

// checker is what the checker of one draft has of its own.
type checker struct {
	*draft
	TagMember string // the member of a list's item that has the ETag
	// FindLists adds the lists of a site, with [siteContext.AddLists].
	FindLists func(ctx context.Context, s *siteContext) error
	// Own reports whether the document of an M-URL that a page links to is of this
	// draft: a JSON alternate may be anything.
	Own func(p *seenPage) bool
}

// siteRule is a rule's function over what the rules share.
type siteRule = check.Look[*siteContext]

// Rule returns a rule of the draft.
func (c *checker) Rule(section, word string, level check.Level, sentence string, f siteRule) check.Rule {
	shared := check.Shared[*siteContext]{Name: c.Name, Survey: func(ctx context.Context, t *check.Target) (*siteContext, error) {
		s := &siteContext{Target: t, c: c}
		return s, s.run(ctx)
	}}
	return shared.Rule(section+"/"+word, level, section, sentence, f)
}

// onLists runs f on every list.
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

// onPages runs f on every sampled page; f reports whether the rule is about it.
func onPages(f func(p *seenPage, fail check.Fail) bool) siteRule {
	return askPages(func(_ context.Context, _ *siteContext, p *seenPage, fail check.Fail) (bool, error) {
		return f(p, fail), nil
	})
}

// askPages is [onPages] for rules that send requests. A failed request for one page
// stops none of the others.
func askPages(f func(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error)) siteRule {
	return check.Each(func(s *siteContext) []*seenPage { return s.Pages }, f)
}
