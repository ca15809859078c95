package openfeeder

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
)

const (
	staticPages = endpoint + "/pages" // prefix of the paths of pages in a static feed
	staticEnd   = ".json"
	staticItems = 50_000 // maximum number of items per index file
)

// static reports whether the feed is static and a path has the form of an index file.
func (p *publisher) static(name string) bool {
	return p.o.Static && strings.HasSuffix(name, staticEnd) &&
		(name == staticIndex(0) || strings.HasPrefix(name, endpoint+"-"))
}

// staticIndex returns the path of the index file with number i, starting at 0.
func staticIndex(i int) string {
	if i == 0 {
		return endpoint + staticEnd
	}
	return endpoint + "-" + strconv.Itoa(i+1) + staticEnd
}

// staticName returns the path of a page's file. target is the path and query of the page. The name
// contains the path, "~d" for a trailing slash, and "~q" followed by the query in base 32. Tildes
// in the last segment are doubled, so the encoding is unambiguous.
func staticName(target string) string {
	dir, query, _ := strings.Cut(target, "?")
	last := dir[strings.LastIndexByte(dir, '/')+1:]
	dir = dir[:len(dir)-len(last)]
	last = strings.ReplaceAll(last, "~", "~~")
	if last == "" {
		last = "~d"
	}
	if query != "" {
		last += "~q" + lower32.EncodeToString([]byte(query))
	}
	return staticPages + dir + last + staticEnd
}

// targetOf returns the path and query of a canonical URL.
func targetOf(u string) string { return strings.TrimPrefix(u, canon.Origin(u)) }

var lower32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// staticTarget is the inverse of staticName.
func staticTarget(name string) (target string, ok bool) {
	name, ok = strings.CutPrefix(name, staticPages)
	if !ok || !strings.HasPrefix(name, "/") {
		return "", false
	}
	if name, ok = strings.CutSuffix(name, staticEnd); !ok {
		return "", false
	}
	at := strings.LastIndexByte(name, '/') + 1
	var b strings.Builder
	b.WriteString(name[:at])
	for last := name[at:]; last != ""; {
		plain, mark, marked := strings.Cut(last, "~")
		b.WriteString(plain)
		switch {
		case !marked:
			return b.String(), true
		case strings.HasPrefix(mark, "~"):
			b.WriteByte('~')
		case strings.HasPrefix(mark, "q"):
			query, err := lower32.DecodeString(mark[1:])
			b.WriteString("?" + string(query))
			return b.String(), err == nil && len(query) > 0
		case mark != "d" && !strings.HasPrefix(mark, "d~q") || plain != "":
			return "", false
		}
		last = mark[1:]
	}
	return b.String(), true
}

func (p *publisher) findStatic(ctx context.Context, v millrace.View, name string) (*millrace.Document, error) {
	site := v.Site()
	if target, ok := staticTarget(name); ok && staticName(target) == name {
		t, err := v.Tag(ctx, Name, canon.Origin(site.Base)+target)
		if err == nil {
			return p.staticPage(v, t), nil
		}
		if !errors.Is(err, millrace.ErrNotFound) {
			return nil, fmt.Errorf("%s: page %s: %w", Name, kit.Short(target), err)
		}
	}
	return nil, fmt.Errorf("%s: %s: %w", Name, kit.Short(name), millrace.ErrNotFound)
}

// staticPage returns the document of a page with all its chunks.
func (p *publisher) staticPage(v millrace.View, t millrace.Tag) *millrace.Document {
	const allUnits = 1 << 30
	d := p.pageDocument(v, t, query{mode: pageMode, url: t.URL, page: 1, limit: allUnits})
	d.Path = staticName(targetOf(t.URL))
	return d
}

func (p *publisher) allStatic(ctx context.Context, v millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(yield func(*millrace.Document, error) bool) {
		published := v.Site().Tagged[Name]
		limit := cmp.Or(p.o.ListItems, staticItems)
		files := pagesOf(published, limit)
		for i := range files {
			d := p.document(staticIndex(i), "")
			d.Large, d.PageCount = true, int64(min(limit, published-i*limit))
			version := fmt.Sprintf("%s %d %d", v.Site().At(v.Site().Seq), files, limit)
			d.Parts = millrace.SinglePart(version, func(ctx context.Context, w io.Writer) error {
				if err := p.writeStatic(ctx, v, i, files, limit, w); err != nil {
					return fmt.Errorf("%s: index: %w", Name, err)
				}
				return nil
			})
			d.Write = d.Parts.Write
			if !yield(d, nil) {
				return
			}
		}
		d, err := p.discovery(ctx, v)
		if err != nil || !yield(d, nil) {
			if err != nil {
				yield(nil, err)
			}
			return
		}
		for t, err := range v.Tags(ctx, Name, "") {
			if err != nil {
				yield(nil, fmt.Errorf("%s: all documents: %w", Name, err))
				return
			}
			if !yield(p.staticPage(v, t), nil) {
				return
			}
		}
	}
}

// writeStatic writes the index file with number i, starting at 0.
func (p *publisher) writeStatic(ctx context.Context, v millrace.View, i, files, limit int, w io.Writer) error {
	site := v.Site()
	x := &index{Page: i + 1, TotalPages: files}
	if i+1 < files {
		x.Next = path(site, staticIndex(i+1))
	}
	out := bufio.NewWriterSize(w, 64<<10)
	_, _ = out.Write(x.head()) // Flush returns the error
	buf := []byte("\n")
	for found, err := range p.orders.of(ctx, v).pages(ctx, v, i*limit, limit) {
		if err != nil {
			return err
		}
		it, err := p.item(ctx, v, found)
		if err != nil {
			return err
		}
		u, _ := published(site, found)
		it.URL = relative(site.Base, u)
		it.Document = path(site, staticName(targetOf(u)))
		_, _ = out.Write(it.append(buf))
		buf = append(buf[:0], ",\n"...)
	}
	_, _ = out.Write(new(index).tail(nil))
	return out.Flush()
}
