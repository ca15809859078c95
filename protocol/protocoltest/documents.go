package protocoltest

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// documents checks that All and Find agree, that each ETag is strong and identifies one sequence of
// bytes, and that another publisher returns the same bytes for another view of the same pages.
func (s *site) documents(t *testing.T) {
	t.Helper()
	shuffled := slices.Clone(s.pages)
	rand.New(rand.NewPCG(s.seed, 3)).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	twin := NewView(s.view.Site(), shuffled, s.p.Tagger)
	docs := s.all(t, s.p.NewPublisher(s.o), s.view)
	twins := s.all(t, s.p.NewPublisher(s.o), twin)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(docs)), slices.Sorted(maps.Keys(twins))); diff != "" {
		t.Errorf("documents of two publishers differ (-one +other):\n%s", diff)
	}
	s.files(t, twin)
	pub := s.p.NewPublisher(s.o)
	public := pub.Advertise(s.view).Public
	for path, d := range docs {
		if slices.Contains(public, path) != d.Public {
			t.Errorf("%s: public is %t, but the public paths are %q", path, d.Public, public)
		}
		body := write(t, d)
		if again := write(t, d); !bytes.Equal(body, again) {
			t.Errorf("%s: two writes differ: %q and %q", path, body, again)
		}
		other := twins[path]
		if other == nil {
			continue
		}
		if !bytes.Equal(body, write(t, other)) || d.ETag != other.ETag || !cmp.Equal(d.Header, other.Header) {
			t.Errorf("%s: documents of two publishers differ", path)
		}
		if strings.HasPrefix(d.ETag, "W/") || strings.ContainsAny(d.ETag, "\" \t") || d.ETag == "" && !d.Large {
			t.Errorf("%s: %q is not a strong tag", path, d.ETag)
		}
		s.checkSubject(t, d)
		if d.Large {
			continue
		}
		found, err := pub.Find(t.Context(), s.view, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://docs"+path, nil))
		if err != nil {
			t.Errorf("All has %s, Find: %v", path, err)
			continue
		}
		if found.Path != path || found.Page != d.Page || found.Query != d.Query || found.PageCount != d.PageCount || found.ETag != d.ETag || !cmp.Equal(found.Header, d.Header) || !bytes.Equal(write(t, found), body) {
			t.Errorf("Find of %s returns %s with tag %s, All returns %s with %s", path, found.Path, found.ETag, d.Path, d.ETag)
		}
	}
	s.linked(t, pub, docs)
	for _, path := range []string{"/none", "/none/llm.json", "/llm/~3/llm.json?x", "/%00", "/a/../b"} {
		if docs[path] != nil {
			continue
		}
		d, err := pub.Find(t.Context(), s.view, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://docs"+path, nil))
		if !errors.Is(err, millrace.ErrNotFound) {
			t.Errorf("Find of %s: %v, %v", path, d, err)
		}
	}
}

// checkSubject checks that the document of a page names that page, and that other documents name no
// page.
func (s *site) checkSubject(t *testing.T, d *millrace.Document) {
	t.Helper()
	if d.PageCount < 0 || d.Page != "" && (d.PageCount > 0 || d.Query != "" || d.Large || d.Public) {
		t.Errorf("%s: got page %q, query %q, %d pages, large %t, public %t", d.Path, d.Page, d.Query, d.PageCount, d.Large, d.Public)
	}
	base := s.view.Site().Base
	for _, field := range d.Header["Link"] {
		target, rest, _ := strings.Cut(strings.TrimPrefix(field, "<"), ">")
		if page := canon.Relative(base, target); strings.Contains(rest, `rel="canonical"`) && !d.Large && d.Page != page {
			t.Errorf("%s: is a form of %s, but names page %q", d.Path, page, d.Page)
		}
	}
	if d.Page == "" {
		return
	}
	if _, err := s.view.Page(t.Context(), millrace.Ref{URL: d.Page}); err != nil {
		t.Errorf("%s: page %q: %v", d.Path, d.Page, err)
	}
}

// linked checks that the documents to which a page links belong to that page.
func (s *site) linked(t *testing.T, pub millrace.Publisher, docs map[string]*millrace.Document) {
	t.Helper()
	announced, site := pub.Advertise(s.view).Page, s.view.Site()
	if announced == nil {
		return
	}
	rooted := strings.TrimSuffix(strings.TrimPrefix(site.EndpointBase, canon.Origin(site.EndpointBase)), "/")
	for _, p := range s.pages {
		pagePath := canon.Relative(site.Base, p.URL)
		links, err := announced(t.Context(), pagePath)
		if err != nil && !errors.Is(err, millrace.ErrNotFound) {
			t.Errorf("links of %s: %v", pagePath, err)
		}
		for _, l := range links {
			path := strings.TrimPrefix(strings.TrimPrefix(l.URL, canon.Origin(site.EndpointBase)), rooted)
			if d := docs[path]; d != nil && !d.Large && d.Page != pagePath {
				t.Errorf("%s links to %s, a document of page %q", pagePath, path, d.Page)
			}
		}
	}
}

// files checks that another publisher builds the same artifacts for another view of the same pages,
// and that a later edition keeps them unchanged.
func (s *site) files(t *testing.T, twin *View) {
	t.Helper()
	if _, ok := s.p.NewPublisher(s.o).(millrace.ArtifactPublisher); !ok {
		return
	}
	made := func(v *View, before *ArtifactSet) *ArtifactSet {
		t.Helper()
		filer, _ := s.p.NewPublisher(s.o).(millrace.ArtifactPublisher)
		artifacts, err := fill(t.Context(), filer, v, v.Site().Time, before)
		if err != nil {
			t.Fatal(err)
		}
		return artifacts
	}
	// The note of the protocol may contain durations.
	same := cmpopts.IgnoreFields(millrace.Artifact{}, "Note")
	one := made(s.view, nil)
	for name, other := range map[string]*ArtifactSet{"another publisher": made(twin, nil), "the next edition": made(s.view, one)} {
		if diff := cmp.Diff(one.Files, other.Files, same, cmpopts.SortSlices(func(a, b millrace.Artifact) bool { return a.Path < b.Path })); diff != "" {
			t.Errorf("artifacts of %s differ (-one +other):\n%s", name, diff)
		}
		for i, d := range other.Docs {
			if !bytes.Equal(write(t, d), write(t, one.Docs[i])) {
				t.Errorf("%s: bytes of %s differ", d.Path, name)
			}
		}
	}
	for _, f := range one.Files {
		if !strings.HasPrefix(f.Path, "/") || f.ETag == "" || f.Sum != canon.SHA256Hex(one.Bodies[f.Path]) {
			t.Errorf("artifact with an invalid path, ETag or sum: %+v", f)
		}
	}
}

// all returns the documents of a view by path. It checks that large ones come first and that
// each path is unique.
func (s *site) all(t *testing.T, pub millrace.Publisher, v millrace.View) map[string]*millrace.Document {
	t.Helper()
	docs := map[string]*millrace.Document{}
	small := false
	for d, err := range pub.All(t.Context(), v) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Large && small {
			t.Errorf("%s: a large document after a small one", d.Path)
		}
		small = small || !d.Large
		if docs[d.Path] != nil {
			t.Errorf("%s: duplicate path", d.Path)
		}
		if !strings.HasPrefix(d.Path, "/") {
			t.Errorf("%s: no path", d.Path)
		}
		docs[d.Path] = d
	}
	return docs
}

func write(t *testing.T, d *millrace.Document) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := d.Write(t.Context(), &b); err != nil {
		t.Fatalf("%s: %v", d.Path, err)
	}
	return b.Bytes()
}

// heads sends a HEAD and a conditional GET for every document.
func (s *site) heads(t *testing.T) {
	t.Helper()
	for path := range s.all(t, s.p.NewPublisher(s.o), s.view) {
		status, etag := s.ask(t, http.MethodHead, path, "")
		if status != http.StatusOK || etag == "" {
			t.Errorf("HEAD %s: %d with ETag %q", path, status, etag)
		}
		if status, _ := s.ask(t, http.MethodGet, path, etag); status != http.StatusNotModified {
			t.Errorf("GET %s with its own ETag: %d", path, status)
		}
	}
}

// ask returns the status of a response, and its ETag.
func (s *site) ask(t *testing.T, method, path, etag string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(s.url, "/")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("ETag")
}
