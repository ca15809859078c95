package access

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/bots"
)

// Action says what happens to requests from a class of bots.
type Action int

// Actions.
const (
	Allow           Action = iota // allow all requests
	Limit                         // allow a number of requests per second; others get 429
	PaymentRequired               // respond with 402: the content has a price
	Forbid                        // respond with 403
)

// Names of classes that the table of bots does not contain.
const (
	ClassBots       = "bots"       // any client that identifies itself as a bot
	ClassUnverified = "unverified" // a bot without proof of its name
)

// Rule is the action for one class of bots.
type Rule struct {
	// Name is a token of a user agent, a host whose keys sign requests, a family, a purpose,
	// [ClassBots] or [ClassUnverified]. Names are case-insensitive.
	Name   string
	Action Action
	Rate   float64 // requests per second for Limit; above zero
}

// ParseRule parses a rule of the form NAME=ACTION. ACTION is allow, 402, 403, or a rate such
// as 2/s. An error wraps [millrace.ErrInvalid].
func ParseRule(s string) (Rule, error) {
	name, do, ok := strings.Cut(s, "=")
	r := Rule{Name: strings.TrimSpace(name)}
	do = strings.TrimSpace(do)
	number, rate := strings.CutSuffix(do, "/s")
	switch {
	case !ok || r.Name == "":
		return r, fmt.Errorf("%q: %w: want NAME=ACTION, such as training=403 or GPTBot=2/s", s, millrace.Coded("rule-form", millrace.ErrInvalid))
	case do == "allow":
	case do == "402":
		r.Action = PaymentRequired
	case do == "403":
		r.Action = Forbid
	case rate:
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !(n >= minRate) || math.IsInf(n, 0) {
			return r, millrace.Coded("rule-rate", fmt.Errorf("%q: %w: invalid rate %q, want at least %v/s, such as 2/s", s, millrace.ErrInvalid, do, minRate))
		}
		r.Action, r.Rate = Limit, n
	default:
		return r, millrace.Coded("rule-action", fmt.Errorf("%q: %w: unknown action %q; use allow, 402, 403 or a rate such as 2/s", s, millrace.ErrInvalid, do))
	}
	return r, nil
}

// minRate is the minimum rate, about one request per quarter of an hour.
const minRate = 0.001

// rule is a compiled Rule.
type rule struct {
	Rule
	quota *quota // quota for Limit
}

// botRules is an index of rules by bot.
type botRules struct {
	table      *bots.Table
	byBot      map[*bots.Bot]*rule // the most specific rule of each bot
	bots       *rule               // rule for ClassBots, or nil
	unverified *rule               // rule for ClassUnverified, or nil
	hosts      map[string]*rule    // rules by the host of the signature
}

// byPolicy returns the rules of a policy. Bots of a refused purpose get 403, or 402 if the
// policy has a price.
func byPolicy(p *millrace.Policy) []Rule {
	if p == nil {
		return nil
	}
	do := Forbid
	if p.Payment != "" {
		do = PaymentRequired
	}
	var out []Rule
	for _, purpose := range []bots.Purpose{bots.Training, bots.Search, bots.User} {
		if p.Refuses(purpose.Of()) {
			out = append(out, Rule{Name: string(purpose), Action: do})
		}
	}
	return out
}

// newBotRules compiles rules. It returns nil if all bots are allowed. Rules cannot allow requests
// that the policy refuses, except for bots that the policy names. The first quota gets the given
// number.
func newBotRules(table *bots.Table, rules []Rule, p *millrace.Policy, number int) (*botRules, error) {
	refused := byPolicy(p)
	if table == nil || len(rules)+len(refused) == 0 {
		if len(rules) > 0 {
			return nil, fmt.Errorf("rules for bots: %w: no table of bots", millrace.Coded("no-bots", millrace.ErrInvalid))
		}
		return nil, nil
	}
	c := &botRules{table: table, byBot: make(map[*bots.Bot]*rule), hosts: make(map[string]*rule)}
	// The least specific rules come first, so that more specific ones overwrite them.
	bySpecificity := make([][]*rule, 4)
	seen := make(map[string]bool)
	for _, r := range rules {
		lower := strings.ToLower(r.Name)
		if seen[lower] {
			return nil, fmt.Errorf("rule for %s: %w: duplicate rule", r.Name, millrace.Coded("rule-duplicate", millrace.ErrInvalid))
		}
		seen[lower] = true
		at := &rule{Rule: r}
		if r.Action == Limit {
			at.quota = newQuota(number, lower, r.Rate)
			number++
		}
		switch named := table.Named(r.Name); {
		case lower == ClassBots:
			c.bots = at
		case lower == ClassUnverified:
			c.unverified = at
		case named == nil && table.Agent(lower) == nil && !strings.Contains(lower, "."):
			return nil, fmt.Errorf("rule for %s: %w: unknown bot, family or purpose", r.Name, millrace.Coded("unknown-bot", millrace.ErrInvalid))
		case named == nil:
			c.hosts[lower] = at
		case len(named) == 1 && named[0].RobotsOnly && strings.EqualFold(named[0].Token, lower):
			return nil, fmt.Errorf("rule for %s: %w: the name is used only in robots.txt; refuse its purpose in the policy, such as ai-train",
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
			case p.Approves(b.Token) || b.Of() == "":
			case own == nil || own == c.bots:
				c.byBot[b] = stricter(own, at)
			case own.Action < at.Action && (own.Action == Allow || own.Action == Limit):
				return nil, millrace.Coded("policy-refuses", fmt.Errorf("rule for %s: %w: the policy refuses %s, the purpose of %s; to allow it, add %s to the policy's consumers",
					own.Name, millrace.ErrInvalid, b.Of(), b.Token, b.Token))
			}
		}
	}
	return c, nil
}

