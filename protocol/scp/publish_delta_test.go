package scp

import (
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// Deltas do not list deletions. So the next delta connects with the last one, even if a page
// was deleted after the last change.
func TestDeltaAfterDeletion(t *testing.T) {
	p := publishing(t, nil)
	p.put(t, handbook()...)
	p.publish(t)
	p.now = p.now.AddDate(0, 0, 1)
	p.put(t, "/blog/3", "changed")
	for _, gone := range []string{"/docs/4/", "/docs/5/"} {
		p.now = p.now.Add(3 * time.Second)
		p.put(t, gone, "")
		p.publish(t)
	}
	p.now = p.now.AddDate(0, 0, 1)
	p.put(t, "/blog/5", "changed")
	d := elements(p.publish(t), "delta", "all")
	if len(d) != 2 || d[1]["since"] != d[0]["generated"] || len(p.urls(t, d[1])) != 1 {
		t.Errorf("the second delta does not connect with the first: %v", d)
	}
}

// A site in a volatile store has no deltas.
func TestDeltaVolatile(t *testing.T) {
	p := publishing(t, nil)
	p.site.Store.Volatile = true
	pub, err := p.site.Publication(t.Context(), store.Config{Base: "https://y.test/", Taggers: []millrace.Tagger{Protocol().Tagger}})
	if err != nil {
		t.Fatal(err)
	}
	p.site.Pub = pub
	p.server = p.another(t, nil, t.TempDir())
	p.put(t, handbook()...)
	p.publish(t)
	p.now = p.now.AddDate(0, 0, 1)
	p.put(t, "/blog/3", "changed")
	text := p.publish(t)
	if len(elements(text, "collection", "all")) != 1 || len(elements(text, "delta", "")) != 0 {
		t.Errorf("the sitemap has a delta, or no collection:\n%s", text)
	}
}
