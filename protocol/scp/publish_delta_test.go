package scp

import (
	"testing"
	"time"
)

// No delta tells of what has gone, so that the next one connects with it
// although a page went later than the last one changed.
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
