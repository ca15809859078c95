package simulation

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace"
	artifactdir "github.com/millrace/millrace/artifact/dir"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// horizon is the horizon of Compact.
const horizon = 30 * 24 * time.Hour

// Pages below firstBusy never change, and pages below firstAlways do not change
// after the horizon. The others change all the time; those from monthPages to
// lastNew are added in the month.
const (
	monthPages  = 60
	firstBusy   = 20
	firstAlways = 40
	lastNew     = 80
)

// month is a site whose clock the test sets, with the pages that it should have.
type month struct {
	t     *testing.T
	dir   string
	clock atomic.Int64 // in Unix seconds
	rng   *rand.Rand
	pages map[string]*millrace.Page // by path
	texts int                       // number of texts written so far
}

func (m *month) now() time.Time { return time.Unix(m.clock.Load(), 0).UTC() }

func (m *month) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// showing is a process that publishes the site at base.
type showing struct {
	*month
	base   string
	rule   millrace.Visibility
	db     store.Store
	site   store.Site
	files  io.Closer
	server *edition.Server
	http   *http.Client
}

// open starts a process for the site, and publishes an edition.
func (m *month) open(base string, rule millrace.Visibility) *showing {
	m.t.Helper()
	ctx, s, log := m.t.Context(), &showing{month: m, base: base, rule: rule}, slog.New(slog.DiscardHandler)
	var err error
	s.db, err = stores.Open(ctx, filepath.Join(m.dir, "store.db"), &store.Options{Now: m.now})
	m.must(err)
	s.site, err = s.db.Site(ctx, "folder", base)
	m.must(err)
	taggers, protocols := publishers(&protocol.PublisherOptions{})
	pub, err := s.site.Publication(ctx, store.Config{Base: base, Visibility: rule, Taggers: taggers})
	m.must(err)
	files, err := artifactdir.Open(filepath.Join(m.dir, "files"))
	m.must(err)
	s.server = edition.NewServer(edition.Source{Store: s.db, Site: s.site, Publication: pub}, protocols, files, &edition.Options{Now: m.now, Logger: log})
	handler, err := gateway.New(s.server, &gateway.Options{Base: base, Visibility: rule, Logger: log})
	m.must(err)
	s.files, s.http = files, &http.Client{Transport: protocoltest.Answer(handler)}
	s.publish()
	return s
}

func (s *showing) close() {
	s.t.Helper()
	s.must(errors.Join(s.files.Close(), s.db.Close()))
}

func (s *showing) publish() {
	s.t.Helper()
	_, err := s.server.Publish(s.t.Context())
	s.must(err)
}

// text returns a change that gives page i a new text.
func (m *month) text(i int) millrace.Change {
	m.texts++
	p := &millrace.Page{
		URL: fmt.Sprintf("/s%d/%d", i%6, i), Title: fmt.Sprint("Page ", i), Summary: fmt.Sprint("Text ", m.texts), Section: fmt.Sprint("s", i%6),
		Kind: millrace.Article, Blocks: millrace.TextBlocks(fmt.Sprintf("This is text %d.", m.texts)), Known: millrace.AllFields, Detail: millrace.DetailBlocks,
	}
	if i == 0 {
		p.URL = "/"
	}
	return m.put(p)
}

func (m *month) put(p *millrace.Page) millrace.Change {
	m.pages[p.URL] = p
	return millrace.Change{Ref: millrace.Ref{URL: p.URL}, Page: p.Clone()}
}

// change returns a change that adds, edits, deletes, hides or shows page i.
func (m *month) change(i int) millrace.Change {
	path := fmt.Sprintf("/s%d/%d", i%6, i)
	was := m.pages[path]
	switch {
	case was == nil || m.rng.IntN(3) == 0:
		return m.text(i)
	case m.rng.IntN(2) == 0:
		delete(m.pages, path)
		return millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: path}}
	default:
		p := was.Clone()
		p.Access.NoIndex = !p.Access.NoIndex
		return m.put(p)
	}
}

// apply changes the site, and publishes it.
func (s *showing) apply(batch ...millrace.Change) {
	s.t.Helper()
	s.clock.Add(60)
	_, err := s.site.Apply(s.t.Context(), "source", batch)
	s.must(err)
	s.publish()
}

// pass changes, publishes and compacts the site every day for 35 days.
func (s *showing) pass() {
	s.t.Helper()
	for day := range 35 {
		s.clock.Add(24 * 60 * 60)
		var batch []millrace.Change
		for range 6 {
			batch = append(batch, s.change(firstAlways+s.rng.IntN(lastNew-firstAlways)))
			if day < 4 { // more than horizon before the end
				batch = append(batch, s.change(firstBusy+s.rng.IntN(firstAlways-firstBusy)))
			}
		}
		s.apply(batch...)
		s.compact()
	}
}

