package arc

import "sync"

// recent remembers the versions that the list gave the pages which it named
// last, until they are asked for: whoever asks does so soon after. It is
// bounded; what it has forgotten costs a conditional request.
type recent struct {
	mu   sync.Mutex
	of   map[string]string // page to version
	ring []string
	next int
}

const recentPages = 4096

func (r *recent) add(page, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = make(map[string]string)
	}
	if len(r.ring) < recentPages {
		r.ring = append(r.ring, page)
	} else {
		delete(r.of, r.ring[r.next])
		r.ring[r.next] = page
		r.next = (r.next + 1) % recentPages
	}
	r.of[page] = version
}

// take gives the version and forgets it: who asks a second time wants to know
// what the page itself says.
func (r *recent) take(page string) (version string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	version, ok = r.of[page]
	delete(r.of, page)
	return version, ok
}
