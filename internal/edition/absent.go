package edition

import (
	"net/http"
	"strings"
	"sync"
)

// absent remembers at which targets no room has a document, as long as an
// edition stands: a page of the site's own, which is asked for again and again,
// then costs no look into the store. It forgets in generations, so that its size
// is bounded.
type absent struct {
	mu         sync.RWMutex
	young, old map[target]struct{}
}

// target is what decides whether a room has a document: the target of a request,
// and which form of it is asked for.
type target struct {
	key
	accept string
}

const (
	maxAbsent = 4 << 10 // targets of one generation, of which there are two
	maxTarget = 512     // bytes of a target that is remembered
)

// targetOf gives the target of a request, false for one that is not remembered:
// what a query names may be work, which is counted.
func targetOf(k key, r *http.Request) (target, bool) {
	accept := r.Header["Accept"]
	if k.query != "" || len(accept) > 1 || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return target{}, false
	}
	t := target{key: k}
	if accept != nil {
		t.accept = accept[0]
	}
	return t, len(k.path)+len(k.raw)+len(t.accept) <= maxTarget
}

func (a *absent) has(t target) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if _, is := a.young[t]; is {
		return true
	}
	_, is := a.old[t]
	return is
}

func (a *absent) add(t target) {
	t.key, t.accept = t.clone(), strings.Clone(t.accept)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.young) >= maxAbsent {
		a.young, a.old = nil, a.young
	}
	if a.young == nil {
		a.young = make(map[target]struct{})
	}
	a.young[t] = struct{}{}
}
