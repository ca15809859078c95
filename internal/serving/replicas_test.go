package serving

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	artifactmemory "github.com/millrace/millrace/artifact/memory"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/push"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

const replicaBase = "https://www.example.com/"

// deployment is several replicas of one gateway over one store and one artifact store.
type deployment struct {
	*testing.T
	store     *memory.Store
	artifacts artifact.Store

	mu       sync.Mutex
	pages    map[string]string // texts of the origin, by path
	changed  chan struct{}     // closed with the next change
	scans    int               // of the origin
	scanning atomic.Int32      // concurrent scans
	pings    []string          // topics that the hub received
	alive    map[string]*node
}

// node is one replica.
type node struct {
	*Server
	d    *deployment
	name string
	ctx  context.Context
	kill context.CancelFunc
	puts atomic.Int32 // artifacts that it wrote
}

func newDeployment(t *testing.T, ahead time.Duration) *deployment {
	return &deployment{
		T: t, store: memory.New(&store.Options{Now: func() time.Time { return time.Now().Add(ahead) }}), artifacts: artifactmemory.New(nil), alive: make(map[string]*node), changed: make(chan struct{}),
		pages: map[string]string{"": "Home", "a": "First text", "b": "Second text"},
	}
}

// set changes a page of the origin.
func (d *deployment) set(path, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pages[path] = text
	close(d.changed)
	d.changed = make(chan struct{})
}

// page returns a page of the site.
func page(path, text string) millrace.Change {
	p := &millrace.Page{
		URL: replicaBase + path, Title: "Page " + path, Version: text, Known: millrace.FieldTitle | millrace.FieldContent,
		Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: text}}, Detail: millrace.DetailBlocks,
	}
	return millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: p.URL, Version: p.Version}, Page: p}
}

// apply changes a page in a process that is not a replica.
func (d *deployment) apply(path, text string) {
	d.Helper()
	site, err := d.store.Site(d.Context(), replicaBase, replicaBase)
	if err == nil {
		_, err = site.Apply(d.Context(), "another", []millrace.Change{page(path, text)})
	}
	if err != nil {
		d.Fatal(err)
	}
}

// watch implements the Watch of an origin.
func (d *deployment) watch(ctx context.Context, changed func()) error {
	for {
		d.mu.Lock()
		next := d.changed
		d.mu.Unlock()
		changed()
		select {
		case <-ctx.Done():
			return nil
		case <-next:
		}
	}
}

// Changes implements [millrace.Source]: a scan of the origin, which takes a while.
func (d *deployment) Changes(ctx context.Context, _ millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		if d.scanning.Add(1) > 1 {
			d.Error("two processes scan the origin")
		}
		defer d.scanning.Add(-1)
		time.Sleep(100 * time.Millisecond)
		d.mu.Lock()
		d.scans++
		pages := maps.Clone(d.pages)
		d.mu.Unlock()
		for _, path := range slices.Sorted(maps.Keys(pages)) {
			if !yield(page(path, pages[path]), nil) {
				return
			}
		}
		yield(millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: "scanned", Complete: true}}, nil)
	}
}

// Page implements [millrace.Source].
func (d *deployment) Page(context.Context, millrace.Ref) (*millrace.Page, error) {
	return nil, millrace.ErrNotFound
}

// RoundTrip is a hub.
func (d *deployment) RoundTrip(r *http.Request) (*http.Response, error) {
	form, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	values, err := url.ParseQuery(string(form))
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	topic := values.Get("hub.url")
	d.pings = append(d.pings, topic)
	bodies := make(map[string]bool) // the hub may send its request to any replica
	for _, r := range d.alive {
		bodies[r.get(strings.TrimPrefix(topic, replicaBase))[2]] = true
	}
	if len(bodies) != 1 {
		d.Errorf("the hub may get %d versions of %s", len(bodies), topic)
	}
	return &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// counted counts the artifacts that a replica writes.
type counted struct {
	artifact.Store
	r *node
}

func (c counted) Put(ctx context.Context, name string, body io.Reader) error {
	c.r.puts.Add(1)
	return c.Store.Put(ctx, name, body)
}

// process is the store of a process, which releases no lease after it was killed.
type process struct {
	*memory.Store
	r *node
}

func (p process) Leases() store.Leases { return processLeases{p.Store.Leases(), p.r} }

type processLeases struct {
	store.Leases
	r *node
}

func (p processLeases) Release(ctx context.Context, l store.Lease) error {
	if p.r.ctx.Err() != nil {
		return p.r.ctx.Err()
	}
	return p.Leases.Release(ctx, l)
}

// start starts a replica of a version of the program.
func (d *deployment) start(name, version string) *node {
	d.Helper()
	r := &node{d: d, name: name}
	r.ctx, r.kill = context.WithCancel(d.Context())
	st := process{d.store, r}
	site, err := st.Site(r.ctx, replicaBase, replicaBase)
	if err != nil {
		d.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s := New(log)
	const hub = "https://hub.example.com/"
	o := &Options{
		Origin: &ingest.Origin{Name: replicaBase, From: "origin", Title: replicaBase, Base: replicaBase, Store: st, Source: d, Watch: d.watch, Logger: log},
		Site:   site, Config: store.Config{Base: replicaBase, EndpointBase: replicaBase}, Publisher: protocol.PublisherOptions{}, Artifacts: counted{d.artifacts, r},
		Edition: edition.Options{Version: version}, Closed: func(string) bool { return false },
		Push: &push.Pusher{Client: &http.Client{Transport: d}, Hubs: []string{hub}},
	}
	if err := s.Open(r.ctx, o); err != nil {
		d.Fatal(err)
	}
	if err := s.Answer(&gateway.Options{}); err != nil {
		d.Fatal(err)
	}
	r.Server = NewServer(r.ctx, s, &gateway.ServerOptions{Logger: log})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.alive[name] = r
	return r
}

// stop ends a replica. After kill, it has no chance to release its leases.
func (r *node) stop() {
	r.d.mu.Lock()
	delete(r.d.alive, r.name)
	r.d.mu.Unlock()
	if err := r.Close(); err != nil && r.ctx.Err() == nil {
		r.d.Error(err)
	}
	r.kill()
}

// get returns the status, the validator and the body of a document.
func (r *node) get(path string) [3]string {
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, replicaBase+path, nil))
	return [3]string{fmt.Sprint(w.Code), w.Header().Get("ETag"), w.Body.String()}
}

