// Package recent remembers what a list has said of the pages that it named last,
// until somebody asks for them: whoever asks for a page does so soon after its
// item.
package recent

import "sync"

// Most is how many names are remembered. What is forgotten costs a conditional
// request, or a comparison that is not made.
const Most = 4096

// Values are values by name, such as validators by URL. The zero value is empty.
// It is safe for concurrent use.
type Values struct {
	mu   sync.Mutex
	of   map[string]string
	ring []string
	next int
}

// Add remembers the value of a name, in place of what was added longest ago.
func (r *Values) Add(name, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = make(map[string]string)
	}
	if len(r.ring) < Most {
		r.ring = append(r.ring, name)
	} else {
		delete(r.of, r.ring[r.next])
		r.ring[r.next] = name
		r.next = (r.next + 1) % Most
	}
	r.of[name] = value
}

// Get gives the value of a name, false for one that is not remembered.
func (r *Values) Get(name string) (value string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, ok = r.of[name]
	return value, ok
}

// Take gives the value of a name and forgets it: who asks a second time wants to
// know what the page itself says.
func (r *Values) Take(name string) (value string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, ok = r.of[name]
	delete(r.of, name)
	return value, ok
}
