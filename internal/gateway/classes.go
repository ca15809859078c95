package gateway

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/bots"
)

// Do is what becomes of the requests of a class.
type Do int

// What can become of a request.
const (
	Allow  Do = iota // it is answered
	Limit            // so many a second are answered, others get 429
	Pay              // 402: the content is for those who pay
	Forbid           // 403
)

// Classes that are no names of the table.
const (
	ClassBots       = "bots"       // whoever says that it is a bot
	ClassUnverified = "unverified" // a bot of which nothing shows that it is the one it says
)

// Rule says what becomes of the requests of one class of bots.
type Rule struct {
	// Name is a token of a user agent, a host whose keys sign requests, a family,
	// a purpose, [ClassBots] or [ClassUnverified], in any case.
	Name string
	Do   Do
	Rate float64 // of Limit: requests a second, above zero
}

// ParseRule reads a rule of the form NAME=DO, where DO is allow, 402, 403, or a
// rate such as 2/s. An error wraps [millrace.ErrInvalid].
func ParseRule(s string) (Rule, error) {
	name, do, ok := strings.Cut(s, "=")
	r := Rule{Name: strings.TrimSpace(name)}
	do = strings.TrimSpace(do)
	number, rate := strings.CutSuffix(do, "/s")
	switch {
	case !ok || r.Name == "":
		return r, fmt.Errorf("%q: %w: write NAME=DO, such as training=403 or GPTBot=2/s", s, millrace.Coded("rule-form", millrace.ErrInvalid))
	case do == "allow":
	case do == "402":
		r.Do = Pay
	case do == "403":
		r.Do = Forbid
	case rate:
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !(n >= leastRate) || math.IsInf(n, 0) {
			return r, millrace.Coded("rule-rate", fmt.Errorf("%q: %w: %q is no rate from %v/s on, such as 2/s", s, millrace.ErrInvalid, do, leastRate))
		}
		r.Do, r.Rate = Limit, n
	default:
		return r, millrace.Coded("rule-action", fmt.Errorf("%q: %w: %q is none of allow, 402, 403 and a rate such as 2/s", s, millrace.ErrInvalid, do))
	}
	return r, nil
}

// leastRate is one request in a quarter of an hour.
const leastRate = 0.001

// rule is a Rule at work.
type rule struct {
	Rule
	quota *quota // of Limit
}

// classes knows what becomes of whom.
type classes struct {
	table      *bots.Table
	byBot      map[*bots.Bot]*rule // the most specific rule of each
	bots       *rule               // nil = none
	unverified *rule               // nil = none
	hosts      map[string]*rule    // of signatures
}

// byPolicy gives the rules that a policy stands for: whoever comes for what it
// refuses is refused, or asked to pay where it names a price.
func byPolicy(p *millrace.Policy) []Rule {
	if p == nil {
		return nil
	}
	do := Forbid
	if p.Payment != "" {
		do = Pay
	}
	var out []Rule
	for _, purpose := range []bots.Purpose{bots.Training, bots.Search, bots.User} {
		if allowed, said := p.Purposes[purpose.Of()]; said && !allowed {
			out = append(out, Rule{Name: string(purpose), Do: do})
		}
	}
	return out
}

// newClasses compiles rules; nil = there are none, and everybody is answered.
// What a policy refuses no rule can allow, except to those that it names
// itself. number is that of the first quota.
func newClasses(table *bots.Table, rules []Rule, p *millrace.Policy, number int) (*classes, error) {
	refused := byPolicy(p)
	if table == nil || len(rules)+len(refused) == 0 {
		if len(rules) > 0 {
			return nil, fmt.Errorf("rules for bots: %w: there is no table of bots", millrace.Coded("no-bots", millrace.ErrInvalid))
		}
		return nil, nil
	}
	c := &classes{table: table, byBot: make(map[*bots.Bot]*rule), hosts: make(map[string]*rule)}
	approved := func(b *bots.Bot) bool {
		return p != nil && slices.ContainsFunc(p.Consumers, func(name string) bool { return strings.EqualFold(name, b.Token) })
	}
	// From the least specific to the most, so that the last one counts.
	bySpecificity := make([][]*rule, 4)
	seen := make(map[string]bool)
	for _, r := range rules {
		lower := strings.ToLower(r.Name)
		if seen[lower] {
			return nil, fmt.Errorf("rule for %s: %w: there are two", r.Name, millrace.Coded("rule-twice", millrace.ErrInvalid))
		}
		seen[lower] = true
		at := &rule{Rule: r}
		if r.Do == Limit {
			at.quota = newQuota(number, lower, r.Rate)
			number++
		}
		switch named := table.Named(r.Name); {
		case lower == ClassBots:
			c.bots = at
		case lower == ClassUnverified:
			c.unverified = at
		case named == nil && table.Agent(lower) == nil && !strings.Contains(lower, "."):
			return nil, fmt.Errorf("rule for %s: %w: no bot, family or purpose has this name", r.Name, millrace.Coded("unknown-bot", millrace.ErrInvalid))
		case named == nil:
			c.hosts[lower] = at
		case len(named) == 1 && named[0].RobotsOnly && strings.EqualFold(named[0].Token, lower):
			return nil, fmt.Errorf("rule for %s: %w: no request has this name, only robots.txt knows it; refuse its purpose by the policy, ai-train for training",
				r.Name, millrace.Coded("robots-only", millrace.ErrInvalid))
		default:
			level := 3
			switch {
			case strings.EqualFold(string(named[0].Purpose), lower):
				level = 1
			case strings.EqualFold(named[0].Family, lower) && !strings.EqualFold(named[0].Token, lower) && !strings.EqualFold(named[0].Name, lower):
				level = 2
			}
			bySpecificity[level] = append(bySpecificity[level], at)
		}
	}
	for _, level := range bySpecificity {
		for _, at := range level {
			for _, b := range table.Named(at.Name) {
				c.byBot[b] = at
			}
		}
	}
	for b := range table.All() {
		if c.byBot[b] == nil && c.bots != nil {
			c.byBot[b] = c.bots
		}
	}
	for _, r := range refused {
		at := &rule{Rule: r}
		for _, b := range table.Named(r.Name) {
			own := c.byBot[b]
			switch {
			case approved(b) || b.Of() == "":
			case own == nil || own == c.bots:
				c.byBot[b] = stricter(own, at)
			case own.Do < at.Do && (own.Do == Allow || own.Do == Limit):
				return nil, millrace.Coded("policy-refuses", fmt.Errorf("rule for %s: %w: the policy refuses %s, which %s comes for; name %s under consumers of the policy to let it in",
					own.Name, millrace.ErrInvalid, b.Of(), b.Token, b.Token))
			}
		}
	}
	return c, nil
}

