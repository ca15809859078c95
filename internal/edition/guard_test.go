package edition

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/millrace/millrace"
)

// Whoever forgets the gate of a guarded room opens nothing, warm or cold,
// large or small.
func TestGuardedWithoutGate(t *testing.T) {
	room := &memRoom{vary: "Accept"}
	p := NewPress(newMemSite(4).source(), []Room{{Name: "mem", Publisher: room, Guarded: true}}, newArtifacts(), &Options{Log: slog.New(slog.DiscardHandler)})
	publish(t, p)
	room.renders.Store(0)
	for _, target := range []string{"/even.txt", "/1.txt", "/1.txt?x"} {
		for _, gate := range []Gate{nil, open{}, nil} {
			w := httptest.NewRecorder()
			_, err := p.Answer(w, httptest.NewRequest(http.MethodGet, target, nil), gate)
			switch {
			case gate == nil && (millrace.Status(err) != http.StatusUnauthorized || len(w.Header()) > 0 || w.Body.Len() > 0):
				t.Errorf("%s: %v, %v", target, err, w.Header())
			case gate != nil && (err != nil || w.Code != http.StatusOK):
				t.Errorf("%s with a key: %d %v", target, w.Code, err)
			}
		}
	}
}

// open is a gate that lets everybody in.
type open struct{}

func (open) Key() error             { return nil }
func (open) Brings() bool           { return true }
func (open) Content(bool) error     { return nil }
func (open) Large() (func(), error) { return func() {}, nil }
func (open) Of(Subject)             {}
func (open) Sends(int64, bool)      {}
func (open) Work() (func(), error)  { return nil, errors.New("there is nothing to work for") }

func TestPrivate(t *testing.T) {
	for in, want := range map[string]string{
		"": "private", "public": "private", "max-age=0, must-revalidate": "private, max-age=0, must-revalidate",
		"PUBLIC , S-MaxAge = 9,max-age=3,proxy-revalidate": "private, max-age=3", "private=\"x\", no-store": "private, no-store",
	} {
		if got := Private([]string{in}); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"": "Authorization", "*": "*", "Accept": "Accept, Authorization", "accept, authorization": "accept, authorization"} {
		if got := varied([]string{in}); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
