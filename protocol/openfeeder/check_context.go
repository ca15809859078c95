package openfeeder

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
)

// object is a received JSON object.
type object map[string]json.RawMessage

// at returns the value at a path of names, or nil if absent.
func (o object) at(path ...string) json.RawMessage {
	raw := o[path[0]]
	for _, name := range path[1:] {
		raw = objectOf(raw)[name]
	}
	return raw
}

func objectOf(raw json.RawMessage) object { return kit.Object(raw) }

// objects returns the elements of an array of objects. For any other value, it returns false.
func objects(raw json.RawMessage) ([]object, bool) {
	var list []object
	if json.Unmarshal(raw, &list) != nil || list == nil || slices.ContainsFunc(list, func(o object) bool { return o == nil }) {
		return nil, false
	}
	return list, true
}

// siteResponse is a response of the site.
type siteResponse struct {
	url  string
	resp *check.Response
	err  error
	body object // the body, or nil if it is not a JSON object
}

// ok reports whether the response is a 200 with a JSON object.
func (a *siteResponse) ok() bool { return a.err == nil && a.resp.OK() && a.body != nil }

// page reports whether the response is a page, not an index.
func (a *siteResponse) page() bool {
	return a.ok() && (a.body["items"] == nil || a.body["chunks"] != nil)
}

// got describes the response in findings.
func (a *siteResponse) got() string {
	switch {
	case a.err != nil:
		return a.err.Error()
	case a.resp.BodyErr != nil:
		return a.resp.BodyErr.Error()
	case a.body == nil:
		return a.resp.StatusText() + " without a JSON object"
	}
	return a.resp.StatusText() + " " + string(a.resp.Body[:min(len(a.resp.Body), 100)])
}

// siteContext contains the responses of a site, which the rules share.
type siteContext struct {
	kit.SiteContext
	about *siteResponse // response for the well-known path
	found *siteResponse // response with the discovery document: about, or the document to which the root links
	feed  feed
	index *siteResponse   // response of the endpoint without parameters. If nil, there is no usable endpoint.
	items []object        // items of index
	pages []*siteResponse // responses for the sampled pages, in order
	asked []string        // URLs of the sampled pages
	// sync contains the changes since shortly before the newest date of the index. It is nil if the
	// feed is static or has no index.
	sync *siteResponse
	word string    // word of a page title, for a question that has an answer. If empty, no page has a title.
	day  time.Time // newest date in the index, or a week ago if the index has no dates
}

// get requests a document. Errors of the site are part of the response; get returns all other
// errors.
func (s *siteContext) get(ctx context.Context, target string) (*siteResponse, error) {
	resp, err := s.Get(ctx, target)
	return s.answer(ctx, target, resp, err)
}

func (s *siteContext) answer(ctx context.Context, target string, resp *check.Response, err error) (*siteResponse, error) {
	a := &siteResponse{url: target, resp: resp, err: err}
	if check.IsInconclusive(err) || ctx.Err() != nil {
		return nil, err
	}
	if err == nil && resp.BodyErr == nil {
		a.body = objectOf(resp.Body)
	}
	return a, nil
}

// ask requests the endpoint with parameters.
func (s *siteContext) ask(ctx context.Context, pairs ...string) (*siteResponse, error) {
	return s.get(ctx, s.feed.query(pairs...))
}

func (s *siteContext) run(ctx context.Context) error {
	var err error
	if s.about, err = s.get(ctx, s.At(discovery)); err != nil {
		return err
	}
	if s.found = s.about; !s.looksLikeDiscovery(s.about) {
		if s.found, err = s.linkedDiscovery(ctx); err != nil {
			return err
		}
		if s.found == nil {
			return fmt.Errorf("%s has no discovery document: %w", s.Root(), check.ErrAbsent)
		}
	}
	at := s.found.url
	if s.found.err == nil {
		at = s.found.resp.URL
	}
	s.feed = feed{Home: canon.Origin(at) + "/", Static: kit.Text(s.found.body.at("feed", "type")) == staticFeed}
	_ = s.feed.setBase(s.Root(), kit.Text(s.found.body.at("site", "url"))) // a rule reports the error
	base, err := url.Parse(at)
	if err != nil {
		return err
	}
	ref := kit.Text(s.found.body.at("feed", "endpoint"))
	if ref == "" {
		ref = endpoint // the recommended endpoint (3)
	}
	bad := s.feed.locate(base, ref)
	s.AddHosts(at)
	if bad != nil || !s.HasHost(s.feed.Endpoint) {
		return nil //nolint:nilerr // a rule reports it, and the checker requests no other site
	}
	if s.index, err = s.ask(ctx); err != nil {
		return err
	}
	s.items, _ = objects(s.index.body.at("items"))
	if err := s.sample(ctx); err != nil || s.feed.Static || !s.index.ok() {
		return err
	}
	s.sync, err = s.ask(ctx, "since", kit.FormatTime(s.day.Add(-time.Second)))
	return err
}

