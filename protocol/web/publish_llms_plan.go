package web

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

const (
	listPath = "/llms.txt"

	// Bytes, which are no fewer than characters: readers take 50,000 of these.
	maxFile   = 50_000
	maxLines  = 45_000 // of a file, the rest is for what stands around them
	ownFile   = 25_000 // what is below a path has a file of its own from there on
	maxPiece  = 12_000
	lineSpace = 300 // at most, of a line beside its URL
	headSpace = 80  // of a heading

	maxParts   = 150 // that one file names
	maxFolders = 8   // that have a part of their own, inside each other
)

// plan says which files llms.txt is, and what is in each. It follows from the
// names of the pages alone, and a part of it from those below its path, so that a
// new page changes the files of the folders that it is in, and no others.
type plan struct {
	root *index
	dirs map[string]*index // by path, those that cover it
}

// index is a file of llms.txt.
type index struct {
	path   string
	dir    string // that it covers, with its "/" at the end
	pieces []piece
	parts  []*index // of the same folder, in the place of pieces
	pages  int      // that it leads to
}

// piece is a run of pages that follow one another, or a list for some of them.
type piece struct {
	after, first, last string // identities; the pages after after up to last
	pages, cost        int
	sum                [sha256.Size]byte // of the pages and their tags
	list               *index
}

// sumOf returns the hash of what follows what has a hash.
func sumOf(before [sha256.Size]byte, next []byte) [sha256.Size]byte {
	return sha256.Sum256(append(before[:], next...))
}

// folder is a part of a site while its pages come.
type folder struct {
	dir    string
	pieces []piece
	cost   int
}

// planOf makes the plan of a view in one pass over its tags. It holds the bounds
// of the pieces alone.
func planOf(ctx context.Context, v millrace.View) (*plan, error) {
	site := v.Site()
	docs := len(strings.TrimSuffix(site.Docs, "/"))
	pl := &plan{dirs: map[string]*index{}}
	stack := []*folder{{dir: "/"}}
	total, pages, last, sum := 0, 0, "", [sha256.Size]byte{}
	for t, err := range tags(ctx, v) {
		if err != nil {
			return nil, err
		}
		identity := canon.Relative(site.Base, t.URL)
		dir := folderOf(identity)
		for !strings.HasPrefix(dir, stack[len(stack)-1].dir) {
			stack = pl.close(stack)
		}
		for top := stack[len(stack)-1]; top.dir != dir; top = stack[len(stack)-1] {
			next, _, _ := strings.Cut(dir[len(top.dir):], "/")
			stack = append(stack, &folder{dir: top.dir + next + "/"})
			total += headSpace
		}
		name := documentName(identity, t.N)
		_, cost := told(t.Value)
		cost += docs + len(name) + 2*(strings.Count(name, "(")+strings.Count(name, ")")) // which are escaped
		page := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d", identity, t.Value, t.N))
		sum = sumOf(sum, page[:])
		stack[len(stack)-1].add(piece{after: last, first: identity, last: identity, pages: 1, cost: cost, sum: page})
		total, pages, last = total+cost, pages+1, identity
	}
	for len(stack) > 1 {
		stack = pl.close(stack)
	}
	if total <= maxLines {
		pl.dirs = map[string]*index{}
		stack[0].pieces = []piece{{last: last, pages: pages, cost: total, sum: sum}}
	}
	pl.root = pl.list(stack[0])
	return pl, nil
}

// folderOf gives the folder of a page, not deeper than maxFolders.
func folderOf(identity string) string {
	path, _, _ := strings.Cut(identity, "?")
	end := 0
	for depth := 0; depth <= maxFolders; depth++ {
		i := strings.IndexByte(path[end:], '/')
		if i < 0 {
			break
		}
		end += i + 1
	}
	return path[:end]
}

// add adds what follows at once on what a folder has.
func (f *folder) add(p piece) {
	f.cost += p.cost
	if n := len(f.pieces); n > 0 && p.list == nil {
		last := &f.pieces[n-1]
		if last.list == nil && last.last == p.after && last.cost+p.cost <= maxPiece {
			last.last, last.pages, last.cost, last.sum = p.last, last.pages+p.pages, last.cost+p.cost, sumOf(last.sum, p.sum[:])
			return
		}
	}
	f.pieces = append(f.pieces, p)
}

// close ends the innermost folder: it gets a file of its own, or goes into the
// folder that it is in.
func (pl *plan) close(stack []*folder) []*folder {
	f, outer := stack[len(stack)-1], stack[len(stack)-2]
	if f.cost > ownFile {
		l := pl.list(f)
		first := f.pieces[0]
		outer.add(piece{after: first.after, first: first.first, last: f.pieces[len(f.pieces)-1].last, pages: l.pages, cost: lineSpace + 2*len(f.dir), list: l})
		return stack[:len(stack)-1]
	}
	for _, p := range f.pieces {
		outer.add(p)
	}
	outer.cost += headSpace
	return stack[:len(stack)-1]
}

// list makes the file of a folder, with its parts.
func (pl *plan) list(f *folder) *index {
	l := &index{path: f.dir + "llms.txt", dir: f.dir}
	pl.dirs[f.dir] = l
	l.fill(f.dir+"llms", f.pieces)
	return l
}

// fill puts pieces into a file, or into parts of it if they are too many.
func (l *index) fill(name string, pieces []piece) {
	var leaves [][]piece
	cost := maxLines
	for _, p := range pieces {
		l.pages += p.pages
		// The folders that a piece goes through have headings.
		if next := p.cost + headSpace; cost+next > maxLines {
			leaves, cost = append(leaves, nil), 0
		}
		cost += p.cost + headSpace
		leaves[len(leaves)-1] = append(leaves[len(leaves)-1], p)
	}
	if len(leaves) < 2 {
		l.pieces = pieces
		return
	}
	per := (len(leaves) + maxParts - 1) / maxParts
	for group := range slices.Chunk(leaves, per) {
		part := name + "-" + strconv.Itoa(len(l.parts)+1)
		next := &index{path: part + ".txt", dir: l.dir}
		next.fill(part, slices.Concat(group...))
		l.parts = append(l.parts, next)
	}
}

// files gives the files, the first one first.
func (pl *plan) files() []*index {
	var out []*index
	var walk func(l *index)
	walk = func(l *index) {
		out = append(out, l)
		for _, part := range l.parts {
			walk(part)
		}
		for _, p := range l.pieces {
			if p.list != nil {
				walk(p.list)
			}
		}
	}
	walk(pl.root)
	return out
}

// covering gives the path of the file that covers a page: that of the innermost
// folder that has one.
func (pl *plan) covering(identity string) string {
	for dir := folderOf(identity); dir != ""; {
		if l := pl.dirs[dir]; l != nil {
			return l.path
		}
		dir = dir[:strings.LastIndexByte(strings.TrimSuffix(dir, "/"), '/')+1]
	}
	return listPath
}

// plans keeps the plan of the view that was asked for last: it is made with the
// edition, and read with every page.
type plans struct {
	mu   sync.Mutex
	key  planKey
	last *plan
}

type planKey struct {
	base, docs, epoch string
	seq               uint64
	time              time.Time
	pages             int
}

func (m *plans) of(ctx context.Context, v millrace.View) (*plan, error) {
	site := v.Site()
	key := planKey{site.Base, site.Docs, site.Epoch, site.Seq, site.Time, site.Pages}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last != nil && m.key == key {
		return m.last, nil
	}
	pl, err := planOf(ctx, v)
	if err != nil {
		return nil, err
	}
	m.key, m.last = key, pl
	return pl, nil
}
