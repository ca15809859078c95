package openfeeder

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
)

// kind is what a member should be.
type kind struct {
	want string
	ok   func(raw json.RawMessage) bool // raw is nil when there is no such member
}

// textKind is a kind of strings.
func textKind(want string, ok func(s string) bool) kind {
	return kind{want, func(raw json.RawMessage) bool {
		var s *string
		return raw != nil && json.Unmarshal(raw, &s) == nil && s != nil && ok(*s)
	}}
}

var (
	isText      = textKind("a string", func(string) bool { return true })
	isFullText  = textKind("a string that says something", func(s string) bool { return !blank(s) })
	isVersion   = textKind(`"1.0"`, func(s string) bool { return s == version })
	isSchema    = textKind(`"`+schema+`"`, func(s string) bool { return s == schema })
	isTag       = textKind("a language tag of BCP 47", isLanguage)
	isReference = textKind("a URL or a path", func(s string) bool { _, err := url.Parse(s); return err == nil && !blank(s) })
	isURL       = textKind("an absolute http or https URL", func(s string) bool { _, err := canon.URL(s); return err == nil })
	isDate      = textKind("a date and time of ISO 8601, such as 2026-02-20T00:00:00Z", isDateTime)
	isContact   = textKind("an e-mail address or a URL", func(s string) bool {
		_, err := canon.URL(s)
		return err == nil || strings.Contains(s, "@") && !strings.ContainsAny(s, " \t\n")
	})
	isCode = textKind("NOT_FOUND, RATE_LIMITED, AUTH_REQUIRED or SERVER_ERROR, or a code like them", func(s string) bool {
		return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
	})
	isBool = kind{"true or false", func(raw json.RawMessage) bool {
		var b *bool
		return json.Unmarshal(raw, &b) == nil && b != nil
	}}
	isNumber = kind{"a whole number", func(raw json.RawMessage) bool {
		n, ok := number64(raw)
		return ok && n >= 0 && n == math.Trunc(n)
	}}
	isTexts = kind{"an array of strings", func(raw json.RawMessage) bool {
		var list []*string
		return json.Unmarshal(raw, &list) == nil && list != nil && !slices.Contains(list, nil)
	}}
	isObjects = kind{"an array of objects", func(raw json.RawMessage) bool { _, ok := objects(raw); return ok }}
	there     = kind{"a value or null", func(raw json.RawMessage) bool { return raw != nil }}
	nothing   = kind{"nothing", func(json.RawMessage) bool { return false }}
)

// isDateTime takes what the reader takes, a day alone excepted.
func isDateTime(s string) bool { return len(s) > len(time.DateOnly) && !parseTime(s).IsZero() }

func number64(raw json.RawMessage) (float64, bool) {
	var f *float64
	if json.Unmarshal(raw, &f) != nil || f == nil {
		return 0, false
	}
	return *f, true
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

func orNull(k kind) kind {
	return kind{k.want + " or null", func(raw json.RawMessage) bool { return isNull(raw) || k.ok(raw) }}
}

// optional takes what is not there, and null in its place.
func optional(k kind) kind {
	return kind{k.want + ", or nothing", func(raw json.RawMessage) bool { return raw == nil || isNull(raw) || k.ok(raw) }}
}

func oneOf(values ...string) kind {
	return textKind(strings.Join(values, " or "), func(s string) bool { return slices.Contains(values, s) })
}

// judge reports a member that is not what it should be.
func (k kind) judge(u string, o object, fail check.Fail, where string, path ...string) {
	if raw := o.at(path...); !k.ok(raw) {
		shown := "nothing"
		if raw != nil {
			shown = string(raw[:min(len(raw), 200)])
		}
		fail(u, where+strings.Join(path, ".")+": "+shown, k.want)
	}
}

func aboutField(k kind, path ...string) look {
	return func(_ context.Context, s *survey, fail check.Fail) error {
		if s.found.body == nil || s.found.resp.Status >= 300 {
			return check.ErrNotApplicable
		}
		k.judge(s.found.url, s.found.body, fail, "", path...)
		return nil
	}
}

func indexField(k kind, path ...string) look {
	return func(_ context.Context, s *survey, fail check.Fail) error {
		if s.index == nil || !s.index.ok() {
			return check.ErrNotApplicable
		}
		k.judge(s.index.url, s.index.body, fail, "", path...)
		return nil
	}
}

func itemField(k kind, name string) look {
	return func(_ context.Context, s *survey, fail check.Fail) error {
		if len(s.items) == 0 {
			return check.ErrNotApplicable
		}
		for i, it := range s.items {
			k.judge(s.index.url, it, fail, fmt.Sprintf("items/%d/", i), name)
		}
		return nil
	}
}

func pageField(k kind, path ...string) look {
	return onPages(func(p *said, fail check.Fail) { k.judge(p.url, p.body, fail, "", path...) })
}

func chunkField(k kind, name string) look {
	return onChunks(func(p *said, i int, c object, fail check.Fail) {
		k.judge(p.url, c, fail, fmt.Sprintf("chunks/%d/", i), name)
	})
}

func syncField(k kind, path ...string) look {
	return func(_ context.Context, s *survey, fail check.Fail) error {
		if s.sync == nil || !isReply(s.sync) {
			return check.ErrNotApplicable
		}
		k.judge(s.sync.url, s.sync.body, fail, "", path...)
		return nil
	}
}

func errorField(k kind, path ...string) look {
	return func(ctx context.Context, s *survey, fail check.Fail) error {
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
		k.judge(a.url, a.body, fail, a.resp.Said()+" with ", path...)
		return nil
	}
}

// onPages runs f on every sampled page.
func onPages(f func(p *said, fail check.Fail)) look {
	return func(_ context.Context, s *survey, fail check.Fail) error {
		some := false
		for _, p := range s.pages {
			if p.page() {
				some = true
				f(p, fail)
			}
		}
		if !some {
			return check.ErrNotApplicable
		}
		return nil
	}
}

// onChunks runs f on every chunk of every sampled page.
func onChunks(f func(p *said, i int, c object, fail check.Fail)) look {
	return func(_ context.Context, s *survey, fail check.Fail) error {
		some := false
		for _, p := range s.pages {
			chunks, _ := objects(p.body.at("chunks"))
			if !p.page() {
				continue
			}
			for i, c := range chunks {
				some = true
				f(p, i, c, fail)
			}
		}
		if !some {
			return check.ErrNotApplicable
		}
		return nil
	}
}
