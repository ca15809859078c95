package publish_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/origin/folder"
	"github.com/millrace/millrace/publish"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// shop is a program that publishes pages.
type shop struct {
	mu    sync.Mutex
	pages map[string]string // text by path
	err   error
}

func (s *shop) set(path, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pages == nil {
		s.pages = map[string]string{}
	}
	s.pages[path] = text
}

func (s *shop) remove(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pages, path)
}

func (s *shop) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *shop) list(context.Context) iter.Seq2[*millrace.Page, error] {
	return func(yield func(*millrace.Page, error) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for path, text := range s.pages {
			p := &millrace.Page{
				URL: "https://shop.example/" + path, Title: "About " + path, Language: "en",
				Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: text}},
			}
			if !yield(p, nil) {
				return
			}
		}
		if s.err != nil {
			yield(nil, s.err)
		}
	}
}

// get sends a request to a handler.
func get(t *testing.T, h http.Handler, path string) (status int, body string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "https://shop.example"+path, nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	data, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(data)
}

// eventually waits until a document has a text.
func eventually(t *testing.T, h http.Handler, path string, status int, text string) {
	t.Helper()
	var code int
	var body string
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if code, body = get(t, h, path); code == status && strings.Contains(body, text) {
			return
		}
	}
	t.Fatalf("%s: %d, want %d and %q:\n%.500s", path, code, status, text, body)
}

func start(t *testing.T, src millrace.Source, o *publish.Options) *publish.Server {
	t.Helper()
	s, err := publish.New(t.Context(), src, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// Without a persistent store, documents contain only the dates of the pages, and neither tokens nor
// deltas. With one, they contain all.
func TestVolatile(t *testing.T) {
	t.Parallel()
	given := time.Date(2024, 5, 4, 7, 30, 0, 0, time.UTC)
	list := func(context.Context) iter.Seq2[*millrace.Page, error] {
		return func(yield func(*millrace.Page, error) bool) {
			for path, at := range map[string]time.Time{"/dated": given, "/undated": {}} {
				if !yield(&millrace.Page{URL: "https://shop.example" + path, Title: "About " + path, Modified: at, Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: "Text of " + path}}}, nil) {
					return
				}
			}
		}
	}
	for _, st := range []store.Store{nil, memory.New(nil)} {
		s := start(t, publish.Pages(list), &publish.Options{BaseURL: "https://shop.example", Store: st})
		for path, own := range map[string]string{
			"/undated/llm.json": `"modified":`, "/undated.md": "modified:", "/openfeeder": "sync_token",
			"/.well-known/openfeeder.json": "diff-sync",
		} {
			if code, body := get(t, s, path); code != http.StatusOK || strings.Contains(body, own) != (st != nil) {
				t.Errorf("%s with the store %T: %d, want %q: %t:\n%.600s", path, st, code, own, st != nil, body)
			}
		}
		for _, path := range []string{"/dated/llm.json", "/dated.md", "/arc-sitemap.json", "/sitemap.xml"} {
			if code, body := get(t, s, path); code != http.StatusOK || !strings.Contains(body, "2024-05-04T07:30:00Z") {
				t.Errorf("%s with the store %T: %d, without the date that the page gives:\n%.600s", path, st, code, body)
			}
		}
		if code, _ := get(t, s, "/openfeeder?since=2024-01-01T00:00:00Z"); (code == http.StatusOK) != (st != nil) {
			t.Errorf("changes with the store %T: %d", st, code)
		}
	}
}

// Documents without a date also get a new spelling of a title. The ETag of TCT draft-00 does not
// change with it.
func TestVolatileCase(t *testing.T) {
	t.Parallel()
	var title atomic.Pointer[string]
	title.Store(new("Old"))
	list := func(context.Context) iter.Seq2[*millrace.Page, error] {
		return func(yield func(*millrace.Page, error) bool) {
			yield(&millrace.Page{URL: "https://shop.example/wheels", Title: *title.Load(), Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: "Wheels of oak."}}}, nil)
		}
	}
	s := start(t, publish.Pages(list), &publish.Options{BaseURL: "https://shop.example"})
	eventually(t, s, "/wheels/llm/", http.StatusOK, `"Old"`)
	title.Store(new("OLD"))
	s.Changed()
	eventually(t, s, "/wheels.md", http.StatusOK, `"OLD"`)
	eventually(t, s, "/wheels/llm/", http.StatusOK, `"OLD"`)
}

