package openfeeder

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
)

func checkIndexLimit(ctx context.Context, s *siteContext, fail check.Fail) error {
	if err := s.live(); err != nil {
		return err
	}
	if len(s.items) < 3 {
		return check.ErrNotApplicable
	}
	a, err := s.ask(ctx, "limit", "2")
	if err != nil {
		return err
	}
	if items, _ := objects(a.body.at("items")); !a.ok() || len(items) > 2 {
		fail(a.url, fmt.Sprintf("%s with %d items", status2(a), len(items)), "at most 2 items")
	}
	return nil
}

// last returns the URL of the last page in the index, and its document, or nil if there is no
// document.
func (s *siteContext) last(ctx context.Context) (string, *siteResponse, error) {
	items := s.items
	if total, ok := kit.Number(s.index.body["total_pages"]); ok && total > 1 {
		a, err := s.ask(ctx, "page", strconv.Itoa(int(total)))
		if err != nil {
			return "", nil, err
		}
		items, _ = objects(a.body.at("items"))
	}
	base, err := url.Parse(s.feed.Base)
	if err != nil || len(items) == 0 {
		return "", nil, err
	}
	u, err := canon.Resolve(base, kit.Text(items[len(items)-1]["url"]))
	if err != nil {
		return "", nil, nil //nolint:nilerr // 3.3/item-url
	}
	a, err := s.ask(ctx, "url", relative(s.feed.Base, u))
	return u, a, err
}

// rareWord returns the longest word of a page that no other sampled page contains, or "".
func (s *siteContext) rareWord(u string, page *siteResponse) (word string) {
	var others strings.Builder
	for i, p := range s.pages {
		if plainURL(s.asked[i]) != plainURL(u) && p.ok() {
			others.WriteString(strings.ToLower(string(p.resp.Body)))
		}
	}
	chunks, _ := objects(page.body.at("chunks"))
	for _, c := range chunks {
		for w := range strings.FieldsFuncSeq(kit.Text(c["text"]), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
			if n := utf8.RuneCountInString(w); n > max(3, utf8.RuneCountInString(word)) && n <= 40 && !strings.Contains(others.String(), strings.ToLower(w)) {
				word = w
			}
		}
	}
	return word
}

// checkQuestionLater searches for a word of the last page in the index, because searches must cover
// the whole site.
func checkQuestionLater(ctx context.Context, s *siteContext, fail check.Fail) error {
	plain, err := s.question(ctx)
	if err != nil {
		return err
	}
	if answered(plain.body) == "" {
		return check.ErrNotApplicable // see rule 3.1/q
	}
	u, page, err := s.last(ctx)
	if err != nil {
		return err
	}
	if page == nil || !page.page() {
		return check.ErrNotApplicable
	}
	word := s.rareWord(u, page)
	if word == "" {
		return check.ErrNotApplicable
	}
	a, err := s.ask(ctx, "q", word, "limit", strconv.Itoa(maxLimit))
	if err != nil {
		return err
	}
	found := 0
	for _, name := range []string{"items", "chunks"} {
		list, _ := objects(a.body.at(name))
		found = max(found, len(list))
	}
	if !a.ok() || found == 0 || found < maxLimit && !s.lists(a, u, "items", "chunks") {
		fail(a.url, a.got(), "the page "+u+", which contains "+quote(word))
	}
	return nil
}

// lists reports whether one of the named lists of a response contains an object with the URL u.
func (s *siteContext) lists(a *siteResponse, u string, names ...string) bool {
	for _, name := range names {
		list, _ := objects(a.body.at(name))
		for _, it := range list {
			if plainURL(s.absolute(kit.Text(it["url"]))) == plainURL(u) {
				return true
			}
		}
	}
	return false
}

// absolute returns the absolute URL of a page in the feed, resolved as by the reader.
func (s *siteContext) absolute(ref string) string {
	if u, err := s.feed.url(s.Root(), ref); err == nil {
		return u
	}
	return ref
}

// checkSinceUpdated requests the changes since shortly before the last update of a page that
// was published earlier.
func checkSinceUpdated(ctx context.Context, s *siteContext, fail check.Fail) error {
	var at time.Time
	var u string
	for i, p := range s.pages {
		published, updated := parseTime(kit.Text(p.body.at("published"))), parseTime(kit.Text(p.body.at("updated")))
		if p.page() && !published.IsZero() && updated.After(published.Add(time.Minute)) && updated.After(at) {
			at, u = updated, s.asked[i]
		}
	}
	if u == "" {
		return check.ErrNotApplicable
	}
	a, err := s.window(ctx, "since", kit.FormatTime(at.Add(-time.Second)))
	if err != nil {
		return err
	}
	_, added := objects(a.body.at("added"))
	_, updated := objects(a.body.at("updated"))
	if isReply(a) && added && updated && a.body.at("sync", "next") == nil && !s.lists(a, u, "added", "updated") {
		fail(a.url, a.got(), "the page "+u+" in updated: it was updated "+kit.FormatTime(at))
	}
	return nil
}

// checkInvalidated fetches pages that the site reports as changed since the first sync reply. If
// the site reports none, it fetches pages that the first reply lists.
func checkInvalidated(ctx context.Context, s *siteContext, fail check.Fail) error {
	if s.sync == nil || !isReply(s.sync) || !isToken(s.token()) {
		return check.ErrNotApplicable
	}
	second, err := s.fresh(ctx, s.feed.query("since", s.token()), nil)
	if err != nil {
		return err
	}
	checked := 0
	for _, reply := range []*siteResponse{second, s.sync} {
		if !isReply(reply) || checked > 0 {
			continue
		}
		for _, name := range []string{"added", "updated"} {
			list, _ := objects(reply.body[name])
			for _, it := range list {
				want := parseTime(kit.Text(it["updated"]))
				if checked == maxChecked || want.IsZero() {
					continue
				}
				checked++
				a, err := s.fresh(ctx, s.feed.query("url", relative(s.feed.Base, s.absolute(kit.Text(it["url"])))), nil)
				if err != nil {
					return err
				}
				if got := parseTime(kit.Text(a.body.at("updated"))); a.page() && got.Before(want) {
					fail(a.url, "updated: "+cmp.Or(kit.FormatTime(got), "nothing"), kit.FormatTime(want)+", as "+reply.url+" says")
				}
			}
		}
	}
	return check.Applied(checked > 0)
}

// maxChecked is the maximum number of changed pages that are fetched again.
const maxChecked = 3

func (s *siteContext) fresh(ctx context.Context, target string, header http.Header) (*siteResponse, error) {
	resp, err := s.DoUncached(ctx, http.MethodGet, target, header)
	return s.answer(ctx, target, resp, err)
}

// checkIntent requests the index with an X-OpenFeeder-Intent header.
func checkIntent(ctx context.Context, s *siteContext, fail check.Fail) error {
	if err := s.live(); err != nil {
		return err
	}
	a, err := s.fresh(ctx, s.feed.query(), http.Header{"X-Openfeeder-Intent": {"millrace check"}})
	if err != nil {
		return err
	}
	if !a.ok() {
		fail(a.url, a.got()+" with X-OpenFeeder-Intent", "the index, as without the field")
	}
	return nil
}

func checkCookies(_ context.Context, s *siteContext, fail check.Fail) error {
	answers := s.answers()
	if len(answers) == 0 {
		return check.ErrNotApplicable
	}
	for _, a := range answers {
		if got := a.resp.Header.Get("Set-Cookie"); got != "" {
			fail(a.url, "Set-Cookie: "+kit.Short(got), "no cookies")
			return nil
		}
	}
	return nil
}
