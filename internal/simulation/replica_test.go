package simulation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace"
	artifactdir "github.com/millrace/millrace/artifact/dir"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/pipenet"
	"github.com/millrace/millrace/internal/replica"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
)

func replicaName(i int) string { return fmt.Sprint("replica ", i) }

// gate holds the parts of a replica while it serves.
type gate struct {
	gen       string // of the publication
	server    *edition.Server
	handler   http.Handler
	transport *http.Transport // reaches the replica over the network
	delay     replicaDelay    // held while the test delays the replica
}

// replicaDelay is the last delay of a replica, during which it could not poll the publication.
type replicaDelay struct {
	every    time.Duration // maximum time between two polls
	work     time.Duration // duration of one poll
	mu       sync.Mutex
	from, to time.Time
	lost     bool // files of the replica are lost, so it must poll again
}

// hold waits, and records the time as a delay of the replica.
func (e *replicaDelay) hold(ctx context.Context, d time.Duration) {
	e.record(d, false)
	sleep(ctx, d)
}

// record records a delay of the replica from now on. With poll, the delay lasts until the replica
// polls again.
func (e *replicaDelay) record(d time.Duration, poll bool) {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if to := e.to; !e.lost && now.After(to.Add(e.work)) || now.After(to.Add(e.every)) {
		e.from = now
	}
	if to := now.Add(d); to.After(e.to) {
		e.to = to
	}
	e.lost = poll
}

// lose records a delay until the next poll of the replica.
func (e *replicaDelay) lose() { e.record(0, true) }

// before returns the time of the oldest edition that the replica may have at t.
func (e *replicaDelay) before(t time.Time) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t.After(e.from) && !t.After(e.to.Add(e.every)) {
		t = e.from
	}
	return t.Add(-e.every)
}

// pollEvery returns the maximum interval between two polls of the publication by a replica, plus
// the duration of a poll. Both may follow a publication.
func (l *process) pollEvery() time.Duration {
	return time.Second + 10*time.Millisecond + 2*perPublication*time.Duration(l.slow)
}

// replica serves the site until it is killed, like `millrace serve`.
func (w *world) replica(i int) func(l *process) error {
	return func(l *process) error {
		db, site, err := w.open(l)
		if err != nil {
			return err
		}
		pub, err := site.Publication(l.ctx, w.config(l))
		if err != nil {
			return err
		}
		dir := filepath.Join(w.dir, "files")
		if w.seed%2 == 0 {
			dir += fmt.Sprint(i)
			w.lose(l, dir)
		}
		g := &gate{gen: pub.Name(), delay: replicaDelay{every: l.pollEvery(), work: perPublication * time.Duration(l.slow)}}
		via := &publishing{Publication: pub, w: w, l: l, g: g}
		members, err := replica.New(l.ctx, elsewhere{db, w.skews[i]}, base, "", func() bool { return g.server.Builder() }, w.logger(l.name))
		if err != nil {
			return err
		}
		o := &edition.Options{Now: func() time.Time { return members.Now().Add(w.skews[i].ahead()) }, Key: fmt.Sprint(w.items), Logger: w.logger(l.name)}
		artifacts, err := artifactdir.Open(dir)
		if err != nil {
			return err
		}
		defer func() { _ = artifacts.Close() }()
		g.server = edition.NewServer(edition.Source{Store: db, Site: site, Publication: via}, w.published(l, g), artifacts, o)
		surface, err := gateway.New(g.server, &gateway.Options{Base: base, Logger: w.logger(l.name)})
		if err != nil {
			return err
		}
		g.handler = surface
		var beating sync.WaitGroup
		beating.Go(func() { members.Run(l.ctx) })
		defer beating.Wait()
		ln := pipenet.Listen()
		var conns killer
		ln.Wrap = func(c net.Conn) net.Conn { return conns.add(w.net.wire(c)) }
		g.transport = &http.Transport{DisableCompression: true, DialContext: ln.Dial}
		w.mu.Lock()
		l.gate = g
		w.mu.Unlock()
		undo := context.AfterFunc(l.ctx, conns.kill)
		defer undo()
		err = surface.Run(l.ctx, ln, &gateway.ServerOptions{Logger: w.logger(l.name), StopTimeout: time.Millisecond})
		w.mu.Lock()
		l.gate = nil
		w.mu.Unlock()
		g.transport.CloseIdleConnections()
		return err
	}
}

