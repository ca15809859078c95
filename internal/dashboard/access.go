package dashboard

import "github.com/millrace/millrace/internal/bots"

// AccessSettings says who may read the site, and how often.
type AccessSettings struct {
	RequireKey bool     // content needs a key
	Open       []string // protocols that need none all the same
	Rate       float64  // requests for content a second from one client; 0 = no limit
	// FilesRate is how many bytes of large files a second one client is sent,
	// FilesRateTotal all of them; 0 = no limit.
	FilesRate, FilesRateTotal float64
	BotRules                  []BotRule
	Bots                      *bots.Table // nil recognises no bot
}

// BotRule is the action that some bots get.
type BotRule struct {
	Name   string // a bot, an operator, a purpose, or bots, or unverified
	Action string // such as "403", or "2/s"
}
