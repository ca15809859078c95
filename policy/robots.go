package policy

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
)

// Robots writes a policy to robots.txt. A nil Robots writes nothing. Robots is safe for concurrent
// use.
//
// The file contains the site's own lines and the lines of the policy and of the protocols. The
// site's own lines stay unchanged unless the policy is stricter:
//
//   - every group contains the usage rules, because a crawler reads only one group;
//   - crawlers for refused purposes have one group, which blocks everything, and are removed from
//     all other groups, because a rule that allows takes precedence over another one of equal
//     length (RFC 9309, section 2.2.2);
//   - a group's own usage rules and delays stay if they are stricter.
type Robots struct {
	says    preferences
	refused map[string]bool // lower-case product tokens of the crawlers for refused purposes
	tokens  []string        // the same product tokens in their original case and order
	delay   float64         // seconds between two requests, or 0
	lines   RobotsLines
}

// RobotsLines selects the lines of a policy in robots.txt. Validators of robots.txt report unknown
// lines as errors, so the zero value omits Content-Usage and License. If a group already has a
// Content-Signal or Content-Usage line that would be omitted, the line stays and is merged with the
// policy.
type RobotsLines struct {
	NoSignal bool // omit Content-Signal
	Usage    bool // write Content-Usage
	License  bool // write License (RSL)
}

// RobotsOptions are the options of [NewRobots]. The zero value is valid.
type RobotsOptions struct {
	// Crawlers returns the product tokens of the crawlers for a purpose. If Crawlers is nil, no
	// crawlers are known.
	Crawlers func(millrace.Purpose) []string
	Refused  []string // product tokens of crawlers that are always refused
	Lines    RobotsLines
}

// NewRobots returns the policy for robots.txt, or nil if it has no rules.
func NewRobots(p *millrace.Policy, o *RobotsOptions) *Robots {
	u := &Robots{refused: make(map[string]bool), lines: o.Lines}
	if p != nil {
		u.says = p.Purposes
		if r := p.Rate.PerSecond; r > 0 && r <= 1 {
			u.delay = math.Ceil(1 / r)
		}
	}
	for _, w := range purposes {
		if o.Crawlers != nil && p.Refuses(w.purpose) {
			u.refuse(slices.DeleteFunc(slices.Clone(o.Crawlers(w.purpose)), p.Approves))
		}
	}
	u.refuse(o.Refused)
	if len(u.says) == 0 && u.delay == 0 && len(u.tokens) == 0 {
		return nil
	}
	return u
}

// refuse adds product tokens to the refused crawlers.
func (u *Robots) refuse(tokens []string) {
	for _, token := range tokens {
		if lower := strings.ToLower(token); !u.refused[lower] {
			u.refused[lower] = true
			u.tokens = append(u.tokens, token)
		}
	}
}

// RobotsNames contains the names of the records that restrict readers.
var RobotsNames = protocol.MemberNames{Purposes: map[millrace.Purpose]string{
	millrace.AIInput: "ai-input of Content-Signal or ai-use of Content-Usage", millrace.AITrain: "ai-train of Content-Signal or Content-Usage",
	millrace.Search: "search of Content-Signal or Content-Usage",
}}

// record is one line of a robots.txt.
type record struct {
	name, value string // name in lower case and value; "" if the line is not a record
	text        string // original line
}

// parseRecords splits a robots.txt into lines.
func parseRecords(text string) []record {
	var out []record
	for line := range strings.Lines(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)) {
		line = strings.TrimSuffix(line, "\n")
		content, _, _ := strings.Cut(line, "#")
		name, value, ok := strings.Cut(content, ":")
		if !ok { // some crawlers accept a record without a colon
			if words := strings.Fields(content); len(words) == 2 {
				name, value, ok = words[0], words[1], true
			}
		}
		r := record{text: line}
		if ok {
			r.name, r.value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
			if r.name == "useragent" || r.name == "user agent" {
				r.name = recordAgent
			}
		}
		out = append(out, r)
	}
	return out
}

const recordAgent = "user-agent"

// usageRules contains the usage rules in the groups of a crawler.
type usageRules struct {
	says          preferences
	other         []string // values of Content-Usage, for preferences about unknown purposes
	delay         float64  // seconds between two requests, or 0
	signal, usage bool     // whether a group contains Content-Signal or Content-Usage
}

// appliesToFile reports whether a record applies to the whole file, even inside a group.
func (r record) appliesToFile() bool { return r.name == "" || r.name == "sitemap" || r.name == "host" }

// token returns the product token of a User-agent record in lower case. It ignores a version, a
// comment and further crawlers, as crawlers do.
func (r record) token() string {
	if r.value == "*" || strings.HasPrefix(r.value, "* ") {
		return "*"
	}
	end := strings.IndexFunc(r.value, func(c rune) bool {
		return c != '-' && c != '_' && c != '.' && !unicode.IsLetter(c) && !unicode.IsDigit(c)
	})
	if end < 0 {
		end = len(r.value)
	}
	return strings.ToLower(r.value[:end])
}

