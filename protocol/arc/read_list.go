package arc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/spool"
	"github.com/millrace/millrace/internal/weblink"
)

// listFile is a fetched list or delta.
type listFile struct {
	kit.Resource
	max     int64        // maximum size of the content in bytes
	spool   *spool.Spool // content as JSON, or nil if unmodified
	bytes   int64        // size of the decoded response in bytes
	origins []string     // origins that its pages may have: the site's, and that of the list's URL after redirects
	head    *head
	names   kit.Names
}

func (f *listFile) close() {
	if f.spool != nil {
		f.spool.Close()
	}
}

// isOther reports whether an error means that the list is absent or forbidden, or the document is
// not a list. A broken or unreachable list gives another error.
func isOther(err error) bool {
	return errors.Is(err, errNoList) || errors.Is(err, millrace.ErrNotFound) || errors.Is(err, millrace.ErrForbidden)
}

// load fetches the list from the stored URL. If no URL is stored, or there is no longer a list at
// the URL, load discovers the list.
func (r *run) load(ctx context.Context, was kit.Resource) (f *listFile, err error) {
	err = r.discover(ctx, was, func(l kit.Resource) (err error) {
		f, err = r.loadOne(ctx, l, r.o.MaxList)
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// loadOne fetches a list, conditionally if validators are stored (E.5). It returns only complete
// and valid lists (E.11).
func (r *run) loadOne(ctx context.Context, l kit.Resource, limit int64) (*listFile, error) {
	resp, err := r.Open(kit.Download(ctx, limit), "list", l.URL, listTypes, l.Validators)
	if errors.Is(err, millrace.ErrUnmodified) && l.Conditional() {
		return &listFile{Resource: l}, nil
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if weblink.IsHTML(resp.Header) {
		return nil, fmt.Errorf("%s: list %s: %w", Name, l.URL, errNoList)
	}
	f := &listFile{Resource: kit.Resource{URL: l.URL, Validators: fetch.ValidatorsOf(resp)}, max: limit, origins: r.originsOf(l, resp)}
	body, err := fetch.Decode(resp)
	if err != nil {
		return nil, fmt.Errorf("%s: list: %w", Name, err)
	}
	defer body.Close()
	in := &bounded{r: body, limit: limit}
	text := io.Reader(in)
	if isYAML(resp) {
		f.max = 4 * limit // JSON is rarely longer than YAML, and never by a factor of four
		var list []byte
		list, err = fromYAML(in)
		text = bytes.NewReader(list)
	}
	if err == nil {
		f.spool, err = spool.New(text, f.max)
	}
	if err == nil {
		f.bytes = in.n
		err = f.verify(ctx)
	}
	if err != nil {
		f.close()
		return nil, r.refuse(ctx, l.URL, cmp.Or(in.err, err))
	}
	return f, nil
}

// bounded is a reader that fails above a limit, with any HTTP client. It counts the bytes and
// stores its first error.
type bounded struct {
	r        io.Reader
	limit, n int64
	err      error // the first error; never io.EOF
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.r.Read(p)
	if b.n += int64(n); b.n > b.limit {
		n, err = 0, fmt.Errorf("longer than %d bytes: %w", b.limit, millrace.ErrTooLarge)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// origins returns the origins that the site's pages may have, wherever its list is: the requested
// origin, also with https, and the origin to which its home page redirects.
func (r *run) origins() []string {
	out := []string{canon.Origin(r.Root)}
	if host, ok := strings.CutPrefix(out[0], "http://"); ok && !strings.Contains(host, ":") {
		out = append(out, "https://"+host)
	}
	if r.is.Home != "" {
		out = append(out, r.is.Home)
	}
	return out
}

// originsOf returns the origins that the pages of a fetched list may have.
func (r *run) originsOf(l kit.Resource, resp *http.Response) []string {
	origins := r.origins()
	if final, err := canon.URL(resp.Request.URL.String()); err == nil && slices.Contains(origins, canon.Origin(l.URL)) {
		origins = append(origins, canon.Origin(final)) // the site has moved
	}
	return origins
}

// refuse adds the URL of the list to an error.
func (r *reader) refuse(ctx context.Context, at string, err error) error {
	_, format := errors.AsType[*millrace.FormatError](err)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: list %s: %w", Name, at, ctx.Err())
	case errors.Is(err, errVersion):
		return fmt.Errorf("%s: cannot read list %s: %w: %w", Name, at, err, millrace.ErrInvalid)
	case errors.Is(err, errNoList), !format:
		return fmt.Errorf("%s: list %s: %w", Name, at, err)
	}
	return formatError(err, at, "E.9")
}

// listTypes is the Accept field of a request for a list.
const listTypes = "application/json, application/yaml;q=0.5, */*;q=0.1"

// isYAML reports whether a response is a list in YAML, judging by its media type or else by its
// name.
func isYAML(resp *http.Response) bool {
	mt, _, _ := strings.Cut(strings.ToLower(resp.Header.Get("Content-Type")), ";")
	switch mt = strings.TrimSpace(mt); {
	case mt == yamlType, mt == "application/x-yaml", mt == "text/yaml", mt == "text/x-yaml", strings.HasSuffix(mt, "+yaml"):
		return true
	case mt == "application/json", strings.HasSuffix(mt, "+json"):
		return false
	}
	ext := strings.ToLower(path.Ext(resp.Request.URL.Path))
	return ext == ".yaml" || ext == ".yml"
}

// verify validates the whole list before its pages are read, and finds duplicate pages.
func (f *listFile) verify(ctx context.Context) error {
	in, err := f.spool.Reader()
	if err != nil {
		return err
	}
	f.head, err = scanList(in, f.max, func(_ int, e *entry, _ []string, bad error) bool {
		if bad == nil {
			if u, err := canon.URL(e.URL); err == nil {
				f.names.Add(u)
			}
		}
		return ctx.Err() == nil
	})
	f.names.End()
	return cmp.Or(ctx.Err(), err)
}

// pages yields the pages of a verified list. For a page that must not be indexed, a delta yields a
// deletion, and a list yields a skip.
func (r *run) pages(ctx context.Context, f *listFile, delta bool) error {
	in, err := f.spool.Reader()
	if err != nil {
		return err
	}
	again := f.names.Again()
	nulls := map[string]int{}
	var stop error
	_, err = scanList(in, f.max, func(i int, e *entry, null []string, bad error) bool {
		if stop = ctx.Err(); stop != nil {
			return false
		}
		for _, name := range null {
			nulls[name]++
		}
		if e == nil {
			e = &entry{}
		}
		asItIs := e.URL
		if bad == nil {
			e.URL, bad = f.own(e.URL)
		}
		if bad == nil && again(e.URL) {
			bad = invalid("/url", "E.4", "duplicate page; using the first entry")
		}
		if bad != nil {
			u := asItIs
			if c, err := canon.URL(u); err == nil {
				u = c
			}
			stop = r.Send(millrace.Change{}, &millrace.SkipError{URL: u, Err: at(bad, f.URL, i)})
			return stop == nil
		}
		stop = r.take(ctx, f, e, delta)
		return stop == nil
	})
	if stop != nil {
		return stop
	}
	for _, name := range slices.Sorted(maps.Keys(nulls)) {
		r.Note("E.9/null", f.URL, fmt.Sprintf("%s is null and treated as absent: %d times", name, nulls[name]))
	}
	return formatError(err, f.URL, "E.9")
}

// own returns the canonical URL of a page of the site. For a page of another site, it returns an
// error.
func (f *listFile) own(u string) (string, error) {
	c, err := canon.URL(u)
	if err != nil {
		return "", &millrace.FormatError{Protocol: Name, Position: "/url", Section: "E.4", Reason: "not the URL of a page", Err: err}
	}
	if !slices.Contains(f.origins, canon.Origin(c)) {
		return "", invalid("/url", "E.4", "not a page of the site, "+f.origins[0])
	}
	return c, nil
}

// at adds the URL of the list and the position of the entry to an error, whose Position is relative
// to the entry.
func at(err error, list string, i int) error {
	if f, ok := errors.AsType[*millrace.FormatError](err); ok {
		at := fmt.Sprintf("/pages/%d", i)
		if f.Position != "" && f.Position[0] != '/' {
			at += ", "
		}
		f.URL, f.Position = list, at+f.Position
		return err
	}
	return fmt.Errorf("%s: list %s: %w", Name, list, err)
}

// take yields the change for one entry.
func (r *run) take(ctx context.Context, f *listFile, e *entry, delta bool) error {
	why, err := r.closed(ctx, f, e)
	if err != nil {
		return err
	}
	ref := millrace.Ref{URL: e.URL}
	switch {
	case why != nil && delta:
		return r.Send(millrace.Change{Kind: millrace.Delete, Ref: ref, Time: parseTime(e.Lastmod)}, nil)
	case why != nil:
		return r.Send(millrace.Change{}, &millrace.SkipError{URL: e.URL, Err: why, Absent: true})
	case e.Snapshot == nil:
		// The version of the page also includes validators that the list does not contain, so the
		// change has no version. Page combines both.
		r.listed.Add(e.URL, e.version())
		ref.Location = e.URL
		return r.Send(millrace.Change{Kind: millrace.Put, Ref: ref, Time: parseTime(e.Lastmod)}, nil)
	}
	p := e.page()
	ref.Version = e.version()
	p.Version = ref.Version
	return r.Send(millrace.Change{Kind: millrace.Put, Ref: ref, Page: p, Time: p.Modified}, nil)
}

// version identifies the state of the page: it changes with the checksum and the date. If the list
// has neither, it is "".
func (e *entry) version() string {
	if e.Checksum == "" && e.Lastmod == "" {
		return ""
	}
	v := e.Checksum + " " + e.Lastmod
	if len(v) > 200 {
		v = canon.SHA256Hex([]byte(v))
	}
	return v
}
