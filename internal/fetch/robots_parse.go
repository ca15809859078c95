package fetch

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxRobots     = 500 << 10 // maximum bytes of a robots.txt that are parsed (RFC 9309, section 2.5)
	maxCrawlDelay = time.Minute
	maxOthers     = 100  // maximum number of stored records of other kinds
	maxOther      = 2048 // maximum size of such a record in bytes
)

// Robots is the part of a robots.txt (RFC 9309) that applies to one product. A nil *Robots has
// no rules and allows everything. Robots is immutable and safe for concurrent use.
type Robots struct {
	rules    []robotsRule // most specific first; among equals, Allow first
	delay    time.Duration
	sitemaps []string
	others   []RobotsRecord
	comments []string
}

// RobotsRecord is a record of a robots.txt that is not an access rule, such as "License:
// https://example.com/license.xml".
type RobotsRecord struct {
	Name  string // in lower case
	Value string // without surrounding white space
	Line  int
}

// robotsRule is one Allow or Disallow.
type robotsRule struct {
	// pattern is in normal form: '*' is a wildcard, and %2A a literal asterisk.
	pattern string
	anchor  bool // the pattern ends in '$'
	allow   bool
	line    int
	value   string // pattern as written in the file
}

func (r *robotsRule) octets() int {
	if r.anchor {
		return len(r.pattern) + 1
	}
	return len(r.pattern)
}

// ParseRobots parses a robots.txt for a product token, such as "millrace". The case of the token
// does not matter. All groups that name the product apply together. If there are none, those of "*"
// apply. ParseRobots never fails. It ignores bytes after the first 500 KiB, and invalid lines. HTML
// in place of a robots.txt, such as a login page, has no rules.
func ParseRobots(data []byte, token string) *Robots {
	data = bytes.TrimPrefix(cutRobots(data), []byte("\ufeff"))
	out := new(Robots)
	if strings.HasPrefix(http.DetectContentType(data), "text/html") {
		return out
	}
	p := robotsParser{token: token}
	text := string(data)
	for line := 1; text != ""; line++ {
		end := strings.IndexAny(text, "\r\n")
		if end < 0 {
			p.line(line, text)
			break
		}
		p.line(line, text[:end])
		if strings.HasPrefix(text[end:], "\r\n") {
			end++
		}
		text = text[end+1:]
	}
	group := &p.groups[others]
	if p.named {
		group, p.comments = &p.groups[own], nil
	}
	out.rules, out.delay, out.sitemaps = group.rules, group.delay, p.sitemaps
	out.comments = p.comments
	for _, r := range p.records {
		if r.global || p.named && r.to[own] || !p.named && r.to[others] {
			out.others = append(out.others, r.RobotsRecord)
		}
	}
	slices.SortStableFunc(out.rules, func(a, b robotsRule) int {
		if n := cmp.Compare(b.octets(), a.octets()); n != 0 || a.allow == b.allow {
			return n
		}
		if a.allow {
			return -1
		}
		return 1
	})
	return out
}

const (
	own    = iota // groups that name the product
	others        // groups for "*"
)

type robotsGroup struct {
	rules []robotsRule
	delay time.Duration
}

type robotsParser struct {
	token    string
	named    bool // a group names the product, even one without rules
	groups   [2]robotsGroup
	open     [2]bool // whether the current group applies to the product (own) and to "*" (others)
	grouped  bool    // a User-agent line was read
	ruled    bool    // the group has a rule, so the next User-agent line starts another group
	sitemaps []string
	records  []robotsOther
	comments []string
}

// robotsOther is a record of another kind, with the products to which it applies.
type robotsOther struct {
	RobotsRecord
	to     [2]bool
	global bool // the record precedes all groups, or is a license
}

func (p *robotsParser) line(n int, s string) {
	p.comment(s)
	s, _, _ = strings.Cut(s, "#")
	name, value, ok := strings.Cut(s, ":")
	if !ok {
		return
	}
	value = strings.Trim(value, " \t")
	switch name = strings.ToLower(strings.Trim(name, " \t")); name {
	case "user-agent":
		p.grouped = true
		if p.ruled {
			p.open, p.ruled = [2]bool{}, false
		}
		switch {
		case value == "*" || strings.HasPrefix(value, "* ") || strings.HasPrefix(value, "*\t"):
			p.open[others] = true
		case p.token != "" && strings.EqualFold(productToken(value), p.token):
			p.open[own], p.named = true, true
		}
	case "allow":
		p.rule(robotsRule{allow: true, line: n, value: value})
	case "disallow":
		p.rule(robotsRule{line: n, value: value})
	case "sitemap":
		// Only a rule ends the User-agent lines of a group (section 2.2.4).
		if value != "" {
			p.sitemaps = append(p.sitemaps, value)
		}
	case "crawl-delay":
		d := crawlDelay(value)
		for i, open := range p.open {
			if open {
				p.groups[i].delay = max(p.groups[i].delay, d)
			}
		}
	default:
		if len(p.records) < maxOthers && name != "" && value != "" && len(name)+len(value) <= maxOther {
			record := RobotsRecord{strings.ToValidUTF8(name, "\ufffd"), strings.ToValidUTF8(value, "\ufffd"), n}
			p.records = append(p.records, robotsOther{record, p.open, !p.grouped || name == "license"})
		}
	}
}

func (p *robotsParser) rule(r robotsRule) {
	p.ruled = true
	if r.value == "" || p.open == [2]bool{} {
		return // the rule matches no path, or the group names no product
	}
	pattern, anchor := strings.CutSuffix(r.value, "$")
	r.pattern, r.anchor = normalTarget(pattern, true), anchor
	for i, open := range p.open {
		if open {
			p.groups[i].rules = append(p.groups[i].rules, r)
		}
	}
}

