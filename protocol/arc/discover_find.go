package arc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/jsonio"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/weblink"
)

// maxListURLs is the maximum number of list URLs that are tried from robots.txt and from the home
// page, for each of the two.
const maxListURLs = 4

// discover tries the stored location of the list, then the possible locations, until one has a
// list.
func (r *run) discover(ctx context.Context, was kit.Resource, try func(kit.Resource) error) error {
	var first, closed, other error
	tried := map[string]bool{was.URL: true}
	if was.URL != "" {
		err := try(was)
		if err == nil || !isOther(err) {
			return err
		}
		first = err
	}
	for at, err := range r.listURLs(ctx) {
		if err == nil && !tried[at] {
			tried[at] = true
			if err = try(kit.Resource{URL: at}); err == nil || !isOther(err) {
				return err
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: discovery: %w", Name, ctx.Err())
		}
		if errors.Is(err, millrace.ErrForbidden) || unavailable(err) {
			closed = cmp.Or(closed, err) // a list may exist
		}
		if errors.Is(err, errNoList) {
			other = cmp.Or(other, err)
		}
		first = cmp.Or(first, err)
	}
	if closed != nil {
		return closed
	}
	// Name the document that was found instead, which says more than "not found".
	return fmt.Errorf("%s: ARC sitemap %w at %s: %w", Name, millrace.ErrNotFound, r.Root, cmp.Or(other, first))
}

// listURLs yields the URLs at which the list may be, in this order: those in robots.txt (E.5),
// those on the home page (E.3.2), the two locations of E.5, the URL of the YAML form, and the list
// and its YAML form in the folder of the endpoint. It is lazy, because finding some of them takes a
// request. A list to which the site refers may be on another host, but its pages may not. An error
// means that robots.txt or the home page could not be read.
func (r *run) listURLs(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		named, err := r.robotsURLs(ctx)
		if err != nil && (!yield("", err) || unavailable(err)) {
			return // without robots.txt, no request is allowed
		}
		for _, u := range named {
			if !yield(u, nil) {
				return
			}
		}
		linked, err := r.homeURLs(ctx)
		if err != nil && !yield("", err) {
			return
		}
		for _, u := range linked {
			if !yield(u, nil) {
				return
			}
		}
		root := strings.TrimSuffix(r.Root, "/")
		for _, name := range []string{pathList, pathWellKnown, pathYAML} {
			if !yield(root+name, nil) {
				return
			}
		}
		if r.folder != r.Root {
			for _, name := range []string{pathList, pathYAML} {
				if !yield(strings.TrimSuffix(r.folder, "/")+name, nil) {
					return
				}
			}
		}
	}
}

// robotsURLs returns the ARC sitemaps in robots.txt, those in JSON first.
func (r *run) robotsURLs(ctx context.Context) ([]string, error) {
	robots, err := r.robotsOf(ctx, r.Root)
	if err != nil {
		return nil, err
	}
	return jsonFirst(kit.Sitemaps(robots, r.Root, func(u string) bool { return isListName(u) && !kit.IsDowngrade(r.Root, u) })), nil
}

// isListName reports whether a sitemap in robots.txt is an ARC sitemap. Other sitemaps are XML or
// plain text.
func isListName(u string) bool {
	path, _, _ := strings.Cut(strings.ToLower(u), "?")
	return strings.HasSuffix(path, ".json") || isYAMLName(path)
}

func isYAMLName(path string) bool {
	return strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".yml")
}

// jsonFirst moves YAML URLs to the end and returns at most maxListURLs URLs.
func jsonFirst(urls []string) []string {
	slices.SortStableFunc(urls, func(a, b string) int {
		x, y := isYAMLName(strings.ToLower(a)), isYAMLName(strings.ToLower(b))
		switch {
		case x == y:
			return 0
		case x:
			return 1
		}
		return -1
	})
	return urls[:min(len(urls), maxListURLs)]
}

