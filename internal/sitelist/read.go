package sitelist

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/sitemap"
	"github.com/millrace/millrace/internal/spool"
	"github.com/millrace/millrace/store"
)

const (
	maxLine   = 4096     // maximum size of a line in bytes
	maxSample = 100      // maximum number of invalid entries in a report
	maxLists  = 50_000   // maximum number of sitemaps of one source
	maxDepth  = 4        // maximum depth of nested sitemap indexes
	maxList   = 1 << 30  // maximum size of a list in bytes
	maxMap    = 64 << 20 // maximum size of a sitemap in bytes
)

// InvalidEntry is an entry of a list that is not the URL of a site.
type InvalidEntry struct {
	Source string `json:"source"` // name of the list
	Line   int    `json:"line"`   // line of the entry, from 1; 0 = the entry is an argument
	Code   string `json:"code"`   // code of the violated rule
	Error  string `json:"error"`
}

// Report describes the result of a command with lists.
type Report struct {
	Sites   int            `json:"sites"`             // entries that are URLs of sites
	Added   int            `json:"added"`             // sites that are new in the fleet
	Changed int            `json:"changed"`           // sites whose settings were changed, or that were removed, paused or resumed
	Invalid int            `json:"invalid"`           // entries that are not URLs of sites
	Rules   map[string]int `json:"rules,omitempty"`   // number of invalid entries by violated rule
	Entries []InvalidEntry `json:"entries,omitempty"` // the first invalid entries; at most 100
}

// List contains the URLs of sites that were read from sources, in a temporary file.
type List struct {
	Report
	client *http.Client
	stdin  io.Reader
	urls   spool.Spool
	maps   map[string]bool // visited sitemaps
	named  bool            // Read had sources
}

// IsList reports whether a URL is that of a list and not of a site, by its file extension.
func IsList(source string) bool {
	u, err := url.Parse(source)
	return err == nil && u.Host != "" && slices.Contains([]string{".xml", ".opml", ".txt", ".gz"}, strings.ToLower(path.Ext(u.Path)))
}

// Read reads sources: URLs of sites, files, URLs of lists, and "-", which is stdin. It continues
// after invalid entries, and uses little memory. Sources without entries are ErrInvalid, because an
// empty file must not select all sites. The caller must close the list.
func Read(ctx context.Context, client *http.Client, stdin io.Reader, sources []string) (*List, error) {
	l := &List{client: client, stdin: stdin, maps: make(map[string]bool), named: len(sources) > 0}
	for _, source := range sources {
		if err := l.source(ctx, source); err != nil {
			l.Close()
			return nil, fmt.Errorf("read %s: %w", source, err)
		}
	}
	if l.named && l.Sites == 0 && l.Invalid == 0 {
		l.Close()
		return nil, millrace.Coded("no-sites", fmt.Errorf("read %s: %w: no site found; a list has a URL in each line, or is OPML or a sitemap", strings.Join(sources, ", "), millrace.ErrInvalid))
	}
	return l, nil
}

// Close removes the temporary file.
func (l *List) Close() { l.urls.Close() }

// URLs yields the URLs of all sites. The sequence can be used several times, but not concurrently.
func (l *List) URLs() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		r, err := l.urls.Reader()
		if err != nil {
			yield("", err)
			return
		}
		for s := bufio.NewScanner(r); ; {
			if !s.Scan() {
				if err := s.Err(); err != nil {
					yield("", err)
				}
				return
			}
			if !yield(s.Text(), nil) {
				return
			}
		}
	}
}

// Interval is an interval of sites as users write it, such as 90m. "-" means the interval of the
// worker, and is negative in [store.FleetSite].
type Interval time.Duration

// UnmarshalText parses a positive duration, or "-".
func (i *Interval) UnmarshalText(text []byte) error {
	if string(text) == "-" {
		*i = -1
		return nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 {
		return fmt.Errorf("%.40q is neither a duration, such as 90m, nor -", text)
	}
	*i = Interval(d)
	return nil
}

// With yields all sites of the list, with the given settings.
func (l *List) With(settings store.FleetSite) iter.Seq2[store.FleetSite, error] {
	return func(yield func(store.FleetSite, error) bool) {
		for u, err := range l.URLs() {
			if settings.URL = u; !yield(settings, err) {
				return
			}
		}
	}
}

func (l *List) source(ctx context.Context, source string) error {
	switch {
	case source == "":
		l.addInvalid(source, 0, millrace.ErrorCode(millrace.ErrInvalid), "empty; use a URL, a file or -")
		return nil
	case source == "-":
		return l.list(ctx, "standard input", l.stdin)
	case IsList(source):
		return l.fetch(ctx, source, maxList, func(r io.Reader) error { return l.list(ctx, source, r) })
	}
	if f, err := os.Open(source); err == nil { //nolint:gosec // the user names the file
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return fmt.Errorf("%w: it is a folder; name a file", millrace.Coded("is-folder", millrace.ErrInvalid))
		}
		return l.list(ctx, source, f)
	} else if !strings.Contains(source, "://") && ingest.Source(source) == source {
		if !strings.ContainsAny(source, `/\ `) {
			err = fmt.Errorf("%w; for a host of this name, use https://%s/", err, source)
		}
		l.addInvalid(source, 0, millrace.ErrorCode(err), err.Error())
		return nil
	}
	return l.add(source, 0, source)
}

