// Package bots identifies the bots that visit sites by their user agents. Its table contains
// the operator and the purpose of each bot.
//
// Any client can send any user agent. If the published addresses of an operator are
// configured, [Table.Verify] therefore checks the client's address against them. Another
// package verifies signatures.
package bots

import (
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/millrace/millrace"
)

// Purpose is the purpose for which a bot fetches pages.
type Purpose string

// Purposes of bots.
const (
	Training Purpose = "training" // to train a model, or to sell the pages for training
	Search   Purpose = "search"   // to index the pages
	User     Purpose = "user"     // because a user requested the page, or asked about it
)

// Of returns the purpose in the policy that corresponds to p.
func (p Purpose) Of() millrace.Purpose {
	switch p {
	case Training:
		return millrace.AITrain
	case Search:
		return millrace.Search
	case User:
		return millrace.AIInput
	}
	return ""
}

// Bot is one bot, or one name in robots.txt.
type Bot struct {
	Token   string // product token, in User-Agent and robots.txt, such as "GPTBot"
	Name    string // display name; usually the token
	Family  string // operator of the bot, such as "openai"
	Purpose Purpose
	Agents  []string // hosts in the Signature-Agent field of its signed requests
	Ranges  string   // URL of its published addresses, or ""
	// RobotsOnly reports whether the token is only for robots.txt, where it controls the use of
	// pages that another bot fetches.
	RobotsOnly bool
	// People reports whether people read the pages, unchanged or as a link preview, without a
	// model.
	People bool

	index int // index in Table.bots
}

// Of returns the purpose in the policy for a bot, or "" if people read the pages that it fetches.
func (b *Bot) Of() millrace.Purpose {
	if b.People {
		return ""
	}
	return b.Purpose.Of()
}

// Other represents all bots that declare themselves but are not in the table.
var Other = &Bot{Name: "other", index: -1}

// Options configure a [Table].
type Options struct {
	Files  []string    // additional bots, or replacements by token; see [Read]
	Ranges []RangeFile // files of bot addresses
	Logger *slog.Logger
}

// Table identifies bots. It is safe for concurrent use.
type Table struct {
	bots   []*Bot
	tokens map[string]*Bot // bots by token in lower case, without robots-only tokens
	// lengths has a bit for each length of a token, to reject most words quickly.
	lengths uint64
	agents  map[string]*Bot // bots by host of the Signature-Agent field
	log     *slog.Logger

	seed  maphash.Seed
	known [maxCached]atomic.Pointer[known] // cached results, by a hash of the user agent

	ranges []atomic.Pointer[spans] // addresses by Bot.index; nil if unknown
	files  []*rangeFile
}

// New returns the table of the built-in bots and the bots in the files. An error in the content of
// a file wraps [millrace.ErrInvalid] and names the line.
func New(o *Options) (*Table, error) {
	if o == nil {
		o = new(Options)
	}
	t := &Table{seed: maphash.MakeSeed(), tokens: make(map[string]*Bot), agents: make(map[string]*Bot), log: o.Logger}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	all, err := Read(strings.NewReader(builtIn))
	if err != nil {
		return nil, fmt.Errorf("built-in bots, line %w", err)
	}
	for _, file := range o.Files {
		more, err := readFile(file)
		if err != nil {
			return nil, err
		}
		for _, b := range more {
			same := func(old *Bot) bool { return strings.EqualFold(old.Token, b.Token) }
			if i := slices.IndexFunc(all, same); i >= 0 {
				all[i] = b
			} else {
				all = append(all, b)
			}
		}
	}
	t.bots, t.ranges = all, make([]atomic.Pointer[spans], len(all))
	for i, b := range all {
		b.index = i
		if !b.RobotsOnly {
			t.tokens[strings.ToLower(b.Token)] = b
			t.lengths |= 1 << len(b.Token)
		}
		for _, host := range b.Agents {
			if t.agents[host] == nil {
				t.agents[host] = b
			}
		}
	}
	for _, r := range o.Ranges {
		if err := t.add(r); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func readFile(name string) ([]*Bot, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("bots: %w", err)
	}
	defer func() { _ = f.Close() }() // opened only for reading
	all, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("bots: %s:%w", name, err)
	}
	return all, nil
}

// All returns every bot, in the order of the table.
func (t *Table) All() iter.Seq[*Bot] { return slices.Values(t.bots) }

// Crawlers returns the tokens for robots.txt of the bots with a purpose of the policy. It
// includes robots-only tokens.
func (t *Table) Crawlers(p millrace.Purpose) []string {
	var tokens []string
	for _, b := range t.bots {
		if b.Of() == p {
			tokens = append(tokens, b.Token)
		}
	}
	return tokens
}

