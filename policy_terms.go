package millrace

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Policy is the usage policy of a site: the terms of use, the permitted purposes, and the
// requirements. All documents in which protocols publish the policy are rendered from it, so they
// agree. The zero value has no requirements and specifies no purpose. [Visibility] is separate:
// hidden content is in no document.
type Policy struct {
	Terms   string // URL of the terms of use, or ""
	Payment string // URL of the prices of paid access, or ""
	Contact string // URL for requesting licenses, possibly mailto:, or ""

	Effective time.Time // time at which the policy takes effect; zero = unspecified
	Updated   time.Time // time of the last change; zero = unspecified
	Revision  int       // number of the revision, starting at 1, or 0 if unspecified

	// Purposes maps each purpose to whether the content may be used for it. A missing purpose is
	// unspecified, which does not mean permitted.
	Purposes     map[Purpose]bool
	Requirements Requirements
	Rate         RateHints

	Retention time.Duration // time for which copies may be stored, in whole seconds, or 0 if unspecified
	Access    string        // description of who may read the content, in one line, or "" if unspecified
	Consumers []string      // product tokens of approved agents
}

// Requirements are the obligations of users of the content.
type Requirements struct {
	Attribution bool // credit the publisher
	LinkBack    bool // link from republished content to the page
	Notice      bool // notify the publisher of commercial use
}

// RateHints are the request rates that a site asks clients to respect. A zero rate means no limit.
type RateHints struct {
	PerSecond float64 // maximum requests per second, such as 0.5
	PerDay    int     // maximum requests per day
	Note      string  // explanation for people
}

// Refuses reports whether the policy forbids a purpose. A nil policy forbids nothing.
func (p *Policy) Refuses(purpose Purpose) bool {
	if p == nil {
		return false
	}
	allowed, stated := p.Purposes[purpose]
	return stated && !allowed
}

// Approves reports whether Consumers contains a product token, ignoring case.
func (p *Policy) Approves(token string) bool {
	return p != nil && slices.ContainsFunc(p.Consumers, func(c string) bool { return strings.EqualFold(c, token) })
}

// Validate reports the members that no document can express, such as an invalid URL, an unknown
// purpose, a negative number, a time whose year does not have four digits, or text of several
// lines. It joins one [FormatError] per such member, with the name of the member as Position.
func (p *Policy) Validate() error {
	var errs []error
	wrong := func(member, format string, args ...any) {
		errs = append(errs, fmt.Errorf("policy: %w", &FormatError{Position: member, Reason: fmt.Sprintf(format, args...)}))
	}
	for _, m := range []struct {
		name, value string
		mail        bool
	}{{"terms", p.Terms, false}, {"payment", p.Payment, false}, {"contact", p.Contact, true}} {
		if m.value == "" {
			continue
		}
		u, err := url.Parse(m.value)
		switch {
		case err != nil || !isLine(m.value) || strings.Contains(m.value, " "):
			wrong(m.name, "%q is not a URL", m.value)
		case m.mail && u.Scheme == "mailto" && strings.Contains(u.Opaque, "@"):
		case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			wrong(m.name, "%q is not an absolute http or https URL", m.value)
		case u.User != nil:
			wrong(m.name, "credentials in a public URL")
		}
	}
	for _, m := range []struct {
		name string
		time time.Time
	}{{"effective", p.Effective}, {"updated", p.Updated}} {
		if y := m.time.UTC().Year(); !m.time.IsZero() && (y < 1 || y > 9999) {
			wrong(m.name, "year %d does not have four digits", y)
		}
	}
	if p.Revision < 0 {
		wrong("revision", "%d is negative", p.Revision)
	}
	known := []Purpose{AIInput, AITrain, Search}
	for purpose := range p.Purposes {
		if !slices.Contains(known, purpose) {
			wrong("purposes", "unknown purpose %q; known purposes are %q", purpose, known)
		}
	}
	if r := p.Rate.PerSecond; r < 0 || math.IsNaN(r) || math.IsInf(r, 0) {
		wrong("rate hints: per second", "invalid number of requests: %v", r)
	}
	if p.Rate.PerDay < 0 {
		wrong("rate hints: per day", "invalid number of requests: %d", p.Rate.PerDay)
	}
	if p.Retention < 0 || p.Retention%time.Second != 0 {
		wrong("retention", "%s is not a non-negative number of whole seconds", p.Retention)
	}
	for _, m := range [][2]string{{"rate hints: note", p.Rate.Note}, {"access", p.Access}} {
		if !isLine(m[1]) {
			wrong(m[0], "%q is not one line of text", m[1])
		}
	}
	for _, c := range p.Consumers {
		if c == "" || strings.ContainsFunc(c, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`/:;,()<>"\`, r) }) {
			wrong("consumers", "%q is not a product token, such as ExampleBot", c)
		}
	}
	return errors.Join(errs...)
}

// isLine reports whether a string is valid UTF-8 without control characters.
func isLine(s string) bool {
	return !strings.ContainsFunc(strings.ToValidUTF8(s, "\x00"), func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 })
}
