package protocoltest

import (
	"errors"
	"testing"

	"github.com/millrace/millrace"
)

// mirror is a minimal sink.
type mirror struct {
	cursor millrace.Cursor
	refs   map[string]millrace.Ref
	pages  map[string]*millrace.Page
	got    int // number of pages fetched by the last sync
}

func (m *mirror) sync(t *testing.T, src millrace.Source) {
	t.Helper()
	m.got = 0
	named := map[string]bool{}
	marks := 0
	for c, err := range src.Changes(t.Context(), m.cursor) {
		if err != nil {
			t.Fatalf("Changes: %v", err)
		}
		switch c.Kind {
		case millrace.Put:
			named[c.URL] = true
			m.put(t, src, c)
		case millrace.Delete:
			delete(m.refs, c.URL)
			delete(m.pages, c.URL)
		case millrace.KindCheckpoint:
			marks++
			m.cursor = c.Checkpoint.Cursor
			for u, ref := range m.refs {
				if c.Checkpoint.Complete && !named[u] && (c.Checkpoint.Section == "" || c.Checkpoint.Section == ref.Section) {
					delete(m.refs, u)
					delete(m.pages, u)
				}
			}
		}
	}
	if marks == 0 {
		t.Error("the stream has no checkpoint")
	}
}

func (m *mirror) put(t *testing.T, src millrace.Source, c millrace.Change) {
	t.Helper()
	known, ok := m.refs[c.URL]
	if ok && millrace.SameVersion(c.Version, known.Version) && c.Location == known.Location {
		m.refs[c.URL] = c.Ref
		return
	}
	p := c.Page
	if p == nil {
		have := c.Ref
		have.Version = ""
		if known.Location == c.Location {
			have.Version = known.Version
		}
		var err error
		p, err = src.Page(t.Context(), have)
		if errors.Is(err, millrace.ErrUnmodified) && ok {
			return
		}
		if err != nil {
			t.Fatalf("Page of %s: %v", c.URL, err)
		}
	}
	m.got++
	ref := c.Ref
	ref.Version = p.Version
	m.refs[c.URL], m.pages[c.URL] = ref, p
}