// Pages are published in every protocol, changes appear, and all other requests reach the program's
// own handler.
func TestPages(t *testing.T) {
	t.Parallel()
	var pages shop
	pages.set("stones", "French stones from a quarry in the Marne.")
	pages.set("wheels", "Wheels of oak, with forty buckets each.")
	own := http.NewServeMux()
	own.HandleFunc("/cart/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "own ", r.URL.Path) })
	own.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<!DOCTYPE html><title>Our shop</title>") }) // at any path
	s := start(t, publish.Pages(pages.list), &publish.Options{BaseURL: "https://shop.example", Next: own})
	for path, text := range map[string]string{
		"/stones/llm.json": "quarry in the Marne", "/llm-sitemap.json": "/wheels", "/llms.txt": "About stones", "/arc-sitemap.json": "/stones",
		"/openfeeder": "Wheels of oak", "/cart/total": "own /cart/total", "/stones.md": "quarry in the Marne", "/about": "Our shop",
	} {
		if status, body := get(t, s, path); status != http.StatusOK || !strings.Contains(body, text) {
			t.Errorf("%s: %d, want %q:\n%.300s", path, status, text, body)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "https://shop.example/stones", nil)
	r.Header.Set("Accept", "text/markdown")
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, r); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "quarry in the Marne") {
		t.Errorf("Markdown: %d\n%.300s", w.Code, w.Body.String())
	}
	pages.set("stones", "Derbyshire stones, gray as rain.")
	s.Changed()
	eventually(t, s, "/stones/llm.json", http.StatusOK, "gray as rain")
	pages.set("wheels", "Wheels of elm.")
	pages.set("gates", "Gates hold the water.")
	s.Changed("https://shop.example/wheels", "/gates")
	eventually(t, s, "/wheels/llm.json", http.StatusOK, "of elm")
	eventually(t, s, "/gates/llm.json", http.StatusOK, "hold the water")
	pages.remove("gates")
	s.Changed("/gates")
	eventually(t, s, "/gates/llm.json", http.StatusOK, "Our shop") // the document no longer exists
	pages.fail(errors.New("the database is down"))
	s.Changed()
	time.Sleep(50 * time.Millisecond)
	if status, _ := get(t, s, "/wheels/llm.json"); status != http.StatusOK {
		t.Errorf("after a query that failed: %d", status)
	}
}

// The base has a path, and the mux behind the server gets whole paths.
func TestBasePath(t *testing.T) {
	t.Parallel()
	list := func(context.Context) iter.Seq2[*millrace.Page, error] {
		return func(yield func(*millrace.Page, error) bool) {
			yield(&millrace.Page{URL: "https://shop.example/docs/start", Title: "Start", Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: "Begin here."}}}, nil)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/docs/own/{name}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "own ", r.PathValue("name")) })
	s := start(t, publish.Pages(list), &publish.Options{BaseURL: "https://shop.example/docs/", Next: mux})
	for path, text := range map[string]string{"/docs/start/llm.json": "Begin here", "/docs/own/a%2Fb": "own a/b"} {
		if status, body := get(t, s, path); status != http.StatusOK || !strings.Contains(body, text) {
			t.Errorf("%s: %d, want %q:\n%.300s", path, status, text, body)
		}
	}
}

