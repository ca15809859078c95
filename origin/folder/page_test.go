package folder

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/testkit"
)

// TestIdentity checks one page for each row, in a folder whose home is known.
func TestIdentity(t *testing.T) {
	const home = "https://mill.example"
	files := map[string]string{
		"index.html":   html("Home", home+"/"),
		"b/index.html": html("B", ""),
		"c.html":       html("C", ""),
	}
	rows := []struct {
		file, canonical string
		url, id         string
		duplicate       bool
	}{
		{"p01.html", "", "/p01.html", "/p01.html", false},
		{"p02.html", home + "/p02.html", "/p02.html", "/p02.html", false},
		{"p03.html", "http://mill.example/p03.html", "/p03.html", "/p03.html", false},
		{"p04.html", "https://other.example/p04.html", "/p04.html", "/p04.html", false}, // the same path on any host
		{"p05.html", home + "/p05", "/p05.html", "/p05", false},
		{"p06.html", home + "/p06/", "/p06.html", "/p06/", false},
		{"p07/index.html", home + "/p07/", "/p07/", "/p07/", false},
		{"p08/index.html", home + "/p08", "/p08/", "/p08/", false},
		{"p09/index.html", home + "/p09/index.html", "/p09/", "/p09/", false},
		{"p10.html", home + "/b/", "/p10.html", "/b/", true},
		{"p11.html", home + "/b", "/p11.html", "/b", true},
		{"p12.html", home + "/b/index.html", "/p12.html", "/b/", true},
		{"p13.html", home + "/c", "/p13.html", "/c", true},
		{"p14.html", home + "/new/", "/p14.html", "/new/", false},
		{"p15.html", "https://other.example/x/", "/p15.html", "https://other.example/x/", false},
		{"p16.html", "https://mill.example.net/p16/x", "/p16.html", "https://mill.example.net/p16/x", false},
		{"p17.html", "p17.html", "/p17.html", "/p17.html", false},
		{"p18.html", "/c.html", "/p18.html", "/c.html", true},
		{"p19.html", "mailto:ines@mill.example", "/p19.html", "/p19.html", false},
		{"p20.html", home + "/list?page=2", "/p20.html", "/list?page=2", false},
		{"p21.html", home + "/P21.html", "/p21.html", "/P21.html", false},
		{"p 22.html", home + "/p%2022.html#top", "/p%2022.html", "/p%2022.html", false},
		{"p23.html", "https://other.example/p23", "/p23.html", "/p23", false},
		{"p24.html", home + "/.git/config", "/p24.html", "/.git/config", false},
		{"p25.html", home + "/style.css", "/p25.html", "/style.css", false},
		{"p26.html", home, "/p26.html", "/", true},
	}
	for _, r := range rows {
		files[r.file] = html(r.file, r.canonical)
	}
	for _, base := range []string{"", "http://127.0.0.1:8080/", home} {
		dir := t.TempDir()
		write(t, dir, files)
		write(t, dir, map[string]string{"style.css": "p{}"})
		f := open(t, dir, &Options{Base: base})
		for _, r := range rows {
			p := page(t, f, r.url)
			if p.URL != r.id {
				t.Errorf("base %q: %s with canonical %q is %q, want %q", base, r.file, r.canonical, p.URL, r.id)
			}
			if dup := p.Known == 0; dup != r.duplicate || dup != (len(p.Blocks) == 0) {
				t.Errorf("base %q: %s: known %x, %d blocks, want duplicate %v", base, r.file, p.Known, len(p.Blocks), r.duplicate)
			}
			if p.Version == "" {
				t.Errorf("base %q: %s has no version", base, r.file)
			}
		}
	}
}

func TestIdentityOfCleanNameAndDirectory(t *testing.T) {
	f, _ := site(t, map[string]string{
		"index.html":       html("Home", "https://mill.example/"),
		"about.html":       html("File", "https://mill.example/about/"),
		"about/index.html": html("Directory", "https://mill.example/about/"),
		"docs.html":        html("Docs", "https://mill.example/docs"),
		"docs/a.html":      html("A", "https://mill.example/docs/a"),
	})
	for u, want := range map[string]string{"/about.html": "/about/", "/about/": "/about/", "/docs.html": "/docs", "/docs/a.html": "/docs/a"} {
		if p := page(t, f, u); p.URL != want || (p.Known == 0) != (u == "/about.html") {
			t.Errorf("%s: %q, known %x", u, p.URL, p.Known)
		}
	}
}

