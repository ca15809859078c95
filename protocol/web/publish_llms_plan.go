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

	// Limits in bytes. Readers accept 50,000 characters, and a text never has more characters than
	// bytes.
	maxFile   = 50_000
	maxLines  = 45_000 // maximum size of the lines of a file, without headings; a path with more lines gets its own files
	maxPiece  = 24_000 // maximum of piece.most
	lineSpace = 300    // maximum size of a line without its URL
	headSpace = 80     // size that is reserved for a heading

	pieceBits = 6 // a piece starts at a page if the hash of its path ends with this many zero bits
	fileBits  = 7 // the same for a file, if the previous file is at least half full

	maxParts   = 150 // maximum number of parts to which one file links
	maxFolders = 8   // maximum depth of nested folders with their own parts
)

// plan divides llms.txt into files. Folders and pieces depend only on the paths of the pages, so an
// edit does not change them. The division of pieces among files also depends on the length of their
// lines. Pieces and files start at pages whose path has a hash with enough zero bits, so most
// changes move few boundaries.
type plan struct {
	root *index
	dirs map[string]bool // folders with their own file
	cost int             // size of all lines and headings in bytes
}

// index is a file of llms.txt.
type index struct {
	path   string
	dir    string // path that the file covers; ends with "/"
	pieces []piece
	parts  []*index // files of the same folder, in place of pieces
	pages  int      // number of pages listed in the file and in the files below it
}

// piece is a run of consecutive pages, or, if list is set, a folder with its own file.
type piece struct {
	after, first, last string // paths: the piece contains the pages after "after", up to last
	pages              int
	cost               int               // size of its lines in bytes
	most               int               // maximum size of the lines of these paths in bytes
	sum                [sha256.Size]byte // XOR of the hashes of each page and its tag
	list               *index
}

// begins reports whether the lowest bits of the hash of the first page's path are zero.
func (p *piece) begins(bits int) bool {
	h := fnv.New64a()
	_, _ = io.WriteString(h, p.first)
	x := h.Sum64()
	x ^= x >> 32
	return (x^x>>16)&(1<<bits-1) == 0
}

// pieceOf returns the piece that contains a single page.
func pieceOf(site millrace.Site, t millrace.Tag) piece {
	pagePath := canon.Relative(site.Base, t.URL)
	name := documentName(pagePath, t.N)
	_, cost := tagParts(t.Value)
	target := len(strings.TrimSuffix(site.EndpointBase, "/")) + len(name) + 2*(strings.Count(name, "(")+strings.Count(name, ")")) // parentheses are escaped
	return piece{
		first: pagePath, last: pagePath, pages: 1, cost: cost + target, most: lineSpace + target,
		sum: sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d", pagePath, t.Value, t.N)),
	}
}

// join appends the pages of the next piece to a piece. The sum does not depend on the order of
// joins, so a piece that is read again gets the same sum.
func (p *piece) join(next *piece) {
	p.last = next.last
	p.pages += next.pages
	p.cost += next.cost
	p.most += next.most
	subtle.XORBytes(p.sum[:], p.sum[:], next.sum[:])
}

// folder is a folder of the site while planOf reads its pages.
type folder struct {
	dir    string
	pieces []piece
	most   int
}

// planOf returns the plan of a view, in one pass over its tags. Only the boundaries of the pieces
// are kept in memory.
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

// small reports whether one file can list all pages.
func (pl *plan) small() bool { return pl.cost <= maxLines }

// folderOf returns the folder of a page, at most maxFolders deep.
func folderOf(pagePath string) string {
	path, _, _ := strings.Cut(pagePath, "?")
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

// add appends a piece to a folder.
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

// close ends the innermost folder: the folder gets its own file, or its pieces are added to its
// parent.
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

// list returns the file of a folder, with its parts.
func (pl *plan) list(f *folder) *index {
	pl.dirs[f.dir] = true
	return newIndex(f.dir+"llms", f.dir, f.pieces)
}

// newIndex returns the file for some pieces. If there are too many pieces, it returns a file that
// links to parts. name is the path of the file without ".txt".
func newIndex(name, dir string, pieces []piece) *index {
	l := &index{path: name + ".txt", dir: dir}
	var leaves [][]piece
	cost := maxLines
	for i := range pieces {
		p := &pieces[i]
		l.pages += p.pages
		// The folders in a piece get headings.
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

// files returns all files, each before its parts.
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

// covering returns the path of the file that covers a page: the file of the innermost folder that
// has one.
func (pl *plan) covering(pagePath string) string {
	for dir := folderOf(pagePath); dir != ""; {
		if pl.dirs[dir] {
			return dir + "llms.txt"
		}
		dir = dir[:strings.LastIndexByte(strings.TrimSuffix(dir, "/"), '/')+1]
	}
	return listPath
}

// edited returns the plan for a later view of the same pages. It reads the pieces with changed
// pages again. It does not change pl.
func (pl *plan) edited(ctx context.Context, v millrace.View, changed []string) (*plan, error) {
	next := &plan{dirs: pl.dirs, cost: pl.cost}
	var err error
	if next.root, err = pl.root.edited(ctx, v, changed, &next.cost); err == nil && next.small() != pl.small() {
		return planOf(ctx, v)
	}
	return next, err
}

// edited is like [plan.edited], for one file. It adds the growth of the lines of the file to cost.
func (l *index) edited(ctx context.Context, v millrace.View, changed []string, cost *int) (_ *index, err error) {
	pieces := l.all()
	for i := range pieces {
		p := &pieces[i]
		at, _ := slices.BinarySearch(changed, p.after+"\x00") // the first changed page after p.after
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

// plans caches the plan of the last used view, because each edition and the links of each page need
// the plan.
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
		return nil, fmt.Errorf("%s: cannot read pages: %w", Name, err)
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
