// Package recent stores values of the most recently read items of a list, because a reader of the
// list usually requests a page soon after reading its item.
package recent

import "sync"

// MaxValues is the maximum number of names. Callers must work without a value, because an old value
// may have been removed.
const MaxValues = 4096

// Values maps names to values, such as URLs to validators. The zero value is empty. It is safe for
// concurrent use.
type Values struct {
	mu   sync.Mutex
	of   map[string]string
	ring []string
	next int
}

// Add stores the value of a name. At the limit, it replaces the oldest name.
func (r *Values) Add(name, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = make(map[string]string)
	}
	if len(r.ring) < MaxValues {
		r.ring = append(r.ring, name)
	} else {
		delete(r.of, r.ring[r.next])
		r.ring[r.next] = name
		r.next = (r.next + 1) % MaxValues
	}
	r.of[name] = value
}

// Get returns the value of a name, and false if it is unknown.
func (r *Values) Get(name string) (value string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, ok = r.of[name]
	return value, ok
}

// Take returns the value of a name and deletes it, so that the value is used only once.
func (r *Values) Take(name string) (value string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	value, ok = r.of[name]
	delete(r.of, name)
	return value, ok
}
