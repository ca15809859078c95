package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// monthState is the content of a store.
type monthState struct {
	db    store.Store
	view  millrace.View
	pages map[string]*millrace.Page
	sums  map[string]map[string][sha256.Size]byte // hashes of the carried pages, by protocol and URL
}

// open opens the named site of a store. If name is "", it opens the only site.
func (m *month) open(ctx context.Context, file, name string) (*monthState, error) {
	db, err := stores.Open(ctx, file, nil)
	if err != nil {
		return nil, err
	}
	s := &monthState{db: db, sums: map[string]map[string][sha256.Size]byte{}}
	if name == "" {
		var names []string
		for name, err := range db.Sites(ctx) {
			if err != nil {
				return nil, errors.Join(err, db.Close())
			}
			names = append(names, name)
		}
		if len(names) != 1 {
			return nil, errors.Join(fmt.Errorf("%s has the sites %q, want one", file, names), db.Close())
		}
		name = names[0]
	}
	site, err := db.Site(ctx, name, "")
	if err == nil {
		s.view, err = site.Head(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// crawled returns what a complete crawl of the HTML pages finds.
func (m *month) crawled(ctx context.Context, truth *monthState) (*monthState, error) {
	s := &monthState{view: truth.view, pages: map[string]*millrace.Page{}, sums: map[string]map[string][sha256.Size]byte{}}
	for path, p := range m.html.pages {
		if path == sitemapPath {
			continue
		}
		if p.page == nil {
			r, err := extract.HTML(ctx, p.html, m.base+path[1:], nil)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			p.page = r.Page
		}
		s.pages[m.base+path[1:]] = p.page
	}
	return s, nil
}

func (s *monthState) close() { _ = s.db.Close() }

func (s *monthState) read(ctx context.Context) error {
	s.pages = make(map[string]*millrace.Page)
	for p, err := range s.view.Scan(ctx, millrace.Scan{WithBlocks: true}) {
		if err != nil {
			return err
		}
		s.pages[p.URL] = p
	}
	return nil
}

// comparableContent returns the content of a page in a form that can be compared. It omits the
// dates, which a store sets by its own rules, and data about the transfer. If the page has blocks,
// it also omits the data that only describes the blocks, because another way of reading may have
// added that data.
func comparableContent(p *millrace.Page) []byte {
	c := p.Clone()
	c.Modified, c.Known, c.Version = time.Time{}, 0, ""
	if len(c.Blocks) > 0 {
		c.Description, c.Summary, c.Section, c.Tags, c.Kind, c.Schema, c.Extra = "", "", "", nil, "", nil, nil
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return []byte(err.Error())
	}
	return raw
}

// protocolOf returns the protocol with the given name. If there is no such protocol, it returns one
// that carries everything.
func protocolOf(name string) protocol.Protocol {
	for _, r := range all.Protocols() {
		if r.Name == name {
			return r
		}
	}
	return protocol.Protocol{Carry: func(_ millrace.Site, p *millrace.Page) *millrace.Page { return p }}
}

// carry returns a hash of each page as the protocol carries it, by URL.
func (s *monthState) carry(name string) map[string][sha256.Size]byte {
	if s.sums[name] != nil {
		return s.sums[name]
	}
	proto := protocolOf(name)
	sums := make(map[string][sha256.Size]byte, len(s.pages))
	for u, p := range s.pages {
		if c := proto.Carry(s.view.Site(), p); c != nil {
			sums[u] = sha256.Sum256(comparableContent(c))
		}
	}
	s.sums[name] = sums
	return sums
}

// compare compares a mirror with the site's pages as carried by the protocol that the mirror first
// used. wrong is the number of stale or lost pages; left lists pages that the site has deleted.
func (w *monthWay) compare(ctx context.Context, truth, got *monthState) (wrong int, left []string, err error) {
	want, proto := truth.carry(w.level), protocolOf(w.level)
	found := 0
	for p, err := range got.view.Scan(ctx, millrace.Scan{WithBlocks: true}) {
		if err != nil {
			return 0, nil, err
		}
		sum, there := want[p.URL]
		// Ignore content that this protocol does not carry: another protocol may have added it.
		if c := proto.Carry(truth.view.Site(), p); c != nil {
			p = c
		}
		switch {
		case !there && truth.pages[p.URL] != nil:
			// It is not a fault that the mirror has a page that this protocol does not carry.
		case !there:
			left = append(left, p.URL)
		case sha256.Sum256(comparableContent(p)) != sum:
			wrong++
			if w.unequal == nil {
				w.unequal = map[string]string{}
			}
			if w.unequal[p.URL] == "" {
				w.unequal[p.URL] = difference(comparableContent(proto.Carry(truth.view.Site(), truth.pages[p.URL])), comparableContent(p))
			}
			found++
		default:
			found++
		}
	}
	return wrong + len(want) - found, left, nil
}

// difference formats the parts of two pages around their first difference.
func difference(site, mirror []byte) string {
	n := 0
	for n < min(len(site), len(mirror)) && site[n] == mirror[n] {
		n++
	}
	from := max(0, n-200)
	return fmt.Sprintf("\n  site   %.400q\n  mirror %.400q", site[from:], mirror[from:])
}
