package gateway

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/reply"
)

// askToSign asks for a signature by Web Bot Auth (RFC 9421, section 5).
const askToSign = `sig1=("@authority" "signature-agent";key="sig1");created;expires;tag="web-bot-auth"`

// turnAway refuses a bot, and says why as a machine reads it (RFC 9457): which
// rule it was, what is wrong with its signature, and where the terms, the price and the owner are.
func (g *Gateway) turnAway(w *response, r *http.Request, e *access.TurnedAway) {
	status := http.StatusForbidden
	if e.Action == access.PaymentRequired {
		status = http.StatusPaymentRequired
	}
	h := w.Header()
	clear(h)
	if g.o.Access.Agents != nil && e.Verdict != bots.Verified {
		h.Set("Accept-Signature", askToSign)
	}
	b := canon.AppendString([]byte(`{"title":`), http.StatusText(status))
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(status), 10)
	member := func(name, value string) {
		if value != "" {
			b = append(append(b, `,"`...), name...)
			b = canon.AppendString(append(b, `":`...), value)
		}
	}
	member("detail", e.Detail)
	member("reason", strings.ToLower(e.Name))
	member("signature", e.Why)
	member("bot", e.Bot.Name)
	member("purpose", string(e.Bot.Of()))
	if p := g.o.Policy; p != nil {
		member("policy", p.Terms)
		member("payment", p.Payment)
		member("contact", p.Contact)
		for _, l := range []millrace.Link{{URL: p.Terms, Rel: "terms-of-service"}, {URL: p.Payment, Rel: "payment"}} {
			if l.URL != "" {
				h.Add("Link", l.String())
			}
		}
	}
	kind, b := "application/problem+json", append(b, "}\n"...)
	if own, body, _, ok := g.form(r, status, &millrace.RequestError{Status: status, Text: e.Detail}); ok { // what its clients read
		for name, values := range own {
			h[http.CanonicalHeaderKey(name)] = values
		}
		kind, b = h.Get("Content-Type"), body
	}
	reply.Bytes(w, r, status, kind, b)
}

// let lets a request in, or answers what the rule for its bot says. Documents that say
// what machines may have are for all.
func (g *Gateway) let(w *response, r *http.Request) bool {
	if g.saysWho(r) {
		return true
	}
	err := w.Bot()
	if err == nil {
		return true
	}
	g.guess(w, r)
	if turned, ok := errors.AsType[*access.TurnedAway](err); ok {
		g.turnAway(w, r, turned)
	} else {
		g.fail(w, r, err)
	}
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