// Named returns the bots with a name: a token, else a bot's name, else a family, else a purpose. It
// ignores case. If no bot has the name, Named returns nil.
func (t *Table) Named(name string) []*Bot {
	for _, is := range []func(b *Bot) bool{
		func(b *Bot) bool { return strings.EqualFold(b.Token, name) },
		func(b *Bot) bool { return strings.EqualFold(b.Name, name) },
		func(b *Bot) bool { return strings.EqualFold(b.Family, name) },
		func(b *Bot) bool { return strings.EqualFold(string(b.Purpose), name) },
	} {
		var found []*Bot
		for _, b := range t.bots {
			if is(b) {
				found = append(found, b)
			}
		}
		if found != nil {
			return found
		}
	}
	return nil
}

// Agent returns the bot that signs with the keys of a host, or nil if unknown.
func (t *Table) Agent(host string) *Bot { return t.agents[strings.ToLower(host)] }

const (
	longestAgent = 1 << 10 // maximum number of bytes of a user agent to read
	longestToken = 48      // maximum size of a token in bytes
)

// known is a cached result.
type known struct {
	agent string
	bot   *Bot
}

// maxCached is the maximum number of user agents in the cache. Few different user agents visit a
// site at any time.
const maxCached = 1024

// Identify returns the bot that a user agent names. If the user agent declares a bot that is not
// in the table, Identify returns [Other]; for a browser, it returns nil. It uses the first name
// that is in the table, except for names after "like". It ignores unknown names of Android devices.
// Identify caches results.
func (t *Table) Identify(userAgent string) *Bot {
	if userAgent == "" {
		return nil
	}
	userAgent = userAgent[:min(len(userAgent), longestAgent)]
	at := &t.known[maphash.String(t.seed, userAgent)%maxCached]
	if k := at.Load(); k != nil && k.agent == userAgent {
		return k.bot
	}
	b := t.identify(userAgent)
	at.Store(&known{strings.Clone(userAgent), b}) // a substring would keep the whole request in memory
	return b
}

// identify is like Identify, without the cache.
func (t *Table) identify(userAgent string) *Bot {
	var found *Bot
	var word [longestToken]byte
	var device, like bool
	for at := 0; at < len(userAgent); {
		if lower[userAgent[at]] == 0 {
			if userAgent[at] == '+' && strings.HasPrefix(userAgent[at:], "+http") {
				found = Other // the URL of a page about the bot
			}
			if userAgent[at] == ')' {
				device = false
			}
			at++
			continue
		}
		start, says := at, false
		for ; at < len(userAgent); at++ {
			c := lower[userAgent[at]]
			if c == 0 {
				break
			}
			if n := at - start; n < longestToken {
				word[n] = c
				says = says || n > 1 && (c == 't' && word[n-1] == 'o' && word[n-2] == 'b' || c == 'r' && word[n-1] == 'e')
			}
		}
		n := at - start
		resembles := like
		like = false
		for n > 0 && userAgent[start+n-1] == '.' {
			n-- // the end of a sentence
		}
		if n > longestToken || n == 0 || start > 0 && inAddress(userAgent[start-1]) {
			continue
		}
		switch string(word[:n]) {
		case "like":
			like = true
		case "android":
			device = true
		case "compatible":
			device = false
		}
		if resembles {
			continue
		}
		if t.lengths>>n&1 != 0 {
			if b := t.tokens[string(word[:n])]; b != nil {
				return b
			}
		}
		if says && !device && found == nil && declares(string(word[:n])) {
			found = Other
		}
	}
	return found
}

// lower maps the bytes of tokens to lower case, and all other bytes to 0.
var lower = func() (table [256]byte) {
	for c := range len(table) {
		if b := byte(c); tokenByte(b) {
			if table[c] = b; 'A' <= b && b <= 'Z' {
				table[c] += 'a' - 'A'
			}
		}
	}
	return table
}()

// tokenByte reports whether a token may contain a byte.
func tokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.'
}

// inAddress reports whether a byte continues a URL or a mail address. Words in these do not
// name a bot.
func inAddress(c byte) bool { return c == '/' || c == '@' || c == '?' || c == '=' || c == '#' }

// declares reports whether a word in lower case declares a bot. All such words contain "bot" or
// "er", which identify checks before it calls declares.
func declares(word string) bool {
	if strings.HasPrefix(word, "cubot") {
		return false // a brand of phones
	}
	if strings.HasSuffix(word, "bot") {
		return true
	}
	for _, part := range [...]string{"crawler", "spider", "scraper", "bot-", "-bot", "bot_"} {
		if strings.Contains(word, part) {
			return true
		}
	}
	return false
}

// errUnknown is the error for an unknown name.
var errUnknown = millrace.Coded("unknown-bot", errors.New("unknown bot, family or purpose"))