func (s *showing) compact() {
	s.t.Helper()
	s.must(s.site.Compact(s.t.Context(), time.Hour, horizon))
}

// since reads the changes of the current edition since an older one.
func (s *showing) since(old millrace.Site) (err error) {
	for _, err = range s.server.Current().View.Changes(s.t.Context(), old.At(old.Seq)) {
		if err != nil {
			break
		}
	}
	return err
}

// mirrors are the pages that clients have read, by protocol.
type mirrors map[string]*mirror.Pages

// read continues mirrors from their cursors; it creates those that are absent.
func (s *showing) read(copies mirrors) {
	s.t.Helper()
	for _, p := range all.Protocols() {
		if copies[p.Name] == nil {
			copies[p.Name] = new(mirror.Pages)
		}
		for range 2 { // Sync deletes many pages only when a second run confirms it
			r := p.NewReader(s.http, s.base, &protocol.ReaderOptions{Now: s.now})
			report, err := mirror.Sync(s.t.Context(), s.base, r, copies[p.Name], nil)
			if err != nil || report.SkippedN > 0 {
				s.t.Fatalf("%s: %v, skipped %v", p.Name, err, report.Skipped)
			}
			if report.UnconfirmedDeletions == 0 {
				break
			}
		}
	}
}

// compare compares the current edition with the site, and mirrors that read it
// with the edition.
func (s *showing) compare(what string, copies mirrors) {
	s.t.Helper()
	s.read(copies)
	v := s.server.Current().View
	pages, err := scan(s.t.Context(), v)
	s.must(err)
	want := make(map[string]*millrace.Page)
	for path, p := range s.pages {
		if visible, ok := s.rule.Apply(p); ok {
			c := visible.Clone()
			c.URL = canon.Absolute(s.base, path)
			want[c.URL] = c
		}
	}
	if diff := samePages(want, pages); diff != "" || v.Site().Pages != len(want) {
		s.t.Errorf("%s: the view of %d pages differs from the site (-site +view):\n%s", what, v.Site().Pages, diff)
	}
	for _, p := range all.Protocols() {
		want, got := make(map[string]*millrace.Page), maps.Collect(copies[p.Name].All())
		for u, page := range pages {
			if carried := p.Carry(v.Site(), page); carried != nil {
				want[u] = carried
			}
		}
		ignore := []string{"Version"}
		if p.Name == "tct-00" {
			ignore = append(ignore, "Modified") // a page that was hidden for a while keeps its date
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(millrace.Page{}, ignore...)); diff != "" {
			s.t.Errorf("%s: the mirror by %s differs from the view (-view +mirror):\n%s", what, p.Name, diff)
		}
	}
}

// A publication that was closed for a month reopens without a stale or lost page, although the
// site was compacted in the meantime. In every protocol, mirrors that continue from its last
// edition or from an older one have the same pages.
func TestClosedForMonth(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]millrace.Visibility{
		"as it was": {}, "hiding more": {Exclude: []string{"/s1"}},
	} {
		for seed := range uint64(testkit.Size(1, 1, 10)) {
			t.Run(fmt.Sprintf("%s %d", name, seed), func(t *testing.T) {
				t.Parallel()
				m := &month{t: t, dir: t.TempDir(), rng: rand.New(rand.NewPCG(seed, 0)), pages: make(map[string]*millrace.Page)}
				m.clock.Store(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Unix())
				b := m.open("http://b.example/", millrace.Visibility{Exclude: []string{"/s2"}})
				defer b.close()
				var batch []millrace.Change
				for i := range monthPages {
					batch = append(batch, m.text(i))
				}
				b.apply(batch...)
				ofB, early, late := mirrors{}, mirrors{}, mirrors{}
				b.compare("B at first", ofB)

				a := m.open("http://a.example/", millrace.Visibility{})
				a.compare("A at first", early)
				first := a.server.Current().View.Site()
				for i := range 6 {
					a.apply(m.change(firstBusy + 3*i))
				}
				a.compare("A before it is closed", late)
				last := a.server.Current().View.Site()
				a.close()

				b.pass()
				b.compare("B after a month", ofB)

				a = m.open("http://a.example/", rule)
				defer a.close()
				if err := a.since(first); !errors.Is(err, millrace.ErrConflict) {
					t.Errorf("the cursor of the first edition is not too old: %v", err)
				}
				if err := a.since(last); err != nil {
					t.Errorf("the cursor of the last edition: %v", err)
				}
				a.compare("the late mirrors of A", late)
				a.apply(m.change(firstAlways))
				a.compact()
				a.compare("the early mirrors of A", early)
				a.compare("the late mirrors of A once more", late)
			})
		}
	}
}
