package arc

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// maxTwin is the most pages of a site whose list has a twin in YAML: readers of
// YAML hold all of a file in memory, and the twin costs what the list costs.
const maxTwin = 20_000

// lists gives the list under its two names, and its twin.
func (p *publisher) lists(v millrace.View) []*millrace.Document {
	list := p.large(pathList, contentType, func(ctx context.Context, w io.Writer, keyed bool) error {
		return p.writeList(ctx, v, w, keyed)
	})
	list.Names = int64(v.Site().Pages)
	known := *list
	known.Path, known.Same = pathWellKnown, pathList
	docs := []*millrace.Document{list, &known}
	if v.Site().Pages > maxTwin {
		return docs
	}
	twin := p.large(pathYAML, yamlType, func(ctx context.Context, w io.Writer, keyed bool) error {
		return p.writeYAML(ctx, v, w, keyed)
	})
	twin.Names = list.Names
	return append(docs, twin)
}

// large gives a large document in the forms that it has.
func (p *publisher) large(path, contentType string, write func(ctx context.Context, w io.Writer, keyed bool) error) *millrace.Document {
	form := func(keyed bool) func(context.Context, io.Writer) error {
		return func(ctx context.Context, w io.Writer) error {
			if err := write(ctx, w, keyed); err != nil {
				return fmt.Errorf("%s: %s: %w", Name, path, err)
			}
			return nil
		}
	}
	d := &millrace.Document{Path: path, Header: header(contentType), Large: true, Write: form(p.o.Auth)}
	if !p.o.Auth && !p.o.Static {
		d.WriteKeyed = form(true)
	}
	return d
}

// entries gives every entry of a list to write, in the order of the
// identities: those of pages, and then those that are listed by name alone.
// The bytes hold until the next one.
func (p *publisher) entries(ctx context.Context, v millrace.View, keyed bool, write func(entry []byte) error) error {
	site := v.Site()
	named := p.named(site)
	var buf []byte
	for t, err := range v.Tags(ctx, Name, "") {
		if err != nil {
			return err
		}
		if named[t.URL] != "" {
			continue // the stricter of the two holds
		}
		if buf, err = entryOfTag(ctx, v, t, keyed, buf[:0]); err != nil {
			return err
		}
		buf = p.prefer(site, t.URL, buf)
		if err := write(buf); err != nil {
			return err
		}
	}
	for _, path := range p.o.Listed {
		u := listedURL(site, path)
		if named[u] != path {
			continue // no URL, or the same as one before
		}
		e, err := listedEntry(ctx, v, u)
		if err != nil {
			return err
		}
		if err := write(e.append(buf[:0])); err != nil {
			return err
		}
	}
	return nil
}

// named gives the pages that are listed by name alone: by URL, the path that
// names it first.
func (p *publisher) named(site millrace.Site) map[string]string {
	named := make(map[string]string, len(p.o.Listed))
	for _, path := range p.o.Listed {
		if u := listedURL(site, path); u != "" && named[u] == "" {
			named[u] = path
		}
	}
	return named
}

// listedEntry returns the entry of a page that is listed by name alone. A page
// of the view needs no authentication; of any other page that is not known.
func listedEntry(ctx context.Context, v millrace.View, u string) (*entry, error) {
	e := &entry{URL: u, Robots: "noindex"}
	_, err := v.Tag(ctx, Name, u)
	if err == nil {
		e.Auth = new(false)
	} else if errors.Is(err, millrace.ErrNotFound) {
		err = nil
	}
	return e, err
}

func listedURL(site millrace.Site, path string) string {
	u, err := canon.URL(canon.Absolute(site.Base, path))
	if err != nil || !ofSite(site, u) {
		return ""
	}
	return u
}

// writeList writes the list as JSON, one page a line.
func (p *publisher) writeList(ctx context.Context, v millrace.View, w io.Writer, keyed bool) error {
	site := v.Site()
	out := newLines(w, p.head(site, site.Time))
	if err := p.entries(ctx, v, keyed, out.write); err != nil {
		return err
	}
	return out.end()
}

// lines writes a list as JSON.
type lines struct {
	out *bufio.Writer
	sep string
}

func newLines(w io.Writer, h *head) *lines {
	l := &lines{bufio.NewWriterSize(w, 64<<10), "\n"}
	_, _ = l.out.Write(h.append(nil)) // an error stays until Flush
	return l
}

func (l *lines) write(entry []byte) error {
	_, _ = l.out.WriteString(l.sep)
	l.sep = ",\n"
	_, err := l.out.Write(entry)
	return err
}

func (l *lines) end() error {
	_, _ = l.out.WriteString(listTail)
	return l.out.Flush()
}

// writeYAML writes the list as YAML.
func (p *publisher) writeYAML(ctx context.Context, v millrace.View, w io.Writer, keyed bool) error {
	site := v.Site()
	out := bufio.NewWriterSize(w, 64<<10)
	buf := p.head(site, site.Time).appendYAML(nil)
	_, _ = out.Write(buf) // an error stays until Flush
	n := 0
	if err := p.entries(ctx, v, keyed, func(entry []byte) error {
		if n++; n == 1 {
			_ = out.WriteByte('\n')
		}
		buf = appendYAMLEntry(buf[:0], entry)
		_, err := out.Write(buf)
		return err
	}); err != nil {
		return err
	}
	if n == 0 {
		_, _ = out.WriteString(" []\n")
	}
	return out.Flush()
}

// priority is the crawl_priority of a path and everything below.
type priority struct {
	path  string // without "/" at its end
	value float64
}

// priorities gives what the options say, the longest paths first.
func priorities(by map[string]float64) []priority {
	var out []priority
	for path, value := range by {
		out = append(out, priority{strings.TrimRight(path, "/"), value})
	}
	slices.SortFunc(out, func(a, b priority) int {
		return cmp.Or(len(b.path)-len(a.path), strings.Compare(a.path, b.path))
	})
	return out
}

// prefer gives an entry with its priority, if it has one.
func (p *publisher) prefer(site millrace.Site, u string, entry []byte) []byte {
	if len(p.paths) == 0 {
		return entry
	}
	path, _, _ := strings.Cut(canon.Relative(site.Base, u), "?")
	for _, at := range p.paths {
		if rest, ok := strings.CutPrefix(path, at.path); ok && (rest == "" || rest[0] == '/') {
			entry = append(entry[:len(entry)-1], `,"crawl_priority":`...)
			return append(canon.AppendNumber(entry, at.value), '}')
		}
	}
	return entry
}