// same checks that all replicas serve the same bytes, and returns the paths.
func (d *deployment) same() {
	d.Helper()
	var first map[string][3]string
	for _, name := range slices.Sorted(maps.Keys(d.alive)) {
		r, got := d.alive[name], make(map[string][3]string)
		ed := r.Now().Server.Current()
		if ed == nil {
			d.Fatalf("%s has no edition", name)
		}
		for _, path := range slices.Concat(ed.Large(), ed.ArtifactPaths(), []string{"/a/llm.json", "/llms.txt", "/openfeeder", "/sitemap.xml"}) {
			got[path] = r.get(path[1:])
		}
		if first == nil {
			first = got
		}
		if diff := cmp.Diff(first, got); diff != "" {
			d.Errorf("%s differs:\n%s", name, diff)
		}
	}
}

// builders returns the names of the replicas that have written artifacts since the last call.
func (d *deployment) builders() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(d.alive)) {
		if d.alive[name].puts.Swap(0) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// shows waits until all replicas show a text.
func (d *deployment) shows(path, text string, most time.Duration) {
	d.Helper()
	start := time.Now()
	for name, r := range d.alive {
		for !strings.Contains(r.get(path + "/llm.json")[2], text) {
			if time.Since(start) > most {
				d.Fatalf("%s does not show %q after %v: %v", name, text, most, r.get(path+"/llm.json"))
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// Several replicas serve the same bytes. One of them scans the origin, builds and notifies; the
// others follow within two seconds. When that replica is killed or stopped, another one takes
// over.
func TestReplicas(t *testing.T) {
	for _, ahead := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute} {
		t.Run(fmt.Sprint("the clock of the store is ", ahead, " ahead"), func(t *testing.T) { testReplicas(t, ahead) })
	}
}

func testReplicas(t *testing.T, ahead time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeployment(t, ahead)
		defer func() {
			for _, r := range d.alive {
				r.stop()
			}
		}()
		d.start("one", "1")
		d.shows("a", "First text", time.Minute)
		d.start("two", "1")
		d.start("three", "2") // an upgrade
		d.shows("a", "First text", 2*time.Second)
		d.same()
		time.Sleep(time.Minute)
		edit := func(text string, wait time.Duration) (builder string) {
			t.Helper()
			d.builders()
			d.pings = nil
			scans := d.scans
			d.set("a", text)
			d.shows("a", text, wait)
			time.Sleep(time.Minute) // for the hub, and for deferred work
			d.same()
			builders := d.builders()
			if len(builders) != 1 {
				t.Fatalf("%s: %v build editions", text, builders)
			}
			for name, r := range d.alive {
				if s := r.Now(); s.Server.Builder() != (name == builders[0]) || s.Replicas.Count() != len(d.alive) {
					t.Errorf("%s: %s counts %d replicas; builder: %t", text, name, s.Replicas.Count(), s.Server.Builder())
				}
			}
			if n := d.scans - scans; n != 1 {
				t.Errorf("%s: %d scans", text, n)
			}
			if slices.Sort(d.pings); len(d.pings) == 0 || len(slices.Compact(slices.Clone(d.pings))) != len(d.pings) {
				t.Errorf("%s: the hub was notified of %q", text, d.pings)
			}
			return builders[0]
		}
		first := edit("a second text", 3*time.Second)
		for i := range 3 {
			if is := edit(fmt.Sprint("more text ", i), 3*time.Second); is != first {
				t.Errorf("%s builds after %s", is, first)
			}
		}
		// Changes by another process, such as a pull, reach all replicas at once. The hub is notified
		// of each change before the next one.
		for i := range 10 {
			now := time.Now()
			time.Sleep(8*time.Second - now.Sub(now.Truncate(time.Second)) + time.Duration(i)*100*time.Millisecond)
			d.builders()
			text := fmt.Sprint("text of another process ", i)
			d.apply("other", text)
			d.shows("other", text, 3*time.Second)
			if is := d.builders(); !slices.Equal(is, []string{first}) {
				t.Errorf("%v build editions after %s", is, first)
			}
			d.same()
		}
		time.Sleep(time.Minute)
		killed := d.alive[first]
		killed.kill()
		killed.stop()
		second := edit("a text after a kill", 15*time.Second)
		d.alive[second].stop()
		if third := edit("a text after a stop", 6*time.Second); third == first || third == second {
			t.Errorf("%s, %s and %s build editions", first, second, third)
		}
	})
}
