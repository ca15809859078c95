package wordpress

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/weblink"
)

// Page fetches one item at its Location. If the Location is empty, Page finds the item by the Link
// fields of the response at the URL, or by the last segment of the URL. If the page is no longer
// public or has a password, Page returns [millrace.ErrNotFound].
func (s *Site) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	p, err := s.page(ctx, have)
	if err != nil {
		return nil, fmt.Errorf("wordpress %s: %w", have.URL, err)
	}
	return p, nil
}

func (s *Site) page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	f := s.known.Load()
	if f == nil {
		var err error
		if f, err = s.load(ctx, cursor{}); err != nil {
			return nil, err
		}
	}
	location, link := have.Location, ""
	if location == "" {
		abs, err := canon.Resolve(s.root, have.URL)
		if err == nil && have.URL == "" {
			err = errors.New("no URL")
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
		}
		if link, err = s.underRoot(f, abs); err != nil {
			return nil, err
		}
		if location, err = s.locate(ctx, f, link); err != nil {
			return nil, err
		}
	}
	t, id, ok := f.item(location)
	if !ok {
		return nil, fmt.Errorf("%w: %s is not an item of a public type", millrace.ErrNotFound, location)
	}
	q := query(true)
	var it item
	r, err := s.get(ctx, f.route(t.route+"/"+id, q), &it)
	if isStatus(err, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone) {
		return nil, fmt.Errorf("%w: %v", millrace.ErrNotFound, err) //nolint:errorlint // one sentinel
	}
	if err != nil {
		return nil, err
	}
	if it.hidden() {
		return nil, fmt.Errorf("%w: not public", millrace.ErrNotFound)
	}
	at, err := s.underRoot(f, it.Link)
	if err != nil {
		return nil, err
	}
	if link != "" && at != link { // the page at this link belongs to another item
		return nil, fmt.Errorf("%w: no item has this link", millrace.ErrNotFound)
	}
	ref := f.ref(t, it, at, r.date)
	if ref.Version != "" && ref.Version == have.Version && at == have.URL {
		return nil, millrace.ErrUnmodified
	}
	p, err := s.convert(ctx, f, t, it, at)
	if err != nil {
		return nil, err
	}
	p.Version = ref.Version
	return p, nil
}

// item returns the type and the ID of an item, given a URL of the API.
func (f *site) item(location string) (t postType, id string, ok bool) {
	path, ok := f.path(location)
	if !ok {
		return t, "", false
	}
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return t, "", false
	}
	if _, err := strconv.ParseUint(path[i+1:], 10, 63); err != nil {
		return t, "", false
	}
	at := slices.IndexFunc(f.types, func(t postType) bool { return t.route == path[:i] })
	if at < 0 {
		return t, "", false
	}
	return f.types[at], path[i+1:], true
}

// locate finds the item that the Link fields of the response at a URL name, or the item whose slug
// is the last segment of the URL. It returns the item's location.
func (s *Site) locate(ctx context.Context, f *site, abs string) (string, error) {
	resp, err := s.do(ctx, http.MethodHead, abs)
	if err != nil {
		return "", err
	}
	resp.Body.Close()
	if err := fetch.CheckStatus(resp); err != nil {
		return "", err
	}
	for _, l := range weblink.Header(resp.Header, nil) {
		if l.Is("alternate", "application/json") {
			if _, _, ok := f.item(l.URL); ok {
				return l.URL, nil
			}
		}
	}
	u, err := url.Parse(abs)
	if err != nil {
		return "", fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	}
	path := strings.TrimSuffix(u.Path, "/")
	slug := path[strings.LastIndexByte(path, '/')+1:]
	for _, t := range f.types {
		if slug == "" {
			break
		}
		q := query(false)
		q.Set("slug", slug)
		var items []item
		if _, err := s.get(ctx, f.route(t.route, q), &items); err != nil {
			if errors.Is(err, millrace.ErrForbidden) || errors.Is(err, millrace.ErrNotFound) {
				continue
			}
			return "", err
		}
		for _, it := range items {
			if at, err := s.underRoot(f, it.Link); err == nil && at == abs {
				return f.ref(t, it, at, s.now()).Location, nil
			}
		}
	}
	return "", fmt.Errorf("%w: no item has this link", millrace.ErrNotFound)
}
