package edition

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	artifactmemory "github.com/millrace/millrace/artifact/memory"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// memSite is a publication in memory that has all states of its site. Its pages are
// texts.
type memSite struct {
	st *memory.Store

	mu        sync.Mutex
	states    []map[string]text // by sequence number
	log       []millrace.Change // by sequence number
	published uint64
	number    uint64 // of the newest edition
	epoch     string // "" = mem
	name      string // "" = mem
	forked    bool   // from a generation that published it
	manifest  []byte
	casHook   func() error      // called before a compare-and-swap
	durable   store.Publication // keeps the manifests too; may be nil
	dropped   *memSite          // the publication that replaces this dropped one; nil = not dropped
}

// memLog is the site of a memSite.
type memLog struct {
	store.Site // nil: the server calls only the methods below
	of         *memSite
}

func (l memLog) Head(ctx context.Context) (millrace.View, error) { return l.of.Head(ctx) }

func (l memLog) HeadCursor(ctx context.Context) (millrace.Cursor, error) {
	v, err := l.of.Head(ctx)
	return v.Site().At(v.Site().Seq), err
}

// source returns the Source of a server that publishes the site.
func (s *memSite) source() Source {
	return Source{
		Store: s.st, Site: memLog{of: s}, Publication: s,
		Reopen: func(context.Context) (store.Publication, error) { return s.dropped, nil },
	}
}

type text struct {
	body string
	seq  uint64
}

var epochStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func timeOf(seq uint64) time.Time { return epochStart.Add(time.Duration(seq) * time.Second) }

func newMemSite(n int) *memSite {
	s := &memSite{st: memory.New(nil), states: []map[string]text{{}}, log: make([]millrace.Change, 1)}
	for i := range n {
		s.set("/"+strconv.Itoa(i), "page "+strconv.Itoa(i))
	}
	return s
}

// set puts a page; an empty body deletes it. Only the newest states are kept.
func (s *memSite) set(id, body string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[string]text)
	for k, v := range s.states[len(s.states)-1] {
		next[k] = v
	}
	seq := uint64(len(s.states))
	c := millrace.Change{Ref: millrace.Ref{URL: id}, Time: timeOf(seq)}
	if body == "" {
		delete(next, id)
		c.Kind = millrace.Delete
	} else {
		next[id] = text{body, seq}
	}
	s.states = append(s.states, next)
	s.log = append(s.log, c)
	return seq
}

func (s *memSite) view(seq uint64) *memView {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &memView{s, seq, s.states[seq], s.log[:seq+1]}
}

func (s *memSite) Head(context.Context) (millrace.View, error) {
	s.mu.Lock()
	seq := uint64(len(s.states) - 1)
	s.mu.Unlock()
	return s.view(seq), nil
}

func (s *memSite) Name() string { return cmp.Or(s.name, "mem") }

func (s *memSite) Refresh(_ context.Context, _ store.Lease, _ int, progress func(done, total int)) (more bool, err error) {
	if progress != nil {
		progress(1, 2)
	}
	return false, nil
}

func (s *memSite) Published(context.Context) (millrace.View, store.Edition, error) {
	s.mu.Lock()
	if s.dropped != nil {
		s.mu.Unlock()
		return nil, store.Edition{}, millrace.Coded("log-dropped", millrace.ErrConflict)
	}
	seq, forked, ed := s.published, s.forked, store.Edition{Number: s.number, Manifest: s.manifest}
	s.mu.Unlock()
	if forked || ed.Number == 0 {
		return nil, ed, millrace.ErrNotFound
	}
	return s.view(seq), ed, nil
}

func (s *memSite) Publish(ctx context.Context, _ store.Lease, old, seq uint64, manifest []byte) (store.Edition, error) {
	if s.casHook != nil {
		if err := s.casHook(); err != nil {
			return store.Edition{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.number != old {
		return store.Edition{}, millrace.ErrConflict
	}
	if s.durable != nil {
		if _, err := s.durable.Refresh(ctx, store.Lease{}, 0, nil); err != nil {
			return store.Edition{}, err
		}
		if _, err := s.durable.Publish(ctx, store.Lease{}, old, 0, manifest); err != nil {
			return store.Edition{}, err
		}
	}
	s.published, s.number, s.forked, s.manifest = seq, old+1, false, manifest
	return store.Edition{Number: s.number, Manifest: manifest}, nil
}

type memView struct {
	site *memSite
	seq  uint64
	m    map[string]text
	log  []millrace.Change
}

func (v *memView) Site() millrace.Site {
	return millrace.Site{Base: "https://x.test/", EndpointBase: "https://x.test/", Title: "X", Epoch: cmp.Or(v.site.epoch, "mem"), Seq: v.seq, Time: timeOf(v.seq), Pages: len(v.m)}
}

func (v *memView) Changes(_ context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		number := strings.TrimPrefix(string(since), v.Site().Epoch+":") // as of [millrace.Site.At]
		at, err := strconv.ParseUint(cmp.Or(number, "0"), 10, 64)
		if err != nil || at > v.seq {
			yield(millrace.Change{}, millrace.ErrConflict)
			return
		}
		for _, c := range v.log[at+1:] {
			if !yield(c, nil) {
				return
			}
		}
		yield(millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: millrace.Cursor(strconv.FormatUint(v.seq, 10))}}, nil)
	}
}

