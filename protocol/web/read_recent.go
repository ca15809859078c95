package web

import "sync"

// recent remembers what the lists said of the states of the pages which they
// named last, until these are asked for: whoever asks does so soon after. It is
// bounded; what it has forgotten costs a conditional request.
type recent struct {
	mu   sync.Mutex
	of   map[string]string // page to state
	ring []string
	next int
}

const recentPages = 4096

func (r *recent) add(page, state string) {
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
	r.of[page] = state
}

// take gives the state and forgets it: who asks a second time wants to know
// what the page itself says.
func (r *recent) take(page string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := r.of[page]
	delete(r.of, page)
	return state
}