// Reload hides pages by a new rule. If the new options are wrong, the old ones stay in use.
func TestReload(t *testing.T) {
	t.Parallel()
	var pages shop
	pages.set("stones", "French stones.")
	pages.set("drafts/new", "Not yet.")
	o := publish.Options{BaseURL: "https://shop.example/"}
	s := start(t, publish.Pages(pages.list), &o)
	if status, _ := get(t, s, "/drafts/new/llm.json"); status != http.StatusOK {
		t.Fatalf("before: %d", status)
	}
	wrong := o
	wrong.BaseURL = "ftp://shop.example/"
	if err := s.Reload(t.Context(), &wrong); !errors.Is(err, millrace.ErrInvalid) {
		t.Errorf("a wrong base: %v", err)
	}
	if status, _ := get(t, s, "/stones/llm.json"); status != http.StatusOK {
		t.Errorf("after wrong options: %d", status)
	}
	o.Visibility.Exclude = []string{"/drafts"}
	down := errors.New("the database is down")
	pages.fail(down)
	if err := s.Reload(t.Context(), &o); !errors.Is(err, down) {
		t.Errorf("a source that fails: %v", err)
	}
	pages.fail(nil)
	pages.set("stones", "French stones, gray.")
	s.Changed()
	eventually(t, s, "/stones/llm.json", http.StatusOK, "gray")
	if err := s.Reload(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	if status, body := get(t, s, "/drafts/new/llm.json"); status != http.StatusNotFound {
		t.Errorf("hidden page: %d %.200s", status, body)
	}
	pages.set("stones", "Derbyshire stones.")
	s.Changed()
	eventually(t, s, "/stones/llm.json", http.StatusOK, "Derbyshire")
	o.RequireKey = true
	if err := s.Reload(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	if status, _ := get(t, s, "/stones/llm.json"); status != http.StatusUnauthorized {
		t.Errorf("without a key: %d", status)
	}
}

// Changes of a folder are published.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("<title>"+name+"</title><main><p>"+text+"</p></main>"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("index.html", "The first page of the mill, which says what the mill is for.")
	f, err := folder.New(dir, &folder.Options{Base: "https://shop.example/"})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := start(t, f, &publish.Options{BaseURL: "https://shop.example/"})
	write("wheel.html", "The wheel of the mill turns, and what it grinds is flour.")
	eventually(t, s, "/wheel.html/llm.json", http.StatusOK, "what it grinds")
}

// An unusable source or option is an error, and so is the use of a closed server.
func TestErrors(t *testing.T) {
	t.Parallel()
	var pages shop
	for name, o := range map[string]*publish.Options{
		"no base": nil, "a path": {BaseURL: "/docs"}, "another scheme": {BaseURL: "mailto:a@b.example"},
	} {
		if _, err := publish.New(t.Context(), publish.Pages(pages.list), o); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	down := errors.New("the database is down")
	pages.fail(down)
	s, err := publish.New(t.Context(), publish.Pages(pages.list), &publish.Options{BaseURL: "https://shop.example/"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Ready(t.Context()); !errors.Is(err, down) {
			t.Errorf("a source that fails: %v", err)
		}
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := s.Reload(t.Context(), new(publish.Options)); !errors.Is(err, millrace.ErrUnavailable) {
		t.Errorf("reload of a closed server: %v", err)
	}
}

// A persistent store has the earlier pages without the source.
func TestStore(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	defer st.Close()
	var pages shop
	pages.set("stones", "French stones.")
	o := &publish.Options{BaseURL: "https://shop.example/", Store: st}
	start(t, publish.Pages(pages.list), o)
	site, err := st.Site(t.Context(), o.BaseURL, o.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	head, err := site.Head(t.Context())
	if err != nil || head.Site().Pages != 1 {
		t.Fatalf("%+v, %v", head, err)
	}
	names := slices.Collect(func(yield func(string) bool) {
		for name := range st.Sites(t.Context()) {
			if !yield(name) {
				return
			}
		}
	})
	if !slices.Equal(names, []string{o.BaseURL}) {
		t.Errorf("sites %q", names)
	}
}

// Build writes the documents of a site, and rejects options that need a server.
func TestBuild(t *testing.T) {
	t.Parallel()
	var pages shop
	pages.set("stones", "French stones from a quarry in the Marne.")
	dir := filepath.Join(t.TempDir(), "out")
	o := &publish.Options{BaseURL: "https://shop.example/"}
	for range 2 { // Build rebuilds a folder of an earlier build
		if err := publish.Build(t.Context(), publish.Pages(pages.list), dir, o); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"llms.txt": "About stones", "stones/llm.json": "quarry in the Marne", "arc-sitemap.json": "/stones", "index.html": "<"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(data), text) {
			t.Errorf("%s: %v, want %q:\n%.300s", name, err, text, data)
		}
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "mine.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := publish.Build(t.Context(), publish.Pages(pages.list), other, o); !errors.Is(err, millrace.ErrInvalid) {
		t.Errorf("a folder that Build did not create: %v", err)
	}
	if err := publish.Build(t.Context(), publish.Pages(pages.list), dir, &publish.Options{BaseURL: o.BaseURL, RequireKey: true}); !errors.Is(err, millrace.ErrInvalid) {
		t.Errorf("keys: %v", err)
	}
	down := errors.New("the database is down")
	pages.fail(down)
	if err := publish.Build(t.Context(), publish.Pages(pages.list), filepath.Join(t.TempDir(), "none"), o); !errors.Is(err, down) {
		t.Errorf("a source that fails: %v", err)
	}
}