// lose deletes a file of the replica, as a cleanup of folders might.
func (w *world) lose(l *process, dir string) {
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 || !w.chance(l.rng, .3) {
		return
	}
	name := files[l.rng.IntN(len(files))].Name()
	w.logf("%s has lost %s", l.name, name)
	_ = os.Remove(filepath.Join(dir, name))
}

// killer closes the connections of a process that is killed.
type killer struct {
	mu    sync.Mutex
	conns []net.Conn
	dead  bool
}

func (k *killer) add(c net.Conn) net.Conn {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dead {
		_ = c.Close()
	}
	k.conns = append(k.conns, c)
	return c
}

func (k *killer) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dead = true
	for _, c := range k.conns {
		_ = c.Close()
	}
}

// publishing returns the options of every protocol.
func (w *world) publishing() *protocol.PublisherOptions {
	o := &protocol.PublisherOptions{ListItems: w.items}
	for _, p := range w.protocols {
		o.Protocols = append(o.Protocols, p.Name)
	}
	return o
}

// published returns the protocols of a replica; listing a site's documents is sometimes
// slow.
func (w *world) published(l *process, g *gate) []edition.Protocol {
	var out []edition.Protocol
	for _, p := range w.protocols {
		pub := p.NewPublisher(w.publishing())
		slow := slowPublisher{pub, w, l, g}
		if filer, ok := pub.(millrace.ArtifactPublisher); ok {
			out = append(out, edition.Protocol{Name: p.Name, Publisher: watchedPublisher{slow, filer, new(firstView)}})
			continue
		}
		out = append(out, edition.Protocol{Name: p.Name, Publisher: slow})
	}
	return out
}

// buildDelay is the delay of a build.
func buildDelay(rng *rand.Rand) time.Duration {
	if rng.IntN(6) == 0 {
		return between(rng, 0, 3*time.Second)
	}
	return between(rng, 0, 150*time.Millisecond)
}

type slowPublisher struct {
	millrace.Publisher
	w *world
	l *process
	g *gate
}

// All is sometimes slow.
func (p slowPublisher) All(ctx context.Context, v millrace.View) iter.Seq2[*millrace.Document, error] {
	if p.w.chance(p.l.rng, .2) {
		p.g.delay.hold(ctx, buildDelay(p.l.rng))
	}
	p.l.work(ctx, v.Site().Pages)
	return p.Publisher.All(ctx, v)
}

// Find takes as long as rendering the document.
func (p slowPublisher) Find(ctx context.Context, v millrace.View, r *http.Request) (*millrace.Document, error) {
	p.l.work(ctx, 1)
	return p.Publisher.Find(ctx, v, r)
}

// watchedPublisher reports the files that it makes to the oracle.
type watchedPublisher struct {
	slowPublisher
	filer millrace.ArtifactPublisher
	first *firstView
}

// Artifacts builds the files.
func (f watchedPublisher) Artifacts(ctx context.Context, v millrace.View, now time.Time, s millrace.ArtifactSet) (time.Time, error) {
	f.l.work(ctx, v.Site().Pages)
	if f.w.broken.part {
		v = f.first.once(v)
	}
	return f.filer.Artifacts(ctx, v, now, watchedArtifacts{s, &f.w.oracle})
}

// Deferred builds the deferred files of a view.
func (f watchedPublisher) Deferred(ctx context.Context, v millrace.View, now time.Time, s millrace.ArtifactSet) error {
	f.l.work(ctx, 10*v.Site().Pages)
	return f.filer.Deferred(ctx, v, now, watchedArtifacts{s, &f.w.oracle})
}

// firstView is the first view of a publisher, for the broken mode.
type firstView struct{ millrace.View }

func (f *firstView) once(v millrace.View) millrace.View {
	if f.View == nil {
		f.View = v
	}
	return f.View
}

type watchedArtifacts struct {
	millrace.ArtifactSet
	o *oracle
}

// Put records a document.
func (s watchedArtifacts) Put(ctx context.Context, d *millrace.Document) error {
	var b bytes.Buffer
	if err := d.Write(ctx, &b); err != nil {
		return err
	}
	sum := sha256.Sum256(b.Bytes())
	etag, err := edition.ETag(ctx, d.Parts)
	if err != nil {
		return err
	}
	s.o.make(d.Path, etag, sum)
	return s.ArtifactSet.Put(ctx, d)
}

// Create starts a file.
func (s watchedArtifacts) Create() (millrace.ArtifactWriter, error) {
	d, err := s.ArtifactSet.Create()
	return &watchedWriter{ArtifactWriter: d, o: s.o}, err
}

type watchedWriter struct {
	millrace.ArtifactWriter
	o    *oracle
	body []byte
}

