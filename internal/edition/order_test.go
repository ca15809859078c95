package edition

import (
	"context"
	"errors"
	"testing"

	"github.com/millrace/millrace"
)

// racedSite calls raced whenever somebody has taken the head.
type racedSite struct {
	*memSite
	raced func()
}

func (s *racedSite) Head(ctx context.Context) (millrace.View, error) {
	v, err := s.memSite.Head(ctx)
	if raced := s.raced; raced != nil {
		s.raced = nil
		raced()
	}
	return v, err
}

// What another process has published is never taken back to an older state.
func TestPublishNeverGoesBack(t *testing.T) {
	site := &racedSite{memSite: newMemSite(3)}
	room, dir := &memRoom{}, t.TempDir()
	p, other := pressIn(t, site, room, dir, nil), pressIn(t, site.memSite, room, dir, nil)
	publish(t, p)
	site.set("/1", "old")
	var newer uint64
	site.raced = func() {
		newer = site.set("/2", "new")
		publish(t, other)
	}
	if _, err := p.Publish(t.Context()); !errors.Is(err, millrace.ErrConflict) {
		t.Errorf("publish: %v, want a conflict", err)
	}
	if site.published != newer || p.Current().View.Site().Seq != newer {
		t.Errorf("published %d, serving %d, want %d", site.published, p.Current().View.Site().Seq, newer)
	}
}
