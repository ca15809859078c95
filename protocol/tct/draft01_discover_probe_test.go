package tct

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

// documentServer serves documents by their paths, and announces the lists on its root.
type documentServer struct {
	*httptest.Server
	docs  map[string]string
	lists []string
	flow  bool // responses have no Content-Length
}

func newDocumentServer(t *testing.T, lists ...string) *documentServer {
	s := &documentServer{docs: map[string]string{}, lists: lists}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *documentServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, ok := s.docs[r.URL.Path]
	if !ok && r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	for _, l := range s.lists {
		w.Header().Add("Link", "<"+l+`>; rel="index"; type="application/json"`)
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("ETag", `"e"`)
	if !s.flow {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	}
	_, _ = w.Write([]byte(body))
}

// add adds a list of n pages, and their documents.
func (s *documentServer) add(path, name string, n int) {
	var b []byte
	for i := range n {
		u := fmt.Sprintf("%s/%s/%06d", s.URL, name, i)
		d := &document{CanonicalURL: u, Title: "Page", Content: strings.Repeat("text ", 100)}
		body, hash := draft01.Encode(d)
		s.docs[fmt.Sprintf("/%s/%06d/llm.json", name, i)] = string(body)
		if b = append(b, ","...); i == 0 {
			b = b[:0]
		}
		b = draft01.appendItem(b, &listItem{CURL: u, MURL: u + "/llm.json", ETag: hash})
	}
	s.docs[path] = listHead + string(b) + listTail
}

// The number of items of a long list is estimated from its length, if known. Of many lists,
// only some are probed. Documents that are not lists are skipped.
func TestProbe(t *testing.T) {
	s := newDocumentServer(t, "/long.json")
	s.add("/long.json", "long", 5000) // of 180 bytes each
	offer, err := Draft01().Probe(t.Context(), &http.Client{}, s.URL, nil)
	if err != nil || offer.Pages < 4950 || offer.Pages > 5050 || offer.Basis == "" || offer.Changed.Bytes != int64(len(s.docs["/long.json"])) {
		t.Errorf("long: %+v, %v", offer, err)
	}
	s.flow = true
	offer, err = Draft01().Probe(t.Context(), &http.Client{}, s.URL, nil)
	if err != nil || offer.Pages != -1 || offer.First.Requests < 1000 {
		t.Errorf("of unknown length: %+v, %v", offer, err)
	}

	s = newDocumentServer(t, "/1.json", "/other.json", "/2.json", "/3.json", "/4.json", "/5.json", "/6.json")
	s.docs["/other.json"] = `{"profile":"a feed of something"}`
	for i := range 6 {
		s.add(fmt.Sprintf("/%d.json", i+1), fmt.Sprint(i), 10)
	}
	offer, err = Draft01().Probe(t.Context(), &http.Client{}, s.URL, nil)
	if err != nil || offer.Pages != 60 || offer.Unchanged.Requests != 6 || offer.Entry != s.URL+"/1.json" {
		t.Errorf("six lists: %+v, %v", offer, err)
	}
}

// If no document of a site can be fetched or parsed, Probe returns the reason.
func TestProbeBrokenDocuments(t *testing.T) {
	for name, c := range map[string]struct {
		with string
		want error
	}{
		"not there":  {"", millrace.ErrNotFound},
		"no JSON":    {"<!DOCTYPE html>", millrace.ErrInvalid},
		"no content": {`{"profile":"tct-1"}`, millrace.ErrInvalid},
	} {
		s := newDocumentServer(t, "/l.json")
		s.add("/l.json", "x", 3)
		for path := range s.docs {
			if path != "/l.json" {
				if s.docs[path] = c.with; c.with == "" {
					delete(s.docs, path)
				}
			}
		}
		if offer, err := Draft01().Probe(t.Context(), &http.Client{}, s.URL, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", name, offer, err)
		}
	}
	s := newDocumentServer(t, "/l.json")
	s.docs["/l.json"] = `{"version":2,"items":[]}`
	if offer, err := Draft01().Probe(t.Context(), &http.Client{}, s.URL, nil); !errors.Is(err, millrace.ErrInvalid) || !errors.Is(err, errVersion) {
		t.Errorf("another version: %+v, %v", offer, err)
	}
	s.docs["/l.json"] = listHead + listTail
	if offer, err := Draft01().Probe(t.Context(), &http.Client{}, s.URL, nil); err != nil || offer.Pages != 0 {
		t.Errorf("an empty site: %+v, %v", offer, err)
	}
}
