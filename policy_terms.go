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

// Policy is what the owner of a site says about the use of its content: the
// terms, what it may be used for, and what is asked in return. It says it
// once, and every document in which a protocol tells machines about it is made
// of it, so that no two of them can contradict each other. The zero value asks
// nothing and speaks of no purpose. [Visibility] is something else: what it
// hides is in no document at all.
type Policy struct {
	Terms   string // URL of the terms of use; "" = none
	Payment string // URL of what paid access costs; "" = none
	Contact string // URL of the contact for licences, also mailto:; "" if none

	Effective time.Time // since when it holds; zero = not said
	Updated   time.Time // when it was last changed; zero = not said
	Revision  int       // counts the changes, from 1; 0 = not counted

	// Purposes says of each purpose whether the content may be used for it. Of
	// a purpose that is not in it nothing is said, which is no permission.
	Purposes     map[Purpose]bool
	Requirements Requirements
	Rate         RateHints

	Retention time.Duration // how long copies may be kept, in whole seconds; 0 = not said
	Access    string        // who may have the content, in one line; "" = not said
	Consumers []string      // product tokens of the agents that are approved by name
}

// Requirements are what has to be done by those who use the content. False is
// no requirement.
type Requirements struct {
	Attribution bool // the publisher is credited
	LinkBack    bool // what is republished links to the page
	Notice      bool // the publisher hears of commercial use
}

// RateHints are the request rates that a site asks for. They are hints; zero is
// no limit.
type RateHints struct {
	PerSecond float64 // most requests a second, such as 0.5
	PerDay    int     // most requests a day
	Note      string  // more about it, in words
}

// Refuses reports whether the policy says that the content may not be used for a
// purpose. Without a policy, nothing is refused.
func (p *Policy) Refuses(purpose Purpose) bool {
	if p == nil {
		return false
	}
	allowed, said := p.Purposes[purpose]
	return said && !allowed
}

// Approves reports whether the policy approves the agent with a product token, in
// any case, by name.
func (p *Policy) Approves(token string) bool {
	return p != nil && slices.ContainsFunc(p.Consumers, func(c string) bool { return strings.EqualFold(c, token) })
}

// Validate reports members that no document can express: an invalid URL, an
// unknown purpose, a negative number, a time without a four-digit year, text of
// several lines. It returns one [FormatError] per such member, joined, with the
// member as Position.
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
			wrong(m.name, "%q is no URL", m.value)
		case m.mail && u.Scheme == "mailto" && strings.Contains(u.Opaque, "@"):
		case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			wrong(m.name, "%q is no absolute http or https URL", m.value)
		case u.User != nil:
			wrong(m.name, "a URL for everybody has no credentials")
		}
	}
	for _, m := range []struct {
		name string
		time time.Time
	}{{"effective", p.Effective}, {"updated", p.Updated}} {
		if y := m.time.UTC().Year(); !m.time.IsZero() && (y < 1 || y > 9999) {
			wrong(m.name, "the year %d has not four digits", y)
		}
	}
	if p.Revision < 0 {
		wrong("revision", "%d is below zero", p.Revision)
	}
	known := []Purpose{AIInput, AITrain, Search}
	for purpose := range p.Purposes {
		if !slices.Contains(known, purpose) {
			wrong("purposes", "there is no purpose %q; the purposes are %q", purpose, known)
		}
	}
	if r := p.Rate.PerSecond; r < 0 || math.IsNaN(r) || math.IsInf(r, 0) {
		wrong("rate hints: per second", "%v is no number of requests", r)
	}
	if p.Rate.PerDay < 0 {
		wrong("rate hints: per day", "%d is no number of requests", p.Rate.PerDay)
	}
	if p.Retention < 0 || p.Retention%time.Second != 0 {
		wrong("retention", "%s is no whole number of seconds from 0 on", p.Retention)
	}
	for _, m := range [][2]string{{"rate hints: note", p.Rate.Note}, {"access", p.Access}} {
		if !isLine(m[1]) {
			wrong(m[0], "%q is not one line of text", m[1])
		}
	}
	for _, c := range p.Consumers {
		if c == "" || strings.ContainsFunc(c, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`/:;,()<>"\`, r) }) {
			wrong("consumers", "%q is no product token, such as ExampleBot", c)
		}
	}
	return errors.Join(errs...)
}

// isLine reports whether a string has no control characters and is UTF-8.
func isLine(s string) bool {
	return !strings.ContainsFunc(strings.ToValidUTF8(s, "\x00"), func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 })
}