// refused gives the tokens of those who are turned away.
func (c *classes) refused() (tokens []string) {
	if c == nil {
		return nil
	}
	for b := range c.table.All() {
		if at := c.byBot[b]; at != nil && at.Do >= Pay {
			tokens = append(tokens, b.Token)
		}
	}
	return tokens
}

// refuse has robots.txt say the same of these tokens. u may be nil.
func (u *usage) refuse(tokens []string) *usage {
	if len(tokens) > 0 && u == nil {
		u = &usage{refused: make(map[string]bool)}
	}
	for _, token := range tokens {
		if lower := strings.ToLower(token); !u.refused[lower] {
			u.refused[lower] = true
			u.tokens = append(u.tokens, token)
		}
	}
	return u
}

// CheckRules says what is wrong with rules: names that nobody has, two rules for
// one name, and what would let in whom the policy refuses. table is that of
// the names; the policy may be nil. Errors wrap [millrace.ErrInvalid].
func CheckRules(table *bots.Table, rules []Rule, p *millrace.Policy) error {
	_, err := newClasses(table, rules, p, quotaClasses)
	return err
}

// stricter gives the rule that lets less through; nil is no rule.
func stricter(a, b *rule) *rule {
	switch {
	case a == nil:
		return b
	case b == nil || a.Do > b.Do:
		return a
	case a.Do == b.Do && (a.Do != Limit || a.Rate <= b.Rate):
		return a
	}
	return b
}

// of gives the rule for somebody; nil = there is none.
func (c *classes) of(id identity) *rule {
	r := c.byBot[id.bot]
	if id.bot == bots.Other {
		r = c.bots
	}
	if id.agent != "" {
		if own := c.hosts[id.agent]; own != nil {
			if id.verdict == bots.Forged {
				own = stricter(r, own)
			}
			r = own
		}
	}
	if id.verdict != bots.Verified {
		r = stricter(r, c.unverified)
	}
	if id.verdict == bots.Forged {
		// A name that is not its own is no advantage.
		r = stricter(r, c.bots)
	}
	return r
}

// let lets a request in, or answers what its class gets. Whoever has a key is
// of no class. What says who may do what is there for everybody.
func (g *Gateway) let(w *response, r *http.Request) bool {
	if g.guard.classes == nil || g.saysWho(r) {
		return true
	}
	id := w.identify()
	if id.bot == nil {
		return true
	}
	at := g.guard.classes.of(id)
	if at == nil || at.Do == Allow {
		return true
	}
	if r.Header["Authorization"] != nil {
		if _, err := w.may(millrace.ScopeRead); err == nil || w.key != nil {
			return true
		}
	}
	if at.Do == Limit {
		c := client{bot: id.bot.Token}
		if id.agent != "" {
			c.bot = id.agent
		}
		if id.verdict == bots.Forged || c.bot == "" {
			c = w.network() // whose quota it would use up is not known
		}
		err := w.count(at.quota, c)
		if err == nil {
			return true
		}
		g.guess(w, r)
		g.fail(w, r, err)
		return false
	}
	g.guess(w, r)
	g.turnAway(w, r, id, at)
	return false
}

// saysWho reports whether a request is for what tells machines what they may
// have, or whose keys sign here.
func (g *Gateway) saysWho(r *http.Request) bool {
	path := r.URL.Path
	if g.docs != "" {
		if rest, ok := strings.CutPrefix(path, g.docs); ok && strings.HasPrefix(rest, "/") {
			path = rest
		}
	}
	switch path {
	case "/robots.txt", "/license.xml", "/llm-policy.json", "/.well-known/arc-policy.json", "/.well-known/http-message-signatures-directory":
		return true
	}
	return false
}