// Write appends to the file.
func (d *watchedWriter) Write(b []byte) (int, error) {
	d.body = append(d.body, b...)
	return d.ArtifactWriter.Write(b)
}

// Finish records the files.
func (d *watchedWriter) Finish(ctx context.Context, head []byte, f millrace.Artifact, codings []string, name func(coding, sum string) string) ([]millrace.Artifact, error) {
	files, err := d.ArtifactWriter.Finish(ctx, head, f, codings, name)
	for _, made := range files {
		d.o.make(made.Path, made.ETag, sha256.Sum256(slices.Concat(head, d.body)))
	}
	return files, err
}

// publishing is a publication that records its editions, and whose process can be killed while it
// publishes. Requests for discovery also call Head. The builder's goroutine alone calls the other
// methods, so they may wait.
type publishing struct {
	store.Publication
	w     *world
	l     *process
	g     *gate
	views sync.Map // sequence number to millrace.View
}

// Head returns the newest view.
func (p *publishing) Head(ctx context.Context) (millrace.View, error) {
	v, err := p.Publication.Head(ctx)
	if err == nil {
		p.views.Store(v.Site().Seq, local(v))
	}
	return v, err
}

// Published returns the published view.
func (p *publishing) Published(ctx context.Context) (millrace.View, store.Edition, error) {
	if p.w.broken.isolated && p.l.name == replicaName(1) && p.g.server.Current() != nil {
		ed := p.g.server.Current()
		return ed.View, store.Edition{}, fmt.Errorf("isolated: %w", millrace.ErrNotFound)
	}
	p.l.work(ctx, 0)
	v, ed, err := p.Publication.Published(ctx)
	if err == nil {
		p.views.Store(v.Site().Seq, local(v))
	}
	return v, ed, err
}

// Refresh takes time.
func (p *publishing) Refresh(ctx context.Context, l store.Lease, limit int, progress func(done, total int)) (bool, error) {
	p.l.work(ctx, 0)
	if p.w.broken.omit && time.Since(p.w.start) > 12*time.Second {
		return false, nil
	}
	return p.Publication.Refresh(ctx, l, limit, progress)
}

// Publish publishes an edition. The process may be killed before or after that.
func (p *publishing) Publish(ctx context.Context, lease store.Lease, old, to uint64, manifest []byte) (made store.Edition, err error) {
	w, rng := p.w, p.l.rng
	p.l.work(ctx, 0)
	if w.chance(rng, .2) {
		p.g.delay.hold(ctx, buildDelay(rng))
	}
	if w.chance(rng, .05) {
		w.logf("%s is killed before it publishes %d", p.l.name, to)
		p.l.kill()
		return made, ctx.Err()
	}
	head, _ := p.views.Load(to)
	view, _ := head.(millrace.View)
	ed, err := w.oracle.describe(ctx, view, p.l, p.g.gen)
	if err != nil {
		return made, err
	}
	again := false
	w.mu.Lock()
	if p.l.crashes != w.crashes || p.l.ctx.Err() != nil {
		err = errors.New("dead")
	} else if made, err = p.Publication.Publish(ctx, lease, old, to, manifest); err == nil {
		again = w.oracle.add(ed)
	}
	w.mu.Unlock()
	w.logf("%s publishes %d of %s as edition %d, %d pages: %v", p.l.name, to, p.g.gen, old+1, len(ed.pages), err)
	switch {
	case err != nil:
		return made, err
	case w.chance(rng, .05):
		w.logf("%s is killed after it has published %d", p.l.name, to)
		p.l.kill()
		return made, ctx.Err()
	case w.chance(rng, .06):
		w.logf("%s gets no reply after it has published %d", p.l.name, to)
		if again {
			p.g.delay.lose() // the files were rebuilt, and are served only after another poll
		}
		return made, fmt.Errorf("the reply was lost: %w", millrace.ErrUnavailable)
	}
	return made, nil
}

// alive returns the running replicas, ready or not.
func (w *world) alive() []*process {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*process
	for i := range w.replicas {
		if l := w.lives[replicaName(i)]; l != nil && l.gate != nil && l.ctx.Err() == nil {
			c := *l
			out = append(out, &c)
		}
	}
	return out
}

// pick chooses a replica for a request. It rarely chooses one that is not ready.
func (w *world) pick(rng *rand.Rand) *process {
	all := w.alive()
	for range 3 {
		if len(all) == 0 {
			return nil
		}
		l := all[rng.IntN(len(all))]
		if l.server.Current() != nil || rng.IntN(4) == 0 {
			return l
		}
	}
	return nil
}
