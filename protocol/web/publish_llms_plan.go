package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol"
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
	dirs map[string]bool // folders with a file of their own
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
	costs              uint64            // XOR of hashes of each page and its cost
	sum                [sha256.Size]byte // XOR of hashes of each page and its tag
	list               *index
}

// seed is that of piece.costs, which no file depends on.
var seed = maphash.MakeSeed()

// pieceOf returns the piece of one page.
func pieceOf(site millrace.Site, t millrace.Tag) piece {
	identity := canon.Relative(site.Base, t.URL)
	name := documentName(identity, t.N)
	_, cost := told(t.Value)
	cost += len(strings.TrimSuffix(site.Docs, "/")) + len(name) + 2*(strings.Count(name, "(")+strings.Count(name, ")")) // which are escaped
	return piece{
		first: identity, last: identity, pages: 1, cost: cost,
		costs: maphash.String(seed, identity+"\n"+strconv.Itoa(cost)),
		sum:   sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d", identity, t.Value, t.N)),
	}
}

// join adds the pages of the next piece to a piece. The sums do not depend on the
// order of joins, so that a piece has the same ones when it is read again.
func (p *piece) join(next *piece) {
	p.last = next.last
	p.pages += next.pages
	p.cost += next.cost
	p.costs ^= next.costs
	subtle.XORBytes(p.sum[:], p.sum[:], next.sum[:])
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
	pl := &plan{dirs: map[string]bool{}}
	stack := []*folder{{dir: "/"}}
	var all piece
	headings := 0
	for t, err := range tags(ctx, v, "") {
		if err != nil {
			return nil, err
		}
		page := pieceOf(site, t)
		page.after = all.last
		dir := folderOf(page.last)
		for !strings.HasPrefix(dir, stack[len(stack)-1].dir) {
			stack = pl.close(stack)
		}
		for top := stack[len(stack)-1]; top.dir != dir; top = stack[len(stack)-1] {
			next, _, _ := strings.Cut(dir[len(top.dir):], "/")
			stack = append(stack, &folder{dir: top.dir + next + "/"})
			headings += headSpace
		}
		stack[len(stack)-1].add(page)
		all.join(&page)
	}
	for len(stack) > 1 {
		stack = pl.close(stack)
	}
	if all.cost+headings <= maxLines {
		pl.dirs = map[string]bool{}
		stack[0].pieces = []piece{all}
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
			last.join(&p)
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
	pl.dirs[f.dir] = true
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
		if pl.dirs[dir] {
			return dir + "llms.txt"
		}
		dir = dir[:strings.LastIndexByte(strings.TrimSuffix(dir, "/"), '/')+1]
	}
	return listPath
}

// edited returns the file for a later view, with the pieces read again that hold
// changed pages. It returns nil if a page has another cost, because the bounds of
// the pieces depend on it. l stays as it is.
func (l *index) edited(ctx context.Context, v millrace.View, changed []string) (_ *index, err error) {
	next := *l
	next.parts, next.pieces = slices.Clone(l.parts), slices.Clone(l.pieces)
	for i, part := range l.parts {
		if next.parts[i], err = part.edited(ctx, v, changed); next.parts[i] == nil {
			return nil, err
		}
	}
	for i := range next.pieces {
		p := &next.pieces[i]
		at, _ := slices.BinarySearch(changed, p.after+"\x00") // the first one after it
		if at == len(changed) || changed[at] > p.last {
			continue
		}
		if p.list != nil {
			if p.list, err = p.list.edited(ctx, v, changed); p.list == nil {
				return nil, err
			}
		} else if same, err := p.read(ctx, v); !same {
			return nil, err
		}
	}
	return &next, nil
}

// read reads the pages of a piece again. It reports whether each has the same cost
// as before.
func (p *piece) read(ctx context.Context, v millrace.View) (bool, error) {
	site := v.Site()
	var again piece
	for t, err := range tags(ctx, v, p.after) {
		if err != nil {
			return false, err
		}
		page := pieceOf(site, t)
		if page.last > p.last {
			break
		}
		again.join(&page)
	}
	p.sum = again.sum
	return again.pages == p.pages && again.costs == p.costs, nil
}

// plans keeps the plan of the view that was asked for last: it is made with the
// edition, and read with every page.
type plans struct {
	mu   sync.Mutex
	site millrace.Site
	last *plan
}

func (m *plans) of(ctx context.Context, v millrace.View) (*plan, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	changed, same, err := protocol.SameTags(ctx, v, Name, m.site)
	if err != nil {
		return nil, fmt.Errorf("%s: the pages: %w", Name, err)
	}
	if same && len(changed) == 0 {
		return m.last, nil
	}
	pl := new(plan)
	if same {
		pl.dirs = m.last.dirs
		pl.root, err = m.last.root.edited(ctx, v, changed)
	}
	if err == nil && pl.root == nil {
		pl, err = planOf(ctx, v)
	}
	if err != nil {
		return nil, err
	}
	m.site, m.last = v.Site(), pl
	return pl, nil
}