// fetch calls f with the body of a list.
func (l *List) fetch(ctx context.Context, source string, limit int64, f func(r io.Reader) error) error {
	req, err := http.NewRequestWithContext(fetch.Download(ctx, limit, 0), http.MethodGet, source, nil)
	if err != nil {
		return err
	}
	resp, err := fetch.Do(ctx, l.client, req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := fetch.CheckStatus(resp); err != nil {
		return err
	}
	body, err := fetch.Decode(resp)
	if err != nil {
		return err
	}
	defer body.Close()
	return f(body)
}

// list reads a list. The first bytes determine the format.
func (l *List) list(ctx context.Context, name string, r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	head, _ := in.Peek(1024) // the next read returns the error
	switch text := bytes.TrimLeft(head, "\ufeff \t\r\n"); {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}), bytes.Contains(text, []byte("<urlset")), bytes.Contains(text, []byte("<sitemapindex")):
		return l.sitemap(ctx, name, in, 0)
	case bytes.IndexByte(text, 0) >= 0:
		return fmt.Errorf("%w: it is not UTF-8 text; a list has a URL in each line, or is OPML or a sitemap", millrace.ErrInvalid)
	case bytes.HasPrefix(text, []byte("<")):
		if kind := http.DetectContentType(text); strings.HasPrefix(kind, "text/html") && !bytes.Contains(text, []byte("<opml")) {
			return fmt.Errorf("%w: it is an HTML page; a list has a URL in each line, or is OPML or a sitemap", millrace.ErrInvalid)
		}
		return l.opml(name, in)
	}
	for line := 1; ; line++ {
		text, long, err := readLine(in)
		if errors.Is(err, io.EOF) && text == "" {
			return ctx.Err()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if line == 1 {
			text = strings.TrimPrefix(text, "\ufeff")
		}
		if text = strings.TrimSpace(text); long {
			l.addInvalid(name, line, "line-size", fmt.Sprintf("longer than %d bytes", maxLine))
		} else if text != "" && text[0] != '#' {
			if err := l.add(name, line, text); err != nil {
				return err
			}
		}
	}
}

// readLine returns the start of a line, and reports whether the line is longer.
func readLine(in *bufio.Reader) (text string, long bool, err error) {
	var line []byte
	for more := true; more; {
		var part []byte
		part, more, err = in.ReadLine()
		if line = append(line, part...); len(line) > maxLine {
			line, long = line[:maxLine], true
		}
		if err != nil {
			break
		}
	}
	return string(line), long, err
}

// opml reads the sites of the feeds in an OPML file.
func (l *List) opml(name string, r io.Reader) error {
	d := xml.NewDecoder(io.LimitReader(r, maxList))
	d.Strict = false
	for outlines := 0; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			if outlines > 0 {
				return nil
			}
			err = errors.New("no outline element")
		}
		if err != nil {
			return fmt.Errorf("%w: neither OPML nor a sitemap: %w", millrace.ErrInvalid, err)
		}
		e, ok := token.(xml.StartElement)
		if !ok || !strings.EqualFold(e.Name.Local, "outline") {
			continue
		}
		outlines++
		var site, feed string
		for _, a := range e.Attr {
			switch strings.ToLower(a.Name.Local) {
			case "htmlurl", "url":
				site = cmp.Or(site, strings.TrimSpace(a.Value))
			case "xmlurl":
				if feed, err = ingest.Root(strings.TrimSpace(a.Value)); err != nil {
					feed = a.Value
				}
			}
		}
		line, _ := d.InputPos()
		if at := cmp.Or(site, feed); at != "" { // otherwise the outline is a folder
			if err := l.add(name, line, at); err != nil {
				return err
			}
		}
	}
}

