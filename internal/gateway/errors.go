package gateway

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/basepath"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/reply"
)

// Errors without a code. Each protocol has its own code for them.
var (
	errEarly = &access.Refusal{Err: millrace.RequestError{
		Status: http.StatusServiceUnavailable, Text: "no edition is published yet",
	}, Retry: 5}
	errBody = &access.Refusal{Err: millrace.RequestError{
		Status: http.StatusRequestEntityTooLarge, Text: "this path does not accept a request body",
	}}
	errLarge = &access.Refusal{Err: millrace.RequestError{
		Status: http.StatusRequestEntityTooLarge, Text: "the request's body is too large",
	}}
)

// fail responds with an error. Internal details are only logged.
func (g *Gateway) fail(w *response, r *http.Request, err error) {
	if errors.Is(err, edition.ErrBroken) || r.Context().Err() != nil {
		w.Broken = true
		return // the response has begun, or the client has disconnected
	}
	if turned, ok := errors.AsType[*access.RefusedBot](err); ok {
		g.turnAway(w, r, turned)
		return
	}
	status := statusOf(err)
	if status >= 500 && requestError(err) == nil {
		g.log.Error("request failed", "path", access.Redact(r.URL.Path), "err", err)
	}
	h := w.Header()
	methods, size, vary := h["Allow"], h["Content-Range"], h["Vary"]
	clear(h) // remove the fields of the abandoned response
	if methods != nil {
		h["Allow"] = methods
	}
	if size != nil {
		h["Content-Range"] = size
	}
	if status == http.StatusNotAcceptable {
		h["Vary"] = vary
	}
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "5")
	}
	if status == http.StatusRequestEntityTooLarge {
		h.Set("Connection", "close") // a part of the body is unread
	}
	if why, ok := errors.AsType[*access.Refusal](err); ok {
		if why.Challenge != "" {
			h.Set("Www-Authenticate", why.Challenge)
		}
		if why.Retry > 0 {
			h.Set("Retry-After", strconv.Itoa(why.Retry))
		}
	}
	g.refuse(w, r, status, err)
}

// refuse responds with an error status, in the format of the protocol at the path, or as plain
// text. Errors are never cached, because they may concern one client.
func (g *Gateway) refuse(w *response, r *http.Request, status int, err error) {
	h := w.Header()
	reqErr := requestError(err)
	if reqErr != nil && reqErr.Code == "" {
		err = nil // each protocol provides its own text for this error
	}
	if header, body, proto, ok := g.form(r, status, err); ok {
		guarded := proto.Guarded
		w.setErrorProtocol(proto.Name)
		for name, values := range header {
			switch name = http.CanonicalHeaderKey(name); {
			case name == "Content-Length", name == "Transfer-Encoding", name == "Connection", h[name] != nil:
			default:
				h[name] = values
			}
		}
		if !guarded {
			h.Set("Access-Control-Allow-Origin", "*")
		}
		if guarded || h["Www-Authenticate"] != nil {
			private(h)
		}
		h.Set("Cache-Control", "no-store")
		reply.Bytes(w, r, status, h.Get("Content-Type"), body)
		return
	}
	if h["Www-Authenticate"] != nil {
		h.Set("Vary", "Authorization")
	}
	reply.Error(w, r, status, reqErr)
}

// form returns an error in the format of the protocol at the path, if the protocol defines one.
func (g *Gateway) form(r *http.Request, status int, err error) (header http.Header, body []byte, proto *edition.Protocol, ok bool) {
	inner := basepath.Under(r, g.endpointBase)
	if inner == nil || g.server == nil {
		return nil, nil, nil, false
	}
	defer func() {
		if cause := recover(); cause != nil {
			g.log.Error("panic", "path", access.Redact(r.URL.Path), "err", cause)
			ok = false
		}
	}()
	header, body, proto = g.server.RenderError(inner, status, err)
	return header, body, proto, proto != nil
}

// statusOf returns the status of an error. If an error for a 400, 403 or 413 contains no
// RequestError, such as that of a damaged store, it is a failure of the server, and the status is
// 500.
func statusOf(err error) int {
	status := millrace.Status(err)
	switch status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge:
		if requestError(err) == nil {
			return http.StatusInternalServerError
		}
	}
	return status
}

// requestError returns the message of an error for the sender of the request,
// or nil if it has none.
func requestError(err error) *millrace.RequestError {
	reqErr, _ := errors.AsType[*millrace.RequestError](err)
	return reqErr
}

// askToSign is the value of Accept-Signature that requests a signature by Web Bot Auth (RFC 9421,
// section 5).
const askToSign = `sig1=("@authority" "signature-agent";key="sig1");created;expires;tag="web-bot-auth"`

// turnAway refuses a bot in the format of the protocol at the path, or with a problem document (RFC
// 9457). The document contains the rule, what is wrong with the signature, and links to the terms,
// the price and the owner.
func (g *Gateway) turnAway(w *response, r *http.Request, e *access.RefusedBot) {
	status := http.StatusForbidden
	if e.Action == access.PaymentRequired {
		status = http.StatusPaymentRequired
	}
	h := w.Header()
	clear(h)
	if g.o.Access.Agents != nil && e.Identification != bots.Verified {
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
	if own, body, _, ok := g.form(r, status, &millrace.RequestError{Status: status, Text: e.Detail}); ok { // the error form of the protocol
		for name, values := range own {
			h[http.CanonicalHeaderKey(name)] = values
		}
		kind, b = h.Get("Content-Type"), body
	}
	reply.Bytes(w, r, status, kind, b)
}
