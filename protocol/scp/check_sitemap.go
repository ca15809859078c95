package scp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/check"
)

// onElements returns a check that runs f on the elements with the given names, or on all if there
// are no names. f returns a description of the fault, or "", and reports whether the rule applies
// to the element.
func onElements(want string, f func(s *siteContext, e *seenElement) (got string, about bool), names ...string) siteCheck {
	return func(_ context.Context, s *siteContext, fail check.Fail) error {
		some := false
		for _, e := range s.list.elements {
			if len(names) > 0 && !slices.Contains(names, e.name) {
				continue
			}
			got, about := f(s, e)
			some = some || about
			if got != "" {
				fail(s.list.url, fmt.Sprintf("line %d: %s", e.line, got), want)
			}
		}
		return check.Applied(some)
	}
}

// onAttribute returns a check of one attribute, for the elements that have it.
func onAttribute(name, want string, ok func(value string) bool, elements ...string) siteCheck {
	return onElements(want, func(_ *siteContext, e *seenElement) (string, bool) {
		value, there := e.attr[name]
		if !there || ok(value) {
			return "", there
		}
		return fmt.Sprintf("%s of %s is %q", name, e.name, value), true
	}, elements...)
}

// allOf combines several checks into one rule.
func allOf(fs ...siteCheck) siteCheck {
	return func(ctx context.Context, s *siteContext, fail check.Fail) error {
		some := false
		for _, f := range fs {
			switch err := f(ctx, s, fail); err {
			case nil:
				some = true
			case check.ErrNotApplicable: //nolint:errorlint // onElements returns it unwrapped
			default:
				return err
			}
		}
		return check.Applied(some)
	}
}

func checkNamespace(_ *siteContext, e *seenElement) (string, bool) {
	if e.space != namespace {
		return fmt.Sprintf("%s is in the namespace %q", e.name, e.space), true
	}
	return "", true
}

func checkParent(_ *siteContext, e *seenElement) (string, bool) {
	if e.parent != "urlset" {
		return fmt.Sprintf("%s is in a %s", e.name, e.parent), true
	}
	return "", true
}

func checkRequired(_ *siteContext, e *seenElement) (string, bool) {
	var lacks []string
	for _, name := range e.attributes() {
		if _, ok := e.attr[name]; !ok {
			lacks = append(lacks, name)
		}
	}
	if lacks != nil {
		return e.name + " without " + strings.Join(lacks, ", "), true
	}
	return "", len(e.attributes()) > 0
}

func checkDeclared(_ *siteContext, e *seenElement) (string, bool) {
	known := e.attributes()
	if known == nil {
		return "an element " + e.name, true
	}
	var unknown []string
	for name := range e.attr {
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	switch unknown = append(unknown, e.other...); {
	case len(unknown) > 0:
		return e.name + " with " + strings.Join(unknown, ", "), true
	case e.filled, len(known) > 0 && strings.TrimSpace(e.text) != "":
		return e.name + " with content", true
	}
	return "", true
}

func checkVersion(_ *siteContext, e *seenElement) (string, bool) {
	major, minor, _ := strings.Cut(e.text, ".")
	if !isDigits(major) || !isDigits(minor) {
		return fmt.Sprintf("version is %q", e.text), true
	}
	return "", true
}

func isCodings(s string) bool {
	for name := range strings.SplitSeq(s, ",") {
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") != "" {
			return false
		}
	}
	return true
}

func checkCompression(_ *siteContext, e *seenElement) (string, bool) {
	if !isCodings(e.text) {
		return fmt.Sprintf("compression is %q", e.text), true
	}
	return "", true
}

// checkOffered checks that the list of codings includes the codings of all collections.
func checkOffered(s *siteContext, e *seenElement) (string, bool) {
	if !isCodings(e.text) {
		return "", false
	}
	named := strings.Split(e.text, ",")
	for _, r := range s.refs {
		if c, ok := suffixOf(r.url); ok && c != "" && !slices.Contains(named, c) {
			return fmt.Sprintf("compression is %q, but the sitemap lists %s", e.text, r.url), true
		}
	}
	return "", true
}

