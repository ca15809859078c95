package tct

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/docname"
	"github.com/millrace/millrace/internal/kit"
)

// maxCheckedLists is the maximum number of lists that are fetched from one root or one index.
const maxCheckedLists = 10

// siteContext contains the documents of a site, which the rules of a draft share. It accepts
// invalid documents, which the reader refuses, so that rules can report them.
type siteContext struct {
	kit.SiteContext
	Home  *check.Response // response for the origin's root
	Lists []*seenList
	Other []string    // documents that are not lists, each as its URL and the reason
	Pages []*seenPage // the sampled pages

	d     *draft
	draft string // a later draft of which a list was found, or ""
	also  bool   // whether a list uses the earlier draft that the reader also accepts
}

// seenList is a document that should be a list.
type seenList struct {
	URL    string
	Resp   *check.Response
	Fields map[string]json.RawMessage
	Items  []json.RawMessage // nil if the document has no array items
	d      *draft
}

// seenItem is an item of a list. If a member is not a string, its value is "".
type seenItem struct {
	Fields          map[string]json.RawMessage // nil if the item is not an object
	CURL, MURL, Tag string
}

// seenPage is an M-URL of the sample, with the response to its GET request.
type seenPage struct {
	CURL, MURL string    // canonical URLs; CURL is "" if it is unknown
	Item       *seenItem // nil if the M-URL was found by a link of its C-URL
	Resp       *check.Response
	Err        error // error of the request

	// The remaining fields are set for a 200 response with a readable body.
	Body      []byte                     // body without a byte order mark
	Fields    map[string]json.RawMessage // nil if the body is not an object
	Tag, Hash string                     // ETag without W/ and quotes, and the hash member
}

