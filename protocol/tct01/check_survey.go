package tct01

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/tct"
	"github.com/millrace/millrace/internal/weblink"
)

// maxCheckedLists is how many M-Sitemaps of one site are fetched.
const maxCheckedLists = 10

// survey is what a site has of this draft, as its rules share it. It is
// lenient where the reader is strict: what is broken has to be seen.
type survey struct {
	t     *check.Target
	hosts []string // that the site is known to live on: no other is asked
	root  *check.Response
	index []string // where the root's own index links lead
	other []string // what is there instead of an M-Sitemap
	draft string   // that a list is of which is not judged here; "" = none
	lists []*seenList
	pages []*seenPage // the sample
}

// seenList is a document that is meant to be an M-Sitemap.
type seenList struct {
	url    string
	resp   *check.Response
	fields map[string]json.RawMessage
	items  []json.RawMessage // nil if there is no array
}

// seenItem is an item of a list. A member that is no string is "".
type seenItem struct {
	fields           map[string]json.RawMessage // nil if the item is no object
	cURL, mURL, etag string
}

// seenPage is an M-URL of the sample and what its GET gave.
type seenPage struct {
	curl, murl string    // canonical; curl is "" if nobody says it
	item       *seenItem // nil: found by a link on its C-URL
	resp       *check.Response
	err        error // of the request

	// The rest is of a 200 with a readable body.
	body      []byte                     // without a byte order mark
	fields    map[string]json.RawMessage // nil if it is no object
	tag, hash string                     // ETag without W/ and quotes; the hash member
	jcs       []byte                     // canonical form of body
	jcsErr    error                      // why it has none
	sumJCS    string                     // hash over the canonical form, "" if there is none
	sumCut    string                     // hash over body as it is, without its hash member
}

func surveyed(ctx context.Context, t *check.Target) (*survey, error) {
	return check.Memo(ctx, t, Name+" survey", func(ctx context.Context) (*survey, error) {
		s := &survey{t: t}
		return s, s.run(ctx)
	})
}

func (s *survey) run(ctx context.Context) error {
	var err error
	if s.root, err = s.t.Get(ctx, s.t.Root()); err != nil {
		return err
	}
	here, err := s.t.Get(ctx, s.t.Site())
	if err != nil {
		return err
	}
	for _, u := range []string{s.t.Root(), s.root.URL, here.URL} { // a host that the site redirects to is the site's
		s.hosts = append(s.hosts, hostOf(u))
	}
	for _, l := range responseLinks(s.root, false) {
		if l.Is("index", tct.MediaType) && !slices.Contains(s.index, l.URL) {
			s.index = append(s.index, l.URL)
			s.hosts = append(s.hosts, hostOf(l.URL))
		}
	}
	if err := s.addLists(ctx, s.index, looksLikeList); err != nil {
		return err
	}
	if len(s.lists) == 0 {
		// Not as the draft wants it; yet who has an M-Sitemap anywhere near
		// means to have the protocol.
		var near []string
		for _, l := range append(responseLinks(s.root, true), responseLinks(here, true)...) {
			if l.Is("index", "") && s.near(l.URL) && !slices.Contains(s.index, l.URL) && !slices.Contains(near, l.URL) {
				near = append(near, l.URL)
			}
		}
		if err := s.addLists(ctx, near, isList); err != nil {
			return err
		}
	}
	s.samplePages(ctx)
	doors := []*check.Response{here}
	if len(s.lists) == 0 {
		doors = []*check.Response{s.root, here}
	}
	for _, door := range doors {
		s.addAlternates(ctx, door)
	}
	if len(s.lists) == 0 && len(s.pages) == 0 {
		if s.draft != "" {
			return &check.VersionError{Version: s.draft}
		}
		return fmt.Errorf("no Link of %s leads to an M-Sitemap, and no page to an M-URL: %w", s.root.URL, check.ErrAbsent)
	}
	return nil
}

// addLists fetches the targets and keeps those that are meant as M-Sitemaps.
func (s *survey) addLists(ctx context.Context, targets []string, meant func(*seenList) bool) error {
	for _, u := range targets[:min(len(targets), maxCheckedLists)] {
		resp, err := s.t.Get(ctx, u)
		l := &seenList{url: u, resp: resp}
		why := "something else"
		switch {
		case unsure(err), ctx.Err() != nil:
			return err
		case err != nil:
			why = err.Error()
		case resp.Status != http.StatusOK:
			why = tct.Status(resp)
		case resp.BodyErr != nil:
			why = resp.BodyErr.Error()
		case json.Unmarshal(trimBOM(resp.Body), &l.fields) != nil || l.fields == nil:
			why = "a body that is no JSON object"
		default:
			l.items, _ = jsonArray(l.fields["items"])
			profile, _ := jsonText(l.fields["profile"])
			if draft := tct.OtherDraft(profile, string(l.fields["version"])); draft != "" {
				s.draft, why = draft, "a list of "+draft
			} else if meant(l) {
				s.lists = append(s.lists, l)
				continue
			}
		}
		s.other = append(s.other, u+": "+why)
	}
	return nil
}

// looksLikeList is the test of what is announced as the draft wants it: broken
// as it may be, it is no other use of rel=index (1.4.1).
func looksLikeList(l *seenList) bool {
	profile, _ := jsonText(l.fields["profile"])
	return l.fields["items"] != nil || l.fields["version"] != nil && strings.HasPrefix(profile, "tct")
}

// isList is the test of what is not announced properly.
func isList(l *seenList) bool {
	return len(l.items) > 0 && readItem(l.items[0]).mURL != ""
}

