package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/edition"
)

// live implements [millrace.Live] for the protocols of a gateway.
type live struct {
	g           *Gateway
	annotations *annotations
}

var _ millrace.Live = live{}

// View implements [millrace.Live].
func (l live) View() (millrace.View, error) {
	if l.g.server != nil {
		if ed := l.g.server.Current(); ed != nil {
			return ed.View, nil
		}
	}
	return nil, fmt.Errorf("%w: no edition is published yet", millrace.ErrUnavailable)
}

// Wait implements [millrace.Live].
func (l live) Wait(ctx context.Context, after uint64) (millrace.View, error) {
	if l.g.server == nil {
		return nil, fmt.Errorf("%w: no edition on this server", millrace.ErrUnavailable)
	}
	for {
		moved := l.g.server.NextEdition()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case l.g.ending.Err() != nil:
			return nil, fmt.Errorf("%w: the server is stopping", millrace.ErrUnavailable)
		}
		if ed := l.g.server.Current(); ed != nil && ed.View.Site().Seq > after {
			return ed.View, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
		case <-l.g.ending.Done():
		}
	}
}

// Update implements [millrace.Live].
func (l live) Update(ctx context.Context, urls []string, gone bool) (millrace.Counts, error) {
	if l.g.o.Update == nil {
		return millrace.Counts{}, fmt.Errorf("%w: this source cannot update single pages", millrace.ErrUnavailable)
	}
	return l.g.o.Update(ctx, urls, gone)
}

// maxServed is the maximum size in bytes of a request's body for a protocol. A protocol may have a
// lower limit.
const maxServed = 2 << 20

// updateTime is the time limit of an update, which may fetch many pages of a slow
// site.
const updateTime = 10 * time.Minute

// handlerOf returns the handler of a request, with its scope and protocol. s is nil if no
// handler applies.
func (g *Gateway) handlerOf(inner *http.Request) (s millrace.Handler, scope millrace.Scope, proto edition.Protocol) {
	if s = g.o.Service; s != nil {
		if scope, ok := s.Scope(inner); ok {
			return s, scope, edition.Protocol{Name: g.o.ServiceName, Guarded: g.o.ServiceGuarded}
		}
	}
	if g.server != nil {
		if s, scope, its := g.server.Handler(inner); its != nil {
			return s, scope, *its
		}
	}
	return nil, "", edition.Protocol{}
}

// handlers serves requests for the service and for protocols with a handler.
func (g *Gateway) handlers(w *response, r *http.Request) (bool, error) {
	if w.inner == nil {
		return false, nil
	}
	s, scope, proto := g.handlerOf(w.inner)
	if s == nil {
		return false, nil
	}
	return true, g.serve(w, r, s, scope, proto)
}

// serve calls the handler of a protocol.
func (g *Gateway) serve(w *response, r *http.Request, s millrace.Handler, scope millrace.Scope, proto edition.Protocol) error {
	notes := new(annotations)
	defer w.served(notes, proto.Name, scope)
	// Streams have their own limit, so they do not count as concurrent requests.
	listens := scope == millrace.ScopeRead && r.Method != http.MethodPost
	if listens {
		w.Listens = true
		end, err := w.Listen(r.Context())
		if err != nil {
			return err
		}
		defer end()
	} else {
		if err := w.Enter(); err != nil {
			return err
		}
	}
	ctx := r.Context()
	if proto.Guarded || scope != millrace.ScopeRead {
		leased, done, err := w.Lease(ctx, scope)
		if err != nil {
			return err
		}
		defer done()
		ctx = leased
		w.keyed = true
	}
	if err := w.Charge(); err != nil {
		return err
	}
	if r.ContentLength > maxServed {
		return errLarge
	}
	control := http.NewResponseController(w)
	if listens {
		// The protocol limits the duration of its streams.
		_ = control.SetReadDeadline(time.Time{})
	} else {
		_ = control.SetWriteDeadline(time.Now().Add(updateTime))
	}
	inner := w.inner.WithContext(ctx)
	if r.ContentLength != 0 {
		inner.Body = http.MaxBytesReader(w, r.Body, maxServed)
	}
	w.Header().Set("Cache-Control", "no-store")
	err := s.Serve(w, inner, live{g, notes})
	switch allow := w.Header().Get("Allow"); {
	case err == nil:
		return nil
	case r.Method == http.MethodOptions && w.status == 0 && allow != "":
		_, err = edition.Method(w, r, allow, !w.keyed)
		return err
	case w.status != 0:
		// The stream itself reports all other errors to its client.
		if statusOf(err) >= 500 && requestError(err) == nil && ctx.Err() == nil {
			g.log.Error("stream failed", "path", access.Redact(r.URL.Path), "err", err)
		}
		return errors.Join(edition.ErrBroken, err)
	case errors.Is(context.Cause(ctx), access.ErrRevoked):
		return access.KeyError("the key is no longer valid")
	}
	return err
}

// private sets header fields that prevent shared caches from storing the response to a request with
// a key.
func private(h http.Header) {
	h.Set("Cache-Control", edition.Private(h["Cache-Control"]))
	if !slices.ContainsFunc(h["Vary"], func(v string) bool { return strings.Contains(strings.ToLower(v), "authorization") }) {
		h.Add("Vary", "Authorization")
	}
	for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Expose-Headers"} {
		h.Del(name)
	}
}