// collectRules collects the usage rules for each crawler.
func collectRules(records []record) map[string]*usageRules {
	say := make(map[string]*usageRules)
	var agents []string
	inRules := false
	for _, r := range records {
		if r.name == recordAgent {
			if inRules {
				agents, inRules = nil, false
			}
			agents = append(agents, r.token())
			if say[r.token()] == nil {
				say[r.token()] = new(usageRules)
			}
			continue
		}
		inRules = inRules || !r.appliesToFile()
		for _, a := range agents {
			say[a].add(r)
		}
	}
	return say
}

// add adds a record of a group to the usage rules.
func (own *usageRules) add(r record) {
	switch r.name {
	case "content-signal", "content-usage":
		own.says = own.says.merge(ReadSignals(r.value))
		own.signal, own.usage = own.signal || r.name == "content-signal", own.usage || r.name == "content-usage"
		if r.name == "content-usage" && !strings.HasPrefix(r.value, "/") { // the record applies to the whole site
			own.other = append(own.other, r.value)
		}
	case "crawl-delay":
		if d, err := strconv.ParseFloat(r.value, 64); err == nil && d > own.delay && !math.IsInf(d, 0) {
			own.delay = d
		}
	}
}

// merge merges the usage rules of two groups.
func (own *usageRules) merge(o *usageRules) *usageRules {
	out := &usageRules{own.says.merge(o.says), slices.Clone(own.other), max(own.delay, o.delay), own.signal || o.signal, own.usage || o.usage}
	for _, v := range o.other {
		if !slices.Contains(out.other, v) {
			out.other = append(out.other, v)
		}
	}
	return out
}

// Write returns a robots.txt with the policy added to each group.
func (u *Robots) Write(text string) string {
	if u == nil {
		return text
	}
	records := parseRecords(text)
	say := collectRules(records)
	var b strings.Builder
	var own *usageRules // rules of the crawlers in the current User-agent lines; nil if they have no rules or the rules were written
	named, live := false, false
	inRules := false // the current group already contains a rule
	flush := func() {
		if own != nil {
			b.WriteString(u.group(own))
			own = nil
		}
	}
	for _, r := range records {
		switch {
		case r.name == recordAgent:
			if inRules {
				live, inRules = false, false
			}
			named = true
			if u.refused[r.token()] {
				b.WriteString("# " + r.text + " (refused below)\n")
				continue
			}
			live = true
			if own == nil {
				own = new(usageRules)
			}
			own = own.merge(say[r.token()])
			b.WriteString(r.text + "\n")
		case r.appliesToFile():
			b.WriteString(r.text + "\n")
		default:
			flush()
			// Only these two records end a list of User-agent lines (RFC 9309, section 2.2.4).
			inRules = inRules || r.name == "allow" || r.name == "disallow"
			if named && !live {
				b.WriteString("# " + r.text + "\n") // a comment, because the record would otherwise belong to the previous group
			} else {
				b.WriteString(u.rule(r))
			}
		}
	}
	flush()
	if say["*"] == nil {
		blankLine(&b)
		b.WriteString("User-agent: *\n" + u.group(new(usageRules)) + "Disallow:\n")
	}
	if len(u.tokens) == 0 {
		return b.String()
	}
	blankLine(&b)
	b.WriteString("# The policy of this site refuses what these crawlers do.\n")
	all := new(usageRules)
	for _, token := range u.tokens {
		b.WriteString("User-agent: " + token + "\n")
		if o := say[strings.ToLower(token)]; o != nil {
			all = all.merge(o)
		}
	}
	b.WriteString(u.group(all) + "Disallow: /\n")
	return b.String()
}

// group returns the records of the policy for a group, merged with the group's own rules.
func (u *Robots) group(own *usageRules) string {
	var b strings.Builder
	if signal, usage := u.says.merge(own.says).fieldValues(); signal != "" {
		if !u.lines.NoSignal || own.signal {
			b.WriteString(fieldSignal + ": " + signal + "\n")
		}
		if u.lines.Usage || own.usage {
			b.WriteString(fieldUsage + ": " + usage + unknown(own.other...) + "\n")
		}
	}
	if delay := max(u.delay, own.delay); delay > 0 {
		b.WriteString("Crawl-delay: " + strconv.FormatFloat(delay, 'f', -1, 64) + "\n")
	}
	return b.String()
}

// rule returns a record of a group as it is written. It returns "" for a delay and for a usage rule
// that applies to the whole site, because group writes both. A usage rule for a part of the site
// cannot allow a refused purpose.
func (u *Robots) rule(r record) string {
	switch {
	case r.name == "crawl-delay":
		return ""
	case len(u.says) == 0 || r.name != "content-signal" && r.name != "content-usage":
		return r.text + "\n"
	case !strings.HasPrefix(r.value, "/"):
		return ""
	}
	path, list, _ := strings.Cut(r.value, " ")
	signal, usage := u.says.merge(ReadSignals(list)).fieldValues()
	if r.name == "content-signal" {
		return fieldSignal + ": " + path + " " + signal + "\n"
	}
	return fieldUsage + ": " + path + " " + usage + unknown(list) + "\n"
}

// blankLine ends a paragraph with an empty line.
func blankLine(b *strings.Builder) {
	if s := b.String(); s != "" && !strings.HasSuffix(s, "\n\n") {
		b.WriteString("\n")
	}
}