// A page that only redirects to another page of the folder is an alias of that page.
func TestRefresh(t *testing.T) {
	refresh := func(to string) string {
		return `<!DOCTYPE html><html><head><title>Go</title><meta http-equiv="refresh" content="0; url=` + to + `"></head><body><a href="` + to + `">on</a></body></html>`
	}
	f, _ := site(t, map[string]string{
		"index.html": refresh("/en/"), "en/index.html": html("English", ""),
		"away.html": refresh("https://other.example/"), "lost.html": refresh("/none/"),
	})
	if p := page(t, f, "/"); p.URL != "/en/" || p.Known != 0 {
		t.Errorf("%q, known %x", p.URL, p.Known)
	}
	for _, u := range []string{"/away.html", "/lost.html"} {
		if p, err := f.Page(t.Context(), millrace.Ref{URL: u}); err == nil && p.Known == 0 {
			t.Errorf("%s is an alias of %s", u, p.URL)
		}
	}
}

func TestHome(t *testing.T) {
	type files = map[string]string
	for _, tt := range []struct {
		name, base string
		files      files
		want       string
	}{
		{"the root says it", "", files{"index.html": html("H", "https://mill.example/")}, "https://mill.example/"},
		{"under a prefix", "", files{"index.html": html("H", "https://me.example/project")}, "https://me.example/project/"},
		{"under a prefix, with the name", "", files{"index.html": html("H", "https://me.example/project/index.html")}, "https://me.example/project/"},
		{
			"leads on to a language", "",
			files{"index.html": html("H", "https://mill.example/en/"), "en/index.html": html("E", "https://mill.example/en/")},
			"https://mill.example/",
		},
		{"leads on to a file that is not there", "", files{"index.html": html("H", "https://mill.example/home.html")}, "https://mill.example/"},
		{"the root is silent", "", files{"index.html": html("H", ""), "a.html": html("A", "https://mill.example/a.html")}, "https://mill.example/"},
		{"clean names", "", files{"a.html": html("A", "https://mill.example/a"), "b/index.html": html("B", "https://mill.example/b")}, "https://mill.example/"},
		{"most say", "", files{
			"a.html": html("A", "https://club.example/a.html"), "b.html": html("B", "https://mill.example/b.html"),
			"c.html": html("C", "https://mill.example/c.html"),
		}, "https://mill.example/"},
		{
			"a tie is the first's", "",
			files{"a.html": html("A", "https://one.example/a.html"), "b.html": html("B", "https://two.example/b.html")},
			"https://one.example/",
		},
		{"only of other pages", "", files{"a.html": html("A", "https://club.example/notes/eels")}, ""},
		{"without hosts", "", files{"a.html": html("A", "/a.html"), "index.html": html("H", "/")}, ""},
		{"nothing at all", "", files{"a.html": html("A", "")}, ""},
		{"another than the base", "http://127.0.0.1:8080/", files{"index.html": html("H", "https://mill.example/")}, "https://mill.example/"},
	} {
		dir := t.TempDir()
		write(t, dir, tt.files)
		f := open(t, dir, &Options{Base: tt.base})
		if got := f.present.Load().home; got != tt.want {
			t.Errorf("%s: home %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestHomeUnderPrefix(t *testing.T) {
	f, _ := site(t, map[string]string{
		"index.html": html("H", "https://me.example/project/"),
		"a.html":     html("A", "https://me.example/project/a.html"),
		"b.html":     html("B", "https://me.example/project/a.html"),
		"c.html":     html("C", "https://me.example/elsewhere/"),
	})
	for u, want := range map[string]string{"/": "/", "/a.html": "/a.html", "/b.html": "/a.html", "/c.html": "https://me.example/elsewhere/"} {
		if p := page(t, f, u); p.URL != want {
			t.Errorf("%s is %q, want %q", u, p.URL, want)
		}
	}
}

func TestHomeMoves(t *testing.T) {
	f, dir := site(t, map[string]string{"index.html": html("H", "https://one.example/"), "a.html": html("A", "https://two.example/b/")})
	before := walk(t, f)
	if p := page(t, f, "/a.html"); p.URL != "https://two.example/b/" {
		t.Errorf("before: %q", p.URL)
	}
	write(t, dir, map[string]string{"index.html": html("H", "https://two.example/")})
	after := walk(t, f)
	if p := page(t, f, "/a.html"); p.URL != "/b/" {
		t.Errorf("after: %q", p.URL)
	}
	if before.versions["/a.html"] == after.versions["/a.html"] {
		t.Error("a page with another identity has its old version")
	}
}

// TestHomeReadsLittle checks that the search for the home stops early in a folder without
// canonical links.
func TestHomeReadsLittle(t *testing.T) {
	dir := t.TempDir()
	for i := range 100 {
		write(t, dir, map[string]string{fmt.Sprintf("p%d.html", i): html("P", "")})
	}
	f := open(t, dir, nil)
	f.present.Store(nil)
	if _, err := f.refresh(t.Context()); err != nil || len(f.files) != maxProbes {
		t.Errorf("%d files read, %v", len(f.files), err)
	}
}

func TestLinksAreAbsolute(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"index.html": html("Home", "https://mill.example/"),
		"a/index.html": `<html><head><title>A</title></head><body><main><p>Read about <a href="../b.html">the wheel</a>,
			<a href="/c/">the stones</a> and <a href="https://other.example/">others</a> before you begin.</p></main></body></html>`,
	})
	for base, want := range map[string]string{
		"":                            "https://mill.example/",
		"http://127.0.0.1:8080":       "http://127.0.0.1:8080/",
		"https://www.example/project": "https://www.example/project/",
	} {
		p := page(t, open(t, dir, &Options{Base: base}), "/a/")
		var urls []string
		for _, b := range p.Blocks {
			for _, s := range b.Spans {
				urls = append(urls, s.URL)
			}
		}
		root := want // root of the host, for a path that starts with a slash
		if base == "https://www.example/project" {
			root = "https://www.example/"
		}
		if d := cmp.Diff([]string{want + "b.html", root + "c/", "https://other.example/"}, urls); d != "" {
			t.Errorf("base %q (-want +got):\n%s", base, d)
		}
	}
	write(t, dir, map[string]string{"index.html": html("Home", "")})
	p := page(t, open(t, dir, nil), "/a/")
	if u := p.Blocks[0].Spans[0].URL; u != noBase+"b.html" {
		t.Errorf("without a known home: %q", u)
	}
}

func TestModified(t *testing.T) {
	f, dir := site(t, map[string]string{
		"silent.html": html("Silent", ""),
		"says.html":   strings.Replace(html("Says", ""), "<title>", `<meta property="article:modified_time" content="2024-05-04T07:30:00Z"><title>`, 1),
	})
	at := time.Date(2025, 1, 2, 3, 4, 5, 678, time.FixedZone("", 3600))
	for _, n := range []string{"silent.html", "says.html"} {
		must(t, os.Chtimes(filepath.Join(dir, n), at, at))
	}
	if p := page(t, f, "/silent.html"); !p.Modified.Equal(at.Truncate(time.Second)) || p.Modified.Location() != time.UTC || p.Known.Has(millrace.FieldModified) {
		t.Errorf("silent: %v, known %v", p.Modified, p.Known.Has(millrace.FieldModified))
	}
	if p := page(t, f, "/says.html"); p.Modified.Format(time.RFC3339) != "2024-05-04T07:30:00Z" || !p.Known.Has(millrace.FieldModified) {
		t.Errorf("says: %v, known %v", p.Modified, p.Known.Has(millrace.FieldModified))
	}
	epoch := time.Unix(1, 0)
	must(t, os.Chtimes(filepath.Join(dir, "silent.html"), epoch, epoch))
	if p := page(t, f, "/silent.html"); !p.Modified.IsZero() {
		t.Errorf("with a clock that was set back, the time is a hint: %v", p.Modified)
	}
}

func TestPageRefuses(t *testing.T) {
	f, _ := site(t, map[string]string{
		"index.html":      html("Home", ""),
		"a/index.html":    html("A", ""),
		"b.html":          html("B", ""),
		"_draft.html":     html("Draft", ""),
		"_p/a.html":       html("Part", ""),
		"404.html":        html("404", ""),
		".git/a.html":     html("Git", ""),
		"style.css":       "p{}",
		"binary.html":     "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + strings.Repeat("\x00\xff\x12", 100),
		"fragment.html":   "<div class=menu></div><!-- nothing -->",
		"both/index.html": html("I", ""),
		"both/index.htm":  html("J", ""),
	})
	for u, want := range map[string]error{
		"/nothing.html":           millrace.ErrNotFound,
		"/b":                      millrace.ErrNotFound, // not a URL of the stream
		"/a":                      millrace.ErrNotFound,
		"/a/index.html":           millrace.ErrNotFound,
		"/index.html":             millrace.ErrNotFound,
		"/both/index.html":        millrace.ErrNotFound,
		"/%62.html":               millrace.ErrNotFound,
		"/b.html?x=1":             millrace.ErrNotFound,
		"/b.html/":                millrace.ErrNotFound,
		"//b.html":                millrace.ErrNotFound,
		"/./b.html":               millrace.ErrNotFound,
		"/a/../b.html":            millrace.ErrNotFound,
		"/a%2F..%2Fb.html":        millrace.ErrNotFound,
		"/_draft.html":            millrace.ErrNotFound,
		"/_p/a.html":              millrace.ErrNotFound,
		"/404.html":               millrace.ErrNotFound,
		"/.git/a.html":            millrace.ErrNotFound,
		"/style.css":              millrace.ErrNotFound,
		"/%zz.html":               millrace.ErrNotFound,
		"/a%00.html":              millrace.ErrNotFound,
		"b.html":                  millrace.ErrNotFound,
		"":                        millrace.ErrNotFound,
		"http://x.example/b.html": millrace.ErrNotFound,
		"/binary.html":            millrace.ErrInvalid,
		"/fragment.html":          millrace.ErrInvalid,
	} {
		if p, err := f.Page(t.Context(), millrace.Ref{URL: u}); !errors.Is(err, want) {
			t.Errorf("page %q: %v, %v, want %v", u, p, err, want)
		}
	}
}

// TestSites walks the sites of testdata, several pages at a time.
func TestSites(t *testing.T) {
	const sites = "../../testdata/sites"
	for name, want := range map[string]struct {
		home           string
		pages, skipped int
	}{
		"handbook": {"https://handbook.example/", 22, 1},
		"jekyll":   {"https://rivers.example/", 5, 0},
		"sphinx":   {"", 6, 0},
		"docbook":  {"", 5, 0},
		"odd":      {"https://odd.example/", 25, 5},
	} {
		f := open(t, filepath.Join(sites, name), &Options{Base: "http://127.0.0.1:8080/"})
		w := walk(t, f)
		if home := f.present.Load().home; home != want.home || len(w.urls) != want.pages || len(w.skipped) != want.skipped {
			t.Errorf("%s: home %q, %d pages, %d skipped; want %+v", name, home, len(w.urls), len(w.skipped), want)
		}
		var mu sync.Mutex
		got := map[string]*millrace.Page{}
		failed := map[string]error{}
		var group sync.WaitGroup
		for _, u := range w.urls {
			group.Go(func() {
				p, err := f.Page(t.Context(), millrace.Ref{URL: u})
				mu.Lock()
				defer mu.Unlock()
				if got[u] = p; err != nil {
					failed[u] = err
				}
			})
		}
		group.Wait()
		for _, u := range slices.Sorted(maps.Keys(got)) {
			p := got[u]
			switch {
			case failed[u] != nil:
				if name != "odd" || u != "/picture.html" && u != "/fragment.html" {
					t.Errorf("%s%s: %v", name, u, failed[u])
				}
				continue
			case p.Known != 0 && (p.Title == "" || len(p.Blocks) == 0):
				t.Errorf("%s%s: title %q, %d blocks", name, u, p.Title, len(p.Blocks))
			case p.Version != w.versions[u]:
				t.Errorf("%s%s: version %q, in the walk %q", name, u, p.Version, w.versions[u])
			}
			if strings.Contains(p.Text(), "\ufffd") || strings.Contains(p.Text(), "Ã") {
				t.Errorf("%s%s: letters are broken: %q", name, u, p.Text())
			}
		}
		if name != "odd" {
			continue
		}
		for u, want := range map[string]string{
			"/": "/", "/twin-a.html": "/twin-a.html", "/twin-b.html": "/twin-a.html", "/moved.html": "/new-name/", "/clean.html": "/clean",
			"/elsewhere.html": "https://anglers.example/notes/eels/", "/post.html": "/post.html", "/post/": "/post/", "/old/": "/old/",
			"/50%2525.html": "/50%2525.html",
		} {
			if p := got[u]; p == nil || p.URL != want {
				t.Errorf("odd%s: %+v, want the identity %q", u, p, want)
			}
		}
		for u, want := range map[string]string{"/says-utf8.html": "Besançon", "/says-latin1.html": "“between", "/windows.html": "12 €", "/utf16.html": "Mühlrad"} {
			if !strings.Contains(got[u].Text(), want) {
				t.Errorf("odd%s does not contain %q: %q", u, want, got[u].Text())
			}
		}
		if !got["/secret.html"].Access.NoIndex {
			t.Error("odd/secret.html may be indexed")
		}
	}
}

// TestManual reads the PostgreSQL manual as Debian packages it.
func TestManual(t *testing.T) {
	f := open(t, manual(t), nil)
	w := walk(t, f)
	if len(w.urls) < 1000 || len(w.skipped) > 0 {
		t.Errorf("%d pages, skipped %v", len(w.urls), w.skipped)
	}
	if again := walk(t, f); !maps.Equal(again.versions, w.versions) || len(f.files) != 0 {
		t.Errorf("unchanged: %d files read", len(f.files))
	}
	for i, u := range w.urls {
		if i%40 != 0 {
			continue
		}
		if p := page(t, f, u); p.URL != u || p.Title == "" || len(p.Blocks) == 0 {
			t.Errorf("%s: %q, title %q, %d blocks", u, p.URL, p.Title, len(p.Blocks))
		}
	}
}

// manual returns the folder of the PostgreSQL manual's HTML.
func manual(t testing.TB) string {
	t.Helper()
	return testkit.Data(t, "MILLRACE_TEST_PGDOC")
}

func BenchmarkWalkUnchanged(b *testing.B) {
	f := open(b, manual(b), nil)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = len(walk(b, f).urls)
	}
	b.ReportMetric(float64(n), "pages")
	if len(f.files) > 0 {
		b.Errorf("%d files read", len(f.files))
	}
}

