package tct00

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
	"github.com/millrace/millrace/internal/docname"
	"github.com/millrace/millrace/internal/tct"
	"github.com/millrace/millrace/internal/weblink"
)

// survey is what a site has of this draft, as its rules share it. It is
// lenient where the reader is strict: what is broken has to be seen.
type survey struct {
	t      *check.Target
	hosts  []string // that the site is known to live on: no other is asked
	home   *check.Response
	folder string // where the list is, or else should be; ends with "/"
	list   *seenList
	why    string      // why there is no list
	draft  string      // that the list is of, if it is not judged here
	pages  []*seenPage // the sample
}

// seenList is a document that is meant to be a list.
type seenList struct {
	url    string
	resp   *check.Response
	fields map[string]json.RawMessage
	items  []json.RawMessage // nil if there is no array
}

// seenItem is an item of the list. A member that is no string is "".
type seenItem struct {
	fields           map[string]json.RawMessage // nil if the item is no object
	cURL, mURL, hash string
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
}

func surveyed(ctx context.Context, t *check.Target) (*survey, error) {
	return check.Memo(ctx, t, Name+" survey", func(ctx context.Context) (*survey, error) {
		s := &survey{t: t}
		return s, s.run(ctx)
	})
}

func (s *survey) run(ctx context.Context) error {
	root, err := s.t.Get(ctx, s.t.Root())
	if err != nil {
		return err
	}
	here, err := s.t.Get(ctx, s.t.Site())
	if err != nil {
		return err
	}
	s.home = root
	for _, u := range []string{s.t.Root(), root.URL, here.URL} { // a host that the site redirects to is the site's
		s.hosts = append(s.hosts, hostOf(u))
	}
	path, _ := docname.CutQuery(s.t.Site())
	places := []string{s.t.Root(), path[:strings.LastIndexByte(path, '/')+1]}
	for _, folder := range slices.Compact(places) {
		if err := s.findList(ctx, folder); err != nil {
			return err
		}
		if s.list != nil {
			break
		}
	}
	if s.list == nil {
		s.folder = places[0]
	}
	if s.folder != s.t.Root() {
		if s.home, err = s.t.Get(ctx, s.folder); err != nil {
			return err
		}
	}
	if err := s.samplePages(ctx); err != nil {
		return err
	}
	doors := []*check.Response{here}
	if s.list == nil {
		doors = []*check.Response{root, here}
	}
	for _, door := range doors {
		s.addAlternates(ctx, door)
	}
	if s.list == nil && len(s.pages) == 0 && s.draft != "" {
		return &check.VersionError{Version: s.draft}
	}
	if s.list == nil && len(s.pages) == 0 {
		return fmt.Errorf("%s has no %s, and no page leads to an M-URL: %w", root.URL, listName, check.ErrAbsent)
	}
	return nil
}

// findList fetches what is at the list's name in a folder, and keeps it if it
// is meant as one.
func (s *survey) findList(ctx context.Context, folder string) error {
	l := &seenList{url: strings.TrimSuffix(folder, "/") + listName}
	resp, err := s.t.Get(ctx, l.url)
	l.resp = resp
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
		l.items = jsonArray(l.fields["items"])
		profile, _ := jsonText(l.fields["profile"])
		if draft := tct.OtherDraft(profile, string(l.fields["version"])); draft != "" {
			s.draft, why = draft, "a list of "+draft
		} else if l.fields["items"] != nil || l.fields["version"] != nil && strings.HasPrefix(profile, "tct") {
			s.list, s.folder = l, folder
			return nil
		}
	}
	s.why = cmp.Or(s.why, why)
	return nil
}

func readItem(raw json.RawMessage) *seenItem {
	it := new(seenItem)
	if json.Unmarshal(raw, &it.fields) != nil {
		return it
	}
	it.cURL, _ = jsonText(it.fields["cUrl"])
	it.mURL, _ = jsonText(it.fields["mUrl"])
	it.hash, _ = jsonText(it.fields["contentHash"])
	return it
}

// samplePages fetches a sample of the list's items.
func (s *survey) samplePages(ctx context.Context) error {
	if s.list == nil {
		return nil
	}
	for _, raw := range check.Sample(s.t, s.list.items) {
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
	return ctx.Err()
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
		content, _ := jsonText(p.fields["content"])
		if isDigits(p.hash) || isHash(p.hash) && tct.IsFingerprint(content, p.hash) {
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
	if json.Unmarshal(p.body, &p.fields) != nil {
		p.fields = nil
	}
	p.hash, _ = jsonText(p.fields["hash"])
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

// jsonObject gives the members of a body that is one JSON object, nil for
// anything else.
func jsonObject(body []byte) (m map[string]json.RawMessage) {
	if json.Unmarshal(trimBOM(body), &m) != nil {
		return nil
	}
	return m
}

// jsonArray gives a JSON array, nil for anything else.
func jsonArray(raw json.RawMessage) (a []json.RawMessage) {
	if json.Unmarshal(raw, &a) != nil {
		return nil
	}
	return a
}

// shown gives a JSON value for a finding.
func shown(raw json.RawMessage) string {
	if raw == nil {
		return "nothing"
	}
	return string(raw)
}