// crawlDelay parses seconds, with an optional fraction. Invalid values are 0.
func crawlDelay(s string) time.Duration {
	sec, err := strconv.ParseFloat(s, 64)
	if err != nil || !(sec > 0) { // sec > 0 is also false for NaN
		return 0
	}
	return time.Duration(min(sec, maxCrawlDelay.Seconds()) * float64(time.Second))
}

// productToken returns the name at the start of a User-Agent field, or of the value of a
// User-agent record: "millrace/1.2 (+https://…)" is "millrace". Unlike RFC 9309, section 2.2.1, it
// allows digits and dots, so that "bot2" differs from "bot".
func productToken(s string) string {
	end := strings.IndexFunc(s, func(c rune) bool {
		return c != '-' && c != '_' && c != '.' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
	if end < 0 {
		return s
	}
	return s[:end]
}

// Allowed reports whether the product may request target, the path and query of a URL as
// [net/url.URL.RequestURI] returns them. The longest matching pattern decides. If two have the same
// length, Allow takes precedence.
func (r *Robots) Allowed(target string) bool { return r.refusal(target) == nil }

// Rule returns the record that disallows a target and its line number, such as 4 and
// "Disallow: /private". It returns 0 and "" if the target is allowed.
func (r *Robots) Rule(target string) (line int, text string) {
	rule := r.refusal(target)
	if rule == nil {
		return 0, ""
	}
	value := strings.ToValidUTF8(rule.value, "\ufffd")
	if runes := []rune(value); len(runes) > 200 {
		value = string(runes[:200]) + "…"
	}
	value = strings.Map(func(c rune) rune {
		if !strconv.IsPrint(c) {
			return '\ufffd'
		}
		return c
	}, value)
	return rule.line, "Disallow: " + value
}

// CrawlDelay returns the minimum time between two requests that the site asks for, or 0. It is at
// most a minute, because a site that wants fewer than 60 requests an hour can use Disallow.
func (r *Robots) CrawlDelay() time.Duration {
	if r == nil {
		return 0
	}
	return r.delay
}

// Sitemaps returns the values of the Sitemap records unchanged, in their order. Most are absolute
// URLs. Some may be on other hosts or invalid.
func (r *Robots) Sitemaps() []string {
	if r == nil {
		return nil
	}
	return slices.Clone(r.sitemaps)
}

// Records returns the records of other kinds, in their order: those before all groups, those
// of the product's own groups, and every "license" record, since a license covers the whole
// site. At most 100 records of a file are stored, of up to 2,048 bytes each.
func (r *Robots) Records() []RobotsRecord {
	if r == nil {
		return nil
	}
	return slices.Clone(r.others)
}

// refusal returns the rule that disallows a target, or nil.
func (r *Robots) refusal(target string) *robotsRule {
	if r == nil || len(r.rules) == 0 {
		return nil
	}
	if target = normalTarget(target, false); target == "" {
		target = "/"
	}
	if target == robotsPath {
		return nil
	}
	for i := range r.rules {
		if rule := &r.rules[i]; rule.matches(target) {
			if rule.allow {
				return nil
			}
			return rule
		}
	}
	return nil
}

// matches reports whether the rule matches s. It takes the first match of each piece between
// wildcards, which is sufficient and takes linear time.
func (r *robotsRule) matches(s string) bool {
	piece, rest, more := strings.Cut(r.pattern, "*")
	if !strings.HasPrefix(s, piece) {
		return false
	}
	s = s[len(piece):]
	for more {
		piece, rest, more = strings.Cut(rest, "*")
		if !more && r.anchor {
			return strings.HasSuffix(s, piece)
		}
		i := strings.Index(s, piece)
		if i < 0 {
			return false
		}
		s = s[i+len(piece):]
	}
	return !r.anchor || s == ""
}

// normalTarget returns the normal form for comparing patterns and targets (section 2.2.2).
// Unreserved characters (RFC 3986, section 2.3) are decoded, reserved ones are unchanged, and
// all others are percent-encoded in upper case. '$' and, outside of patterns, '*' are encoded
// too, so that a literal one in a pattern differs from the operator.
func normalTarget(s string, pattern bool) string {
	clean := func(c byte) bool {
		return isUnreserved(c) || strings.IndexByte(":/?#[]@!&'()+,;=", c) >= 0 || pattern && c == '*'
	}
	i := 0
	for i < len(s) && clean(s[i]) {
		i++
	}
	if i == len(s) {
		return s
	}
	const hex = "0123456789ABCDEF"
	out := append(make([]byte, 0, len(s)+16), s[:i]...)
	for ; i < len(s); i++ {
		c := s[i]
		if clean(c) {
			out = append(out, c)
			continue
		}
		if c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]) {
			c = unhex(s[i+1])<<4 | unhex(s[i+2])
			i += 2
			if isUnreserved(c) {
				out = append(out, c)
				continue
			}
		}
		out = append(out, '%', hex[c>>4], hex[c&15])
	}
	return string(out)
}

func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&7 + 9
}

// Fingerprint identifies the rules for the product. The rest of the file and the order of rules of
// different lengths do not change it. It is "" if there are no rules.
func (r *Robots) Fingerprint() string {
	if r == nil || len(r.rules) == 0 {
		return ""
	}
	h := fnv.New64a()
	for _, rule := range r.rules {
		_, _ = fmt.Fprintf(h, "%t %t %q\n", rule.allow, rule.anchor, rule.pattern)
	}
	return strconv.FormatUint(h.Sum64(), 36)
}
