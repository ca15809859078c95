package arc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/store"
)

// shop is a site in a store. Tests set its clock.
type shop struct {
	t    testing.TB
	now  time.Time
	site *protocoltest.Stored
}

func openShop(t testing.TB, now time.Time) *shop {
	t.Helper()
	s := &shop{t: t, now: now}
	s.site = protocoltest.Open(t, store.Config{Base: site.Base, Taggers: []millrace.Tagger{Protocol().Tagger}}, func() time.Time { return s.now })
	return s
}

func (s *shop) view() millrace.View {
	s.t.Helper()
	v, err := protocoltest.Publish(context.WithoutCancel(s.t.Context()), s.site.Pub)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *shop) put(pages ...*millrace.Page) {
	s.t.Helper()
	var batch []millrace.Change
	for _, p := range pages {
		batch = append(batch, millrace.Change{Ref: millrace.Ref{URL: p.URL}, Page: p})
	}
	s.apply(batch)
}

func (s *shop) remove(urls ...string) {
	s.t.Helper()
	var batch []millrace.Change
	for _, u := range urls {
		batch = append(batch, millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: u}})
	}
	s.apply(batch)
}

func (s *shop) apply(batch []millrace.Change) {
	s.t.Helper()
	if _, err := s.site.Apply(s.t.Context(), "source", batch); err != nil {
		s.t.Fatal(err)
	}
}

func plain(path, text string) *millrace.Page {
	return &millrace.Page{
		URL: path, Title: "Page " + path, Description: text, Blocks: millrace.TextBlocks(text), Kind: millrace.Article,
		Known: millrace.FieldTitle | millrace.FieldDescription | millrace.FieldContent | millrace.FieldExtra | millrace.FieldKind, Detail: millrace.DetailBlocks,
	}
}

func secret(path string) *millrace.Page {
	p := plain(path, "public words")
	p.Extra = map[string]json.RawMessage{Name: json.RawMessage(`{"ai_context":"sensitive","page":"secret","sections":[{"context":"sensitive","name":"inner"}]}`)}
	return p
}

// docs returns all published documents.
func (s *shop) docs(o *protocol.PublisherOptions) map[string]*millrace.Document {
	s.t.Helper()
	out := map[string]*millrace.Document{}
	for d, err := range NewPublisher(o).All(s.t.Context(), s.view()) {
		if err != nil {
			s.t.Fatal(err)
		}
		out[d.Path] = d
	}
	return out
}

