package gateway

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/canon"
)

// askToSign asks for a signature by Web Bot Auth (RFC 9421, section 5).
const askToSign = `sig1=("@authority" "signature-agent";key="sig1");created;expires;tag="web-bot-auth"`

// turnAway refuses a bot, and says why as a machine reads it (RFC 9457): which
// rule it was, what is wrong with its signature, and where the terms, the price and the owner are.
func (g *Gateway) turnAway(w *response, r *http.Request, id identity, at *rule) {
	status, detail := http.StatusForbidden, "this site does not answer "
	if at.Do == Pay {
		status, detail = http.StatusPaymentRequired, "this site asks for payment by "
	}
	if detail += whom(id, at); at.Name == ClassUnverified || id.verdict == bots.Forged && at == g.guard.classes.bots {
		detail += "; sign your requests, or come from an address that your operator publishes"
	}
	h := w.Header()
	clear(h)
	if g.guard.agents != nil && id.verdict != bots.Verified {
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
	member("detail", detail)
	member("reason", strings.ToLower(at.Name))
	member("signature", id.why)
	member("bot", id.bot.Name)
	member("purpose", string(id.bot.Of()))
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
	if own, body, _, ok := g.form(r, status, &millrace.RequestError{Status: status, Text: detail}); ok { // what its clients read
		for name, values := range own {
			h[http.CanonicalHeaderKey(name)] = values
		}
		kind, b = h.Get("Content-Type"), body
	}
	answer(w, r, status, kind, b)
}

// whom says which bots a rule is about.
func whom(id identity, at *rule) string {
	switch name := strings.ToLower(at.Name); {
	case name == ClassBots:
		return "bots"
	case name == ClassUnverified:
		return "bots that do not show who they are"
	case name == string(bots.Training):
		return "bots that come to train models"
	case name == string(bots.Search):
		return "bots of search engines"
	case name == string(bots.User):
		return "bots that come for what somebody has asked"
	case name == id.bot.Family:
		return "the bots of " + id.bot.Family
	}
	return at.Name
}
