package edition

import (
	"net/http"
	"strings"
	"sync"
)

// targets remembers which document a request target names, as long as an
// edition stands: a page of the site itself, and a document that is named by
// another URL than its own, then cost no lookup in the store. It has two
// generations, so that its size is bounded.
type targets struct {
	mu         sync.RWMutex
	young, old map[target]key
}

// target is what decides which document a request names: its URL, and which
// form of it the client accepts.
type target struct {
	key
	accept string
}

const (
	maxTargets = 4 << 10 // of one generation
	maxTarget  = 512     // bytes of a target that is remembered
)

// targetOf returns the target of a request, false for one that is not
// remembered.
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

// get returns the key of the document that a target names: the zero key if no
// protocol has one, false if that is not known.
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
