package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/millrace/millrace"
)

// A server that hangs, or a network that drops packets, would block a statement for as long as the
// kernel retries, which takes minutes. So during a long statement, a check opens a new connection,
// which must get a response. If a check fails, all statements fail at once, until a check succeeds.
// The kernel closes connections to a host that is gone, because another host may have taken over.
const (
	checkAfter  = 2 * time.Second // duration of a statement after which a check starts, and minimum time between checks
	checkLimit  = 5 * time.Second // maximum duration of a check, unless it must try several hosts
	userTimeout = 6 * time.Second // maximum wait for the acknowledgment of packets
)

// health reports whether the server responds. All methods are safe for concurrent use.
type health struct {
	config *pgx.ConnConfig
	log    *slog.Logger
	after  time.Duration   // checkAfter, except in tests
	limit  time.Duration   // time limit of a check
	closed context.Context // ends when the store is closed
	close  context.CancelFunc

	checking sync.Mutex // held by a check; guards checked
	checked  time.Time  // end of the last check

	mu   sync.Mutex
	up   context.Context // ends when the server stops responding; the cause is the error
	fail context.CancelCauseFunc
}

// newHealth returns the health of the server that config names. several reports whether config names
// several hosts.
func newHealth(config *pgx.ConnConfig, several bool, log *slog.Logger) *health {
	h := &health{config: config, log: log, after: checkAfter, limit: checkLimit}
	if several {
		h.limit = max(h.limit, time.Duration(1+len(config.Fallbacks))*config.ConnectTimeout)
	}
	h.closed, h.close = context.WithCancel(context.Background())
	h.up, h.fail = context.WithCancelCause(context.Background())
	return h
}

// watch returns a context for a statement or a transaction. The context ends when the server stops
// responding. end ends the context, and returns the error of the check if that ended the statement.
func (h *health) watch(ctx context.Context) (watched context.Context, end func(error) error, err error) {
	h.mu.Lock()
	up := h.up
	h.mu.Unlock()
	if up.Err() != nil {
		return nil, nil, context.Cause(up)
	}
	watched, cancel := context.WithCancel(ctx)
	unlink := context.AfterFunc(up, cancel)
	timer := time.AfterFunc(h.after, func() {
		for watched.Err() == nil {
			h.check(watched)
			select {
			case <-watched.Done():
			case <-time.After(h.after):
			}
		}
	})
	return watched, func(err error) error {
		timer.Stop()
		unlink()
		cancel()
		if err != nil && up.Err() != nil && ctx.Err() == nil {
			return context.Cause(up)
		}
		return err
	}, nil
}

// check checks that the server responds, unless another statement has just done so. If the server
// does not respond, check ends the contexts of all statements.
func (h *health) check(ctx context.Context) {
	h.checking.Lock()
	defer h.checking.Unlock()
	if ctx.Err() != nil || time.Since(h.checked) < h.after {
		return
	}
	err := h.ping()
	if h.checked = time.Now(); err == nil || h.closed.Err() != nil {
		return
	}
	h.log.WarnContext(ctx, "store does not respond", "err", err)
	h.mu.Lock()
	h.fail(err)
	h.mu.Unlock()
	go h.recover()
}

// recover waits until the server responds, and then permits statements again.
func (h *health) recover() {
	for err := errors.New("down"); err != nil; err = h.ping() {
		select {
		case <-h.closed.Done():
			return
		case <-time.After(h.after / 2):
		}
	}
	h.log.Info("store responds again")
	h.mu.Lock()
	defer h.mu.Unlock()
	h.up, h.fail = context.WithCancelCause(context.Background())
}

// ping sends an empty statement over a new connection. An error of the server is a response.
func (h *health) ping() error {
	ctx, cancel := context.WithTimeout(h.closed, h.limit)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, h.config.Copy())
	if err == nil {
		err = conn.Ping(ctx)
		_ = conn.Close(ctx)
	}
	if _, answered := errors.AsType[*pgconn.PgError](err); err == nil || answered {
		return nil
	}
	return millrace.Coded(down.code, fmt.Errorf("%w: %s (%s)", down.sentinel, down.text, reason(err)))
}

// dialer returns a dialer whose connections are closed when their host is gone.
func dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout: timeout, Control: limitUnacknowledged,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: checkAfter, Interval: checkAfter, Count: int(userTimeout / checkAfter)},
	}
}
