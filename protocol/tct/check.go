package tct

import (
	"context"

	"github.com/millrace/millrace/check"
)

// Checker is what the checker of one draft has of its own.
type Checker struct {
	*Draft
	TagMember string // the member of a list's item that has the ETag
	// FindLists adds the lists of a site, with [SiteContext.AddLists].
	FindLists func(ctx context.Context, s *SiteContext) error
	// Own reports whether the document of an M-URL that a page links to is of this
	// draft: a JSON alternate may be anything.
	Own func(p *SeenPage) bool
}

// SiteRule is a rule's function over what the rules share.
type SiteRule = check.Look[*SiteContext]

// Rule returns a rule of the draft.
func (c *Checker) Rule(section, word string, level check.Level, sentence string, f SiteRule) check.Rule {
	shared := check.Shared[*SiteContext]{Name: c.Name, Survey: func(ctx context.Context, t *check.Target) (*SiteContext, error) {
		s := &SiteContext{Target: t, c: c}
		return s, s.run(ctx)
	}}
	return shared.Rule(section+"/"+word, level, section, sentence, f)
}

// OnLists runs f on every list.
func OnLists(f func(l *SeenList, fail check.Fail)) SiteRule {
	return func(_ context.Context, s *SiteContext, fail check.Fail) error {
		if len(s.Lists) == 0 {
			return check.ErrNotApplicable
		}
		for _, l := range s.Lists {
			f(l, fail)
		}
		return nil
	}
}

// OnPages runs f on every sampled page; f reports whether the rule is about it.
func OnPages(f func(p *SeenPage, fail check.Fail) bool) SiteRule {
	return AskPages(func(_ context.Context, _ *SiteContext, p *SeenPage, fail check.Fail) (bool, error) {
		return f(p, fail), nil
	})
}

// AskPages is [OnPages] for rules that send requests. A failed request for one page
// stops none of the others.
func AskPages(f func(ctx context.Context, s *SiteContext, p *SeenPage, fail check.Fail) (bool, error)) SiteRule {
	return check.Each(func(s *SiteContext) []*SeenPage { return s.Pages }, f)
}
