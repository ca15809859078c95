package edition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// listProtocol has one list of the texts of a memSite.
type listProtocol struct{ silent }

// silent finds and advertises nothing.
type silent struct{}

func (silent) Find(context.Context, millrace.View, *http.Request) (*millrace.Document, error) {
	return nil, millrace.ErrNotFound
}

func (silent) Advertise(millrace.View) millrace.Advertisement { return millrace.Advertisement{} }

func (listProtocol) All(_ context.Context, v millrace.View) iter.Seq2[*millrace.Document, error] {
	l := lines{}
	for url, text := range v.(*memView).m {
		l[url] = text.body
	}
	parts := l.parts()
	return func(yield func(*millrace.Document, error) bool) {
		yield(&millrace.Document{Path: "/list.txt", Large: true, Parts: parts, Write: parts.Write}, nil)
	}
}

// tall returns a site whose list has several chunks.
func tall() *memSite {
	site := newMemSite(60)
	for i := range 60 {
		site.set("/"+strings.Repeat("x", i), strings.Repeat("the water comes down to the wheel ", 50+i))
	}
	return site
}

func listOf(t *testing.T, site *memSite) string {
	t.Helper()
	v, err := site.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for d := range (listProtocol{}).All(t.Context(), v) {
		if err := d.Write(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// stored returns the names of the artifacts that a server has.
func stored(t *testing.T, s *Server) (names []string) {
	t.Helper()
	for info, err := range s.artifacts.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Name)
	}
	return names
}

// losses has the kinds of damage to an artifact.
var losses = map[string]func(t *testing.T, s *Server, name string){
	"missing": func(t *testing.T, s *Server, name string) {
		t.Helper()
		if err := s.artifacts.Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	},
	"damaged": func(t *testing.T, s *Server, name string) {
		t.Helper()
		r, err := s.artifacts.Open(t.Context(), name, 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close(), s.artifacts.Delete(t.Context(), name)); err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 0xff
		if err := s.artifacts.Put(t.Context(), name, bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
	},
	"cut": func(t *testing.T, s *Server, name string) {
		t.Helper()
		err := s.artifacts.Delete(t.Context(), name)
		if err := errors.Join(err, s.artifacts.Put(t.Context(), name, strings.NewReader("half"))); err != nil {
			t.Fatal(err)
		}
	},
}

// The server does not send a missing or damaged chunk, and builds it again.
func TestChunkLost(t *testing.T) {
	for name, lose := range losses {
		for _, coding := range []string{"identity", "gzip"} {
			t.Run(name+" "+coding, func(t *testing.T) {
				site := tall()
				s := newTestServer(t, site, listProtocol{}, nil)
				publish(t, s)
				chunks := slices.DeleteFunc(stored(t, s), func(n string) bool { return !strings.HasSuffix(n, chunkSuffix) })
				if len(chunks) < 3 {
					t.Fatalf("%d chunks", len(chunks))
				}
				lose(t, s, chunks[1])
				for range 2 {
					r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/list.txt", nil)
					r.Header.Set("Accept-Encoding", coding)
					if _, err := s.Serve(httptest.NewRecorder(), r); millrace.Status(err) != http.StatusServiceUnavailable {
						t.Errorf("a response without a chunk: %v", err)
					}
				}
				if got := s.Damaged(); !slices.Equal(got, []string{"/list.txt"}) {
					t.Errorf("damaged: %q", got)
				}
				publish(t, s)
				if got := s.Damaged(); len(got) > 0 {
					t.Errorf("damaged after rebuilding: %q", got)
				}
				if got := ask(t, s, "GET", "/list.txt"); got.Body.String() != listOf(t, site) {
					t.Errorf("%d bytes after rebuilding", got.Body.Len())
				}
			})
		}
	}
}

// The server sends no byte of a damaged chunk, not even of the last one.
func TestDamagedChunkIsNotSent(t *testing.T) {
	site := tall()
	s := newTestServer(t, site, listProtocol{}, nil)
	publish(t, s)
	want := listOf(t, site)
	for _, name := range stored(t, s) {
		if strings.HasSuffix(name, chunkSuffix) {
			losses["damaged"](t, s, name)
		}
	}
	b := s.Current().large[keyAt("/list.txt")].reps[identity].Load().content.(*bodies)
	for _, from := range []int{0, len(want) / 2, len(want) - 99} {
		var sent bytes.Buffer
		err := b.collect(t.Context(), &sent, int64(from), 99)
		if !strings.HasPrefix(want[from:], sent.String()) || !errors.Is(err, millrace.ErrUnavailable) {
			t.Errorf("99 bytes at %d: %q, %v", from, &sent, err)
		}
	}
}

// A process detects a missing chunk at its start.
func TestChunkLostAtStart(t *testing.T) {
	site, dir := tall(), newArtifacts()
	s := serverIn(t, site, listProtocol{}, dir, nil)
	publish(t, s)
	for _, name := range stored(t, s) {
		if err := s.artifacts.Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	s = serverIn(t, site, listProtocol{}, dir, nil)
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, s, "GET", "/list.txt", "Accept-Encoding", "identity"); got.Body.String() != listOf(t, site) {
		t.Errorf("%d bytes", got.Body.Len())
	}
}

// Whichever artifact is missing or damaged, a running and a starting process publish the
// next edition.
func TestPublishAfterLoss(t *testing.T) {
	for name, lose := range losses {
		for _, suffix := range []string{chunkSuffix, nodeSuffix, artifactSuffix} {
			for _, starts := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " ", suffix, " ", starts), func(t *testing.T) {
					site, dir := tall(), newArtifacts()
					s := serverWithArtifacts(site, dir)
					publish(t, s)
					i := slices.IndexFunc(stored(t, s), func(n string) bool { return strings.HasSuffix(n, suffix) })
					if i < 0 {
						t.Fatalf("no artifact %s", suffix)
					}
					lose(t, s, stored(t, s)[i])
					if starts {
						s = serverWithArtifacts(site, dir)
						if err := s.Refresh(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					for _, path := range append(s.Current().ArtifactPaths(), s.Current().Large()...) {
						if starts && name != "damaged" { // the damage is detected only by a request
							break
						}
						_, _ = s.Serve(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
					}
					publish(t, s)
					consistent(t, s, listOf(t, site))
					if got := s.Damaged(); len(got) > 0 {
						t.Errorf("damaged: %q", got)
					}
					site.set("/x", "another text")
					publish(t, s)
					consistent(t, s, listOf(t, site))
				})
			}
		}
	}
}

// A missing or damaged node that no request has detected stops neither the next edition
// nor collection.
func TestPublishAfterLostNode(t *testing.T) {
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			site, dir := tall(), newArtifacts()
			s := serverWithArtifacts(site, dir)
			publish(t, s)
			last := stored(t, s)
			lose(t, s, last[slices.IndexFunc(last, func(n string) bool { return strings.HasSuffix(n, nodeSuffix) })])
			other := NewServer(site.source(), []Protocol{{Name: "other", Publisher: &artifactProtocol{}}}, dir, nil)
			publish(t, other)
			other.listedAt = time.Time{}
			if err := other.collect(t.Context(), nil, time.Now().Add(unknownFor*grace+time.Minute)); err != nil {
				t.Errorf("collection: %v", err)
			}
			site.set("/x", "another text")
			publish(t, s)
			consistent(t, s, listOf(t, site))
		})
	}
}

