package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol"
)

// maxBodyShown is the number of bytes after which a shown text is truncated.
const maxBodyShown = 200_000

// maxBody is the maximum number of bytes read to determine the size of a response.
const maxBody = 64 << 20

// form is the state of a page in one protocol.
type form struct {
	Name, Title string
	Carried     bool     // the protocol carries the page
	Lost        []string // fields that the protocol does not carry
	Bodies      []*formBody
	Err         error
}

// formBody is one document as text.
type formBody struct {
	Path   string      // path and query from the root of the origin; "…" replaces the hash of an artifact
	Part   bool        // the page's part of a document of many pages
	Status int         // status of the response; 0 if Part is set
	Type   string      // media type
	Header [][2]string // all header fields of the response, sorted by name
	Size   int64       // uncompressed bytes
	Text   string
	Cut    bool // the text is truncated
	Spaced bool // spaces were added for readability
}

func newFormBody(path string, h http.Header, body *prefixBuffer) *formBody {
	f := &formBody{Path: path, Part: true, Type: h.Get("Content-Type")}
	f.set(body)
	return f
}

// set sets the text and the size.
func (f *formBody) set(body *prefixBuffer) {
	b := body.start.Bytes()
	f.Size, f.Cut = body.size, body.size > int64(len(b))
	if kind, _, _ := strings.Cut(f.Type, ";"); strings.HasSuffix(kind, "json") && !f.Cut && bytes.Count(b, []byte("\n")) < 3 {
		var out bytes.Buffer
		if json.Indent(&out, b, "", "  ") == nil {
			b, f.Spaced = out.Bytes(), true
		}
	}
	f.Text = sourceText(b)
}

// sourceText converts bytes to text and keeps the lines. It replaces control and direction
// characters with "\ufffd".
func sourceText(b []byte) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return -1
		case canon.IsInvisible(r):
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(string(b), string(utf8.RuneError)))
}

// forms returns a page in every protocol: the response of the gateway, or the
// page's part of documents of many pages.
func (d *Dashboard) forms(ctx context.Context, v millrace.View, page *millrace.Page) []*form {
	in := newLoop(d.site.Gateway(), d.site.Key(), d.site.EndpointBase)
	defer in.Close()
	a := newSinglePageView(v, page)
	var out []*form
	for _, proto := range d.site.Server.Protocols() {
		i := slices.IndexFunc(d.site.Protocols, func(p protocol.Protocol) bool { return p.Name == proto.Name })
		if i < 0 {
			continue
		}
		p := d.site.Protocols[i]
		f := &form{Name: p.Name, Title: p.Title}
		out = append(out, f)
		if p.Carry != nil {
			carried := p.Carry(v.Site(), page.Clone())
			f.Carried, f.Lost = carried != nil, lost(page, carried)
			if carried == nil {
				continue
			}
		}
		paths, part, err := a.documents(ctx, proto.Publisher, d.now())
		if err != nil {
			f.Err = err
			continue
		}
		if part != nil {
			part.Path = pathOf(canon.Absolute(d.site.EndpointBase, part.Path))
			f.Bodies = append(f.Bodies, part)
		}
		for _, path := range paths {
			b, err := ask(ctx, in, canon.Absolute(d.site.EndpointBase, path))
			if err != nil {
				f.Err = errors.Join(f.Err, err)
				continue
			}
			f.Bodies = append(f.Bodies, b)
		}
	}
	return out
}

// ask fetches one document.
func ask(ctx context.Context, in *loop, address string) (*formBody, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	}
	resp, err := in.own.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var body prefixBuffer
	if _, err := io.Copy(&body, io.LimitReader(resp.Body, maxBody)); err != nil {
		return nil, err
	}
	f := &formBody{Path: pathOf(address), Status: resp.StatusCode, Type: resp.Header.Get("Content-Type")}
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		f.Header = append(f.Header, [2]string{name, strings.Join(resp.Header[name], ", ")})
	}
	f.set(&body)
	return f, nil
}

// pathOf returns the path and query of a URL.
func pathOf(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[i:]
	}
	return "/"
}

// lost names the fields that a protocol does not carry.
func lost(page, carried *millrace.Page) (out []string) {
	if carried == nil {
		return nil
	}
	for _, f := range []struct {
		name     string
		was, now any
	}{
		{"title", page.Title, carried.Title},
		{"description", page.Description, carried.Description},
		{"summary", page.Summary, carried.Summary},
		{"author", page.Author, carried.Author},
		{"date of publication", page.Published, carried.Published},
		{"date of change", page.Modified, carried.Modified},
		{"language", page.Language, carried.Language},
		{"section", page.Section, carried.Section},
		{"tags", page.Tags, carried.Tags},
		{"kind", page.Kind, carried.Kind},
		{"JSON-LD", page.Schema, carried.Schema},
	} {
		was, now := reflect.ValueOf(f.was), reflect.ValueOf(f.now)
		if !was.IsZero() && (was.Kind() != reflect.Slice || was.Len() > 0) && (now.IsZero() || now.Kind() == reflect.Slice && now.Len() < was.Len()) {
			out = append(out, f.name)
		}
	}
	switch {
	case len(page.Blocks) > 0 && len(carried.Blocks) == 0:
		out = append(out, "content")
	case page.Detail > carried.Detail:
		out = append(out, "structure of the text")
	}
	return out
}
