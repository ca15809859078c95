package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// listHeader returns the header of llms.txt and its parts. They are Markdown, but servers send
// files with this name as text.
func listHeader() http.Header {
	return http.Header{"Content-Type": {listType + "; charset=utf-8"}, "Cache-Control": {revalidate}}
}

// list returns one file of llms.txt. The document's version is a hash of the file's introduction
// and plan, so the file is rendered only if one of these has changed.
func (p *publisher) list(ctx context.Context, v millrace.View, l *index) (*millrace.Document, error) {
	head, err := p.head(ctx, v, l)
	if err != nil {
		return nil, err
	}
	site := v.Site()
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s %s\n", millrace.Markdown(head), site.Base, site.EndpointBase)
	for _, next := range l.parts {
		first, last := next.bounds()
		fmt.Fprintf(sum, "%s %d %s %s\n", next.path, next.pages, first, last)
	}
	for _, piece := range l.pieces {
		if piece.list != nil {
			fmt.Fprintf(sum, "%s %d\n", piece.list.path, piece.pages)
		} else {
			fmt.Fprintf(sum, "%x\n", piece.sum)
		}
	}
	parts := millrace.SinglePart(hex.EncodeToString(sum.Sum(nil))[:hashLen], func(ctx context.Context, w io.Writer) error {
		if err := p.writeList(ctx, v, l, w); err != nil {
			return fmt.Errorf("%s: %s: %w", Name, l.path, err)
		}
		return nil
	})
	return &millrace.Document{Path: l.path, Header: listHeader(), Large: true, Subject: millrace.Subject{PageCount: l.pageCount()}, Parts: parts, Write: parts.Write}, nil
}

// pageCount returns the number of pages that the file itself lists. The other pages are in the
// files to which it links.
func (l *index) pageCount() (n int64) {
	for _, piece := range l.pieces {
		if piece.list == nil {
			n += int64(piece.pages)
		}
	}
	return n
}

// heading is a heading with the items below it.
type heading struct {
	name  string
	items []millrace.Item
}

// writeList writes one file: its introduction, then its pages by folder, then the files with the
// other pages.
func (p *publisher) writeList(ctx context.Context, v millrace.View, l *index, w io.Writer) error {
	site := v.Site()
	docs := strings.TrimSuffix(site.EndpointBase, "/")
	blocks, err := p.head(ctx, v, l)
	if err != nil {
		return err
	}
	pages, more := heading{name: "Pages"}, heading{name: "More lists"}
	var folders []heading
	titles := make(map[string]string) // titles of the index pages of folders
	for i, next := range l.parts {
		first, last := next.bounds()
		more.items = append(more.items, item(docs+next.path, fmt.Sprintf("Part %d of %d", i+1, len(l.parts)),
			fmt.Sprintf("%d pages, from %s to %s", next.pages, cut(first, 60), cut(last, 60))))
	}
	for _, piece := range l.pieces {
		if piece.list != nil {
			more.items = append(more.items, item(docs+piece.list.path, piece.list.dir, strconv.Itoa(piece.pages)+" pages"))
			continue
		}
		for e, err := range entries(ctx, v, piece) {
			if err != nil {
				return err
			}
			rest := strings.TrimPrefix(e.pagePath, l.dir)
			folder, below, inside := strings.Cut(rest, "/")
			if below == "" && e.page.Title != "" { // the page is the index page of the folder
				titles[folder] = e.page.Title
			}
			if !inside {
				pages.items = append(pages.items, e.item(docs))
				continue
			}
			if n := len(folders); n == 0 || folders[n-1].name != folder {
				folders = append(folders, heading{name: folder})
			}
			last := &folders[len(folders)-1]
			last.items = append(last.items, e.item(docs))
		}
	}
	var named []heading
	for _, f := range folders {
		if len(f.items) == 1 { // list a folder with one page as that page
			pages.items = append(pages.items, f.items[0])
			continue
		}
		f.name = cut(cleanLine(cmp.Or(titles[f.name], canon.FolderName(f.name))), 60)
		named = append(named, f)
	}
	named = append(append([]heading{pages}, named...), more)
	if l.path == listPath && p.full {
		named = append(named, heading{name: "Optional", items: []millrace.Item{item(docs+fullPath, "All pages in one file", "")}})
	}
	for _, f := range named {
		if len(f.items) > 0 {
			blocks = append(blocks, millrace.Block{Type: millrace.HeadingBlock, Level: 2, Text: f.name},
				millrace.Block{Type: millrace.ListBlock, Items: f.items})
		}
	}
	_, err = io.WriteString(w, canon.ValidUTF8(millrace.Markdown(blocks)))
	return err
}