func BenchmarkNew(b *testing.B) {
	dir := manual(b)
	for b.Loop() {
		f, err := New(dir, nil)
		must(b, err)
		f.Close()
	}
}

func FuzzIdentity(f *testing.F) {
	dir := f.TempDir()
	write(f, dir, map[string]string{
		"index.html": html("Home", "https://mill.example/p/"), "a.html": html("A", ""), "b/index.html": html("B", ""), "style.css": "p{}",
	})
	src := open(f, dir, nil)
	t := src.present.Load()
	f.Add("/a.html", "https://mill.example/p/a")
	f.Add("/b/", "https://other.example/b")
	f.Add("/", "https://mill.example/p/index.html?x")
	f.Fuzz(func(tt *testing.T, own, canonical string) {
		file, ok := src.source(t, own)
		if ok {
			if c, err := canon.URL("https://mill.example" + own); err != nil || c != "https://mill.example"+own {
				tt.Errorf("%q names %q and is not canonical", own, file)
			}
			if served, redirect, err := t.find(own); err != nil || redirect != "" || served != file {
				tt.Errorf("%q names %q, a web server serves %q, %q, %v", own, file, served, redirect, err)
			}
		}
		canonical, err := canon.URL(canonical)
		if err != nil || !ok {
			return
		}
		id, dup := t.nameOf(file, own, canonical)
		if !strings.HasPrefix(id, "/") && id != canonical || strings.HasPrefix(id, "//") {
			tt.Errorf("identity(%q, %q) = %q", own, canonical, id)
		}
		if served := t.target(id); dup && (served == "" || served == file) {
			tt.Errorf("identity(%q, %q) = %q, a duplicate of %q", own, canonical, id, served)
		}
	})
}

var _ millrace.Source = (*Folder)(nil)

// TestHTMLSize checks that the HTML size of a page is the size of its file. A duplicate has
// none.
func TestHTMLSize(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.html": html("A", ""), "b.html": html("B", "/a.html")})
	f := open(t, dir, nil)
	if got, want := page(t, f, "/a.html").HTMLSize, (millrace.HTMLSize{Bytes: int64(len(html("A", "")))}); got != want {
		t.Errorf("the HTML size is %+v, want %+v", got, want)
	}
	if p := page(t, f, "/b.html"); p.Known != 0 || p.HTMLSize != (millrace.HTMLSize{}) {
		t.Errorf("a duplicate knows %x and has the HTML size %+v", p.Known, p.HTMLSize)
	}
}
