package openfeeder

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
)

var (
	isFullText  = kit.TextKind("a non-empty string", func(s string) bool { return !blank(s) })
	isVersion   = kit.TextKind(`"1.0"`, func(s string) bool { return s == version })
	isSchema    = kit.TextKind(`"`+schema+`"`, func(s string) bool { return s == schema })
	isTag       = kit.TextKind("a BCP 47 language tag", isLanguage)
	isReference = kit.TextKind("a URL or a path", func(s string) bool { _, err := url.Parse(s); return err == nil && !blank(s) })
	isURL       = kit.TextKind("an absolute http or https URL", func(s string) bool { _, err := canon.URL(s); return err == nil })
	isDate      = kit.TextKind("an ISO 8601 date and time, such as 2026-02-20T00:00:00Z", isDateTime)
	isContact   = kit.TextKind("an e-mail address or a URL", func(s string) bool {
		_, err := canon.URL(s)
		return err == nil || strings.Contains(s, "@") && !strings.ContainsAny(s, " \t\n")
	})
	isCode = kit.TextKind("NOT_FOUND, RATE_LIMITED, AUTH_REQUIRED, SERVER_ERROR or a similar code", func(s string) bool {
		return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
	})
	isObjects = kit.Kind{Want: "an array of objects", OK: func(raw json.RawMessage) bool { _, ok := objects(raw); return ok }}
	there     = kit.Kind{Want: "a value or null", OK: func(raw json.RawMessage) bool { return raw != nil }}
	nothing   = kit.Kind{Want: "nothing", OK: func(json.RawMessage) bool { return false }}
)

// isDateTime reports whether s is a date that the reader accepts, and includes a time.
func isDateTime(s string) bool { return len(s) > len(time.DateOnly) && !parseTime(s).IsZero() }

// checkMember reports a finding if a member is not of the kind k.
func checkMember(k kit.Kind, u string, o object, fail check.Fail, where string, path ...string) {
	if raw := o.at(path...); !k.OK(raw) {
		fail(u, where+strings.Join(path, ".")+": "+kit.ShortJSON(raw), k.Want)
	}
}

func aboutField(k kit.Kind, path ...string) siteCheck {
	return func(_ context.Context, s *siteContext, fail check.Fail) error {
		if s.found.body == nil || s.found.resp.Status >= 300 {
			return check.ErrNotApplicable
		}
		checkMember(k, s.found.url, s.found.body, fail, "", path...)
		return nil
	}
}

func indexField(k kit.Kind, path ...string) siteCheck {
	return func(_ context.Context, s *siteContext, fail check.Fail) error {
		if s.index == nil || !s.index.ok() {
			return check.ErrNotApplicable
		}
		checkMember(k, s.index.url, s.index.body, fail, "", path...)
		return nil
	}
}

func itemField(k kit.Kind, name string) siteCheck {
	return func(_ context.Context, s *siteContext, fail check.Fail) error {
		if len(s.items) == 0 {
			return check.ErrNotApplicable
		}
		for i, it := range s.items {
			checkMember(k, s.index.url, it, fail, fmt.Sprintf("items/%d/", i), name)
		}
		return nil
	}
}

func pageField(k kit.Kind, path ...string) siteCheck {
	return onPages(func(p *siteResponse, fail check.Fail) { checkMember(k, p.url, p.body, fail, "", path...) })
}

func chunkField(k kit.Kind, name string) siteCheck {
	return onChunks(func(p *siteResponse, i int, c object, fail check.Fail) {
		checkMember(k, p.url, c, fail, fmt.Sprintf("chunks/%d/", i), name)
	})
}

func syncField(k kit.Kind, path ...string) siteCheck {
	return func(_ context.Context, s *siteContext, fail check.Fail) error {
		if s.sync == nil || !isReply(s.sync) {
			return check.ErrNotApplicable
		}
		checkMember(k, s.sync.url, s.sync.body, fail, "", path...)
		return nil
	}
}

func errorField(k kit.Kind, path ...string) siteCheck {
	return func(ctx context.Context, s *siteContext, fail check.Fail) error {
		a, err := s.missing(ctx)
		if err != nil {
			return err
		}
		if a.err != nil || a.resp.Status < 400 {
			return check.ErrNotApplicable
		}
		if a.body == nil {
			a.body = object{}
		}
		checkMember(k, a.url, a.body, fail, a.resp.StatusText()+" with ", path...)
		return nil
	}
}

// onPages returns a check that runs f on every sampled page.
func onPages(f func(p *siteResponse, fail check.Fail)) siteCheck {
	return check.All(func(s *siteContext) []*siteResponse { return s.pages }, func(_ *siteContext, p *siteResponse, fail check.Fail) bool {
		if p.page() {
			f(p, fail)
		}
		return p.page()
	})
}

// onChunks returns a check that runs f on every chunk of every sampled page.
func onChunks(f func(p *siteResponse, i int, c object, fail check.Fail)) siteCheck {
	return check.All(func(s *siteContext) []*siteResponse { return s.pages }, func(_ *siteContext, p *siteResponse, fail check.Fail) bool {
		chunks, _ := objects(p.body.at("chunks"))
		if !p.page() {
			return false
		}
		for i, c := range chunks {
			f(p, i, c, fail)
		}
		return len(chunks) > 0
	})
}