// looksLikeDiscovery reports whether a response is meant to be the discovery document: it has
// members of that document, or is invalid JSON with a JSON Content-Type.
func (s *siteContext) looksLikeDiscovery(a *siteResponse) bool {
	switch {
	case a.err != nil:
		return false
	case a.resp.Status == http.StatusUnauthorized, a.resp.Status == http.StatusForbidden:
		return false // sites without the protocol also refuse such paths
	case a.body != nil:
		return a.body["feed"] != nil || a.body["version"] != nil && a.body["site"] != nil
	}
	return a.resp.Status < 300 && strings.Contains(a.resp.Header.Get("Content-Type"), "json")
}

// linkedDiscovery returns the discovery document to which the root links, or nil if the root has no
// such link. For a link to the well-known path, the response has the error errNone.
func (s *siteContext) linkedDiscovery(ctx context.Context) (*siteResponse, error) {
	root, err := s.get(ctx, s.Root())
	if err != nil || root.err != nil {
		return nil, err
	}
	s.AddHosts(root.resp.URL)
	named := targets(kit.HeadOf(root.resp))
	for _, target := range named[:min(len(named), maxPointers)] {
		if !s.HasHost(target) {
			continue
		}
		a, err := s.get(ctx, target)
		if err != nil {
			return nil, err
		}
		if target == s.about.url {
			return &siteResponse{url: target, err: errNone}, nil
		}
		if s.looksLikeDiscovery(a) {
			return a, nil
		}
	}
	return nil, nil //nolint:nilnil // not found
}

// sample fetches a sample of the pages in the index.
func (s *siteContext) sample(ctx context.Context) error {
	s.day = s.Now().UTC().Add(-7 * 24 * time.Hour)
	newest := time.Time{}
	for _, it := range s.items {
		for _, name := range []string{"published", "updated"} {
			if t := parseTime(kit.Text(it[name])); t.After(newest) {
				newest = t
			}
		}
		if words := strings.Fields(kit.Text(it["title"])); s.word == "" && len(words) > 0 {
			s.word = words[0]
		}
	}
	if !newest.IsZero() {
		s.day = newest
	}
	for _, it := range check.Sample(s.Target, s.items) {
		u, err := s.feed.url(s.Root(), kit.Text(it["url"]))
		if err != nil {
			continue // a rule reports the error
		}
		target := s.feed.query("url", relative(s.feed.Base, u))
		if s.feed.Static {
			at, err := url.Parse(s.feed.Endpoint)
			if err != nil {
				return err
			}
			if target, err = canon.Resolve(at, kit.Text(it["document"])); err != nil || it["document"] == nil || !s.HasHost(target) {
				continue // the item does not name a document that can be fetched
			}
		}
		a, err := s.get(ctx, target)
		if err != nil {
			return err
		}
		s.pages, s.asked = append(s.pages, a), append(s.asked, u)
	}
	return nil
}

// closed reports whether the endpoint needs a key.
func (s *siteContext) closed() bool {
	return s.index != nil && s.index.err == nil &&
		(s.index.resp.Status == http.StatusUnauthorized || s.index.resp.Status == http.StatusForbidden)
}

// live returns ErrNotApplicable if the endpoint does not return an index or ignores parameters.
func (s *siteContext) live() error {
	if s.index == nil || !s.index.ok() || s.feed.Static {
		return check.ErrNotApplicable
	}
	return nil
}
