package crawl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/mirror"
)

// keeping creates a crawl that reads stored originals from the store.
func (m *mill) keeping(o Options) *Crawl {
	o.Original = func(ctx context.Context, u string) ([]byte, error) { return m.site.Original(ctx, from, u) }
	return m.open(o)
}

// reread applies the pages that a crawl extracts again, in batches of seven. It returns their
// names.
func (m *mill) reread(c *Crawl) (names []string) {
	m.t.Helper()
	var batch []millrace.Change
	apply := func() {
		if _, err := m.site.Apply(m.t.Context(), from, batch); err != nil {
			m.t.Fatal(err)
		}
		batch = nil
	}
	for ch, err := range c.reread(m.t.Context()) {
		if err != nil {
			m.t.Fatal(err)
		}
		if ch.Kind != millrace.Put || ch.Page == nil || len(ch.Page.Original) == 0 {
			m.t.Errorf("a page without its original: %+v", ch)
		}
		names = append(names, strings.TrimPrefix(ch.URL, strings.TrimSuffix(m.url, "/")))
		if batch = append(batch, ch); len(batch) == 7 {
			apply()
		}
	}
	apply()
	return names
}

// reread yields the pages that were extracted with other rules and have been extracted again.
func (c *Crawl) reread(ctx context.Context) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		err := c.storedRefs(ctx, c.ruling, func(_ *task, made *result) error {
			if made != nil && !yield(made.change(), nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(millrace.Change{}, err)
		}
	}
}

// texts returns the texts of the pages, by URL.
func (m *mill) texts() map[string]string {
	m.t.Helper()
	v, err := m.site.Head(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	texts := map[string]string{}
	for p, err := range v.Scan(m.t.Context(), millrace.Scan{WithBlocks: true}) {
		if err != nil {
			m.t.Fatal(err)
		}
		texts[p.URL] = p.Text()
	}
	return texts
}

// versions returns the stored versions by name, including those of other extractors and rules.
func (m *mill) versions() map[string]version {
	m.t.Helper()
	all := map[string]version{}
	for ref, err := range m.site.KnownRefs(m.t.Context(), from) {
		if err != nil {
			m.t.Fatal(err)
		}
		v := parseVersion(ref.Version, "")
		if v.old != nil {
			v = *v.old
		}
		all[strings.TrimPrefix(ref.URL, m.url)] = v
	}
	return all
}

func dropping(t *testing.T, selectors ...string) *extract.Rules {
	t.Helper()
	rules, err := extract.NewRules(&extract.RulesOptions{Drop: selectors})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

const promo = `<div class="offer"><p>Everything must go, and at half the price, until the end of the month.</p></div>`

// promoted creates a site of n pages with the same offer in their content. Half of the pages have
// an ETag, and the others have no validators.
func promoted(s *site, n int) {
	for i := range n {
		name, links := fmt.Sprintf("/p/%d", i), []string{fmt.Sprintf("/p/%d", i+1)}
		if i == 0 {
			name = "/"
		}
		if i == n-1 {
			links = nil
		}
		page := strings.Replace(doc(name, words(name), links...), "</main>", promo+"</main>", 1)
		s.set(name, document(page))
		if i%2 == 1 {
			s.set(name, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, page)
			})
		}
	}
}

// conditional returns the requested addresses, and the number of conditional requests.
func (s *site) conditional() ([]string, int) {
	s.mu.Lock()
	n := s.cond
	s.mu.Unlock()
	return s.asked(), n
}

func TestReread(t *testing.T) {
	const n = 30
	for name, how := range map[string]func(c *Crawl, rules *extract.Rules){
		"rules":     func(c *Crawl, rules *extract.Rules) { c.setRules(rules) },
		"extractor": func(c *Crawl, _ *extract.Rules) { c.extractor++; c.setRules(nil) },
	} {
		for _, alone := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/alone=%v", name, alone), func(t *testing.T) {
				s := newSite(t)
				promoted(s, n)
				m := newMill(t, s.URL+"/")
				m.run(m.open(Options{})) // stores the originals for the next run
				before := m.versions()
				s.asked()

				c := m.keeping(Options{})
				how(c, dropping(t, ".offer"))
				if alone {
					if got := m.reread(c); len(got) != n {
						t.Errorf("%d pages were extracted again: %v", len(got), got)
					}
					equal(t, "requests", s.asked(), nil)
					if got := m.reread(c); len(got) != 0 {
						t.Errorf("extracted again a second time: %v", got)
					}
				}
				seq := m.seq()
				rep := m.run(c)
				asked, cond := s.conditional()
				if pages := slices.DeleteFunc(asked, func(u string) bool { return u != "/" && !strings.HasPrefix(u, "/p/") }); len(pages) != n || cond != n/2 {
					t.Errorf("%d pages were requested, %d of them conditionally: %v", len(pages), cond, pages)
				}
				if rep.Added+rep.Deleted+rep.SkippedN > 0 || rep.Requested > 0 || alone && (m.seq() != seq || rep.Updated > 0) {
					t.Errorf("the run: %+v", rep)
				}
				for u, text := range m.texts() {
					if name == "rules" && strings.Contains(text, "half the price") {
						t.Errorf("%s says %q", u, text)
					}
				}
				for u, v := range m.versions() {
					was := before[u]
					if v.by == was.by || v.etag != was.etag || v.depth != was.depth || v.nothingNew != was.nothingNew {
						t.Errorf("%s: %+v was %+v", u, v, was)
					}
				}
				if got := m.reread(c); len(got) != 0 {
					t.Errorf("extracted again after the run: %v", got)
				}
				// A new process restores the original rules.
				s.asked()
				m.reread(m.keeping(Options{}))
				if got := m.versions(); fmt.Sprint(got) != fmt.Sprint(before) {
					t.Errorf("after all that: %v\nwas %v", got, before)
				}
				equal(t, "requests", s.asked(), nil)
			})
		}
	}
}

