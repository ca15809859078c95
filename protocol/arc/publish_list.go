package arc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// lists returns the list under its two names, and in its YAML form. A compact site has only the
// list.
func (p *publisher) lists(v millrace.View) []*millrace.Document {
	site := v.Site()
	list := p.large(pathList, contentType, func(keyed bool) *millrace.Parts {
		h := p.head(site, site.Time).append(nil)
		return &millrace.Parts{
			Version: p.version(site), Head: append(h, '\n'), Separator: []byte(",\n"), Tail: []byte(listTail), Empty: append(h[:len(h):len(h)], listTail...),
			After: p.entries(v, keyed), Changed: p.keys(site),
		}
	})
	list.PageCount = int64(site.Pages)
	if p.o.Compact {
		return []*millrace.Document{list}
	}
	known := *list
	known.Path = pathWellKnown
	twin := p.large(pathYAML, yamlType, func(keyed bool) *millrace.Parts {
		h, entries := p.head(site, site.Time).appendYAML(nil), p.entries(v, keyed)
		return &millrace.Parts{
			Version: p.version(site), Head: append(h, '\n'), Empty: append(h[:len(h):len(h)], " []\n"...), Changed: p.keys(site),
			After: func(ctx context.Context, key string) iter.Seq2[millrace.Part, error] {
				return func(yield func(millrace.Part, error) bool) {
					var buf []byte
					for part, err := range entries(ctx, key) {
						if err == nil {
							buf = appendYAMLEntry(buf[:0], part.Body)
							part.Body = buf
						}
						if !yield(part, err) {
							return
						}
					}
				}
			},
		}
	})
	twin.PageCount = list.PageCount
	return []*millrace.Document{list, &known, twin}
}

// version returns the [millrace.Parts].Version of a site's documents.
func (p *publisher) version(site millrace.Site) string {
	return fmt.Sprintf("%d %s", tagFormat, site.Base)
}

// large returns a large document in its public and keyed forms.
func (p *publisher) large(path, contentType string, parts func(keyed bool) *millrace.Parts) *millrace.Document {
	form := func(keyed bool) (*millrace.Parts, func(context.Context, io.Writer) error) {
		parts := parts(keyed)
		return parts, func(ctx context.Context, w io.Writer) error {
			if err := parts.Write(ctx, w); err != nil {
				return fmt.Errorf("%s: %s: %w", Name, path, err)
			}
			return nil
		}
	}
	d := &millrace.Document{Path: path, Header: header(contentType), Large: true}
	d.Parts, d.Write = form(p.o.Auth)
	if !p.o.Auth && !p.o.Static {
		d.PartsKeyed, _ = form(true)
	}
	return d
}

// listedKey is the prefix of the keys of pages that are listed by URL only. These keys sort after
// the identities, in the order of [PublisherOptions].Listed.
const listedKey = "~"

// keyOfListed returns the key of the page at index i of [PublisherOptions].Listed.
func keyOfListed(i int, u string) string { return fmt.Sprintf("%s%06d %s", listedKey, i, u) }

// keys returns the [millrace.Parts].Changed of the documents of a site.
func (p *publisher) keys(site millrace.Site) func(u string) []string {
	named := p.named(site)
	return func(u string) []string {
		if i, ok := named[u]; ok {
			return []string{keyOfListed(i, u)}
		}
		return []string{canon.Relative(site.Base, u)}
	}
}

// entries returns the [millrace.Parts].After of a list: the entries of pages in the order of
// identities, and then the entries of pages that are listed by URL only.
func (p *publisher) entries(v millrace.View, keyed bool) func(ctx context.Context, key string) iter.Seq2[millrace.Part, error] {
	site := v.Site()
	named := p.named(site)
	return func(ctx context.Context, key string) iter.Seq2[millrace.Part, error] {
		return func(yield func(millrace.Part, error) bool) {
			var buf []byte
			if !strings.HasPrefix(key, listedKey) {
				for t, err := range v.Tags(ctx, Name, key) {
					_, stricter := named[t.URL] // the entry with only the URL is more restrictive
					if err == nil && stricter {
						continue
					}
					if err == nil {
						buf, err = p.entry(ctx, v, t, keyed, buf[:0])
					}
					if !yield(millrace.Part{Key: canon.Relative(site.Base, t.URL), Body: buf}, err) || err != nil {
						return
					}
				}
			}
			for i, path := range p.own.Listed {
				u := listedURL(site, path)
				if first, ok := named[u]; !ok || first != i {
					continue // invalid URL, or a duplicate
				}
				part := millrace.Part{Key: keyOfListed(i, u)}
				if part.Key <= key {
					continue
				}
				e, err := listedEntry(ctx, v, u)
				if err == nil {
					buf = e.append(buf[:0])
					part.Body = buf
				}
				if !yield(part, err) || err != nil {
					return
				}
			}
		}
	}
}

// entry appends the entry of a page to dst.
func (p *publisher) entry(ctx context.Context, v millrace.View, t millrace.Tag, keyed bool, dst []byte) ([]byte, error) {
	dst, err := entryOfTag(ctx, v, t, keyed, dst)
	if err != nil {
		return nil, err
	}
	return p.setPriority(v.Site(), t.URL, dst), nil
}

// named returns the pages that are listed by URL only, with the index in [PublisherOptions].Listed
// where each URL first occurs.
func (p *publisher) named(site millrace.Site) map[string]int {
	named := make(map[string]int, len(p.own.Listed))
	for i, path := range p.own.Listed {
		u := listedURL(site, path)
		if _, ok := named[u]; u != "" && !ok {
			named[u] = i
		}
	}
	return named
}

// listedEntry returns the entry of a page that is listed by URL only. If the view contains the
// page, the page needs no authentication; otherwise this is unknown.
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

// priority is the crawl_priority of a path and of everything below it.
type priority struct {
	path  string // without a final "/"
	value float64
}

// priorities returns the configured priorities, longest paths first.
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

// setPriority adds the priority of a page, if it has one, to its entry.
func (p *publisher) setPriority(site millrace.Site, u string, entry []byte) []byte {
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
