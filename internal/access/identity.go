package access

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
	// Verify returns the host whose keys signed a request, or "" if the request is unsigned. It
	// returns ErrUnavailable if the keys are temporarily unavailable. Any other error says why the
	// signature is invalid.
	Verify(ctx context.Context, r *http.Request) (agent string, err error)
}

// Identity describes the sender of a request.
type Identity struct {
	Bot            *bots.Bot // the bot that the user agent or the signature names, or nil
	Agent          string    // the host whose keys signed the request, or ""
	Identification bots.Identity
	Why            string // why the signature does not prove the sender; "" if it does or is absent
}

// maxWhy is the maximum length of Identity.Why.
const maxWhy = 300

// Verify returns the sender of the request. It verifies the signature only once, and may fetch keys
// to do so.
func (q *Request) Verify() Identity {
	if q.identified || q.guard.bots == nil {
		return q.id
	}
	q.name()
	if q.guard.HasSignature(q.r) {
		q.signed()
	}
	return q.locate()
}

// name identifies the sender by the User-Agent.
func (q *Request) name() {
	if agents := q.r.Header["User-Agent"]; len(agents) > 0 {
		q.id.Bot = q.guard.bots.Identify(agents[0])
	}
}

// locate verifies the named bot by its address, if possible.
func (q *Request) locate() Identity {
	q.identified = true
	if b := q.id.Bot; b != nil && b != bots.Other && q.id.Identification == bots.Unknown && q.guard.bots.Located(b) {
		q.id.Identification = q.guard.bots.Verify(b, q.Address())
	}
	return q.id
}

// signed verifies the signature and identifies the sender by the host whose keys signed the
// request.
func (q *Request) signed() {
	table := q.guard.bots
	agent, err := q.guard.agents.Verify(q.r.Context(), q.r)
	switch {
	case errors.Is(err, millrace.ErrUnavailable):
		q.id.Why = "the key directory is temporarily unavailable"
	case err != nil:
		q.id.Bot, q.id.Identification = cmp.Or(q.id.Bot, bots.Other), bots.Forged
		q.id.Why = err.Error()
		q.id.Why = strings.ToValidUTF8(q.id.Why[:min(len(q.id.Why), maxWhy)], "")
	case agent != "":
		q.id.Agent, q.id.Identification = agent, bots.Verified
		by := cmp.Or(table.Agent(agent), bots.Other)
		switch {
		case q.id.Bot == nil || q.id.Bot == bots.Other:
			q.id.Bot = by
		case by == bots.Other || by.Family != q.id.Bot.Family:
			q.id.Identification = bots.Forged // the key belongs to another operator than the named bot
			q.id.Why = "the key belongs to " + agent + ", but the user agent names another operator"
		}
	}
}

// Identity returns the sender without waiting. pending reports that the signature is not
// verified yet; see [Request.Verify].
func (q *Request) Identity() (_ Identity, pending bool) {
	if q.identified || q.guard.bots == nil {
		return q.id, false
	}
	q.name()
	if q.guard.HasSignature(q.r) {
		return q.id, true
	}
	return q.locate(), false
}
