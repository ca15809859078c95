package robots

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
)

// Terms is what a site's policy says, in the words of robots.txt and of header
// fields. It is made once, and not changed.
type Terms struct {
	signal  []string // the value of Content-Signal; nil = there is none
	usage   []string // the value of Content-Usage
	allowed map[millrace.Purpose]bool
	refused map[string]bool // product tokens, in lower case, of those who come for what is refused
	tokens  []string        // the same, as they are written, in order
	delay   int             // seconds between two requests; 0 = nothing is said
}

// purposes are the words for each purpose, in the order in which they are
// written: those of Content-Signal, which are those of the vocabulary, and
// those of Content-Usage (draft-ietf-aipref-vocab, where answering has no word
// of its own yet, and a word that a reader does not know says nothing to it).
var purposes = []purposeName{{millrace.Search, "search"}, {millrace.AIInput, "ai-input"}, {millrace.AITrain, "train-ai"}}

// purposeName is a purpose with its name in Content-Usage.
type purposeName struct {
	purpose millrace.Purpose
	usage   string
}

// New returns what a policy says, nil if that is nothing. crawlers, which may be
// nil, gives the product tokens of the crawlers for a purpose. refused are the tokens
// of crawlers that are refused whatever the policy says.
func New(p *millrace.Policy, crawlers func(millrace.Purpose) []string, refused []string) *Terms {
	u := &Terms{refused: make(map[string]bool)}
	u.say(p, crawlers)
	for _, token := range refused {
		u.refuse(token)
	}
	if u.signal == nil && u.delay == 0 && len(u.tokens) == 0 {
		return nil
	}
	return u
}

// refuse adds a product token to those that are refused.
func (u *Terms) refuse(token string) {
	if lower := strings.ToLower(token); !u.refused[lower] {
		u.refused[lower] = true
		u.tokens = append(u.tokens, token)
	}
}

// say takes a policy in.
func (u *Terms) say(p *millrace.Policy, crawlers func(millrace.Purpose) []string) {
	if p == nil {
		return
	}
	u.allowed = p.Purposes
	for _, w := range purposes {
		if yes, said := p.Purposes[w.purpose]; !said || yes || crawlers == nil {
			continue
		}
		for _, token := range crawlers(w.purpose) {
			if !slices.ContainsFunc(p.Consumers, func(c string) bool { return strings.EqualFold(c, token) }) {
				u.refuse(token)
			}
		}
	}
	if r := p.Rate.PerSecond; r > 0 && r <= 1 {
		u.delay = int(math.Ceil(1 / r))
	}
	if s := u.words(nil); s.signal != "" {
		u.signal, u.usage = []string{s.signal}, []string{s.usage}
	}
}

// words are the values of the two fields.
type words struct{ signal, usage string }

// words gives what the policy says and what is said beside: the stricter
// counts.
func (u *Terms) words(own preferences) words {
	var signal, use []string
	for _, w := range purposes {
		yes, said := u.allowed[w.purpose]
		too, saidToo := own[w.purpose]
		switch {
		case said && !yes || saidToo && !too:
			signal, use = append(signal, string(w.purpose)+"=no"), append(use, w.usage+"=n")
		case said || saidToo:
			signal, use = append(signal, string(w.purpose)+"=yes"), append(use, w.usage+"=y")
		}
	}
	return words{strings.Join(signal, ", "), strings.Join(use, ", ")}
}

// Preferences gives what lists of Content-Signal or Content-Usage say, such as
// "search=yes, ai-train=no" or "train-ai=n": of each purpose that they name
// whether it is allowed. What one of them refuses is refused.
func Preferences(lists ...string) map[millrace.Purpose]bool {
	p := make(preferences)
	for _, list := range lists {
		p.add(list)
	}
	return p
}

// preferences are what somebody else says of purposes.
type preferences map[millrace.Purpose]bool

// add takes in a list such as "search=yes, ai-train=no", in the words of either
// field. What has been refused stays so.
func (p preferences) add(list string) {
	for pref := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(pref)), "=")
		value, _, _ = strings.Cut(value, ";") // parameters
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		no := value == "no" || value == "n"
		for _, w := range purposes {
			if was, said := p[w.purpose]; (name == string(w.purpose) || name == w.usage) && (no || value == "yes" || value == "y") {
				p[w.purpose] = !no && (was || !said)
			}
		}
	}
}

// Names of the header fields, which are those of the records of robots.txt.
const (
	fieldSignal = "Content-Signal"
	fieldUsage  = "Content-Usage"
)

// SetFields puts what the policy says into the header of a response. What the
// response says itself counts where it is stricter.
func (u *Terms) SetFields(h http.Header) {
	if u.signal == nil {
		return
	}
	if h[fieldSignal] == nil && h[fieldUsage] == nil {
		h[fieldSignal], h[fieldUsage] = u.signal, u.usage
		return
	}
	w := u.words(Preferences(slices.Concat(h[fieldSignal], h[fieldUsage])...))
	h[fieldSignal], h[fieldUsage] = []string{w.signal}, []string{w.usage + unknown(h[fieldUsage])}
}

// unknown gives the preferences of a field that have other words, as they are.
func unknown(lines []string) string {
	var b strings.Builder
	for pref := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		pref = strings.TrimSpace(pref)
		name, _, _ := strings.Cut(pref, "=")
		known := slices.ContainsFunc(purposes, func(w purposeName) bool { return strings.EqualFold(name, w.usage) })
		if pref != "" && !known {
			b.WriteString(", " + pref)
		}
	}
	return b.String()
}

// group gives the records of a group in robots.txt that say what the policy
// says, with what the group says itself.
func (u *Terms) group(own *ownWords) string {
	var b strings.Builder
	w := u.words(own.says)
	if w.signal != "" {
		b.WriteString(fieldSignal + ": " + w.signal + "\n")
		b.WriteString(fieldUsage + ": " + w.usage + unknown(own.other) + "\n")
	}
	delay := float64(u.delay)
	if delay = max(delay, own.delay); delay > 0 {
		b.WriteString("Crawl-delay: " + strconv.FormatFloat(delay, 'f', -1, 64) + "\n")
	}
	return b.String()
}
