package edition

import (
	"net/http"
	"strings"
	"sync"
)

// targets caches the documents that request targets name in one edition. With this cache, pages of
// the site itself and other URLs of a document need no lookup in the store. Two generations bound
// its size.
type targets struct {
	mu         sync.RWMutex
	young, old map[target]key
}

// target is the URL and the Accept field of a request. Together they determine the
// document.
type target struct {
	key
	accept string
}

const (
	maxTargets = 4 << 10 // maximum number of targets in one generation
	maxTarget  = 512     // maximum length of a cached target in bytes
)

// targetOf returns the target of a request, and whether it can be cached.
func targetOf(k key, r *http.Request) (target, bool) {
	accept := r.Header["Accept"]
	if len(accept) > 1 || !reads(r) {
		return target{}, false
	}
	t := target{key: k}
	if accept != nil {
		t.accept = accept[0]
	}
	return t, len(k.path)+len(k.raw)+len(k.query)+len(t.accept) <= maxTarget
}

// get returns the key of the document that a target names. The zero key means that no protocol has
// a document for the target. If the target is not cached, known is false.
func (ts *targets) get(t target) (of key, known bool) {
	ts.mu.RLock()
	defer ts.mu.RUnlock()
	if of, known = ts.young[t]; !known {
		of, known = ts.old[t]
	}
	return of, known
}

func (ts *targets) add(t target, of key) {
	t.key, t.accept = t.clone(), strings.Clone(t.accept)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(ts.young) >= maxTargets {
		ts.young, ts.old = nil, ts.young
	}
	if ts.young == nil {
		ts.young = make(map[target]key)
	}
	ts.young[t] = of.clone()
}
