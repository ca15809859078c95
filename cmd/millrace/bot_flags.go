package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/humanize"
)

// botFlags holds the flags for the identification of bots.
type botFlags struct {
	Bots      []string `placeholder:"FILE" help:"Files with additional bots, one per line: token, operator, purpose (default: the built-in bots)." hidden:""`
	BotRanges []string `placeholder:"NAME=FILE" help:"Address ranges of a bot or of an operator's bots, in a file in the operator's format (default: none; the user agent is trusted). The file is read again when it changes." hidden:""`
}

// botRuleFlags holds the flags for rules about bots, and for the rate of large files.
type botRuleFlags struct {
	Bot []string `placeholder:"NAME=ACTION" help:"Rule for bots, such as training=403. NAME is a bot's token, an operator, a purpose (training, search or user), bots for all bots, or unverified for bots without a proven identity. ACTION is allow, 402, 403, or a rate such as 2/s (default: allow). The most specific rule wins. Bots whose purpose the policy refuses get 403, or 402 if the policy names a price."`
	botFlags
	FilesRate      humanize.Size `placeholder:"SIZE" help:"Maximum bytes per second of large files to one client, such as 2M (default: no limit)."`
	FilesRateTotal humanize.Size `placeholder:"SIZE" help:"Maximum bytes per second of large files to all clients together (default: no limit)." hidden:""`
}

// validate rejects invalid values.
func (c *botRuleFlags) validate() error {
	_, wrong := c.botRules()
	_, rerr := c.ranges()
	var err error
	switch each, all := c.FilesRate, c.FilesRateTotal; {
	case each > 0 && each < 1000:
		err = usageError(fmt.Sprintf("--files-rate %d: must be at least 1k bytes per second", each))
	case all > 0 && all < max(each, 1000):
		err = usageError(fmt.Sprintf("--files-rate-total %d: must be at least 1k bytes per second, and not less than --files-rate", all))
	}
	return errors.Join(wrong, rerr, err)
}

func (c *botRuleFlags) botRules() ([]access.Rule, error) {
	var out []access.Rule
	for _, s := range c.Bot {
		r, err := access.ParseRule(s)
		if err != nil {
			return nil, usageError("--bot: " + err.Error())
		}
		out = append(out, r)
	}
	return out, nil
}

func (c *botFlags) ranges() ([]bots.RangeFile, error) {
	var out []bots.RangeFile
	for _, s := range c.BotRanges {
		name, file, ok := strings.Cut(s, "=")
		if !ok || name == "" || file == "" {
			return nil, usageError(fmt.Sprintf("--bot-ranges: %q: write NAME=FILE, such as GPTBot=gptbot.json", s))
		}
		out = append(out, bots.RangeFile{Name: name, File: file})
	}
	return out, nil
}

// table returns the known bots.
func (c *botFlags) table(p *process) (*bots.Table, error) {
	ranges, err := c.ranges()
	if err != nil {
		return nil, err
	}
	return bots.New(&bots.Options{Files: c.Bots, Ranges: ranges, Logger: p.log})
}

// keep sets the options of the gateway for bots.
func (c *botRuleFlags) keep(p *process, o *gateway.Options) error {
	var err error
	if o.Access.Bots, err = c.table(p); err != nil {
		return err
	}
	if o.Access.Rules, err = c.botRules(); err != nil {
		return err
	}
	o.Access.FilesRate, o.Access.FilesRateTotal = float64(c.FilesRate), float64(c.FilesRateTotal)
	o.Policy = cmp.Or(o.Policy, p.policy)
	if err := access.CheckRules(o.Access.Bots, o.Access.Rules, p.policy); err != nil {
		return usageError("--bot: " + err.Error())
	}
	warnUnverified(p, o.Access.Bots, o.Access.Rules)
	if paid := slices.ContainsFunc(o.Access.Rules, func(r access.Rule) bool { return r.Action == access.PaymentRequired }); paid && (p.policy == nil || p.policy.Payment == "") {
		p.log.Warn("bots must pay but the policy has no payment page; set payment in the policy")
	}
	return nil
}

// warnUnverified logs the bots that a rule accepts by name alone, although their operators publish
// the bots' addresses.
func warnUnverified(p *process, table *bots.Table, rules []access.Rule) {
	for _, r := range rules {
		if r.Action >= access.PaymentRequired {
			continue
		}
		for _, b := range table.Named(r.Name) {
			if b.Ranges != "" && !b.RobotsOnly && !table.Located(b) && !strings.EqualFold(r.Name, string(b.Purpose)) {
				p.log.Info("bot is accepted by its name alone; give its addresses with --bot-ranges", "bot", b.Name, "url", b.Ranges)
			}
		}
	}
}
