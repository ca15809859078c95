package gateway

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/bots"
)

// Agents checks the signatures of requests.
type Agents interface {
	// Verify gives the host whose keys have signed a request, "" if nobody's
	// have. ErrUnavailable: its keys cannot be had for now; any other error says
	// what is wrong with the signature.
	Verify(ctx context.Context, r *http.Request) (agent string, err error)
}

// identity is who a request says it is from, as far as that is known.
type identity struct {
	bot     *bots.Bot // nil = it says nothing of a bot
	agent   string    // the host whose keys have signed the request; "" = nobody's
	verdict bots.Verdict
	why     string // its signature shows nothing; "" = it does, or there is none
}

// mostWhy bounds what is repeated of a signature.
const mostWhy = 300

// identify finds out who is there, once.
func (w *response) identify() identity {
	if w.identified || w.g.o.Bots == nil {
		return w.id
	}
	w.name()
	if w.g.signed(w.r) {
		w.signed()
	}
	return w.locate()
}

// name takes the name into account that a request gives itself.
func (w *response) name() {
	if agents := w.r.Header["User-Agent"]; len(agents) > 0 {
		w.id.bot = w.g.o.Bots.Identify(agents[0])
	}
}

// locate takes the address into account, and gives who is there.
func (w *response) locate() identity {
	w.identified = true
	if b := w.id.bot; b != nil && b != bots.Other && w.id.verdict == bots.Unknown && w.g.o.Bots.Located(b) {
		w.id.verdict = w.g.o.Bots.Verify(b, w.client())
	}
	return w.id
}

// signed takes a signature into account.
func (w *response) signed() {
	table := w.g.o.Bots
	agent, err := w.g.o.Agents.Verify(w.r.Context(), w.r)
	switch {
	case errors.Is(err, millrace.ErrUnavailable):
		// This is nobody's lie.
		w.id.why = "the directory of its keys cannot be had for now"
	case err != nil:
		w.id.bot, w.id.verdict = cmp.Or(w.id.bot, bots.Other), bots.Forged
		w.id.why = err.Error()
		w.id.why = strings.ToValidUTF8(w.id.why[:min(len(w.id.why), mostWhy)], "")
	case agent != "":
		w.id.agent, w.id.verdict = agent, bots.Verified
		by := cmp.Or(table.Agent(agent), bots.Other)
		switch {
		case w.id.bot == nil || w.id.bot == bots.Other:
			w.id.bot = by
		case by == bots.Other || by.Family != w.id.bot.Family:
			w.id.verdict = bots.Forged // with another's name
			w.id.why = "the key is one of " + agent + ", and the name is another's"
		}
	}
}
