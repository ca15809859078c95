package openfeeder

import (
	"context"
	"fmt"
	"slices"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

func checkURLParameter(_ context.Context, s *siteContext, fail check.Fail) error {
	if len(s.pages) == 0 {
		return check.ErrNotApplicable
	}
	for i, p := range s.pages {
		if !p.page() {
			fail(p.url, p.got(), "200 OK and the page "+s.asked[i]+" in chunks")
		}
	}
	return nil
}

// checkPageParameter requests the second page of the index with a limit of 1.
func checkPageParameter(ctx context.Context, s *siteContext, fail check.Fail) error {
	if err := s.live(); err != nil {
		return err
	}
	if n, ok := kit.Number(s.index.body["page"]); ok && n != 1 {
		fail(s.index.url, "page: "+string(s.index.body["page"]), "1, because the request has no page")
		return nil
	}
	a, err := s.ask(ctx, "limit", "1", "page", "2")
	if err != nil {
		return err
	}
	items, _ := objects(a.body.at("items"))
	total, _ := kit.Number(a.body.at("total_pages"))
	if a.ok() && (total < 2 || len(s.items) < 2) {
		return check.ErrNotApplicable
	}
	n, counted := kit.Number(a.body.at("page"))
	same := len(items) > 0 && kit.Text(items[0]["url"]) == kit.Text(s.items[0]["url"])
	if !a.ok() || counted && n != 2 || same {
		fail(a.url, a.got(), "page 2 of the index")
	}
	return nil
}

// longPage returns the relative URL of a sampled page with at least n chunks, and the response for
// the page, or "" and nil.
func (s *siteContext) longPage(n int) (string, *siteResponse) {
	for i, p := range s.pages {
		chunks, _ := objects(p.body.at("chunks"))
		if total, ok := kit.Number(p.body.at("meta", "total_chunks")); p.ok() && (len(chunks) >= n || ok && int(total) >= n) {
			return relative(s.feed.Base, s.asked[i]), p
		}
	}
	return "", nil
}

// checkLimit requests a page with a limit, and checks the number of chunks.
func (s *siteContext) checkLimit(ctx context.Context, least int, limit string, most int, fail check.Fail) error {
	if err := s.live(); err != nil {
		return err
	}
	u, _ := s.longPage(least)
	if u == "" {
		return check.ErrNotApplicable
	}
	a, err := s.ask(ctx, "url", u, "limit", limit)
	if err != nil {
		return err
	}
	if chunks, _ := objects(a.body.at("chunks")); !a.ok() || len(chunks) == 0 || len(chunks) > most {
		fail(a.url, fmt.Sprintf("%s with %d chunks", status2(a), len(chunks)), fmt.Sprintf("1 to %d chunks", most))
	}
	return nil
}

func status2(a *siteResponse) string {
	if a.err != nil {
		return a.err.Error()
	}
	return a.resp.StatusText()
}

func checkLimit(ctx context.Context, s *siteContext, fail check.Fail) error {
	return s.checkLimit(ctx, 2, "1", 1, fail)
}

func checkLimitMax(ctx context.Context, s *siteContext, fail check.Fail) error {
	return s.checkLimit(ctx, 1, "1000", maxLimit, fail)
}

func checkLimitDefault(_ context.Context, s *siteContext, fail check.Fail) error {
	if err := s.live(); err != nil || len(s.pages) == 0 {
		return check.ErrNotApplicable
	}
	for _, p := range s.pages {
		if chunks, _ := objects(p.body.at("chunks")); len(chunks) > defaultLimit {
			fail(p.url, fmt.Sprintf("%d chunks", len(chunks)), fmt.Sprintf("at most %d without a limit", defaultLimit))
		}
	}
	return nil
}

// strictScore is a min_score that few chunks reach.
const strictScore = "0.9999"

func checkMinScore(ctx context.Context, s *siteContext, fail check.Fail) error {
	a, err := s.question(ctx, "min_score", strictScore)
	if err != nil {
		return err
	}
	if !a.ok() {
		fail(a.url, a.got(), "200 OK")
		return nil
	}
	chunks, _ := objects(a.body["chunks"])
	for i, c := range chunks {
		if f, ok := kit.Number(c["relevance"]); ok && f < 0.9999 {
			fail(a.url, fmt.Sprintf("chunks/%d/relevance: %s", i, c["relevance"]), strictScore+" or more")
		}
	}
	return nil
}

// checkMinScoreAlone compares a page with and without min_score.
func checkMinScoreAlone(ctx context.Context, s *siteContext, fail check.Fail) error {
	if err := s.live(); err != nil {
		return err
	}
	u, p := s.longPage(1)
	if p == nil {
		return check.ErrNotApplicable
	}
	want, ok := objects(p.body["chunks"])
	if !ok {
		return check.ErrNotApplicable // see rule 3.2/chunks
	}
	a, err := s.ask(ctx, "url", u, "min_score", strictScore)
	if err != nil {
		return err
	}
	got, _ := objects(a.body.at("chunks"))
	same := func(x, y object) bool { return kit.Text(x["text"]) == kit.Text(y["text"]) }
	if !a.ok() || !slices.EqualFunc(got, want, same) {
		fail(a.url, fmt.Sprintf("%s with %d chunks", status2(a), len(got)), fmt.Sprintf("the same %d chunks as without min_score", len(want)))
	}
	return nil
}