// homeURLs returns the ARC sitemaps to which the home page refers, those in JSON first, and stores
// the origin of the home page.
func (r *run) homeURLs(ctx context.Context) ([]string, error) {
	resp, err := r.Open(ctx, "discovery", r.Root, kit.HTMLTypes, fetch.Validators{})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	base := resp.Request.URL
	if final, err := canon.URL(base.String()); err == nil && canon.Origin(final) != canon.Origin(r.Root) {
		r.is.Home = canon.Origin(final)
	}
	page, err := kit.ReadHead(resp)
	if err != nil {
		return nil, fmt.Errorf("%s: discovery: %w", Name, err)
	}
	var out []string
	for _, at := range pointers(page, base) {
		if !slices.Contains(out, at) && !kit.IsDowngrade(r.Root, at) {
			out = append(out, at)
		}
	}
	return jsonFirst(out), nil
}

// pointers returns the URLs of the ARC sitemap in the head of a page: from JSON-LD (E.3.2), or from
// a link that names the ARC sitemap.
func pointers(page weblink.Head, base *url.URL) []string {
	var out []string
	for _, text := range page.Data {
		for _, ref := range datasets(text) {
			if u, err := canon.Resolve(base, ref); err == nil {
				out = append(out, u)
			}
		}
	}
	for _, l := range page.Links {
		if isListName(l.URL) && isARC(l.URL) || slices.ContainsFunc(l.Rel, isARC) {
			out = append(out, l.URL)
		}
	}
	return out
}

// isARC reports whether a text contains the name of the ARC sitemap.
func isARC(s string) bool { return strings.Contains(strings.ToLower(s), "arc-sitemap") }

// dataset is a schema.org Dataset that may be the ARC sitemap (E.3.2).
type dataset struct {
	Type         jsonio.Raw   `json:"@type"`
	Name         jsonio.Raw   `json:"name"`
	URL          jsonio.Raw   `json:"url"`
	Distribution jsonio.Raw   `json:"distribution"`
	Graph        []jsonio.Raw `json:"@graph"`
}

// datasets returns the URLs of the ARC sitemap in JSON-LD: the content URLs of its distributions,
// then its own URL.
func datasets(text string) []string {
	limits := &jsonio.Limits{Size: 1 << 20}
	things := oneOrMore(jsonio.Raw(text), limits)
	var out []string
	for i := 0; i < len(things) && i < 1000; i++ {
		var d dataset
		if jsonio.Unmarshal(things[i], limits, &d) != nil {
			continue
		}
		things = append(things, d.Graph...)
		var files []string
		for _, raw := range oneOrMore(d.Distribution, limits) {
			var file struct {
				ContentURL string `json:"contentUrl"`
			}
			if jsonio.Unmarshal(raw, limits, &file) == nil && file.ContentURL != "" {
				files = append(files, file.ContentURL)
			}
		}
		own := rawText(d.URL)
		known := strings.EqualFold(strings.TrimSpace(rawText(d.Name)), "ARC Sitemap") || isARC(own) || slices.ContainsFunc(files, isARC)
		if !known || !strings.Contains(string(d.Type), "Dataset") {
			continue
		}
		out = append(out, files...)
		if own != "" {
			out = append(out, own)
		}
	}
	return out
}

// oneOrMore returns the elements of a JSON array, or a single value as the only element.
func oneOrMore(raw jsonio.Raw, limits *jsonio.Limits) []jsonio.Raw {
	var list []jsonio.Raw
	if jsonio.Unmarshal(raw, limits, &list) == nil {
		return list
	}
	var one json.RawMessage
	if jsonio.Unmarshal(raw, limits, &one) == nil {
		return []jsonio.Raw{raw}
	}
	return nil
}

// rawText returns the value of a JSON string, or "" for anything else.
func rawText(raw jsonio.Raw) string {
	var s string
	if jsonio.Unmarshal(raw, nil, &s) != nil {
		return ""
	}
	return s
}

// unavailable reports whether a document is temporarily unreachable, not absent.
func unavailable(err error) bool { return errors.Is(err, millrace.ErrUnavailable) }
