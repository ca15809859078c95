// Package feeder is the server that the figures of OpenFeeder are of: one protocol
// through the store, the press and the gateway, in a process of its own with
// nothing else in it. Command feederd runs it.
package feeder

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	artifactdir "github.com/millrace/millrace/artifact/dir"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/protocol/openfeeder"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// Task says what a server serves.
type Task struct {
	File  string // the store
	Base  string // of the site and its documents, and the name of the site
	Index bool   // with an index to search in
	Cores int    // 0 = all
	// Memory is a limit in MB as GOMEMLIMIT sets it, which `millrace serve` heeds;
	// 0 = what serve has by itself.
	Memory int
	CPU    string // a file for a profile; "" = none
}

// Config is that of the publication. The documents' base is that of the pages,
// so that all ports have the same publication.
func (t *Task) Config() store.Config {
	return store.Config{
		Base: t.Base, Visibility: millrace.Visibility{Exclude: []string{}},
		Taggers: []millrace.Tagger{openfeeder.Protocol().Tagger},
	}
}

// Serve serves until the standard input ends. It writes the server's URL, and
// then does what lines of the standard input say, and answers each, by lines of
// JSON.
func (t *Task) Serve(ctx context.Context) (err error) {
	if t.Cores > 0 {
		runtime.GOMAXPROCS(t.Cores)
	}
	st, err := stores.Open(ctx, t.File, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	site, err := st.Site(ctx, t.Base, t.Base)
	if err != nil {
		return err
	}
	pub, err := site.Publication(ctx, t.Config())
	if err != nil {
		return err
	}
	served := &timed{Publication: pub, site: site}
	log := slog.New(slog.DiscardHandler)
	pressO := &edition.Options{Log: log}
	if t.Index {
		x, err := t.index(ctx, site)
		if err != nil {
			return err
		}
		defer func() { _ = x.Close() }()
		pressO.Search = x.View
	}
	proto := edition.Protocol{Name: openfeeder.Name, Publisher: openfeeder.NewPublisher(nil)}
	artifacts, err := artifactdir.Open(t.File + "-files")
	if err != nil {
		return err
	}
	defer func() { _ = artifacts.Close() }()
	press := edition.NewPress(edition.Source{Store: st, Site: site, Publication: served}, []edition.Protocol{proto}, artifacts, pressO)
	o := &gateway.Options{Base: t.Base, Log: log}
	if t.Memory == 0 { // as `millrace serve` does
		o.Access.Streams = access.Collect(400)
	}
	g, err := gateway.New(press, o)
	if err != nil {
		return err
	}
	ln, err := gateway.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := g.Run(ctx, ln, &gateway.ServerOptions{Log: log}); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	})
	defer running.Wait()
	defer cancel()
	press.Changed()
	<-press.Ready()
	if t.CPU != "" {
		f, err := os.Create(t.CPU)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	return t.obey(ctx, served, press, ln.Addr())
}

// index makes the index of a site, and learns from it.
func (t *Task) index(ctx context.Context, site store.Site) (*index.Index, error) {
	head, err := site.Head(ctx)
	if err != nil {
		return nil, err
	}
	x, err := index.Open(ctx, index.File(t.File, t.Base), nil)
	if err != nil {
		return nil, err
	}
	if err := x.Update(ctx, head, nil); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	if err := x.Fit(ctx, nil); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// obey does what the parent says, until that is gone.
func (t *Task) obey(ctx context.Context, site *timed, press *edition.Press, at net.Addr) error {
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode("http://" + at.String() + "/"); err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		command, rest, _ := strings.Cut(lines.Text(), " ")
		var answer any
		var err error
		switch command {
		case "change":
			answer, err = site.changes(ctx, press, t.Base)
		case "search":
			answer, err = searchAlone(ctx, press.Current().View, rest)
		default:
			err = fmt.Errorf("no such command: %s", command)
		}
		if err == nil {
			err = out.Encode(answer)
		}
		if err != nil {
			return err
		}
	}
	return lines.Err()
}

// timed notes when its editions are published.
type timed struct {
	store.Publication
	site store.Site

	mu        sync.Mutex
	refreshed uint64 // of the site
	published []moment
}

// moment is when changes of the site were published, in nanoseconds of the
// system's clock, which all processes share.
type moment struct {
	Seq  uint64 // of the site: published up to here, at least
	Time int64
}

// Refresh implements [store.Publication].
func (s *timed) Refresh(ctx context.Context, l store.Lease, limit int, progress func(done, total int)) (bool, error) {
	v, err := s.site.Head(ctx)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	s.refreshed = v.Site().Seq
	s.mu.Unlock()
	return s.Publication.Refresh(ctx, l, limit, progress)
}

// Publish implements [store.Publication].
func (s *timed) Publish(ctx context.Context, l store.Lease, old, seq uint64, manifest []byte) (store.Edition, error) {
	ed, err := s.Publication.Publish(ctx, l, old, seq, manifest)
	now := time.Now().UnixNano()
	if err == nil {
		s.mu.Lock()
		s.published = append(s.published, moment{s.refreshed, now})
		s.mu.Unlock()
	}
	return ed, err
}

// last returns how far the site is published.
func (s *timed) last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.published) == 0 {
		return 0
	}
	return s.published[len(s.published)-1].Seq
}

// Change is when a change was written, and when it was published.
type Change struct{ Written, Published int64 }

// How many pages are changed, one by one, and how soon after each other.
const (
	Changes = 1000
	Every   = 10 * time.Millisecond
)

// changes writes pages anew, each in a transaction of its own, and waits
// until all of it is published.
func (s *timed) changes(ctx context.Context, press *edition.Press, base string) ([]Change, error) {
	text := strings.Repeat("The page has been written anew at "+time.Now().String()+", and says how the water turns the wheel. ", 35)
	out, seqs := make([]Change, Changes), make([]uint64, Changes)
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for i := range out {
		p := &millrace.Page{
			URL: fmt.Sprintf("%sp/%d/", base, i), Title: fmt.Sprintf("Change %d.", i), Language: "en",
			Description: "A page that exists to be changed.", Blocks: millrace.TextBlocks(text),
			Known: millrace.AllFields &^ millrace.FieldModified, Detail: millrace.DetailBlocks,
		}
		if _, err := s.site.Apply(ctx, "bench", []millrace.Change{{Kind: millrace.Put, Ref: millrace.Ref{URL: p.URL}, Page: p}}); err != nil {
			return nil, err
		}
		out[i].Written = time.Now().UnixNano()
		press.Changed()
		v, err := s.site.Head(ctx)
		if err != nil {
			return nil, err
		}
		seqs[i] = v.Site().Seq
		<-tick.C
	}
	for s.last() < seqs[len(seqs)-1] {
		time.Sleep(time.Millisecond)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, seq := range seqs {
		for _, at := range s.published {
			if at.Seq >= seq {
				out[i].Published = at.Time
				break
			}
		}
	}
	return out, nil
}

// searchAlone asks a view the questions of a file for a second, and gives how
// many.
func searchAlone(ctx context.Context, v millrace.View, questions string) (n int, err error) {
	s, ok := v.(millrace.Searcher)
	if !ok {
		return 0, errors.New("the view is no searcher")
	}
	asked, err := os.ReadFile(questions)
	if err != nil {
		return 0, err
	}
	lines := strings.Split(strings.TrimSpace(string(asked)), "\n")
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for start := time.Now(); time.Since(start) < time.Second; n++ {
		if _, err := s.Search(ctx, millrace.Query{Text: lines[rng.IntN(len(lines))]}); err != nil {
			return 0, err
		}
	}
	return n, nil
}
