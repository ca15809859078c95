package openfeeder

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
)

// checkSiteOrigin checks the origin of site.url. Another rule checks that site.url is a URL.
func checkSiteOrigin(_ context.Context, s *siteContext, fail check.Fail) error {
	if s.feed.Alias != "" {
		fail(s.found.url, "site.url: "+s.feed.Alias, canon.Origin(s.feed.Home))
	}
	return nil
}

func checkItemURL(_ context.Context, s *siteContext, fail check.Fail) error {
	if len(s.items) == 0 {
		return check.ErrNotApplicable
	}
	for i, it := range s.items {
		checkMember(s.isPage(), s.index.url, it, fail, fmt.Sprintf("items/%d/", i), "url")
	}
	return nil
}

// isPage returns a kind of value: a page URL that the reader accepts.
func (s *siteContext) isPage() kit.Kind {
	return kit.TextKind("a path or URL of the site", func(u string) bool {
		_, err := s.feed.url(s.Root(), u)
		return err == nil
	})
}

// checkPageURL checks that url is the URL of the requested page, except for a trailing slash.
func checkPageURL(_ context.Context, s *siteContext, fail check.Fail) error {
	some := false
	for i, p := range s.pages {
		if !p.page() {
			continue
		}
		some = true
		u, err := s.feed.url(s.Root(), kit.Text(p.body["url"]))
		if err != nil || plainURL(u) != plainURL(s.asked[i]) {
			fail(p.url, "url: "+string(p.body["url"]), s.asked[i])
		}
	}
	return check.Applied(some)
}

// checkChunkID checks the chunk IDs of pages, and of the response to a question, which contains
// chunks of several pages.
func checkChunkID(ctx context.Context, s *siteContext, fail check.Fail) error {
	seen := map[string]bool{}
	unique := func(p *siteResponse, i int, c object, fail check.Fail) {
		id := kit.Text(c["id"])
		switch {
		case !isFullText.OK(c["id"]):
			fail(p.url, fmt.Sprintf("chunks/%d/id: %s", i, c["id"]), "a string")
		case seen[p.url+" "+id]:
			fail(p.url, fmt.Sprintf("chunks/%d/id: duplicate %s", i, id), "a unique id")
		}
		seen[p.url+" "+id] = true
	}
	err := onChunks(unique)(ctx, s, fail)
	if err != nil {
		return err
	}
	a, err := s.question(ctx, "limit", strconv.Itoa(maxLimit))
	if errors.Is(err, check.ErrNotApplicable) {
		return nil // the pages were already checked
	}
	if err != nil {
		return err
	}
	chunks, _ := objects(a.body.at("chunks"))
	for i, c := range chunks {
		unique(a, i, c, fail)
	}
	return nil
}

func checkTotal(ctx context.Context, s *siteContext, fail check.Fail) error {
	return onPages(func(p *siteResponse, fail check.Fail) {
		chunks, _ := objects(p.body["chunks"])
		if n, ok := kit.Number(p.body.at("meta", "total_chunks")); !ok || int(n) < len(chunks) {
			fail(p.url, fmt.Sprintf("meta.total_chunks: %s", p.body.at("meta", "total_chunks")), fmt.Sprintf("%d or more", len(chunks)))
		}
	})(ctx, s, fail)
}

func checkReturned(ctx context.Context, s *siteContext, fail check.Fail) error {
	return onPages(func(p *siteResponse, fail check.Fail) {
		chunks, ok := objects(p.body["chunks"])
		if n, is := kit.Number(p.body.at("meta", "returned_chunks")); ok && (!is || int(n) != len(chunks)) {
			fail(p.url, fmt.Sprintf("meta.returned_chunks: %s", p.body.at("meta", "returned_chunks")), fmt.Sprint(len(chunks)))
		}
	})(ctx, s, fail)
}

// address matches an e-mail address.
var address = regexp.MustCompile(`[^\s@<>]+@[^\s@<>]+\.[A-Za-z]{2,}`)

func checkAuthor(ctx context.Context, s *siteContext, fail check.Fail) error {
	return onPages(func(p *siteResponse, fail check.Fail) {
		if found := address.FindString(kit.Text(p.body["author"])); found != "" {
			fail(p.url, "author contains the address "+found, "a display name")
		}
	})(ctx, s, fail)
}

// question returns the response to a search for a word of a page title. If no title has a word, or
// the site has no search, the error is ErrNotApplicable.
func (s *siteContext) question(ctx context.Context, pairs ...string) (*siteResponse, error) {
	if err := s.live(); err != nil {
		return nil, err
	}
	if s.word == "" || !strings.Contains(string(s.found.body.at("capabilities")), `"`+searchCapability+`"`) {
		return nil, check.ErrNotApplicable
	}
	return s.ask(ctx, append([]string{"q", s.word}, pairs...)...)
}

func checkQuestion(ctx context.Context, s *siteContext, fail check.Fail) error {
	a, err := s.question(ctx)
	if err != nil {
		return err
	}
	items, _ := objects(a.body.at("items"))
	chunks, _ := objects(a.body.at("chunks"))
	if !a.ok() || len(items)+len(chunks) == 0 {
		fail(a.url, a.got(), "items or chunks, because "+quote(s.word)+" is in a title")
	}
	return nil
}

// checkRelevance checks the relevance of the chunks in the response to a question.
func checkRelevance(ctx context.Context, s *siteContext, fail check.Fail) error {
	a, err := s.question(ctx)
	if err != nil {
		return err
	}
	chunks, _ := objects(a.body.at("chunks"))
	if !a.ok() || len(chunks) == 0 {
		return check.ErrNotApplicable
	}
	for i, c := range chunks {
		if f, ok := kit.Number(c["relevance"]); !ok || f < 0 || f > 1 {
			fail(a.url, fmt.Sprintf("chunks/%d/relevance: %s", i, c["relevance"]), "a number from 0 to 1")
		}
	}
	return nil
}