// Collection deletes artifacts that no edition of the store needs, after the grace period. It
// never deletes one that a builder has found or built in the meantime.
func TestCollectChunks(t *testing.T) {
	site := tall()
	s := newTestServer(t, site, listProtocol{}, nil)
	publish(t, s)
	first := stored(t, s)
	site.set("/x", "another text")
	publish(t, s)
	second := stored(t, s)
	if len(second) <= len(first) {
		t.Fatalf("%d artifacts, then %d", len(first), len(second))
	}
	needed := map[string]bool{}
	err := s.Current().manifest.forEachNotIn(t.Context(), s.artifacts, nil, func(name string, _ int64) error {
		needed[name] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	collect := func(in time.Duration) []string {
		t.Helper()
		s.listedAt = time.Time{}
		if err := s.collect(t.Context(), nil, time.Now().Add(in)); err != nil {
			t.Fatal(err)
		}
		return stored(t, s)
	}
	if got := collect(grace - time.Second); !slices.Equal(got, second) {
		t.Errorf("%d of %d artifacts remain within the grace period", len(got), len(second))
	}
	if got := collect(grace + time.Minute); !slices.Equal(got, slices.Sorted(maps.Keys(needed))) {
		t.Errorf("%d artifacts remain, %d are needed", len(got), len(needed))
	}
	// For an edition that equals an earlier one, the deleted artifacts are built again.
	site.set("/x", strings.Repeat("the water comes down to the wheel ", 51))
	publish(t, s)
	if got := ask(t, s, "GET", "/list.txt"); got.Body.String() != listOf(t, site) {
		t.Errorf("%d bytes", got.Body.Len())
	}
}

// A long document has no digest until deferred work has computed it.
func TestLongDigest(t *testing.T) {
	site := newMemSite(1)
	for i := range 40 {
		site.set("/long"+strings.Repeat("x", i), strings.Repeat("the water comes down to the wheel ", 1000))
	}
	s := newTestServer(t, site, listProtocol{}, nil)
	publish(t, s)
	first := ask(t, s, "GET", "/list.txt", "Accept-Encoding", "identity")
	if first.Code != http.StatusOK || first.Body.Len() <= digestAtOnce || first.Header().Get("Content-Digest") != "" {
		t.Fatalf("%d, %d bytes, %v", first.Code, first.Body.Len(), first.Header())
	}
	if err := s.deferDigests(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := ask(t, s, "GET", "/list.txt", "Accept-Encoding", "identity")
	if digest := next.Header().Get("Content-Digest"); digest != canon.Digest(next.Body.Bytes()) {
		t.Errorf("%q", digest)
	}
}
