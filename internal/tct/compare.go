package tct

import (
	"strings"
	"sync"

	"github.com/millrace/millrace/internal/docname"
)

// Likeness is how much two C-URLs name one page.
type Likeness int

// From the most to the least alike.
const (
	Exact     Likeness = iota
	Near               // but for http and https, or a slash at the end of the path
	Different          // pages
)

// Compare says how much two canonical URLs name one page.
func Compare(a, b string) Likeness {
	switch {
	case a == b:
		return Exact
	case bare(a) == bare(b):
		return Near
	}
	return Different
}

func bare(u string) string {
	_, u, _ = strings.Cut(u, "://")
	path, query := docname.CutQuery(u)
	return strings.TrimSuffix(path, "/") + query
}

// Recent remembers what the lists said of the last M-URLs that they named, to
// compare with what the M-URLs say themselves. It is a hint and bounded:
// whoever asks for a page asks soon after its item.
type Recent struct {
	mu   sync.Mutex
	etag map[string]string
	ring []string
	next int
}

const recentItems = 4096

// Add remembers the ETag that an M-URL has, says a list.
func (r *Recent) Add(murl, etag string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.etag == nil {
		r.etag = make(map[string]string)
	}
	if len(r.ring) < recentItems {
		r.ring = append(r.ring, murl)
	} else {
		delete(r.etag, r.ring[r.next])
		r.ring[r.next] = murl
		r.next = (r.next + 1) % recentItems
	}
	r.etag[murl] = etag
}

// Get gives the ETag of an M-URL, false for one that is not remembered.
func (r *Recent) Get(murl string) (etag string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	etag, ok = r.etag[murl]
	return etag, ok
}
