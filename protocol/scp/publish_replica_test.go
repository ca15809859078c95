package scp

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// A replica without the artifacts of the builder builds the same collections, with the same times,
// even if it has missed editions. A client may read from both.
func TestReplicas(t *testing.T) {
	t.Parallel()
	p := publishing(t, nil)
	builder, other := p.server, p.another(t, nil, filepath.Join(t.TempDir(), "files"))
	p.put(t, handbook()...)
	p.now = p.now.Add(48 * time.Hour) // so that there are deltas
	for i := range 9 {
		p.now = p.now.Add(300 * time.Millisecond)
		p.put(t, "https://x.test/", fmt.Sprint("Edit ", i))
		want := p.publish(t)
		if i%4 == 1 {
			continue // it misses this edition
		}
		if err := other.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i == 8 && len(elements(want, "delta", "all")) == 0 {
			t.Errorf("no delta in\n%s", want)
		}
		p.server = other
		if got := p.get(t, "/sitemap.xml"); got != want {
			t.Fatalf("edition %d: the other replica has\n%s\nthe builder has\n%s", i, got, want)
		}
		p.server = builder
	}
}