// RefusedBots returns the product tokens of refused bots.
func (g *Guard) RefusedBots() (tokens []string) {
	c := g.botRules
	if c == nil {
		return nil
	}
	for b := range c.table.All() {
		if at := c.byBot[b]; at != nil && at.Action >= PaymentRequired {
			tokens = append(tokens, b.Token)
		}
	}
	return tokens
}

// CheckRules returns errors in rules: unknown names, duplicate rules for a name, and rules that
// allow requests that the policy refuses. The policy may be nil. Errors wrap [millrace.ErrInvalid].
func CheckRules(table *bots.Table, rules []Rule, p *millrace.Policy) error {
	_, err := newBotRules(table, rules, p, quotaClasses)
	return err
}

// stricter returns the rule that allows fewer requests. nil means no rule.
func stricter(a, b *rule) *rule {
	switch {
	case a == nil:
		return b
	case b == nil || a.Action > b.Action:
		return a
	case a.Action == b.Action && (a.Action != Limit || a.Rate <= b.Rate):
		return a
	}
	return b
}

// of returns the rule of a sender, or nil if none.
func (c *botRules) of(id Identity) *rule {
	r := c.byBot[id.Bot]
	if id.Bot == bots.Other {
		r = c.bots
	}
	if id.Agent != "" {
		if own := c.hosts[id.Agent]; own != nil {
			if id.Identification == bots.Forged {
				own = stricter(r, own)
			}
			r = own
		}
	}
	if id.Identification != bots.Verified {
		r = stricter(r, c.unverified)
	}
	if id.Identification == bots.Forged {
		// A false name must not bypass the rule for all bots.
		r = stricter(r, c.bots)
	}
	return r
}

// RefusedBot is the error for a request that a bot rule refuses.
type RefusedBot struct {
	Rule
	Identity
	Detail string // description for people, in one sentence
}

// Error implements error.
func (e *RefusedBot) Error() string { return e.Detail }

// CheckBot returns an error if a rule refuses the bot that sent the request: a [*RefusedBot], or
// the error for too many requests. Rules do not apply to requests with a valid key.
func (q *Request) CheckBot() error {
	g := q.guard
	if g.botRules == nil {
		return nil
	}
	id := q.Verify()
	if id.Bot == nil {
		return nil
	}
	at := g.botRules.of(id)
	if at == nil || at.Action == Allow {
		return nil
	}
	if q.r.Header["Authorization"] != nil {
		if _, err := q.may(millrace.ScopeRead); err == nil || q.key != nil {
			return nil
		}
	}
	if at.Action == Limit {
		c := Client{bot: id.Bot.Token}
		if id.Agent != "" {
			c.bot = id.Agent
		}
		if id.Identification == bots.Forged || c.bot == "" {
			c = q.network() // a forged name must not use up the quota of the genuine bot
		}
		return q.count(at.quota, c)
	}
	e := &RefusedBot{Rule: at.Rule, Identity: id, Detail: "this site refuses "}
	if at.Action == PaymentRequired {
		e.Detail = "this site requires payment from "
	}
	if e.Detail += describeBots(id, at); at.Name == ClassUnverified || id.Identification == bots.Forged && at == g.botRules.bots {
		e.Detail += "; sign your requests, or use an address that your operator publishes"
	}
	return e
}

// describeBots describes the bots of a rule in words.
func describeBots(id Identity, at *rule) string {
	switch name := strings.ToLower(at.Name); {
	case name == ClassBots:
		return "bots"
	case name == ClassUnverified:
		return "unverified bots"
	case name == string(bots.Training):
		return "bots that collect training data"
	case name == string(bots.Search):
		return "bots of search engines"
	case name == string(bots.User):
		return "bots that fetch pages for a user's question"
	case name == id.Bot.Family:
		return "the bots of " + id.Bot.Family
	}
	return at.Name
}