func isEstimate(s string) bool { return isDigits(strings.TrimPrefix(s, "~")) }

func isDateTime(s string) bool {
	s = strings.Trim(s, " \t\r\n")
	_, err := instantOf(s)
	return err == nil && !strings.ContainsAny(s, "tz")
}

func isCount(s string) bool {
	return isDigits(strings.TrimPrefix(strings.Trim(s, " \t\r\n"), "+"))
}

func isAbsolute(s string) bool { return isURI(s) && isWeb(s) }

// checkKnownSection checks that the section of a collection is declared.
func checkKnownSection(s *siteContext, e *seenElement) (string, bool) {
	section, ok := e.attr["section"]
	if !ok || slices.ContainsFunc(s.list.elements, func(d *seenElement) bool { return d.name == "section" && d.attr["name"] == section }) {
		return "", ok
	}
	return fmt.Sprintf("section of %s is %q", e.name, section), true
}

// checkSnapshot checks that each section has a snapshot.
func checkSnapshot(s *siteContext, e *seenElement) (string, bool) {
	name, ok := e.attr["name"]
	if !ok || slices.ContainsFunc(s.refs, func(r *reference) bool { return !r.delta && r.section == name }) {
		return "", ok
	}
	return fmt.Sprintf("section %q has no scp:collection", name), true
}

// onReferences returns a check that runs f on the collections in the sitemap. f returns a
// description of the fault, or "", and reports whether the rule applies to the collection.
func onReferences(want string, f func(s *siteContext, r *reference) (got string, about bool)) siteCheck {
	return func(_ context.Context, s *siteContext, fail check.Fail) error {
		some := false
		for _, r := range s.refs {
			got, about := f(s, r)
			some = some || about
			if got != "" {
				fail(cmp.Or(r.url, s.list.url), fmt.Sprintf("line %d: %s", r.e.line, got), want)
			}
		}
		return check.Applied(some)
	}
}

func checkExpires(_ *siteContext, r *reference) (string, bool) {
	if r.generated.IsZero() || r.expires.IsZero() {
		return "", false
	}
	if r.expires.Before(r.generated) {
		return "expires " + r.expires.Format(time.RFC3339) + ", generated " + r.generated.Format(time.RFC3339), true
	}
	return "", true
}

func checkExpired(s *siteContext, r *reference) (string, bool) {
	if r.expires.IsZero() || r.expires.Before(r.generated) {
		return "", false
	}
	if now := s.Now().UTC(); now.After(r.expires.Add(skew)) {
		return "expired " + r.expires.Format(time.RFC3339) + ", now " + now.Format(time.RFC3339), true
	}
	return "", true
}

func checkSinceBefore(_ *siteContext, r *reference) (string, bool) {
	if !r.delta || r.since.IsZero() || r.generated.IsZero() {
		return "", false
	}
	if r.since.After(r.generated) {
		return "since " + r.since.Format(time.RFC3339) + ", generated " + r.generated.Format(time.RFC3339), true
	}
	return "", true
}

func checkFuture(s *siteContext, r *reference) (string, bool) {
	if r.generated.IsZero() {
		return "", false
	}
	if r.generated.After(s.Now().Add(skew)) {
		return "generated " + r.generated.Format(time.RFC3339), true
	}
	return "", true
}

func checkFileSize(s *siteContext, r *reference) (string, bool) {
	if r.size > s.limits.MaxFile {
		return fmt.Sprintf("%d bytes", r.size), true
	}
	return "", r.size >= 0
}

func checkSitemapName(_ context.Context, s *siteContext, fail check.Fail) error {
	path, _, _ := strings.Cut(s.list.url, "?")
	if !strings.HasSuffix(path, sitemapPath) {
		fail(s.list.url, "the SCP elements are in this sitemap", "in "+strings.TrimPrefix(sitemapPath, "/"))
	}
	return nil
}

func checkSitemapValid(_ context.Context, s *siteContext, fail check.Fail) error {
	if s.list.err != nil {
		fail(s.list.url, s.list.err.Error(), "a sitemap")
	}
	return nil
}