// A slow sink still returns the old versions while the run continues.
func TestRereadUnapplied(t *testing.T) {
	s := newSite(t)
	const n = 12
	promoted(s, n)
	m := newMill(t, s.URL+"/")
	m.run(m.open(Options{}))
	s.asked()
	c := m.keeping(Options{Rules: dropping(t, ".offer")})
	named := map[string]int{}
	for ch, err := range c.Changes(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if ch.Kind != millrace.Put {
			continue
		}
		if v := parseVersion(ch.Version, c.ruling.by); ch.Page == nil || v.stale {
			t.Errorf("%s stands as %s", ch.URL, ch.Version)
		}
		named[ch.URL]++
	}
	if len(named) != n {
		t.Errorf("named: %v", named)
	}
	if _, cond := s.conditional(); cond != n/2 {
		t.Errorf("%d requests were conditional", cond)
	}
}

// The extraction of stored pages keeps earlier decisions about addresses.
func TestRereadIdentity(t *testing.T) {
	s := newSite(t)
	home := words("home")
	s.set("/", html("Home", home, "/a", "/claims", "/claims-too", "/dup", "/moved", "/dir", "/dir/", "/hidden", "/dated", "/soft", "/pdf"))
	s.set("/a", html("A", words("a")))
	s.set("/dup", document(head("A", `<link rel=canonical href="/a">`, words("a"))))
	s.set("/claims", document(head("C", `<link rel=canonical href="https://elsewhere.example/c">`, words("c"))))
	s.set("/claims-too", document(head("C2", `<link rel=canonical href="https://elsewhere.example/c">`, words("c2"))))
	s.set("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/a", http.StatusMovedPermanently) })
	s.set("/dir", html("Dir", words("dir")))
	s.set("/dir/", html("Dir", words("dir")))
	s.set("/hidden", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Robots-Tag", "noindex")
		html("Hidden", words("hidden"))(w, r)
	})
	s.set("/dated", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Last-Modified", "Sat, 01 Jan 2022 00:00:00 GMT")
		html("Dated", words("dated"))(w, r)
	})
	s.set("/pdf", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/pdf")
		fmt.Fprint(w, "%PDF-1.4")
	})
	lost := html("Lost", words("this page is not there"))
	s.set("/soft", lost)
	s.set("/no-such-page-*", lost)
	m := newMill(t, s.URL+"/")
	m.run(m.open(Options{Concurrency: 1}))
	pages, versions, seq := m.pages(), m.versions(), m.seq()
	if len(pages) != 6 { // /, /a, both claims, one of the dirs and /dated
		t.Fatalf("pages: %v", pages)
	}
	s.asked()
	c := m.keeping(Options{Rules: dropping(t, ".nothing")})
	made := m.reread(c)
	equal(t, "requests", s.asked(), nil)
	if len(made) != len(pages)+1 { // including the hidden page
		t.Errorf("made again: %v", made)
	}
	check := func() {
		t.Helper()
		equal(t, "pages", m.pages(), pages)
		if m.seq() != seq {
			t.Error("the pages have changed")
		}
		for u, v := range m.versions() {
			if v.kind == isPage {
				v.by = versions[u].by
			}
			if v != versions[u] {
				t.Errorf("%q: %+v was %+v", u, v, versions[u])
			}
		}
	}
	check()
	m.run(c)
	check()
}

