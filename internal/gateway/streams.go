package gateway

import (
	"cmp"
	"net/http"
	"sync"

	"github.com/millrace/millrace"
)

// streams counts the requests that listen. Half of the places anybody may take,
// as many as there are: behind a proxy that nobody has named, all clients are
// one. The others are for clients that have few.
type streams struct {
	most int

	mu   sync.Mutex
	open int
	each map[client]int
}

// few is how many places a client has at most, once half of them are taken.
func (s *streams) few() int { return max(4, s.most/16) }

func newStreams(most int) *streams {
	return &streams{most: cmp.Or(most, 2048), each: make(map[client]int)}
}

var errStreams = &refusal{err: millrace.RequestError{
	Status: http.StatusTooManyRequests, Code: "RATE_LIMITED", Text: "too many streams from one client: end one of them",
}, retry: 30}

// enter takes a place. Call end to give it back.
func (s *streams) enter(c client) (end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.open >= s.most:
		return nil, errBusy
	case s.open >= s.most/2 && s.each[c] >= s.few():
		return nil, errStreams
	}
	s.open++
	s.each[c]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
		if s.each[c]--; s.each[c] == 0 {
			delete(s.each, c)
		}
	}, nil
}
