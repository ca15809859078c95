// Package feeder is a server for the OpenFeeder benchmarks: one protocol with a store, an edition
// server and a gateway, in its own process. Command feederd runs the server.
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
	"github.com/millrace/millrace/internal/daemon"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/protocol/openfeeder"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// Task configures a server.
type Task struct {
	File  string // file of the store
	Base  string // base URL of the site and its documents, and name of the site
	Index bool   // build a search index
	Cores int    // number of cores to use; 0 = all
	// Memory is a memory limit in MB, like GOMEMLIMIT for `millrace serve`. If zero, the server has
	// the settings of `millrace serve`.
	Memory int
	CPU    string // file for a CPU profile; "" = none
}

// Config returns the configuration of the publication. The base URL of the documents is that of the
// pages, so the publication does not depend on the server's port.
func (t *Task) Config() store.Config {
	return store.Config{
		Base: t.Base, Visibility: millrace.Visibility{Exclude: []string{}},
		Taggers: []millrace.Tagger{openfeeder.Protocol().Tagger},
	}
}

// Serve serves until standard input ends. It first writes the server's URL to standard output. Then
// it reads one command per line, and writes a line for each. Output is JSON.
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
	serverOptions := &edition.Options{Logger: log}
	if t.Index {
		x, err := t.index(ctx, site)
		if err != nil {
			return err
		}
		defer func() { _ = x.Close() }()
		serverOptions.Search = x.View
	}
	proto := edition.Protocol{Name: openfeeder.Name, Publisher: openfeeder.NewPublisher(nil)}
	artifacts, err := artifactdir.Open(t.File + "-files")
	if err != nil {
		return err
	}
	defer func() { _ = artifacts.Close() }()
	server := edition.NewServer(edition.Source{Store: st, Site: site, Publication: served}, []edition.Protocol{proto}, artifacts, serverOptions)
	o := &gateway.Options{Base: t.Base, Logger: log}
	if t.Memory == 0 { // like `millrace serve`
		o.Access.Streams = daemon.Memory{Env: os.LookupEnv}.Streams()
	}
	g, err := gateway.New(server, o)
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
		if err := g.Run(ctx, ln, &gateway.ServerOptions{Logger: log}); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	})
	defer running.Wait()
	defer cancel()
	server.Changed()
	<-server.Ready()
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
	return t.obey(ctx, served, server, ln.Addr())
}

// index builds the search index of a site and fits its vectors.
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

// obey runs the commands of the parent process until that process closes the pipe.
func (t *Task) obey(ctx context.Context, site *timed, server *edition.Server, at net.Addr) error {
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
			answer, err = site.changes(ctx, server, t.Base)
		case "search":
			answer, err = searchAlone(ctx, server.Current().View, rest)
		default:
			err = fmt.Errorf("unknown command: %s", command)
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

// timed records when its editions are published.
type timed struct {
	store.Publication
	site store.Site

	mu        sync.Mutex
	refreshed uint64 // sequence number of the site at the last refresh
	published []moment
}

// moment is a publication of changes of the site. Time is in nanoseconds since 1970, so that other
// processes can compare it with their times.
type moment struct {
	Seq  uint64 // changes of the site up to this one are published, and possibly later ones
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

// last returns the last published sequence number of the site.
func (s *timed) last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.published) == 0 {
		return 0
	}
	return s.published[len(s.published)-1].Seq
}

// Change contains the times at which a change was written and published.
type Change struct{ Written, Published int64 }

// The number of pages to change, and the interval between changes.
const (
	Changes = 1000
	Every   = 10 * time.Millisecond
)

// changes rewrites pages, each in its own transaction, and waits until all of the changes are
// published.
func (s *timed) changes(ctx context.Context, server *edition.Server, base string) ([]Change, error) {
	text := strings.Repeat("The page was rewritten at "+time.Now().String()+", and says how the water turns the wheel. ", 35)
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
		server.Changed()
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

// searchAlone runs the queries of a file on a view for a second, and returns the number
// of searches.
func searchAlone(ctx context.Context, v millrace.View, questions string) (n int, err error) {
	s, ok := v.(millrace.Searcher)
	if !ok {
		return 0, errors.New("view does not implement Searcher")
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
