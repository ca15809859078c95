package serving

import (
	"context"
	"net/http"
	"net/url"

	"github.com/millrace/millrace/internal/accesslog"
	"github.com/millrace/millrace/internal/basepath"
	"github.com/millrace/millrace/internal/gateway"
)

// follow adds a task that records the bot requests in the access log of the site's own server.
func (s *Service) follow(g *gateway.Options) error {
	docs, err := basepath.Of(g.EndpointBase)
	if err != nil {
		return err
	}
	st := s.o.Origin.Store
	f, err := accesslog.NewFollower(&accesslog.FollowOptions{
		File: s.o.AccessLog, Site: s.o.Origin.Name, Base: g.Base, Bots: g.Access.Bots, State: st.State(), Usage: s.Usage,
		Recorder: s.Recorder, Leases: st.Leases(), Logger: s.log,
		Document: func(ctx context.Context, path string) (string, bool) {
			u, err := url.ParseRequestURI(path)
			if err != nil {
				return "", false
			}
			r := (&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}).WithContext(ctx)
			if r = basepath.Under(r, docs); r == nil {
				return "", false
			}
			of, ok := s.Server.Document(r)
			return of.Page, ok
		},
	})
	if err != nil {
		return err
	}
	g.Events = f
	s.Task(func(ctx context.Context) error {
		select {
		case <-s.Server.Ready(): // without an edition, documents are not known
			f.Run(ctx)
		case <-ctx.Done():
		}
		return nil
	})
	return nil
}
