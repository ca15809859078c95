package openfeeder

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
)

// host serves a shop in memory, and stores the expected text of its pages across all its
// stores.
type host struct {
	*shop
	mu    sync.RWMutex // locked for writing during a restart
	turn  sync.Mutex
	truth map[string]string
	n     int // number of texts used
	// breaks increases when a restart or a compaction begins and ends. Only these may
	// invalidate a token.
	breaks atomic.Int64
}

// RoundTrip responds like the gateway.
func (h *host) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	rec := httptest.NewRecorder()
	if err := h.serve(rec, r); err != nil {
		status := millrace.Status(err)
		if header, body, ok := h.pub.RenderError(r, status, err); ok {
			maps.Copy(rec.Header(), header)
			rec.WriteHeader(status)
			_, _ = rec.Write(body)
		} else {
			http.Error(rec, err.Error(), status)
		}
	}
	resp := rec.Result()
	resp.Request = r
	return resp, nil
}

func (h *host) serve(w *httptest.ResponseRecorder, r *http.Request) error {
	ctx := context.WithoutCancel(r.Context())
	d, err := h.pub.Find(ctx, h.view(), r)
	if err != nil {
		return err
	}
	maps.Copy(w.Header(), d.Header)
	w.Header().Set("ETag", `"`+d.ETag+`"`)
	if r.Header.Get("If-None-Match") == `"`+d.ETag+`"` {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	var b bytesWriter
	if err := d.Write(ctx, &b); err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

type bytesWriter []byte

func (b *bytesWriter) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// edit changes some pages in one commit, with a text that no other commit uses.
func (h *host) edit(rng *rand.Rand) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	h.shop.mu.Lock()
	h.n++
	text := fmt.Sprint("text ", h.n)
	h.now = h.now.Add(time.Second + time.Duration(rng.IntN(2000))*time.Millisecond)
	h.shop.mu.Unlock()
	edits := map[string]byte{}
	for range 1 + rng.IntN(6) {
		edits[fmt.Sprint("/", rng.IntN(80))] = "+++-"[rng.IntN(4)]
	}
	var batch []string
	for u, kind := range edits {
		batch = append(batch, string(kind)+u)
	}
	slices.Sort(batch)
	h.write(text, batch)
}

// write updates truth and the store together, one writer at a time.
func (h *host) write(text string, batch []string) {
	h.turn.Lock()
	defer h.turn.Unlock()
	for _, e := range batch {
		if e[0] == '-' {
			delete(h.truth, e[1:])
		} else {
			h.truth[e[1:]] = text
		}
	}
	h.apply(text, batch...)
}

// reopen simulates a restart of the process, with the same store or a new store of the same
// site.
func (h *host) reopen(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.breaks.Add(1)
	defer h.breaks.Add(1)
	h.open(name)
	if name == "one.db" {
		return
	}
	for u, text := range h.truth {
		h.apply(text, "+"+u)
	}
}

// follower is a client that resumes at the reader's checkpoints. Changes after the last
// checkpoint may be lost.
type follower struct {
	t        *testing.T
	h        *host
	src      millrace.Source
	cursor   millrace.Cursor
	good     bool              // the cursor has a token that covers the whole site
	breaks   int64             // the host's breaks before the cursor's token was requested
	versions map[string]string // versions by URL
	gone     map[string]time.Time
}

// poll reads the stream once. It aborts after a number of changes, if that is positive.
func (f *follower) poll(ctx context.Context, fall int) error {
	breaks := f.h.breaks.Load()
	var pending []millrace.Change
	for c, err := range f.src.Changes(ctx, f.cursor) {
		if err != nil {
			return err
		}
		if fall--; fall == 0 {
			return nil
		}
		if c.Kind != millrace.KindCheckpoint {
			pending = append(pending, c)
			continue
		}
		f.apply(pending, c.Checkpoint)
		pending, f.breaks = nil, breaks
	}
	return nil
}

func (f *follower) apply(pending []millrace.Change, m *millrace.Checkpoint) {
	f.cursor = m.Cursor
	var c cursor
	if err := json.Unmarshal([]byte(m.Cursor), &c); err != nil {
		f.t.Error(err)
	}
	all := m.Complete || !c.ReportsDeletions // the index was read, and may have changed meanwhile
	if all && f.good && f.breaks == f.h.breaks.Load() {
		f.t.Error("the index was read although the token is valid")
	}
	f.good = c.ReportsDeletions
	named := map[string]bool{}
	for _, c := range pending {
		if c.Kind == millrace.Delete {
			if f.gone[c.URL].Equal(c.Time) && !all {
				f.t.Errorf("the deletion of %s is reported twice", c.URL)
			}
			f.gone[c.URL] = c.Time
			delete(f.versions, c.URL)
			delete(named, c.URL)
			continue
		}
		if f.versions[c.URL] == c.Version && !all {
			f.t.Errorf("%s is reported twice with the version %s", c.URL, c.Version)
		}
		f.versions[c.URL] = c.Version
		named[c.URL] = true
	}
	if m.Complete {
		maps.DeleteFunc(f.versions, func(u, _ string) bool { return !named[u] })
	}
}

// Readers with tokens get every change exactly once, in any order of writes,
// restarts, compaction and new stores.
func TestReadSyncProperty(t *testing.T) {
	seeds, edits := uint64(testkit.Size(2, 2, 12)), testkit.Size(60, 60, 90)
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := &host{shop: openShop(t), truth: map[string]string{}}
			rng := rand.New(rand.NewPCG(seed, 7))
			for range 10 {
				h.edit(rng)
			}
			client := &http.Client{Transport: h}
			var writers, readers sync.WaitGroup
			done := make(chan struct{})
			// This limits the readers, which would otherwise starve the writers on a single
			// processor or with the race detector.
			turns := make(chan struct{}, 3)
			followers := make([]*follower, 3)
			for i := range followers {
				f := &follower{t: t, h: h, src: NewReader(client, base, nil), versions: map[string]string{}, gone: map[string]time.Time{}}
				followers[i] = f
				readers.Go(func() {
					rng := rand.New(rand.NewPCG(seed, 100+uint64(i)))
					for {
						select {
						case <-done:
							return
						case <-turns:
						}
						time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
						fall := -1
						if rng.IntN(4) == 0 {
							fall = 1 + rng.IntN(20)
						}
						if rng.IntN(5) == 0 { // the client's process restarts
							f.src = NewReader(client, base, nil)
						}
						if err := f.poll(t.Context(), fall); err != nil && millrace.Status(err) != http.StatusServiceUnavailable {
							t.Error(err)
							return
						}
					}
				})
			}
			for w := range 2 {
				writers.Go(func() {
					rng := rand.New(rand.NewPCG(seed, uint64(w)))
					for n := range edits {
						h.edit(rng)
						for range len(followers) {
							select {
							case turns <- struct{}{}:
							default: // the readers are behind
							}
						}
						if w > 0 {
							continue
						}
						switch n % 30 {
						case 9:
							h.reopen("one.db")
						case 19:
							h.compact(t)
						case 29:
							if n > edits/2 {
								h.reopen(fmt.Sprintf("store%d.db", n))
							}
						}
					}
				})
			}
			writers.Wait()
			close(done)
			readers.Wait()
			// There are no more breaks, so each poll after the first one uses a token.
			for range 3 {
				h.edit(rng)
				for _, f := range followers {
					if err := f.poll(t.Context(), -1); err != nil {
						t.Fatal(err)
					}
				}
			}
			want := map[string]string{}
			for p, err := range h.view().Scan(t.Context(), millrace.Scan{}) {
				if err != nil {
					t.Fatal(err)
				}
				want[p.URL] = p.Version
			}
			if len(want) != len(h.truth) {
				t.Errorf("the store has %d of %d pages", len(want), len(h.truth))
			}
			for i, f := range followers {
				if diff := cmp.Diff(want, f.versions); diff != "" {
					t.Errorf("client %d (-want +got):\n%s", i, diff)
				}
			}
			f := followers[0]
			for u, version := range f.versions {
				p, err := f.src.Page(t.Context(), millrace.Ref{URL: u})
				if err != nil || p.Version != version || p.Summary != h.truth[relative(base, u)] {
					t.Fatalf("%s is %+v, %v", u, p, err)
				}
			}
		})
	}
}

func (h *host) compact(t *testing.T) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	h.breaks.Add(1)
	defer h.breaks.Add(1)
	if err := h.site.Compact(context.WithoutCancel(t.Context()), 20*time.Second, 40*time.Second); err != nil {
		t.Error(err)
	}
}
