package caddy

import (
	"context"
	"log/slog"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap/exp/zapslog"
)

// caddyLog writes to Caddy's default log, which another configuration may replace at any time.
type caddyLog struct {
	with func(h slog.Handler) slog.Handler // adds groups and attributes; nil = none
}

// newLog returns a logger for a site.
func newLog(base string) *slog.Logger { return slog.New(caddyLog{}).With("site", base) }

func (l caddyLog) handler() slog.Handler {
	h := slog.Handler(zapslog.NewHandler(caddy.Log().Core(), zapslog.WithName("millrace")))
	if l.with != nil {
		h = l.with(h)
	}
	return h
}

// Enabled implements [slog.Handler].
func (l caddyLog) Enabled(ctx context.Context, level slog.Level) bool {
	return l.handler().Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (l caddyLog) Handle(ctx context.Context, r slog.Record) error { return l.handler().Handle(ctx, r) }

// WithAttrs implements [slog.Handler].
func (l caddyLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return l.add(func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) })
}

// WithGroup implements [slog.Handler].
func (l caddyLog) WithGroup(name string) slog.Handler {
	return l.add(func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}

func (l caddyLog) add(then func(slog.Handler) slog.Handler) slog.Handler {
	first := l.with
	if first == nil {
		return caddyLog{then}
	}
	return caddyLog{func(h slog.Handler) slog.Handler { return then(first(h)) }}
}
