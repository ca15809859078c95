package serving

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/gateway"
)

// Server handles requests with one service at a time, and can replace it without an
// interruption.
type Server struct {
	*gateway.Server
	log    *slog.Logger
	ctx    context.Context // context of the tasks
	stop   context.CancelFunc
	closed chan struct{}
	group  sync.WaitGroup // goroutines that wait for a service to begin or to become idle

	mu     sync.Mutex
	now    *Service           // service that handles requests
	next   *Service           // service that is starting and will replace now, or nil
	cancel context.CancelFunc // ends the wait for next
}

// NewServer starts a service, and returns a server that handles requests with it. Its
// tasks end with ctx.
func NewServer(ctx context.Context, first *Service, o *gateway.ServerOptions) *Server {
	s := &Server{Server: gateway.NewServer(first.Gateway, o), log: first.log, closed: make(chan struct{}), now: first}
	s.ctx, s.stop = context.WithCancel(ctx)
	first.runBackground(s.ctx)
	first.start(s.ctx)
	return s
}

// Now returns the service that handles requests.
func (s *Server) Now() *Service {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Ready waits for the first edition. It returns the first error of a task.
func (s *Server) Ready(ctx context.Context) error {
	v := s.Now()
	select {
	case <-v.Server.Ready():
		return nil
	case err := <-v.failed:
		v.fail(err) // so that the next call returns the error again
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ctx.Done():
		return fmt.Errorf("%w: the server is closed", millrace.ErrUnavailable)
	}
}

// Replace starts another service, which replaces the current one when it has an edition. If an
// earlier replacement is still starting, Replace closes it. The channel receives one result. After
// an error of the new service or the end of ctx, the current service continues. The error is
// ErrConflict if Replace was called again in the meantime, and ErrUnavailable if the server is
// closed.
func (s *Server) Replace(ctx context.Context, next *Service) <-chan error {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := make(chan error, 1)
	select {
	case <-s.closed:
		done <- errors.Join(fmt.Errorf("%w: the server is closed", millrace.ErrUnavailable), next.Close())
		return done
	default:
	}
	if was := s.next; was != nil {
		s.cancel()
		s.close(was)
	} else {
		s.now.pause()
	}
	ctx, s.cancel = context.WithCancel(ctx)
	s.next = next
	next.runBackground(s.ctx)
	next.start(s.ctx)
	s.group.Go(func() { done <- s.settle(ctx, next) })
	return done
}

// settle waits for the first edition of a service, and makes it the current service.
func (s *Server) settle(ctx context.Context, next *Service) (err error) {
	select {
	case <-next.Server.Ready():
	case err = <-next.failed:
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.ctx.Done():
		err = s.ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != next {
		return fmt.Errorf("%w: replaced by a later configuration", millrace.ErrConflict)
	}
	s.cancel()
	if s.next = nil; err != nil {
		s.close(next)
		s.now.start(s.ctx)
		return err
	}
	was := s.now
	s.now = next
	empty := s.Use(next.Gateway)
	was.Server.DropCache()
	s.group.Go(func() {
		select {
		case <-empty:
		case <-s.closed:
		}
		s.close(was)
	})
	return nil
}

// close closes a service.
func (s *Server) close(v *Service) {
	if err := v.Close(); err != nil {
		s.log.Error("could not close site files", "err", err)
	}
}

// Close ends the tasks and closes the service. Call it only when no request is in progress.
func (s *Server) Close() error {
	s.stop()
	s.mu.Lock()
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	s.mu.Unlock()
	s.group.Wait()
	return s.now.Close()
}
