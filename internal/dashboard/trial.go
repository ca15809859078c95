package dashboard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
)

const (
	// trialTime is the time limit of a trial on other pages.
	trialTime = 4 * time.Second
	// trialPages is the maximum number of other pages in a trial.
	trialPages = 24
	// maxSelectors is the maximum number of selectors of one kind.
	maxSelectors = 200
)

// original returns the HTML of a page, its extraction options without rules, and the name that the
// source uses for the page. It returns ErrNotFound if no HTML is stored.
func (s *SiteOptions) original(ctx context.Context, page *millrace.Page) (data []byte, o *extract.Options, name string, err error) {
	if s.Original == nil {
		return nil, nil, "", millrace.ErrNotFound
	}
	abs := canon.Absolute(s.Base, page.URL)
	// Sources name pages by URL or by path.
	for _, name := range []string{abs, canon.Relative(s.Base, abs)} {
		if data, o, err = s.Original(ctx, millrace.Ref{URL: name}); err == nil {
			return data, o, name, nil
		}
		if !errors.Is(err, millrace.ErrNotFound) && !errors.Is(err, millrace.ErrInvalid) {
			break
		}
	}
	return nil, nil, "", err
}

// trial is the result of a comparison of the current extraction rules with other rules.
type trial struct {
	Keep, Drop []string
	Page       *compared // this page. If nil, its HTML is missing.
	Others     []*compared
	Missing    int // other pages without HTML
	Left       int // other pages not tried for lack of time
}

// compared is one page, extracted by the current rules and by other rules.
type compared struct {
	Path, Title   string
	Now, Then     int // number of words in the content
	Same          bool
	Reason        error // reason why the other rules find no content. If nil, they find some.
	Before, After []diffLine
	Result        *extract.Result // result of the other rules

	now, then []string // lines of the content as Markdown
}

// Less reports whether a page loses words.
func (c *compared) Less() bool { return c.Then < c.Now }

// Emptied reports whether a page loses all content.
func (c *compared) Emptied() bool { return c.Reason != nil && c.Now > 0 }

// Changed counts the other pages with changes.
func (t *trial) Changed() (n int) {
	for _, c := range t.Others {
		if !c.Same {
			n++
		}
	}
	return n
}

// Emptied counts the other pages that lose all content.
func (t *trial) Emptied() (n int) {
	for _, c := range t.Others {
		if c.Emptied() {
			n++
		}
	}
	return n
}

// try extracts a page and a sample of the site by the current rules and by other rules, and
// compares the results.
func (s *SiteOptions) try(ctx context.Context, v millrace.View, page *millrace.Page, now *extract.RulesOptions, keep, drop []string) (*trial, error) {
	other := *now
	other.Keep, other.Drop = keep, drop
	is, err := extract.NewRules(now)
	if err != nil {
		return nil, err
	}
	then, err := extract.NewRules(&other)
	if err != nil {
		return nil, err
	}
	t := &trial{Keep: keep, Drop: drop}
	if t.Page, err = s.compare(ctx, page, is, then); err != nil && !errors.Is(err, millrace.ErrNotFound) {
		return nil, err
	}
	if t.Page != nil {
		t.Page.Before, t.Page.After = diff(t.Page.now, t.Page.then)
	}
	pages, err := sample(ctx, v, trialPages, page.URL)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	for i, p := range pages {
		if limited.Err() != nil {
			t.Left = len(pages) - i
			break
		}
		c, err := s.compare(limited, p, is, then)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case limited.Err() != nil:
			t.Left = len(pages) - i
		case err != nil:
			t.Missing++
		default:
			t.Others = append(t.Others, c)
		}
		if t.Left > 0 {
			break
		}
	}
	slices.SortStableFunc(t.Others, func(a, b *compared) int { return b.difference() - a.difference() })
	return t, nil
}

// difference returns the difference in words, plus one if the content differs.
func (c *compared) difference() int {
	n := c.Now - c.Then
	if n < 0 {
		n = -n
	}
	if !c.Same {
		n++
	}
	return n
}

// compare extracts a page by both sets of rules.
func (s *SiteOptions) compare(ctx context.Context, page *millrace.Page, now, then *extract.Rules) (*compared, error) {
	data, o, name, err := s.original(ctx, page)
	if err != nil {
		return nil, err
	}
	c := &compared{Path: canon.Relative(s.Base, canon.Absolute(s.Base, page.URL)), Title: page.Title}
	for i, rules := range []*extract.Rules{now, then} {
		o.Rules = rules
		res, err := extract.HTML(ctx, data, name, o)
		if err != nil {
			return nil, err
		}
		words, lines := len(strings.Fields(res.Page.Text())), markdownLines(res.Page)
		if i == 0 {
			c.Now, c.now = words, lines
		} else {
			c.Then, c.then, c.Result, c.Reason = words, lines, res, res.Reason
		}
	}
	c.Same = slices.Equal(c.now, c.then)
	return c, nil
}

// markdownLines returns the content of a page as lines for a comparison.
func markdownLines(p *millrace.Page) []string {
	text := strings.TrimSpace(p.Markdown())
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// sample selects at most n pages: the first two of some folders, and the most recently changed
// ones. It omits the page whose URL is but. Its cost does not depend on the size of the site.
func sample(ctx context.Context, v millrace.View, n int, but string) ([]*millrace.Page, error) {
	var out []*millrace.Page
	base := v.Site().Base
	add := func(p *millrace.Page) bool {
		if len(out) < n && p.URL != but && !slices.ContainsFunc(out, func(q *millrace.Page) bool { return q.URL == p.URL }) {
			out = append(out, p)
		}
		return len(out) < n
	}
	for after, tries := "", 0; tries < n/2; tries++ {
		var last string
		for p, err := range v.Scan(ctx, millrace.Scan{After: after, Limit: 2}) {
			if err != nil {
				return nil, err
			}
			last = canon.Relative(base, p.URL)
			if !add(p) {
				return out, nil
			}
		}
		if last == "" {
			break
		}
		after = last
		if path, ok := strings.CutPrefix(last, "/"); ok {
			if folder, _, deeper := strings.Cut(path, "/"); deeper {
				after = "/" + folder + "/\U0010ffff" // after all pages of that folder
			}
		}
	}
	for p, err := range v.Scan(ctx, millrace.Scan{Order: millrace.BySeq, Limit: n + 1}) {
		if err != nil {
			return nil, err
		}
		if !add(p) {
			break
		}
	}
	return out, nil
}

// selectors parses selectors, one per line.
func selectors(text string) (out []string, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || slices.Contains(out, line) {
			continue
		}
		if err := extract.CheckSelector(line); err != nil {
			return nil, fmt.Errorf("%w: unsupported CSS selector %q: %w", millrace.ErrInvalid, printable(cut(200, line)), err)
		}
		if out = append(out, line); len(out) > maxSelectors {
			return nil, fmt.Errorf("%w: more than %d selectors", millrace.ErrInvalid, maxSelectors)
		}
	}
	return out, nil
}