func readItem(raw json.RawMessage) *seenItem {
	it := new(seenItem)
	if json.Unmarshal(raw, &it.fields) != nil {
		return it
	}
	it.cURL, _ = jsonText(it.fields["cUrl"])
	it.mURL, _ = jsonText(it.fields["mUrl"])
	it.etag, _ = jsonText(it.fields["etag"])
	return it
}

// samplePages fetches a sample over the items of all lists.
func (s *survey) samplePages(ctx context.Context) {
	var all []json.RawMessage
	for _, l := range s.lists {
		all = append(all, l.items...)
	}
	for _, raw := range check.Sample(s.t, all) {
		it := readItem(raw)
		if m, err := canon.URL(it.mURL); err == nil && s.near(m) {
			p := &seenPage{murl: m, item: it}
			p.fetch(ctx, s.t)
			if p.curl, err = canon.URL(it.cURL); err != nil && p.ok() {
				p.curl = cmp.Or(p.fieldURL(), p.canonicalLink()) // the best there is
			}
			s.addPage(p)
		}
	}
}

// addAlternates looks for M-URLs of this draft that a page links to. A JSON
// alternate may be anything: it counts if its hash has this draft's form.
func (s *survey) addAlternates(ctx context.Context, door *check.Response) {
	n := 0
	for _, l := range responseLinks(door, true) {
		if !l.Is("alternate", tct.MediaType) || !s.near(l.URL) {
			continue
		}
		if n++; n > tct.MaxAlternates {
			return
		}
		p := &seenPage{curl: door.URL, murl: l.URL}
		if c, err := canon.URL(door.URL); err == nil {
			p.curl = c
		}
		p.fetch(ctx, s.t)
		if _, c := p.fields["canonical_url"]; c && strings.HasPrefix(p.hash, tct.HashPrefix) {
			s.addPage(p)
		}
	}
}

func (s *survey) addPage(p *seenPage) {
	if !slices.ContainsFunc(s.pages, func(q *seenPage) bool { return q.murl == p.murl }) {
		s.pages = append(s.pages, p)
	}
}

// fetch gets the page's M-URL and takes its answer apart.
func (p *seenPage) fetch(ctx context.Context, t *check.Target) {
	if p.resp, p.err = t.Get(ctx, p.murl); !p.ok() {
		return
	}
	p.tag = tct.Opaque(p.resp)
	p.body = trimBOM(p.resp.Body)
	p.jcs, p.jcsErr = canon.JCS(p.body)
	if json.Unmarshal(p.body, &p.fields) != nil || p.fields == nil {
		p.fields = nil
		return
	}
	raw := p.fields["hash"]
	p.hash, _ = jsonText(raw)
	if p.jcsErr == nil {
		rest := make(map[string]json.RawMessage, len(p.fields))
		for name, value := range p.fields {
			if name != "hash" {
				rest[name] = value
			}
		}
		if b, err := json.Marshal(rest); err == nil {
			if b, err = canon.JCS(b); err == nil {
				p.sumJCS = tct.HashPrefix + canon.SHA256Hex(b)
			}
		}
	}
	member := append([]byte(`"hash":`), raw...)
	if before, after, ok := bytes.Cut(p.body, member); ok {
		if bytes.HasSuffix(before, []byte(",")) {
			before = before[:len(before)-1]
		} else {
			after = bytes.TrimPrefix(after, []byte(","))
		}
		p.sumCut = tct.HashPrefix + canon.SHA256Hex(slices.Concat(before, after))
	}
}

// ok reports whether there is a 200 with a body to look at.
func (p *seenPage) ok() bool {
	return p.err == nil && p.resp.Status == http.StatusOK && p.resp.BodyErr == nil
}

// unsure reports whether an error says nothing about the site's documents.
func unsure(err error) bool { return errors.Is(err, check.ErrLimit) || errors.Is(err, check.ErrBusy) }

// near reports whether a URL is on a host of the site. Others never hear of
// the checker, whatever a list says.
func (s *survey) near(u string) bool { return slices.Contains(s.hosts, hostOf(u)) }

// page gives the answer of the page's C-URL, nil if that is none to ask.
func (s *survey) page(ctx context.Context, p *seenPage) (*check.Response, error) {
	if !s.near(p.curl) {
		return nil, nil
	}
	return s.t.Get(ctx, p.curl)
}

// responseLinks gives the links of a 2xx response: of its Link fields and, if
// asked, of its HTML.
func responseLinks(r *check.Response, inHTML bool) []weblink.Link {
	base, err := url.Parse(r.URL)
	if err != nil || r.Status < 200 || r.Status > 299 {
		return nil
	}
	out := weblink.Header(r.Header, base)
	if inHTML && strings.Contains(strings.ToLower(r.Header.Get("Content-Type")), "html") {
		out = append(out, weblink.HTML(bytes.NewReader(r.Body), base).Links...)
	}
	return out
}

func hostOf(u string) string {
	p, err := url.Parse(u)
	if err != nil {
		return ""
	}
	return strings.ToLower(p.Hostname())
}

func trimBOM(b []byte) []byte { return bytes.TrimPrefix(b, []byte("\uFEFF")) }

// jsonText gives a JSON string, false for anything else.
func jsonText(raw json.RawMessage) (string, bool) {
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

// jsonArray gives a JSON array, false for anything else.
func jsonArray(raw json.RawMessage) ([]json.RawMessage, bool) {
	var a []json.RawMessage
	return a, json.Unmarshal(raw, &a) == nil && a != nil
}

// shown gives a JSON value for a finding.
func shown(raw json.RawMessage) string {
	if raw == nil {
		return "nothing"
	}
	return string(raw)
}
