package ingest

import (
	"context"
	"errors"
	"iter"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/origin"
	"github.com/millrace/millrace/store"
)

// ResumeOptions returns the options of a source that resumes from the data that the source from has
// stored in a site.
func ResumeOptions(site store.Site, from string) *origin.Options {
	return &origin.Options{
		KnownRefs: func(ctx context.Context, urls ...string) iter.Seq2[millrace.Ref, error] {
			return site.KnownRefs(ctx, from, urls...)
		},
		Original: func(ctx context.Context, u string) ([]byte, error) { return site.Original(ctx, from, u) },
	}
}

// Robots stores the robots.txt of origins in the State of a store.
type Robots struct{ store.State }

var _ fetch.RobotsMemory = Robots{}

// Load returns the record of an origin, or nil if none was saved.
func (m Robots) Load(ctx context.Context, origin string) ([]byte, error) {
	return m.Value(ctx, origin, robotsKey)
}

// Save saves the record of an origin.
func (m Robots) Save(ctx context.Context, origin string, record []byte) error {
	old, err := m.Value(ctx, origin, robotsKey)
	if err == nil {
		err = m.Swap(ctx, origin, robotsKey, old, record)
	}
	if errors.Is(err, millrace.ErrConflict) {
		return nil // another process has just saved its own record
	}
	return err
}

// robotsKey is the state key of an origin's robots.txt.
const robotsKey = "robots.txt"