// Pages that cannot be extracted again are fetched by the run.
func TestRereadLeaves(t *testing.T) {
	s := newSite(t)
	s.set("/", html("Home", words("home"), "/large", "/lost", "/odd", "/empty", "/plain"))
	filler := "<!-- " + strings.Repeat("not so small ", millrace.MaxOriginal/13) + " -->"
	s.set("/large", document(doc("Large", words("large")+filler)))
	for _, name := range []string{"/lost", "/odd", "/plain"} {
		s.set(name, html(name, words(name)))
	}
	s.set("/empty", document(`<!DOCTYPE html><body><div class="offer">`+words("empty")+`</div>`))
	m := newMill(t, s.URL+"/")
	m.run(m.open(Options{}))
	if n := len(m.pages()); n != 6 {
		t.Fatalf("%d pages", n)
	}
	s.asked()
	c := m.keeping(Options{Rules: dropping(t, ".offer")})
	keeps := c.o.Original
	c.o.Original = func(ctx context.Context, u string) ([]byte, error) {
		switch {
		case strings.HasSuffix(u, "/lost"):
			return nil, fmt.Errorf("lost: %w", millrace.ErrNotFound)
		case strings.HasSuffix(u, "/odd"):
			return []byte("\xFFof another version"), nil
		}
		return keeps(ctx, u)
	}
	equal(t, "made again", m.reread(c), []string{"/", "/plain"})
	equal(t, "requests", s.asked(), nil)
	rep := m.run(c)
	equal(t, "pages", m.pages(), []string{"/", "/large", "/lost", "/odd", "/plain"})
	if _, cond := s.conditional(); cond != 2 {
		t.Errorf("%d requests were conditional", cond)
	}
	if why := reason(rep, "/empty"); why != "all-dropped" {
		t.Errorf("the page that has become empty: %q", why)
	}
	for u, v := range m.versions() {
		if v.by != c.ruling.by {
			t.Errorf("%s is of %q", u, v.by)
		}
	}
	c.o.Original = func(context.Context, string) ([]byte, error) { return nil, millrace.ErrUnavailable }
	c.setRules(nil)
	for ch, err := range c.reread(t.Context()) {
		if !errors.Is(err, millrace.ErrUnavailable) || ch.Page != nil {
			t.Errorf("a store that cannot be read: %+v, %v", ch, err)
		}
	}
}

// If the extraction of stored pages is interrupted at any point, the stored versions still match
// the stored texts.
func TestRereadBreaksOff(t *testing.T) {
	s := newSite(t)
	const n = 30
	promoted(s, n)
	m := newMill(t, s.URL+"/")
	m.run(m.open(Options{}))
	s.asked()
	rules := dropping(t, ".offer")
	left := n
	for stop := 1; left > 0; stop++ {
		c := m.keeping(Options{Rules: rules})
		var batch []millrace.Change
		for ch, err := range c.reread(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if batch = append(batch, ch); len(batch) == stop {
				break
			}
		}
		if len(batch) == 0 {
			t.Fatalf("%d pages remain", left)
		}
		if _, err := m.site.Apply(t.Context(), from, batch); err != nil {
			t.Fatal(err)
		}
		left -= len(batch)
		again := 0
		for ref, err := range m.site.KnownRefs(t.Context(), from) {
			if err != nil {
				t.Fatal(err)
			}
			text := m.texts()[ref.URL]
			if v := parseVersion(ref.Version, c.ruling.by); v.stale != strings.Contains(text, "half the price") {
				t.Fatalf("%s has the text %q in version %s", ref.URL, text, ref.Version)
			} else if !v.stale {
				again++
			}
		}
		if again != n-left {
			t.Fatalf("%d pages are extracted again, want %d", again, n-left)
		}
	}
	equal(t, "requests", s.asked(), nil)

	// A run also extracts stored pages again if it is canceled or if the site is down.
	back := dropping(t, ".nothing")
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	_, err := mirror.Sync(ctx, from, m.keeping(Options{Rules: back}), m.site, &mirror.Options{Batch: 4, Progress: func(mirror.Progress) {
		if seen++; seen == 10 {
			cancel()
		}
	}})
	cancel()
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for i := range n {
		s.set(fmt.Sprintf("/p/%d", i), nil)
	}
	s.set("/", nil)
	s.set("/robots.txt", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusInternalServerError) })
	c := m.keeping(Options{Rules: back})
	if _, err := m.try(c); !errors.Is(err, millrace.ErrUnavailable) {
		t.Errorf("a site that is down: %v", err)
	}
	for u, text := range m.texts() {
		if !strings.Contains(text, "half the price") {
			t.Errorf("%s was not extracted again: %q", u, text)
		}
	}
}

// If a page that was extracted again is lost in the same run, the next run deletes it.
func TestRereadGone(t *testing.T) {
	s := newSite(t)
	promoted(s, 12)
	m := newMill(t, s.URL+"/")
	m.run(m.open(Options{}))
	s.set("/p/11", nil)
	c := m.keeping(Options{Rules: dropping(t, ".offer")})
	for _, want := range []int{12, 11} {
		if rep := m.run(c); reason(rep, "/p/11") == "" || len(m.pages()) != want {
			t.Errorf("%d pages, want %d: %+v", len(m.pages()), want, rep)
		}
	}
}
