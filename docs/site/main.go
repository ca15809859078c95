// Command site builds the documentation as HTML: go run ./docs/site --out DIR.
//
// millrace itself publishes Markdown only for machines, and renders no pages for people. This
// program renders the pages, and millrace serve DIR publishes them with search and documents
// for machines.
package main

import (
	"bytes"
	"embed"
	"errors"
	"flag"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

//go:embed page.html style.css search.js
var assets embed.FS

// rootPages are the pages at the root of the module that the site includes, with their paths in
// docs/.
var rootPages = map[string]string{"ARCHITECTURE.md": "explanation/architecture.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}

// home is the page whose lists of links are the navigation.
const home = "index.md"

func main() {
	out := flag.String("out", "", "folder to write the site to")
	module := flag.String("module", ".", "root of the module")
	flag.Parse()
	if *out == "" {
		flag.Usage()
		os.Exit(2)
	}
	if err := build(os.DirFS(*module), *out); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// page is one page of the site.
type page struct {
	Path        string // path in docs/, such as guides/watch-sites.md
	Title       string
	Description string
	Body        template.HTML
	Root        string // relative path from the page to the home page's folder: "" or "../"
	Nav         []section
	source      string // path in the module
	markdown    []byte
	tree        ast.Node
}

// section is a part of the navigation: a heading of the home page with the links below it.
type section struct {
	Level int
	Title string
	Links []link
}

// link is one link of the navigation. URL is relative to the home page.
type link struct {
	Title, URL string
	Current    bool
}

// build writes the site of a module to a folder.
func build(module fs.FS, out string) error {
	pages, err := read(module)
	if err != nil {
		return err
	}
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	for _, p := range pages {
		p.tree = markdown.Parser().Parse(text.NewReader(p.markdown))
		p.describe()
		p.labelCells()
		if err := p.relink(module, pages); err != nil {
			return fmt.Errorf("%s: %w", p.source, err)
		}
	}
	i := slices.IndexFunc(pages, func(p *page) bool { return p.Path == home })
	if i < 0 {
		return errors.New("no docs/" + home)
	}
	layout, err := template.ParseFS(assets, "page.html")
	if err != nil {
		return err
	}
	for _, p := range pages {
		p.Nav = pages[i].navigation(htmlName(p.Path))
		var body, all bytes.Buffer
		if err := markdown.Renderer().Render(&body, p.markdown, p.tree); err != nil {
			return fmt.Errorf("%s: %w", p.source, err)
		}
		p.Body = template.HTML(body.String()) //nolint:gosec // goldmark escapes text and drops raw HTML
		if err := layout.Execute(&all, p); err != nil {
			return fmt.Errorf("%s: %w", p.source, err)
		}
		if err := write(out, htmlName(p.Path), all.Bytes()); err != nil {
			return err
		}
	}
	for _, name := range []string{"style.css", "search.js"} {
		b, err := assets.ReadFile(name)
		if err = errors.Join(err, write(out, name, b)); err != nil {
			return err
		}
	}
	return nil
}

// read returns the pages of a module in the order of their paths.
func read(module fs.FS) ([]*page, error) {
	sources := maps.Clone(rootPages)
	err := fs.WalkDir(module, "docs", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Ext(name) == ".md" {
			sources[name] = strings.TrimPrefix(name, "docs/")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var pages []*page
	for _, source := range slices.Sorted(maps.Keys(sources)) {
		b, err := fs.ReadFile(module, source)
		if err != nil {
			return nil, err
		}
		p := sources[source]
		pages = append(pages, &page{Path: p, Root: strings.Repeat("../", strings.Count(p, "/")), source: source, markdown: b})
	}
	return pages, nil
}

// describe sets the title, from the first heading, and the description, from the first paragraph,
// and removes raw HTML, which consists of comments for tests.
func (p *page) describe() {
	for n := p.tree.FirstChild(); n != nil; {
		next := n.NextSibling()
		switch n.Kind() {
		case ast.KindHeading:
			if p.Title == "" {
				p.Title = p.plain(n)
			}
		case ast.KindParagraph:
			if p.Description == "" {
				p.Description = p.plain(n)
			}
		case ast.KindHTMLBlock:
			p.tree.RemoveChild(p.tree, n)
		}
		n = next
	}
}

// labelCells gives each cell of a table the text of its column's header, which narrow windows show
// beside the cell.
func (p *page) labelCells() {
	var columns []string
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		header := n.Kind() == tables.KindTableHeader
		if !entering || !header && n.Kind() != tables.KindTableRow {
			return ast.WalkContinue, nil
		}
		if header {
			columns = nil
		}
		i := 0
		for cell := n.FirstChild(); cell != nil; cell = cell.NextSibling() {
			if header {
				columns = append(columns, p.plain(cell))
			} else if i > 0 {
				cell.SetAttributeString("data-label", []byte(columns[i]))
			}
			i++
		}
		return ast.WalkSkipChildren, nil
	})
}

// plain returns the text of a node without markup.
func (p *page) plain(n ast.Node) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			out.Write(t.Segment.Value(p.markdown))
			if t.SoftLineBreak() {
				out.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return out.String()
}

// relink replaces links between Markdown files with links between pages. A link to another
// file of the module becomes text.
func (p *page) relink(module fs.FS, pages []*page) error {
	var links []*ast.Link
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if l, ok := n.(*ast.Link); ok && entering && !strings.Contains(string(l.Destination), "://") {
			links = append(links, l)
		}
		return ast.WalkContinue, nil
	})
	for _, l := range links {
		name, anchor, found := strings.Cut(string(l.Destination), "#")
		source := path.Join(path.Dir(p.source), name)
		if i := slices.IndexFunc(pages, func(to *page) bool { return to.source == source }); i >= 0 {
			l.Destination = []byte(p.Root + htmlName(pages[i].Path))
			if found {
				l.Destination = append(l.Destination, "#"+anchor...)
			}
		} else if name != "" {
			if _, err := fs.Stat(module, source); err != nil {
				return fmt.Errorf("link %s: %w", l.Destination, err)
			}
			for l.HasChildren() {
				l.Parent().InsertBefore(l.Parent(), l, l.FirstChild())
			}
			l.Parent().RemoveChild(l.Parent(), l)
		}
	}
	return nil
}

// navigation returns the lists of links below the headings of the home page. The link to the
// current page is marked.
func (p *page) navigation(current string) []section {
	var out []section
	for n := p.tree.FirstChild(); n != nil; n = n.NextSibling() {
		switch n.Kind() {
		case ast.KindHeading:
			out = append(out, section{Level: n.(*ast.Heading).Level, Title: p.plain(n)})
		case ast.KindList:
			for item := n.FirstChild(); item != nil; item = item.NextSibling() {
				if l, ok := item.FirstChild().FirstChild().(*ast.Link); ok {
					url := string(l.Destination)
					out[len(out)-1].Links = append(out[len(out)-1].Links, link{p.plain(l), url, url == current})
				}
			}
		}
	}
	return slices.DeleteFunc(out, func(s section) bool { return s.Level == 1 })
}

func htmlName(page string) string { return strings.TrimSuffix(page, ".md") + ".html" }

// write writes a file, and creates the folders above it.
func write(out, name string, data []byte) error {
	name = filepath.Join(out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}
