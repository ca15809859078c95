package edition

import (
	"context"
	"log/slog"
	"strings"
	"testing"
)

// lines are told of every line of a log.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// Of two processes over one store, one publishes first: that is no failure of
// the other.
func TestConflictIsNoError(t *testing.T) {
	dir, site, log := t.TempDir(), newMemSite(3), make(lines, 100)
	first := pressIn(t, site, &memRoom{}, dir, nil)
	second := pressIn(t, site, &memRoom{}, dir, &Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	site.casHook = func() { site.casHook = nil; publish(t, first) }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() { second.Run(ctx); close(ended) }()
	second.Changed()
	for line := range log {
		if strings.Contains(line, "not published") {
			if !strings.Contains(line, "level=INFO") {
				t.Error(line)
			}
			break
		}
	}
	cancel()
	<-ended
}
