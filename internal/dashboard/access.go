package dashboard

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/bots"
)

// AccessSettings are the settings that control who may read the site, and how often.
type AccessSettings struct {
	RequireKey      bool     // content needs a key
	PublicProtocols []string // protocols that need no key
	Rate            float64  // content requests per second and client. If zero, there is no limit.
	// FilesRate is the maximum transfer rate of large files to one client in bytes per second, and
	// FilesRateTotal is the maximum rate to all clients together. If zero, there is no limit.
	FilesRate, FilesRateTotal float64
	BotRules                  []BotRule
	Bots                      *bots.Table // If nil, the site recognizes no bots.
}

// refuses reports whether a rule refuses a bot.
func (a *AccessSettings) refuses(b *bots.Bot) bool {
	return slices.ContainsFunc(a.BotRules, func(r BotRule) bool {
		return (r.Action == "402" || r.Action == "403") && (strings.EqualFold(r.Name, "bots") || slices.Contains(a.Bots.Named(r.Name), b))
	})
}

// BotRule is the action for some bots.
type BotRule struct {
	Name   string // a bot, an operator, a purpose, "bots" or "unverified"
	Action string // such as "403", or "2/s"
}