// sitemap reads a sitemap whose pages are sites, and the sitemaps of an index.
func (l *List) sitemap(ctx context.Context, name string, r io.Reader, depth int) error {
	var maps []sitemap.Entry
	for e, err := range sitemap.Parse(r, &sitemap.Options{MaxBytes: maxMap, MaxEntries: 10 * sitemap.MaxURLs}) {
		var broken *millrace.FormatError
		switch {
		case errors.As(err, &broken):
			l.addInvalid(name, e.Line, cmp.Or(millrace.ErrorCode(err), "invalid"), err.Error())
		case err != nil:
			return err
		case e.Sitemap:
			maps = append(maps, e)
		default:
			if err := l.add(name, e.Line, e.URL); err != nil {
				return err
			}
		}
	}
	for _, e := range maps {
		if l.maps[e.URL] {
			continue
		}
		if l.maps[e.URL] = true; depth == maxDepth || len(l.maps) > maxLists {
			return fmt.Errorf("%w: more than %d sitemaps, or deeper than %d", millrace.ErrTooLarge, maxLists, maxDepth)
		}
		err := l.fetch(ctx, e.URL, maxMap, func(r io.Reader) error { return l.sitemap(ctx, e.URL, r, depth+1) })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // continue with the other sitemaps
			l.addInvalid(name, e.Line, millrace.ErrorCode(err), err.Error())
		}
	}
	return nil
}

// add adds the site of a URL, or records that it is invalid.
func (l *List) add(name string, line int, text string) error {
	folder, err := ingest.Folder(ingest.Source(text))
	if err != nil {
		l.addInvalid(name, line, millrace.ErrorCode(err), err.Error())
		return nil
	}
	l.Sites++
	_, err = io.WriteString(&l.urls, folder+"\n")
	return err
}

// addInvalid records an invalid entry.
func (l *List) addInvalid(name string, line int, code, text string) {
	if l.Invalid++; l.Rules == nil {
		l.Rules = make(map[string]int)
	}
	if l.Rules[code]++; len(l.Entries) < maxSample {
		l.Entries = append(l.Entries, InvalidEntry{name, line, code, text})
	}
}

// Choice selects sites of a store, in addition to a list.
type Choice struct {
	Label string // only sites with this label. If empty, any.
	// Pages also selects the sites of the list that the fleet does not have, but the store has
	// mirrored. Each adds them as unlisted sites.
	Pages bool
}

// Each calls f with queries that select the sites of the list, or all sites of the choice if the
// list was read from no source. It counts the sites that f has changed. Entries that match no site
// are invalid. If the list has invalid entries, Each does not call f.
func (l *List) Each(ctx context.Context, st store.Store, c Choice, f func(q store.FleetQuery) (changed int, err error)) error {
	do := func(sites []string) error {
		if c.Pages {
			if _, _, err := st.Fleet().Put(ctx, unlisted(sites)); err != nil {
				return err
			}
		}
		n, err := f(store.FleetQuery{Sites: sites, Label: c.Label})
		l.Changed += n
		return err
	}
	if err := ingest.CheckLabel(ctx, st.Fleet(), c.Label); err != nil {
		return err
	}
	if !l.named {
		return do(nil)
	}
	err := l.batches(func(sites []string) error { return l.find(ctx, st, c, sites) })
	if err != nil || l.Invalid > 0 {
		return err
	}
	return l.batches(do)
}

func unlisted(sites []string) iter.Seq2[store.FleetSite, error] {
	return func(yield func(store.FleetSite, error) bool) {
		for _, u := range sites {
			if !yield(store.FleetSite{URL: u, Unlisted: true}, nil) {
				return
			}
		}
	}
}

// batches calls f with all sites, a thousand at a time.
func (l *List) batches(f func(sites []string) error) error {
	some := []string{}
	for u, err := range l.URLs() {
		if err != nil {
			return err
		}
		if some = append(some, u); len(some) == 1000 {
			if err := f(some); err != nil {
				return err
			}
			some = []string{}
		}
	}
	return f(some)
}

// find adds each site that does not match the choice to the invalid entries.
func (l *List) find(ctx context.Context, st store.Store, c Choice, sites []string) error {
	found := make(map[string]bool)
	for s, err := range st.Fleet().Sites(ctx, store.FleetQuery{Sites: sites, Label: c.Label}) {
		if err != nil {
			return err
		}
		found[s.URL] = true
	}
	for _, u := range sites {
		text := u + ": not in the list of sites"
		switch {
		case found[u]:
			continue
		case c.Label != "":
			text += fmt.Sprintf(" with the label %q", c.Label)
		case c.Pages:
			costs, err := st.Costs().Of(ctx, u)
			if err != nil {
				return err
			}
			if len(costs) > 0 {
				continue
			}
		}
		l.addInvalid(u, 0, "not-found", text)
	}
	return nil
}
