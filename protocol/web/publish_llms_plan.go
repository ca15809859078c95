package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"hash/fnv"
	"io"
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
	maxLines  = 45_000 // of a file, the rest is for what stands around them; what may have more below a path has a file of its own
	maxPiece  = 24_000 // of piece.most
	lineSpace = 300    // at most, of a line beside its URL
	headSpace = 80     // of a heading

	pieceBits = 6 // zero bits of the hash of an identity that begins a piece
	fileBits  = 7 // and one that begins a file, if the one before is at least half full

	maxParts   = 150 // that one file names
	maxFolders = 8   // that have a part of their own, inside each other
)

// plan says which files llms.txt is, and what is in each. Folders and pieces follow
// from the names of the pages, so that an edit keeps them. Which pieces are in one
// file follows from the length of their lines, too. Pieces and files begin where the
// hash of an identity says so, so that most changes move the bounds of few.
type plan struct {
	root *index
	dirs map[string]bool // folders with a file of their own
	cost int             // of all lines and headings
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
	pages              int
	cost               int               // bytes of its lines
	most               int               // bytes that the lines of such names can have at most
	sum                [sha256.Size]byte // XOR of hashes of each page and its tag
	list               *index
}

// begins reports whether the hash of the identity of the first page has so many zero
// bits.
func (p *piece) begins(bits int) bool {
	h := fnv.New64a()
	_, _ = io.WriteString(h, p.first)
	x := h.Sum64()
	x ^= x >> 32
	return (x^x>>16)&(1<<bits-1) == 0
}

// pieceOf returns the piece of one page.
func pieceOf(site millrace.Site, t millrace.Tag) piece {
	identity := canon.Relative(site.Base, t.URL)
	name := documentName(identity, t.N)
	_, cost := tagParts(t.Value)
	target := len(strings.TrimSuffix(site.EndpointBase, "/")) + len(name) + 2*(strings.Count(name, "(")+strings.Count(name, ")")) // which are escaped
	return piece{
		first: identity, last: identity, pages: 1, cost: cost + target, most: lineSpace + target,
		sum: sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d", identity, t.Value, t.N)),
	}
}

// join adds the pages of the next piece to a piece. The sums do not depend on the
// order of joins, so that a piece has the same ones when it is read again.
func (p *piece) join(next *piece) {
	p.last = next.last
	p.pages += next.pages
	p.cost += next.cost
	p.most += next.most
	subtle.XORBytes(p.sum[:], p.sum[:], next.sum[:])
}

// folder is a part of a site while its pages come.
type folder struct {
	dir    string
	pieces []piece
	most   int
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
	if pl.cost = all.cost + headings; pl.small() {
		pl.dirs = map[string]bool{}
		stack[0].pieces = []piece{all}
	}
	pl.root = pl.list(stack[0])
	return pl, nil
}

// small reports whether one file has the lines of all pages.
func (pl *plan) small() bool { return pl.cost <= maxLines }

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
	f.most += p.most
	if n := len(f.pieces); n > 0 && p.list == nil && !p.begins(pieceBits) {
		last := &f.pieces[n-1]
		if last.list == nil && last.last == p.after && last.most+p.most <= maxPiece {
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
	if f.most > maxLines {
		l := pl.list(f)
		first, line := f.pieces[0], lineSpace+2*len(f.dir)
		outer.add(piece{after: first.after, first: first.first, last: f.pieces[len(f.pieces)-1].last, pages: l.pages, cost: line, most: line, list: l})
		return stack[:len(stack)-1]
	}
	for _, p := range f.pieces {
		outer.add(p)
	}
	outer.most += headSpace
	return stack[:len(stack)-1]
}

// list makes the file of a folder, with its parts.
func (pl *plan) list(f *folder) *index {
	pl.dirs[f.dir] = true
	return newIndex(f.dir+"llms", f.dir, f.pieces)
}

// newIndex returns the file of pieces, or one that names parts of it if they are too
// many. name is its path without ".txt".
func newIndex(name, dir string, pieces []piece) *index {
	l := &index{path: name + ".txt", dir: dir}
	var leaves [][]piece
	cost := maxLines
	for i := range pieces {
		p := &pieces[i]
		l.pages += p.pages
		// The folders that a piece goes through have headings.
		next := p.cost + headSpace
		if cost+next > maxLines || cost >= maxLines/2 && p.begins(fileBits) {
			leaves, cost = append(leaves, nil), 0
		}
		cost += next
		leaves[len(leaves)-1] = append(leaves[len(leaves)-1], *p)
	}
	if len(leaves) < 2 {
		l.pieces = pieces
		return l
	}
	per := (len(leaves) + maxParts - 1) / maxParts
	for group := range slices.Chunk(leaves, per) {
		l.parts = append(l.parts, newIndex(name+"-"+strconv.Itoa(len(l.parts)+1), dir, slices.Concat(group...)))
	}
	return l
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

// edited returns the plan for a later view of the same pages, with the pieces read
// again that hold changed ones. pl stays as it is.
func (pl *plan) edited(ctx context.Context, v millrace.View, changed []string) (*plan, error) {
	next := &plan{dirs: pl.dirs, cost: pl.cost}
	var err error
	if next.root, err = pl.root.edited(ctx, v, changed, &next.cost); err == nil && next.small() != pl.small() {
		return planOf(ctx, v)
	}
	return next, err
}

// edited is [plan.edited] of a file. It adds to cost what the lines have become
// longer.
func (l *index) edited(ctx context.Context, v millrace.View, changed []string, cost *int) (_ *index, err error) {
	pieces := l.all()
	for i := range pieces {
		p := &pieces[i]
		at, _ := slices.BinarySearch(changed, p.after+"\x00") // the first one after it
		if at == len(changed) || changed[at] > p.last {
			continue
		}
		*cost -= p.cost
		if p.list != nil {
			p.list, err = p.list.edited(ctx, v, changed, cost)
		} else {
			err = p.read(ctx, v)
		}
		if err != nil {
			return nil, err
		}
		*cost += p.cost
	}
	return newIndex(strings.TrimSuffix(l.path, ".txt"), l.dir, pieces), nil
}

// all returns a copy of the pieces of a file and its parts.
func (l *index) all() []piece {
	out := slices.Clone(l.pieces)
	for _, part := range l.parts {
		out = append(out, part.all()...)
	}
	return out
}

// read reads the pages of a piece again.
func (p *piece) read(ctx context.Context, v millrace.View) error {
	site := v.Site()
	again := piece{after: p.after, first: p.first}
	for t, err := range tags(ctx, v, p.after) {
		if err != nil {
			return err
		}
		page := pieceOf(site, t)
		if page.last > p.last {
			break
		}
		again.join(&page)
	}
	*p = again
	return nil
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
	var pl *plan
	if same {
		pl, err = m.last.edited(ctx, v, changed)
	} else {
		pl, err = planOf(ctx, v)
	}
	if err != nil {
		return nil, err
	}
	m.site, m.last = v.Site(), pl
	return pl, nil
}
