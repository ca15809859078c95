package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// SiteCheck checks one rule. s is the data that the rules of a suite share.
type SiteCheck[S any] func(ctx context.Context, s S, fail Fail) error

// RuleBuilder builds the rules of one protocol. The rules share the result of SiteContext, which runs
// once per target.
type RuleBuilder[S any] struct {
	Name        string // name of the protocol
	SiteContext func(ctx context.Context, t *Target) (S, error)
}

// Rule returns a rule. id is the rule's ID without the protocol's name.
func (r RuleBuilder[S]) Rule(id string, level Level, section, sentence string, f SiteCheck[S]) Rule {
	return Rule{
		ID: r.Name + "/" + id, Level: level, Section: section, Sentence: sentence,
		Check: func(ctx context.Context, t *Target, fail Fail) error {
			s, err := Memo(ctx, t, r.Name+" site context", func(ctx context.Context) (S, error) { return r.SiteContext(ctx, t) })
			if err != nil {
				return err
			}
			return f(ctx, s, fail)
		},
	}
}

// Each returns a check that calls f for every element of a list. f reports whether the rule applies
// to the element. An error for one element does not stop the check of the others.
func Each[S, E any](list func(S) []E, f func(ctx context.Context, s S, e E, fail Fail) (bool, error)) SiteCheck[S] {
	return func(ctx context.Context, s S, fail Fail) error {
		applied := false
		var first error
		for _, e := range list(s) {
			ok, err := f(ctx, s, e, fail)
			applied = applied || ok
			if first == nil {
				first = err
			}
		}
		if first == nil && !applied {
			return ErrNotApplicable
		}
		return first
	}
}

// IsInconclusive reports whether err is [ErrLimit] or [ErrBusy], which say nothing about the site's
// documents.
func IsInconclusive(err error) bool { return errors.Is(err, ErrLimit) || errors.Is(err, ErrBusy) }

// OK reports whether the response is a 200 with a readable body.
func (r *Response) OK() bool { return r.Status == http.StatusOK && r.BodyErr == nil }

// StatusText returns the status with its name, such as "404 Not Found".
func (r *Response) StatusText() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status)))
}

// Field returns all lines of a header field, joined by commas.
func (r *Response) Field(name string) string { return strings.Join(r.Header.Values(name), ", ") }

// HostOf returns the host of a URL in lower case, with its port unless it is the default of
// the scheme. It returns "" for an invalid URL.
func HostOf(u string) string {
	p, err := url.Parse(u)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.ToLower(p.Host), map[string]string{"http": ":80", "https": ":443"}[p.Scheme])
}

// JSONText returns the value of a JSON string. It returns false if raw is not a JSON string.
func JSONText(raw json.RawMessage) (string, bool) {
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

// All returns a check that calls f for every element of a list. f reports whether the rule
// applies to the element.
func All[S, E any](list func(S) []E, f func(s S, e E, fail Fail) bool) SiteCheck[S] {
	return func(_ context.Context, s S, fail Fail) error {
		applied := false
		for _, e := range list(s) {
			applied = f(s, e, fail) || applied
		}
		return Applied(applied)
	}
}

// Applied returns nil if applies is true, and [ErrNotApplicable] otherwise.
func Applied(applies bool) error {
	if applies {
		return nil
	}
	return ErrNotApplicable
}
