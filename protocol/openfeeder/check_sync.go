package openfeeder

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

// isReply reports whether a response is a sync reply.
func isReply(a *siteResponse) bool { return a.ok() && objectOf(a.body["sync"]) != nil }

// window requests changes. If the site does not support since, the error is ErrNotApplicable.
func (s *siteContext) window(ctx context.Context, pairs ...string) (*siteResponse, error) {
	if s.sync == nil || !isReply(s.sync) {
		return nil, check.ErrNotApplicable
	}
	return s.ask(ctx, pairs...)
}

func checkSinceDate(_ context.Context, s *siteContext, fail check.Fail) error {
	if s.sync == nil {
		return check.ErrNotApplicable
	}
	if !isReply(s.sync) {
		fail(s.sync.url, s.sync.got(), "200 OK and the changes, with a member sync")
	}
	return nil
}

func checkSinceToken(ctx context.Context, s *siteContext, fail check.Fail) error {
	if !isToken(s.token()) {
		return check.ErrNotApplicable // see rule 3.4/sync-token
	}
	a, err := s.window(ctx, "since", s.token())
	if err != nil {
		return err
	}
	if !isReply(a) {
		fail(a.url, a.got(), "200 OK and the changes since the token")
	}
	return nil
}

// token returns the token of the sync reply, or "".
func (s *siteContext) token() string {
	if s.sync == nil {
		return ""
	}
	return kit.Text(s.sync.body.at("sync", "sync_token"))
}

// isToken reports whether a token has the members that the specification requires.
func isToken(token string) bool {
	raw, err := base64.StdEncoding.DecodeString(token)
	if err != nil {
		raw, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(token, "="))
	}
	return err == nil && isDate.OK(objectOf(raw)["t"])
}

func checkToken(_ context.Context, s *siteContext, fail check.Fail) error {
	if s.sync == nil || !isReply(s.sync) {
		return check.ErrNotApplicable
	}
	if !isToken(s.token()) {
		fail(s.sync.url, "sync.sync_token: "+string(s.sync.body.at("sync", "sync_token")), `base64 of {"t":"<as_of>"}`)
	}
	return nil
}

func checkCounts(_ context.Context, s *siteContext, fail check.Fail) error {
	if s.sync == nil || !isReply(s.sync) {
		return check.ErrNotApplicable
	}
	for _, name := range []string{"added", "updated", "deleted"} {
		list, ok := objects(s.sync.body[name])
		if n, counted := kit.Number(s.sync.body.at("sync", "counts", name)); ok && (!counted || int(n) != len(list)) {
			fail(s.sync.url, fmt.Sprintf("sync.counts.%s: %s", name, s.sync.body.at("sync", "counts", name)), fmt.Sprint(len(list)))
		}
	}
	return nil
}

// checkChanged returns a check of a list of page objects.
func checkChanged(name string) siteCheck {
	return func(_ context.Context, s *siteContext, fail check.Fail) error {
		if s.sync == nil || !isReply(s.sync) {
			return check.ErrNotApplicable
		}
		list, ok := objects(s.sync.body[name])
		if !ok {
			checkMember(isObjects, s.sync.url, s.sync.body, fail, "", name)
		}
		for i, it := range list {
			checkMember(s.isPage(), s.sync.url, it, fail, fmt.Sprintf("%s/%d/", name, i), "url")
		}
		return nil
	}
}

func checkTombstones(name string, k kit.Kind) siteCheck {
	return func(ctx context.Context, s *siteContext, fail check.Fail) error {
		if s.sync == nil || !isReply(s.sync) {
			return check.ErrNotApplicable
		}
		list, _ := objects(s.sync.body["deleted"])
		for i, gone := range list {
			checkMember(k, s.sync.url, gone, fail, fmt.Sprintf("deleted/%d/", i), name)
		}
		if len(list) == 0 {
			return check.ErrNotApplicable
		}
		return nil
	}
}