func (s *siteContext) run(ctx context.Context) error {
	var err error
	if s.Home, err = s.Get(ctx, s.Root()); err != nil {
		return err
	}
	here, err := s.Get(ctx, s.Target.Site())
	if err != nil {
		return err
	}
	// A site may redirect to another host.
	s.AddHosts(s.Home.URL, here.URL)
	if err := s.findLists(ctx); err != nil {
		return err
	}
	s.samplePages(ctx)
	entries := []*check.Response{here}
	if len(s.Lists) == 0 {
		entries = []*check.Response{s.Home, here}
	}
	for _, entry := range entries {
		s.addAlternates(ctx, entry)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(s.Lists) == 0 && len(s.Pages) == 0 {
		if s.draft != "" {
			return &check.VersionError{Version: s.draft}
		}
		return fmt.Errorf("no M-Sitemap at %s, and no page links to an M-URL: %w", s.Home.URL, check.ErrAbsent)
	}
	return nil
}

// findLists finds the list at its fixed path, at the root of the origin or in the folder of the
// site, or else the lists that the root announces. An M-Sitemap that the site links to in another
// way than the draft requires also counts.
func (s *siteContext) findLists(ctx context.Context) error {
	if s.d.OneList {
		path, _ := docname.CutQuery(s.Target.Site())
		for _, folder := range slices.Compact([]string{s.Root(), path[:strings.LastIndexByte(path, '/')+1]}) {
			if err := s.AddLists(ctx, []string{in(folder, s.d.List+".json")}, looksLikeList); err != nil || len(s.Lists) > 0 {
				return err
			}
		}
		return nil
	}
	index := indexLinks(s)
	s.AddHosts(index...)
	if err := s.AddLists(ctx, index, looksLikeList); err != nil || len(s.Lists) > 0 {
		return err
	}
	here, err := s.Get(ctx, s.Target.Site())
	if err != nil {
		return err
	}
	var near []string
	for _, l := range append(kit.Links(s.Home), kit.Links(here)...) {
		if l.Is("index", "") && s.HasHost(l.URL) && !slices.Contains(index, l.URL) && !slices.Contains(near, l.URL) {
			near = append(near, l.URL)
		}
	}
	return s.AddLists(ctx, near, func(l *seenList) bool { return len(l.Items) > 0 && l.Item(0).MURL != "" })
}

// indexLinks returns the targets of the root's Link fields with rel=index and the JSON media type.
func indexLinks(s *siteContext) (index []string) {
	for _, l := range kit.FieldLinks(s.Home) {
		if l.Is("index", mediaType) && !slices.Contains(index, l.URL) {
			index = append(index, l.URL)
		}
	}
	return index
}

// AddLists fetches the targets, and adds the documents for which meant returns true. It records the
// others in Other.
func (s *siteContext) AddLists(ctx context.Context, targets []string, meant func(*seenList) bool) error {
	for _, u := range targets[:min(len(targets), maxCheckedLists)] {
		resp, why, err := s.Document(ctx, u)
		if resp != nil {
			fields := kit.Object(kit.TrimBOM(resp.Body))
			why, err = s.addList(ctx, &seenList{URL: u, Resp: resp, Fields: fields, Items: kit.Array(fields["items"]), d: s.d}, meant)
		}
		if err != nil {
			return err
		}
		if why != "" {
			s.Other = append(s.Other, u+": "+why)
		}
	}
	return nil
}

// addList adds a list, or the lists of an index. If it does not add the document itself, why says
// what the document is.
func (s *siteContext) addList(ctx context.Context, l *seenList, meant func(*seenList) bool) (why string, err error) {
	profile, version := kit.Text(l.Fields["profile"]), string(l.Fields["version"])
	its, other := s.d.ofList(profile, version)
	switch n := numberOf(profile, version); {
	case l.Fields == nil:
		return "a body that is not a JSON object", nil
	case other != nil && (n != "" || profile == profileName):
		if n > lastDraft {
			s.draft = "draft-" + n
		}
		return "a list of another draft", nil
	case profile != "" && profile == s.d.IndexProfile:
		lists, _ := json.Marshal(l.Fields["sitemaps"])
		return "an index of lists", s.AddLists(ctx, indexed(lists), func(l *seenList) bool { return l.Fields["sitemaps"] == nil && meant(l) })
	case !meant(l):
		return "something else", nil
	}
	s.also = s.also || its != nil && its == s.d.Also
	s.Lists = append(s.Lists, l)
	return "", nil
}

// looksLikeList reports whether a document at the path of a list is a list, even an invalid one.
func looksLikeList(l *seenList) bool {
	profile := kit.Text(l.Fields["profile"])
	return l.Fields["items"] != nil || l.Fields["version"] != nil && strings.HasPrefix(profile, "tct")
}

// Item reads an item of the list.
func (l *seenList) Item(i int) *seenItem { return l.d.item(l.Items[i]) }

func (d *draft) item(raw json.RawMessage) *seenItem {
	it := new(seenItem)
	if json.Unmarshal(raw, &it.Fields) != nil {
		return it
	}
	it.CURL = kit.Text(it.Fields["cUrl"])
	it.MURL = kit.Text(it.Fields["mUrl"])
	it.Tag = kit.Text(it.Fields[d.TagMember])
	return it
}

// Each calls f for every item that is an object, and reports whether there are such items.
func (l *seenList) Each(f func(at int, it *seenItem)) bool {
	some := false
	for i := range l.Items {
		if it := l.Item(i); it.Fields != nil {
			some = true
			f(i, it)
		}
	}
	return some
}

// OnItems calls f for every item that is an object, in all lists. If there are no such items, it
// returns [check.ErrNotApplicable].
func (s *siteContext) OnItems(f func(l *seenList, at int, it *seenItem)) error {
	some := false
	for _, l := range s.Lists {
		some = l.Each(func(at int, it *seenItem) { f(l, at, it) }) || some
	}
	return check.Applied(some)
}

// samplePages takes a sample of the items of all lists, and fetches their M-URLs.
func (s *siteContext) samplePages(ctx context.Context) {
	var all []json.RawMessage
	for _, l := range s.Lists {
		all = append(all, l.Items...)
	}
	for _, raw := range check.Sample(s.Target, all) {
		it := s.d.item(raw)
		if m, err := canon.URL(it.MURL); err == nil && s.HasHost(m) {
			p := &seenPage{MURL: m, Item: it}
			p.fetch(ctx, s.Target)
			if p.CURL, err = canon.URL(it.CURL); err != nil && p.OK() {
				p.CURL = cmp.Or(p.FieldURL(), p.canonicalLink()) // use the best guess
			}
			s.addPage(p)
		}
	}
}

// addAlternates adds the M-URLs of this draft to which a page links.
func (s *siteContext) addAlternates(ctx context.Context, page *check.Response) {
	n := 0
	for _, l := range kit.Links(page) {
		if !l.Is("alternate", mediaType) || !s.HasHost(l.URL) {
			continue
		}
		if n++; n > maxAlternates {
			return
		}
		p := &seenPage{CURL: page.URL, MURL: l.URL}
		if c, err := canon.URL(page.URL); err == nil {
			p.CURL = c
		}
		p.fetch(ctx, s.Target)
		if s.d.Own(p) {
			s.addPage(p)
		}
	}
}

func (s *siteContext) addPage(p *seenPage) {
	if !slices.ContainsFunc(s.Pages, func(q *seenPage) bool { return q.MURL == p.MURL }) {
		s.Pages = append(s.Pages, p)
	}
}

// fetch requests the page's M-URL, and parses the response.
func (p *seenPage) fetch(ctx context.Context, t *check.Target) {
	if p.Resp, p.Err = t.Get(ctx, p.MURL); !p.OK() {
		return
	}
	p.Tag, p.Body = kit.OpaqueTag(p.Resp), kit.TrimBOM(p.Resp.Body)
	p.Fields = kit.Object(p.Body)
	p.Hash = kit.Text(p.Fields["hash"])
}

// OK reports whether the response is a 200 with a readable body.
func (p *seenPage) OK() bool { return p.Err == nil && p.Resp.OK() }

// Page returns the response for the page's C-URL, or nil if the C-URL is on another host.
func (s *siteContext) Page(ctx context.Context, p *seenPage) (*check.Response, error) {
	if !s.HasHost(p.CURL) {
		return nil, nil
	}
	return s.Get(ctx, p.CURL)
}