func text(t testing.TB, write func(context.Context, io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// wireList is a list as parsed by another implementation.
type wireList struct {
	Version   string           `json:"arc_sitemap_version"`
	Site      string           `json:"site"`
	Generated string           `json:"generated_at"`
	Rate      string           `json:"crawl_rate"`
	Contact   string           `json:"ai-crawl-contact"`
	Pages     []map[string]any `json:"pages"`
}

func parse(t testing.TB, body string) *wireList {
	t.Helper()
	w := new(wireList)
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(w); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return w
}

// page returns the entry of a path, or nil if the path is not listed.
func (w *wireList) page(path string) map[string]any {
	for _, p := range w.Pages {
		if p["url"] == strings.TrimSuffix(site.Base, "/")+path {
			return p
		}
	}
	return nil
}

var start = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

func TestList(t *testing.T) {
	s := openShop(t, start)
	archive := plain("/tag/x/", "links")
	archive.Kind = millrace.Archive
	s.put(plain("/", "home"), plain("/blog/a", "text of a"), plain("/docs/", "docs"), secret("/secret"), archive, plain("/members", "for members"))
	o := &protocol.PublisherOptions{
		Contact: "crawl@example.com", Policy: &millrace.Policy{Rate: millrace.RateHints{PerSecond: 1}},
		Own: []any{&PublisherOptions{
			Priorities: map[string]float64{"/blog": 0.9, "/": 0.5, "/docs": 0},
			Listed:     []string{"/members", "https://example.com/intern/", "https://other.example/x"},
		}},
	}
	docs := s.docs(o)
	list := parse(t, text(t, docs[pathList].Write))
	if list.Version != "2.1" || list.Site != "https://example.com" || list.Generated != "2026-03-10T12:00:00Z" || list.Rate != "1/s" || list.Contact != "crawl@example.com" {
		t.Errorf("the list starts with %+v", list)
	}
	var urls []any
	for _, p := range list.Pages {
		urls = append(urls, strings.TrimPrefix(p["url"].(string), "https://example.com"))
	}
	if diff := cmp.Diff([]any{"/", "/blog/a", "/docs/", "/secret", "/members", "/intern/"}, urls); diff != "" {
		t.Fatalf("pages (-want +got):\n%s", diff)
	}
	stored, err := s.view().Page(t.Context(), millrace.Ref{URL: "/blog/a"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{
		"url": "https://example.com/blog/a", "lastmod": "2026-03-10T12:00:00Z", "ai_indexable": true, "ai_summary": "text of a",
		"ai_checksum": "sha256:" + stored.Version, "auth_required": false, "robots_directive": "index", "crawl_priority": 0.9,
		"ai_snapshot": map[string]any{"page": "article", "title": "Page /blog/a", "summary": "text of a"},
	}, list.page("/blog/a")); diff != "" {
		t.Errorf("a page (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{
		"url": "https://example.com/members", "ai_indexable": false, "auth_required": false, "robots_directive": "noindex",
	}, list.page("/members")); diff != "" {
		t.Errorf("a page that is listed by name (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{
		"url": "https://example.com/intern/", "ai_indexable": false, "robots_directive": "noindex",
	}, list.page("/intern/")); diff != "" {
		t.Errorf("a page that the view does not have (-want +got):\n%s", diff)
	}
	if p := list.page("/docs/"); p["crawl_priority"] != 0.0 {
		t.Errorf("/docs/ has priority %v", p["crawl_priority"])
	}
	if p := list.page("/secret"); p["ai_snapshot"] != nil || p["crawl_priority"] != 0.5 || cmp.Diff(p["ai_tags"], []any{"sensitive"}) != "" || p["ai_summary"] != "public words" {
		t.Errorf("the sensitive page is %v", p)
	}
	keyed := parse(t, text(t, docs[pathList].PartsKeyed.Write))
	want := map[string]any{
		"ai_context": "sensitive", "page": "secret", "title": "Page /secret", "sections": []any{map[string]any{"context": "sensitive", "name": "inner"}},
	}
	if diff := cmp.Diff(want, keyed.page("/secret")["ai_snapshot"]); diff != "" {
		t.Errorf("for those with a key (-want +got):\n%s", diff)
	}
	delete(keyed.page("/secret"), "ai_snapshot")
	if diff := cmp.Diff(list, keyed); diff != "" {
		t.Errorf("the two forms differ in more (-public +keyed):\n%s", diff)
	}
	if twin := docs[pathWellKnown]; twin.Parts != docs[pathList].Parts || text(t, twin.Write) != text(t, docs[pathList].Write) {
		t.Error("the well-known list differs")
	}
	if yaml := text(t, docs[pathYAML].Write); strings.Contains(yaml, "inner") || !strings.Contains(text(t, docs[pathYAML].PartsKeyed.Write), "inner") {
		t.Errorf("the YAML form is %s", yaml)
	}
}

// Public documents contain nothing sensitive. If the protocol needs a key, all documents have
// one form, with every snapshot.
func TestForms(t *testing.T) {
	s := openShop(t, start)
	s.put(plain("/", "home"), secret("/secret"))
	for path, d := range s.docs(nil) {
		if d.Large && (d.PartsKeyed == nil || strings.Contains(text(t, d.Write), "inner")) {
			t.Errorf("%s has one form, or contains sensitive data", path)
		}
	}
	for path, d := range s.docs(&protocol.PublisherOptions{Static: true}) {
		if d.PartsKeyed != nil || strings.Contains(text(t, d.Write), "inner") {
			t.Errorf("%s in a static build has two forms, or contains sensitive data", path)
		}
	}
	full := 0
	for path, d := range s.docs(&protocol.PublisherOptions{Auth: true}) {
		if d.PartsKeyed != nil {
			t.Errorf("%s with a key has two forms", path)
		}
		body := text(t, d.Write)
		if strings.Contains(body, "/secret") && !strings.Contains(body, "inner") {
			t.Errorf("%s with a key is incomplete", path)
		}
		full += strings.Count(body, "inner")
	}
	if full != 4 { // the list at two paths, its YAML form, and the delta of the day
		t.Errorf("%d documents are complete", full)
	}
}

// A page whose entry is too large for a tag is still in the list.
func TestLargeEntry(t *testing.T) {
	s := openShop(t, start)
	long := plain("/long", "text")
	long.Extra = map[string]json.RawMessage{Name: json.RawMessage(`{"page":"long","content":"` + strings.Repeat("x", 2*maxTag) + `"}`)}
	hidden := secret("/hidden")
	hidden.Extra[Name] = json.RawMessage(`{"page":"inner","context":"personal","content":"` + strings.Repeat("x", 2*maxTag) + `"}`)
	over := plain("/over", "text")
	over.Extra = map[string]json.RawMessage{Name: json.RawMessage(`{"page":"over","content":"` + strings.Repeat("x", maxSnapshot) + `"}`)}
	s.put(long, hidden, over)
	docs := s.docs(nil)
	list, keyed := parse(t, text(t, docs[pathList].Write)), parse(t, text(t, docs[pathList].PartsKeyed.Write))
	if got := list.page("/long")["ai_snapshot"].(map[string]any)["content"]; got != strings.Repeat("x", 2*maxTag) {
		t.Errorf("the snapshot of a large entry is %.60v", got)
	}
	if list.page("/hidden")["ai_snapshot"] != nil || keyed.page("/hidden")["ai_snapshot"] == nil {
		t.Errorf("the large personal page is %.200v", list.page("/hidden"))
	}
	if got := list.page("/over")["ai_snapshot"].(map[string]any)["page"]; got != "article" {
		t.Errorf("the page over the limit is %v", got)
	}
}

func TestDeltas(t *testing.T) {
	s := openShop(t, start.AddDate(0, 0, -40))
	s.put(plain("/", "home"), plain("/old", "old"), plain("/gone", "gone"), secret("/secret"))
	s.now = start.AddDate(0, 0, -2)
	s.put(plain("/a", "one"), plain("/b", "one"))
	s.now = start.AddDate(0, 0, -1).Truncate(dayLength) // midnight is part of the new day
	s.put(plain("/a", "two"))
	s.now = start
	s.view() // publish an edition
	archive := plain("/tag/x/", "links")
	archive.Kind = millrace.Archive
	s.remove("/gone")
	s.put(plain("/came", "and"), secret("/secret2"), archive)
	s.view()
	s.put(plain("/unseen2", "no list names it"))
	s.remove("/unseen2")
	s.now = start.Add(time.Hour)
	s.remove("/came")
	s.view()
	docs := s.docs(&protocol.PublisherOptions{Own: []any{&PublisherOptions{Priorities: map[string]float64{"/b": 1}}}})
	got := map[string][]string{}
	for path, d := range docs {
		name, ok := strings.CutPrefix(path, pathDeltas)
		if !ok {
			continue
		}
		list := parse(t, text(t, d.Write))
		day := strings.TrimSuffix(name, ".json")
		if d.Large == (len(list.Pages) == 0) {
			t.Errorf("the delta of %s: large is %t, of %d pages", day, d.Large, len(list.Pages))
		}
		if found, err := NewPublisher(nil).Find(t.Context(), s.view(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)); (err == nil) == d.Large {
			t.Errorf("the delta of %s: large is %t, found %v, %v", day, d.Large, found, err)
		} else if err == nil && (found.ETag != d.ETag || found.Path != d.Path) {
			t.Errorf("the delta of %s is %v, found %v", day, d, found)
		}
		got[day] = []string{}
		for _, p := range list.Pages {
			word := strings.TrimPrefix(p["url"].(string), "https://example.com")
			if p["ai_indexable"] == false {
				if p["robots_directive"] != "noindex" || len(p) != 3 {
					t.Errorf("%s is missing after %v", word, p)
				}
				word = "-" + word
			}
			got[day] = append(got[day], word)
		}
		if len(list.Pages) == 0 && list.Generated != day+"T00:00:00Z" {
			t.Errorf("the delta of a day without changes is generated at %s", list.Generated)
		}
	}
	want := map[string][]string{}
	for i := range horizon {
		want[start.AddDate(0, 0, -i).Format(time.DateOnly)] = []string{}
	}
	want["2026-03-08"] = []string{"/b"}
	want["2026-03-09"] = []string{"/a"}
	want["2026-03-10"] = []string{"-/came", "-/gone", "/secret2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
	for d, err := range NewPublisher(nil).All(t.Context(), protocoltest.Volatile(s.view())) {
		if err != nil || strings.HasPrefix(d.Path, pathDeltas) {
			t.Errorf("the delta of a volatile log: %v, %v", d, err)
		}
	}
	today := docs[pathDeltas+"2026-03-10.json"]
	if list := parse(t, text(t, today.Write)); list.Generated != "2026-03-10T13:00:00Z" || list.page("/secret2")["ai_snapshot"] != nil {
		t.Errorf("today's delta is %+v", list)
	}
	if list := parse(t, text(t, today.PartsKeyed.Write)); list.page("/secret2")["ai_snapshot"] == nil {
		t.Errorf("with a key, today's delta is %+v", list)
	}
	if list := parse(t, text(t, docs[pathDeltas+"2026-03-08.json"].Write)); list.page("/b")["crawl_priority"] != 1.0 || list.Generated != "2026-03-08T12:00:00Z" {
		t.Errorf("the delta of a day with a change is %+v", list)
	}

	// A change of a page changes only the deltas of its previous and its new day.
	s.now = start.Add(2 * time.Hour)
	s.put(plain("/b", "two"))
	next := s.docs(&protocol.PublisherOptions{Own: []any{&PublisherOptions{Priorities: map[string]float64{"/b": 1}}}})
	var moved []string
	for path, d := range next {
		if strings.HasPrefix(path, pathDeltas) && (docs[path] == nil || text(t, d.Write) != text(t, docs[path].Write)) {
			moved = append(moved, strings.TrimPrefix(path, pathDeltas))
		}
	}
	slices.Sort(moved)
	if diff := cmp.Diff([]string{"2026-03-08.json", "2026-03-10.json"}, moved); diff != "" {
		t.Errorf("days that moved (-want +got):\n%s", diff)
	}
	// Other options change the bytes and the ETag.
	other := s.docs(&protocol.PublisherOptions{Contact: "x@example.com"})
	for path, d := range next {
		if d.ETag != "" && other[path].ETag == d.ETag {
			t.Errorf("%s has the same tag with other options", path)
		}
	}
}

// A delta also contains pages that were public and are now listed by URL only, so that mirrors
// that read deltas drop them.
func TestDeltaListed(t *testing.T) {
	s := openShop(t, start.AddDate(0, 0, -1))
	s.put(plain("/", "home"), plain("/members", "words"), plain("/intern", "words"))
	s.now = start
	s.remove("/members")
	s.put(plain("/intern", "other words"))
	docs := s.docs(&protocol.PublisherOptions{Own: []any{&PublisherOptions{Listed: []string{"/members", "/intern"}}}})
	list, delta := parse(t, text(t, docs[pathList].Write)), parse(t, text(t, docs[pathDeltas+"2026-03-10.json"].Write))
	for _, path := range []string{"/members", "/intern"} {
		if diff := cmp.Diff(list.page(path), delta.page(path)); diff != "" || delta.page(path) == nil {
			t.Errorf("%s (-list +delta):\n%s", path, diff)
		}
	}
}

// A day before the log begins has no delta, such as after a store was created again. A mirror
// of the earlier store then reads the list.
func TestDeltasBegin(t *testing.T) {
	s := openShop(t, start.AddDate(0, 0, -3))
	s.put(plain("/", "home"))
	s.now = start
	s.put(plain("/a", "a"))
	docs := s.docs(nil)
	for i := -1; i < horizon; i++ {
		path := deltaPath(start.AddDate(0, 0, -i))
		_, err := NewPublisher(nil).Find(t.Context(), s.view(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		found := docs[path] != nil
		switch i {
		case -1: // the day after the last change
			found = err == nil
		case 1, 2:
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
		default:
			if !errors.Is(err, millrace.ErrNotFound) { // absent, or an artifact
				t.Errorf("%s: %v", path, err)
			}
		}
		if want := i <= 3; found != want {
			t.Errorf("%s: found is %t", path, found)
		}
	}
}

func TestDeltaTooLarge(t *testing.T) {
	s := openShop(t, start)
	var pages []*millrace.Page
	for i := range 5 {
		pages = append(pages, plain(fmt.Sprintf("/%d", i), "x"))
	}
	s.put(pages...)
	days, err := new(dayChanges).daysOf(t.Context(), s.view(), maxDelta)
	if err != nil || len(days) != 1 || days[0].n != 5 {
		t.Fatalf("%d days, %v", len(days), err)
	}
	p := NewPublisher(nil).(*publisher)
	p.most = 4
	for d, err := range p.All(t.Context(), s.view()) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Path == pathDeltas+"2026-03-10.json" {
			t.Error("a day with 5 changes has a delta")
		}
	}
}

func TestFind(t *testing.T) {
	s := openShop(t, start.AddDate(0, 0, -40))
	s.put(plain("/old", "old"))
	s.now = start
	s.put(plain("/", "home"))
	p := NewPublisher(&protocol.PublisherOptions{Policy: &millrace.Policy{Updated: start, Terms: "https://example.com/terms"}}).(*publisher)
	p.now = func() time.Time { return start.AddDate(0, 0, 3) }
	find := func(target string) (*millrace.Document, error) {
		return p.Find(t.Context(), s.view(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
	}
	d, err := find(pathPolicy)
	if err != nil || !d.Public || d.Header.Get("Last-Modified") != "Tue, 10 Mar 2026 12:00:00 GMT" || !strings.Contains(text(t, d.Write), "https://example.com/terms") {
		t.Errorf("the policy: %v, %v", d, err)
	}
	for day, generated := range map[string]string{
		"2026-03-11": "2026-03-10T12:00:00Z", "2026-03-13": "2026-03-10T12:00:00Z", "2026-03-09": "2026-03-09T00:00:00Z", "2026-02-09": "2026-02-09T00:00:00Z",
	} {
		d, err := find(pathDeltas + day + ".json")
		if err != nil {
			t.Errorf("a day without changes: %v", err)
			continue
		}
		if list := parse(t, text(t, d.Write)); len(list.Pages) != 0 || list.Generated != generated {
			t.Errorf("a day without changes is %+v", list)
		}
	}
	for _, path := range []string{
		pathDeltas + "2026-03-14.json", pathDeltas + "2026-02-08.json", pathDeltas + "2026-03-10.json", pathDeltas + "2026-3-11.json", pathDeltas + "2026-02-30.json",
		pathDeltas, pathDeltas + "2026-03-11", pathDeltas + "2026-03-11.json?x", pathPolicy + "?x", "/arc", pathList, "/x" + pathPolicy,
	} {
		if d, err := find(path); !errors.Is(err, millrace.ErrNotFound) {
			t.Errorf("%s: %v, %v", path, d, err)
		}
	}
	if d, err := NewPublisher(nil).Find(t.Context(), s.view(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, pathPolicy, nil)); !errors.Is(err, millrace.ErrNotFound) {
		t.Errorf("no policy: %v, %v", d, err)
	}
}

func TestAnnounce(t *testing.T) {
	s := openShop(t, start)
	n := NewPublisher(&protocol.PublisherOptions{Policy: new(millrace.Policy)}).Advertise(s.view())
	if diff := cmp.Diff([]string{"Sitemap: https://example.com/arc-sitemap.json"}, n.Robots); diff != "" {
		t.Errorf("robots.txt (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{pathPolicy}, n.Public); diff != "" {
		t.Errorf("public (-want +got):\n%s", diff)
	}
	if n := NewPublisher(&protocol.PublisherOptions{Own: []any{&PublisherOptions{NoSitemapLine: true}}}).Advertise(s.view()); n.Robots != nil || n.Public != nil {
		t.Errorf("without the line: %+v", n)
	}
	if len(n.RootData) != 1 {
		t.Fatalf("JSON-LD: %s", n.RootData)
	}
	var ld map[string]any
	if err := json.Unmarshal(n.RootData[0], &ld); err != nil {
		t.Fatal(err)
	}
	first := ld["distribution"].([]any)[0].(map[string]any)
	if ld["@type"] != "Dataset" || ld["@context"] != "https://schema.org" || first["contentUrl"] != "https://example.com/arc-sitemap.json" || first["encodingFormat"] != "application/json" {
		t.Errorf("JSON-LD: %v", slices.Sorted(maps.Keys(ld)))
	}
}