// checkUntil requests a window that ends before any page on the web was published.
func checkUntil(ctx context.Context, s *siteContext, fail check.Fail) error {
	a, err := s.window(ctx, "since", "1990-01-01T00:00:00Z", "until", "1990-01-02T00:00:00Z")
	if err != nil {
		return err
	}
	if !isReply(a) {
		fail(a.url, a.got(), "200 OK and the changes of the window")
		return nil
	}
	for _, name := range []string{"added", "updated"} {
		list, _ := objects(a.body[name])
		for i, it := range list {
			published, updated := parseTime(kit.Text(it["published"])), parseTime(kit.Text(it["updated"]))
			if late := parseTime("1990-01-03"); published.After(late) && (updated.IsZero() || updated.After(late)) {
				fail(a.url, fmt.Sprintf("%s/%d was published %s", name, i, kit.FormatTime(published)), "nothing after until")
				return nil
			}
		}
	}
	if until := kit.Text(a.body.at("sync", "until")); !isDate.OK(a.body.at("sync", "until")) {
		fail(a.url, "sync.until: "+until, "1990-01-02T00:00:00Z")
	}
	return nil
}

// early is a date before the web existed, which keeps replies short.
const early = "1990-01-02T00:00:00Z"

func checkUntilAlone(ctx context.Context, s *siteContext, fail check.Fail) error {
	a, err := s.window(ctx, "until", early)
	if err != nil {
		return err
	}
	if !isReply(a) {
		fail(a.url, a.got(), "200 OK and the pages published until then")
	} else if raw := a.body.at("sync", "since"); raw != nil {
		fail(a.url, "sync.since: "+string(raw), "no such member")
	}
	return nil
}

func checkUntilDeleted(ctx context.Context, s *siteContext, fail check.Fail) error {
	a, err := s.window(ctx, "until", early)
	if err != nil {
		return err
	}
	if !isReply(a) {
		return check.ErrNotApplicable
	}
	if list, ok := objects(a.body["deleted"]); !ok || len(list) > 0 {
		fail(a.url, "deleted: "+kit.Short(string(a.body["deleted"])), "[]")
	}
	return nil
}

func checkUntilToken(ctx context.Context, s *siteContext, fail check.Fail) error {
	if !isToken(s.token()) {
		return check.ErrNotApplicable
	}
	a, err := s.window(ctx, "until", s.token())
	if err != nil {
		return err
	}
	if a.err == nil && a.resp.Status < 400 {
		fail(a.url, a.got(), "400 and an error, because until must be a date")
	}
	return nil
}

func checkUntilBefore(ctx context.Context, s *siteContext, fail check.Fail) error {
	a, err := s.window(ctx, "since", "1990-01-03T00:00:00Z", "until", early)
	if err != nil {
		return err
	}
	if a.err != nil || a.resp.Status != http.StatusBadRequest || kit.Text(a.body.at("error", "code")) != invalidParam {
		fail(a.url, a.got(), "400 with the code "+invalidParam)
	}
	return nil
}

// checkQWins compares the responses to a question with and without dates.
func checkQWins(ctx context.Context, s *siteContext, fail check.Fail) error {
	if _, err := s.window(ctx, "until", early); err != nil {
		return err
	}
	plain, err := s.question(ctx)
	if err != nil {
		return err
	}
	a, err := s.question(ctx, "since", "1990-01-01T00:00:00Z", "until", early)
	if err != nil {
		return err
	}
	if !plain.ok() {
		return check.ErrNotApplicable
	}
	one, other := answered(plain.body), answered(a.body)
	if !a.ok() || one != other {
		fail(a.url, a.got(), "the same response as without since and until")
	}
	return nil
}

// answered returns the pages in the response to a question, as one string.
func answered(o object) string {
	var b strings.Builder
	for _, name := range []string{"items", "chunks"} {
		list, _ := objects(o[name])
		for _, it := range list {
			b.WriteString(kit.Text(it["url"]) + " " + kit.Text(it["text"]) + "\n")
		}
	}
	return b.String()
}
