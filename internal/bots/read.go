package bots

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/millrace/millrace"
)

// Limits of a file of bots.
const (
	maxLine = 4 << 10
	maxBots = 10_000
)

// reserved contains the words with another meaning in rules.
var reserved = []string{string(Training), string(Search), string(User), "bots", "unverified", "other", "all"}

// Read reads bots, one per line: token, family and purpose (training, search or user), then
// options in any order:
//
//	GPTBot           openai  training  ranges=https://openai.com/gptbot.json
//	Google-Agent     google  user      agents=agent.bot.goog
//	Google-Extended  google  training  robots-only
//	bingbot          microsoft search  name=Bingbot
//	ExampleReader    example user      people
//
// The option people means that people, not models, read the pages that the bot fetches. Spaces
// or tabs separate words; # starts a comment. Errors wrap [millrace.ErrInvalid] and start with
// the line number.
func Read(r io.Reader) ([]*Bot, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	var all []*Bot
	seen := make(map[string]int)
	n := 0
	for lines.Scan() {
		n++
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		b, err := readBot(words)
		if err != nil {
			return nil, fmt.Errorf("%d: %w: %w", n, err, millrace.ErrInvalid)
		}
		token := strings.ToLower(b.Token)
		if before := seen[token]; before > 0 {
			return nil, fmt.Errorf("%d: duplicate %s, first in line %d: %w", n, b.Token, before, millrace.Coded("bot-duplicate", millrace.ErrInvalid))
		}
		if seen[token] = n; len(all) == maxBots {
			return nil, fmt.Errorf("%d: more than %d bots: %w", n, maxBots, millrace.Coded("bot-count", millrace.ErrTooLarge))
		}
		all = append(all, b)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%d: longer than %d bytes: %w", n+1, maxLine, millrace.Coded("line-size", millrace.ErrInvalid))
	} else if err != nil {
		return nil, fmt.Errorf("%d: %w", n+1, err)
	}
	return all, nil
}

func readBot(words []string) (*Bot, error) {
	if len(words) < 3 {
		return nil, millrace.Coded("bot-line", errors.New("a line needs a token, a family and a purpose"))
	}
	b := &Bot{Token: words[0], Name: words[0], Family: strings.ToLower(words[1]), Purpose: Purpose(words[2])}
	for _, name := range words[:2] {
		if err := word(name); err != nil {
			return nil, err
		}
	}
	if b.Purpose.Of() == "" {
		return nil, millrace.Coded("bot-purpose", fmt.Errorf("unknown purpose %q; use training, search or user", words[2]))
	}
	for _, w := range words[3:] {
		key, value, _ := strings.Cut(w, "=")
		switch {
		case w == "robots-only":
			b.RobotsOnly = true
		case w == "people":
			b.People = true
		case value == "":
			return nil, millrace.Coded("bot-field", fmt.Errorf("unknown option %q; use name=, agents=, ranges=, people or robots-only", w))
		case key == "name":
			if err := word(value); err != nil {
				return nil, err
			}
			b.Name = value
		case key == "agents":
			for host := range strings.SplitSeq(strings.ToLower(value), ",") {
				if u, err := url.Parse("https://" + host); err != nil || u.Host != host || host == "" {
					return nil, millrace.Coded("bad-host", fmt.Errorf("agents: %q is not a host", host))
				}
				b.Agents = append(b.Agents, host)
			}
		case key == "ranges":
			if u, err := url.Parse(value); err != nil || u.Scheme != "https" || u.Host == "" {
				return nil, millrace.Coded("bad-scheme", fmt.Errorf("ranges: %q is not an https URL", value))
			}
			b.Ranges = value
		default:
			return nil, millrace.Coded("bot-field", fmt.Errorf("unknown option %q; use name=, agents=, ranges=, people or robots-only", w))
		}
	}
	return b, nil
}

// word returns an error for a word that is invalid in a user agent, in robots.txt
// or in a rule.
func word(s string) error {
	for i := range len(s) {
		if !tokenByte(s[i]) {
			return millrace.Coded("bot-token", fmt.Errorf("%q contains a character other than a-z, A-Z, 0-9, dot, dash and underscore", s))
		}
	}
	if len(s) > longestToken || strings.HasSuffix(s, ".") {
		return millrace.Coded("bot-token", fmt.Errorf("%q is not a token: want at most %d characters, and no dot at the end", s, longestToken))
	}
	for _, r := range reserved {
		if strings.EqualFold(s, r) {
			return millrace.Coded("bot-reserved", fmt.Errorf("%q is a reserved word of rules", s))
		}
	}
	return nil
}