// head returns the introduction of a file: its title and its subject.
func (p *publisher) head(ctx context.Context, v millrace.View, l *index) ([]millrace.Block, error) {
	site := v.Site()
	title, about := strings.TrimSuffix(site.Base, "/")+l.dir, "The pages below this address."
	if l.path == listPath {
		title, about = cleanLine(site.Title), ""
		home, err := v.Page(ctx, millrace.Ref{URL: "/"})
		switch {
		case err == nil:
			if about = cleanLine(home.Description); about == "" {
				about = cleanLine(home.Summary)
			}
		case !errors.Is(err, millrace.ErrNotFound):
			return nil, err
		}
	}
	if title == "" {
		title = site.Base
	}
	blocks := []millrace.Block{{Type: millrace.HeadingBlock, Level: 1, Text: cut(title, 200)}}
	if about != "" {
		about := millrace.Block{Type: millrace.TextBlock, Text: cut(about, 500)}
		blocks = append(blocks, millrace.Block{Type: millrace.QuoteBlock, Blocks: []millrace.Block{about}})
	}
	note := "Each link leads to the Markdown of a page."
	if site.EndpointBase == site.Base && !p.static {
		note += " The page's own address also returns it for a request with Accept: text/markdown."
	}
	if len(l.parts) > 0 {
		note = "The pages are listed in several files."
	}
	if l.path == listPath {
		// Do not link to the feeds: agents expect every link in llms.txt to lead to the Markdown of
		// a page.
		docs := strings.TrimSuffix(site.EndpointBase, "/")
		for i, form := range p.feedForms() {
			note += []string{" Changes: ", " and "}[i] + docs + form.path(1)
		}
	}
	return append(blocks, millrace.Block{Type: millrace.TextBlock, Text: note}), nil
}

// bounds returns the first and the last page to which a file leads.
func (l *index) bounds() (first, last string) {
	for _, part := range l.parts {
		f, e := part.bounds()
		if first == "" {
			first = f
		}
		last = e
	}
	for _, p := range l.pieces {
		if first == "" {
			first = p.first
		}
		last = p.last
	}
	return first, last
}

// entry is a page listed in a file.
type entry struct {
	pagePath, name string
	page           *millrace.Page // the page without its blocks
}

// entries yields the pages of a piece that have Markdown.
func entries(ctx context.Context, v millrace.View, of piece) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		base := v.Site().Base
		next, stop := iter.Pull2(v.Tags(ctx, Name, of.after))
		defer stop()
		t, err, more := next()
		for page, scanned := range v.Scan(ctx, millrace.Scan{After: of.after}) {
			if scanned != nil {
				yield(entry{}, scanned)
				return
			}
			pagePath := canon.Relative(base, page.URL)
			if pagePath > of.last {
				return
			}
			for more && err == nil && canon.Relative(base, t.URL) < pagePath {
				t, err, more = next()
			}
			if err != nil {
				yield(entry{}, err)
				return
			}
			if !more {
				return
			}
			if canon.Relative(base, t.URL) != pagePath {
				continue
			}
			if !yield(entry{pagePath, documentName(pagePath, t.N), page}, nil) {
				return
			}
		}
	}
}

// item returns the line of a page.
func (e *entry) item(docs string) millrace.Item { return itemOf(e.page, e.pagePath, docs+e.name) }

func itemOf(p *millrace.Page, pagePath, target string) millrace.Item {
	label := cleanLine(p.Title)
	if label == "" {
		label = pagePath
	}
	about := cleanLine(p.Description)
	if about == "" {
		about = cleanLine(p.Summary)
	}
	return item(target, label, about)
}

// lineOf returns the length in bytes of a page's line without the URL.
func lineOf(p *millrace.Page, pagePath string) int {
	const target = "https://x/"
	return length(itemOf(p, pagePath, target)) - len(target)
}

// length returns the length of a line in bytes.
func length(it millrace.Item) int {
	return len(millrace.Markdown([]millrace.Block{{Type: millrace.ListBlock, Items: []millrace.Item{it}}}))
}

// item returns a line of limited length: long texts are cut.
func item(target, label, about string) millrace.Item {
	label = cut(label, 80)
	for {
		it := millrace.Item{Text: label, Spans: []millrace.Span{{Type: millrace.LinkSpan, End: len(label), URL: target}}}
		if about != "" {
			it.Text += ": " + about
		}
		over := length(it) - len(target) - lineSpace
		switch {
		case over <= 0:
			return it
		case about != "":
			about = cut(about, max(0, len(about)-max(over, 8)))
		case len(label) > 20:
			label = cut(label, 20)
		default:
			return it // only the escapes in the URL exceed the limit
		}
	}
}

// cut returns the beginning of a text, at most n bytes, if possible up to the end of a word.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const dots = "…"
	if n < 2*len(dots) {
		return ""
	}
	s = s[:n-len(dots)]
	if i := strings.LastIndexByte(s, ' '); i > len(s)/2 {
		s = s[:i]
	}
	return string(bytes.TrimRight(bytes.ToValidUTF8([]byte(s), nil), " ,.;:")) + dots
}