func (v *memView) Page(context.Context, millrace.Ref) (*millrace.Page, error) { panic("not used") }
func (v *memView) Scan(context.Context, millrace.Scan) iter.Seq2[*millrace.Page, error] {
	panic("not used")
}
func (v *memView) Tag(context.Context, string, string) (millrace.Tag, error) { panic("not used") }
func (v *memView) Tags(context.Context, string, string) iter.Seq2[millrace.Tag, error] {
	panic("not used")
}
func (v *memView) SeqAt(context.Context, time.Time) (uint64, error) { panic("not used") }

// memProtocol publishes a text at /N.txt and, in two shards by the parity of the
// number's last digit, lists at /even.txt and /odd.txt.
type memProtocol struct {
	sharedETag bool
	vary       string
	renders    atomic.Int64
	slow       time.Duration // of one rendering
	finds      atomic.Int64
	pad        int // bytes added to every text
}

func (m *memProtocol) doc(v *memView, id string) *millrace.Document {
	t := v.m[id]
	d := &millrace.Document{
		Path: id + ".txt", ETag: fmt.Sprintf("t%d-%d", t.seq, len(t.body)), SharedETag: m.sharedETag,
		Header: http.Header{
			"Content-Type":  {"text/plain; charset=utf-8"},
			"Cache-Control": {"max-age=0, must-revalidate"},
			"Link":          {"<https://x.test" + id + `>; rel="canonical"`},
			"Last-Modified": {timeOf(t.seq).Format(http.TimeFormat)},
		},
		Write: func(_ context.Context, w io.Writer) error {
			m.renders.Add(1)
			time.Sleep(m.slow)
			_, err := io.WriteString(w, fmt.Sprintf("t%d-%d|%s", t.seq, len(t.body), t.body)+strings.Repeat(" pad", m.pad/4))
			return err
		},
	}
	if m.vary != "" {
		d.Header["Vary"] = []string{m.vary}
	}
	return d
}

func (m *memProtocol) Find(_ context.Context, view millrace.View, r *http.Request) (*millrace.Document, error) {
	m.finds.Add(1)
	v := view.(*memView)
	id, ok := strings.CutSuffix(r.URL.Path, ".txt")
	if _, there := v.m[id]; !ok || !there {
		return nil, fmt.Errorf("mem: %w", millrace.ErrNotFound)
	}
	return m.doc(v, id), nil
}

func (m *memProtocol) All(_ context.Context, view millrace.View) iter.Seq2[*millrace.Document, error] {
	v := view.(*memView)
	return func(yield func(*millrace.Document, error) bool) {
		ids := slices.Sorted(func(yield func(string) bool) {
			for id := range v.m {
				if !yield(id) {
					return
				}
			}
		})
		for i, name := range []string{"/even.txt", "/odd.txt"} {
			d := &millrace.Document{
				Path: name, Large: true, SharedETag: m.sharedETag, Header: http.Header{"Content-Type": {"text/plain"}, "Cache-Control": {"max-age=0"}},
				Write: func(_ context.Context, w io.Writer) error {
					m.renders.Add(1)
					time.Sleep(m.slow)
					for _, id := range ids {
						if parity(id) == i {
							fmt.Fprintf(w, "%s %s\n", id, v.m[id].body)
						}
					}
					return nil
				},
			}
			version := 0 // the number of the newest change of a page of the list
			for seq, c := range v.log {
				if seq > 0 && parity(c.URL) == i {
					version = seq
				}
			}
			d.Parts = millrace.SinglePart(strconv.Itoa(version), d.Write)
			if !yield(d, nil) {
				return
			}
		}
		for _, id := range ids {
			if !yield(m.doc(v, id), nil) {
				return
			}
		}
	}
}

func (m *memProtocol) Deferred(context.Context, millrace.View, time.Time, millrace.ArtifactSet) error {
	return nil
}

func (m *memProtocol) Advertise(millrace.View) millrace.Advertisement {
	return millrace.Advertisement{}
}

func parity(id string) int { return int(id[len(id)-1]-'0') % 2 }

func newTestServer(t testing.TB, site *memSite, proto millrace.Publisher, o *Options) *Server {
	t.Helper()
	return serverIn(t, site, proto, newArtifacts(), o)
}

func serverIn(t testing.TB, site *memSite, proto millrace.Publisher, artifacts artifact.Store, o *Options) *Server {
	t.Helper()
	if o == nil {
		o = new(Options)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return NewServer(site.source(), []Protocol{{Name: "mem", Publisher: proto}}, artifacts, o)
}

func newArtifacts() artifact.Store { return artifactmemory.New(nil) }

func publish(t testing.TB, s *Server) {
	t.Helper()
	if _, err := s.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// ask sends one request to a server. Header fields come in pairs.
func ask(t testing.TB, s *Server, method, target string, fields ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	done, err := s.Serve(w, r)
	refused(t, w, err)
	if !done && err == nil {
		w.Code = 0
	}
	return w
}
