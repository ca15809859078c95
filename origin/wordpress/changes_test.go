package wordpress

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// stream contains the results of one run.
type stream struct {
	puts  map[string]millrace.Change // by path
	skips map[string]error
	marks []millrace.Checkpoint
	err   error
}

func (s stream) names() []string { return slices.Sorted(maps.Keys(s.puts)) }

func (s stream) cursor() millrace.Cursor { return s.marks[len(s.marks)-1].Cursor }

func (f *fake) run(t *testing.T, o *Options, since millrace.Cursor) stream {
	t.Helper()
	site, err := New(&http.Client{}, f.Address(), o)
	if err != nil {
		t.Fatal(err)
	}
	s := stream{puts: map[string]millrace.Change{}, skips: map[string]error{}}
	for c, err := range site.Changes(t.Context(), since) {
		var skip *millrace.SkipError
		switch {
		case errors.As(err, &skip):
			s.skips[strings.TrimPrefix(skip.URL, f.Server.URL)] = skip.Err
		case err != nil:
			s.err = err
		case c.Kind == millrace.KindCheckpoint:
			s.marks = append(s.marks, *c.Checkpoint)
		default:
			s.puts[strings.TrimPrefix(c.URL, f.Server.URL)] = c
		}
	}
	return s
}

// fill publishes n posts with the names p0, p1 and so on.
func (f *fake) fill(n int) {
	for i := range n {
		f.add(fmt.Sprintf("p%d", i), fmt.Sprintf("Post %d", i), fmt.Sprintf("<p>Words %d.</p>", i))
	}
}

// A run names every post that exists from its start to its end, whatever happens to other posts.
// The next run finds the others.
func TestShiftingLists(t *testing.T) {
	for seed := range uint64(12) {
		f := newFake(t)
		f.fill(650)
		rng := rand.New(rand.NewPCG(seed, 1))
		stood := map[string]bool{}
		for _, p := range f.posts {
			stood["/"+p.slug+"/"] = true
		}
		gone := 0
		f.hook = func(n int) {
			if n < 3 { // latest items, before the listing
				return
			}
			for range rng.IntN(60) {
				switch i := rng.IntN(len(f.posts)); {
				case rng.IntN(3) > 0 && gone < 350:
					delete(stood, "/"+f.posts[i].slug+"/")
					f.remove(f.posts[i].slug)
					f.tick()
					gone++
				case rng.IntN(2) == 0:
					f.posts[i].title, f.posts[i].modified = "Edited", f.tick()
				default:
					f.add(fmt.Sprintf("new%d", f.last), "New", "<p>New.</p>")
				}
			}
		}
		s := f.run(t, nil, "")
		if s.err != nil {
			t.Fatal(s.err)
		}
		for u := range stood {
			if _, ok := s.puts[u]; !ok {
				t.Errorf("seed %d: %s existed during the whole run, but was not named", seed, u)
			}
		}
		if m := s.marks[len(s.marks)-1]; !m.Complete || m.Section != "" {
			t.Errorf("the last checkpoint is %+v", m)
		}
		f.hook = nil
		next := f.run(t, nil, s.cursor())
		want := []string{}
		for _, p := range f.posts {
			want = append(want, "/"+p.slug+"/")
			stored := s.puts["/"+p.slug+"/"]
			now := next.puts["/"+p.slug+"/"]
			if now.Page == nil && now.Version == stored.Version && stored.Page != nil && stored.Page.Title != p.title {
				t.Errorf("seed %d: %s has the title %q, and the copy %q", seed, p.slug, p.title, stored.Page.Title)
			}
		}
		if d := cmp.Diff(slices.Sorted(slices.Values(want)), next.names()); d != "" || next.err != nil {
			t.Fatalf("seed %d: the next run, %v (-want +got):\n%s", seed, next.err, d)
		}
		if t.Failed() {
			return
		}
	}
}

// The order of a list may be determined by a plugin.
func TestForeignOrder(t *testing.T) {
	f := newFake(t)
	f.fill(230)
	f.order = func(a, b *fakePost) int { return int(a.id*7919%1009 - b.id*7919%1009) }
	s := f.run(t, nil, "")
	if len(s.puts) != 230 || s.err != nil {
		t.Errorf("%d pages, %v", len(s.puts), s.err)
	}
	f.hook = func(n int) {
		if n%3 == 0 {
			f.remove(f.posts[0].slug)
		}
	}
	if s := f.run(t, nil, ""); !errors.Is(s.err, millrace.ErrUnavailable) {
		t.Errorf("a list without an order that changes: %v", s.err)
	}
}

// TestRequests counts the requests of a run without changes, and of a run with one modified
// post.
func TestRequests(t *testing.T) {
	f := newFake(t)
	f.fill(250)
	s := f.run(t, nil, "")
	f.asked = nil
	again := f.run(t, nil, s.cursor())
	if len(f.asked) != 4 || len(again.puts) > 0 || len(again.marks) != 1 || again.marks[0].Complete || again.cursor() != s.cursor() {
		t.Errorf("requested %q, got %d puts, marks %+v", f.asked, len(again.puts), again.marks)
	}
	p := f.post("p17")
	p.title, p.modified = "Edited", f.tick()
	f.asked = nil
	next := f.run(t, nil, s.cursor())
	if len(f.asked) != 8 || len(next.puts) != 250 { // root, types, two lists of latest items, modified items, three light lists
		t.Errorf("requested %q, got %d puts", f.asked, len(next.puts))
	}
	for u, c := range next.puts {
		if (c.Page != nil) != (u == "/p17/" || u == "/p249/") {
			t.Errorf("%s: page %v", u, c.Page)
		}
		if c.Page == nil && c.Ref != s.puts[u].Ref {
			t.Errorf("%+v, was %+v", c.Ref, s.puts[u].Ref)
		}
	}
	f.remove("p3")
	f.add("late", "Late", "<p>It was scheduled.").modified = f.posts[0].modified // publishing a scheduled post does not modify it
	if s := f.run(t, nil, next.cursor()); len(s.puts) != 250 || s.puts["/late/"].URL == "" {
		t.Errorf("a published scheduled post: %d puts", len(s.puts))
	}
}

func TestReadAgain(t *testing.T) {
	f := newFake(t)
	f.fill(5)
	s := f.run(t, nil, "")
	robots := `<meta name="robots" content="noindex, nofollow">`
	f.serve = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/" {
			return false
		}
		w.Header().Set("Link", `</wp-json/>; rel="https://api.w.org/"`)
		fmt.Fprint(w, `<html lang="fr">`+robots)
		return true
	}
	next := f.run(t, nil, s.cursor())
	if len(next.puts) != 5 || !next.marks[len(next.marks)-1].Complete {
		t.Errorf("another language: %d puts, %+v", len(next.puts), next.marks)
	}
	for u, c := range next.puts {
		if c.Page == nil || c.Page.Language != "fr" || c.Version == s.puts[u].Version {
			t.Errorf("%+v", c)
		}
		if !c.Page.Access.NoIndex {
			t.Errorf("%s may be indexed", u)
		}
	}
	robots = ""
	for u, c := range f.run(t, nil, next.cursor()).puts {
		if c.Page == nil || c.Page.Access.NoIndex || !c.Page.Known.Has(millrace.FieldAccess) {
			t.Errorf("%s may be indexed again: %+v", u, c.Page)
		}
	}
	for _, c := range []millrace.Cursor{"x", `{"root":"https://mill.example/"}`, "[]"} {
		if s := f.run(t, nil, c); !errors.Is(s.err, millrace.ErrConflict) {
			t.Errorf("cursor %s: %v", c, s.err)
		}
	}
}

// A post that was modified in the current second has no version yet, and the next run lists
// its type again.
func TestSameSecond(t *testing.T) {
	f := newFake(t)
	f.fill(3)
	now := f.clock.Add(5 * time.Second)
	f.posts[1].modified = now
	s := f.run(t, nil, "")
	if v := s.puts["/p1/"].Version; v != "" {
		t.Errorf("version %q", v)
	}
	f.posts[1].title = "Edited again"
	f.tick()
	next := f.run(t, nil, s.cursor())
	if c := next.puts["/p1/"]; c.URL == "" || c.Version == "" {
		t.Errorf("%+v", c)
	}
}

func TestServers(t *testing.T) {
	for name, tt := range map[string]struct {
		edit  func(f *fake) func(route string, answer any, h http.Header) any
		o     *Options
		puts  int
		skips int
		err   error
		says  string
	}{
		"few items at a time": {func(f *fake) func(string, any, http.Header) any {
			f.serve = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Query().Get("per_page") == "100" {
					wrong(w, 400, "rest_invalid_param", "per_page must be at most 20")
					return true
				}
				return false
			}
			return nil
		}, nil, 130, 0, nil, ""},
		"long answers": {func(f *fake) func(string, any, http.Header) any {
			f.posts[30].content = strings.Repeat("<p>long ", 1000)
			f.posts[31].content = strings.Repeat("<p>long ", 4000)
			return nil
		}, &Options{MaxBody: 24 << 10}, 129, 1, nil, ""},
		"no totals": {func(*fake) func(string, any, http.Header) any {
			return func(_ string, answer any, h http.Header) any { h.Del("X-WP-Total"); return answer }
		}, nil, 130, 0, nil, ""},
		"a warning before the JSON": {func(*fake) func(string, any, http.Header) any {
			return func(route string, answer any, _ http.Header) any {
				if route == "wp/v2/posts" {
					return "Notice: Undefined index in plugin.php [{}]"
				}
				return answer
			}
		}, nil, 0, 0, millrace.ErrInvalid, "no-json"},
		"a list that is none": {func(*fake) func(string, any, http.Header) any {
			return func(route string, answer any, _ http.Header) any {
				if route == "wp/v2/posts" {
					return `{"posts":[]}`
				}
				return answer
			}
		}, nil, 0, 0, millrace.ErrInvalid, "json-type"},
		"a closed type": {func(*fake) func(string, any, http.Header) any {
			return func(route string, answer any, _ http.Header) any {
				if route == "wp/v2/posts" {
					return nil
				}
				return answer
			}
		}, nil, 0, 1, nil, ""},
		"more than was asked for": {func(f *fake) func(string, any, http.Header) any {
			return func(route string, answer any, _ http.Header) any {
				if items, ok := answer.([]any); ok && route == "wp/v2/posts" {
					return slices.Concat(items, items)
				}
				return answer
			}
		}, nil, 0, 0, millrace.ErrInvalid, "too-many-items"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.fill(130)
			f.edit = tt.edit(f)
			s := f.run(t, tt.o, "")
			if len(s.puts) != tt.puts || len(s.skips) != tt.skips || !errors.Is(s.err, tt.err) || tt.err != nil && millrace.ErrorCode(s.err) != tt.says {
				t.Errorf("%d puts, skips %v, %v: code %q, want %q", len(s.puts), s.skips, s.err, millrace.ErrorCode(s.err), tt.says)
			}
			if tt.err != nil && sentinels(s.err) != 1 {
				t.Errorf("%v wraps %d sentinels", s.err, sentinels(s.err))
			}
		})
	}
}

// A type with an interface of its own plugin does not affect other types.
func TestStrangeType(t *testing.T) {
	for _, status := range []int{400, 401, 404, 500} {
		f := newFake(t)
		f.fill(3)
		f.types = map[string]map[string]string{"booking": {"slug": "booking", "name": "Bookings", "rest_base": "bookings", "rest_namespace": "plugin/v1"}}
		f.serve = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/wp-json/plugin/v1/bookings" {
				wrong(w, status, "rest_invalid_param", "")
				return true
			}
			return false
		}
		s := f.run(t, nil, "")
		if len(s.puts) != 3 || s.err != nil || s.skips["/wp-json/plugin/v1/bookings"] == nil {
			t.Errorf("%d: %d puts, skips %v, %v", status, len(s.puts), s.skips, s.err)
		}
		if m := s.marks; len(m) != 1 || !m[0].Complete || m[0].Section != "post" {
			t.Errorf("%d: marks %+v", status, m)
		}
	}
}

// The pages of a plugin's type are read if its items have pages.
func TestOtherTypes(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		link   string // Link header; AT is the server
		to     string
		public bool
	}{
		"a page that names its item":    {200, `<AT/wp-json/>; rel="https://api.w.org/", <AT/wp-json/wp/v2/recipes/1>; rel="alternate"; type="application/json"`, "", true},
		"a page of an old WordPress":    {200, `<AT/wp-json/>; rel="https://api.w.org/", <AT/?p=1>; rel=shortlink`, "", true},
		"a page that says nothing":      {200, "", "", true},
		"a page of another item":        {200, `<AT/wp-json/>; rel="https://api.w.org/", <AT/wp-json/wp/v2/posts/9>; rel="alternate"; type="application/json"`, "", false},
		"a page of no item":             {200, `<AT/wp-json/>; rel="https://api.w.org/"`, "", false},
		"no page":                       {404, "", "", false},
		"a page for others":             {403, "", "", false},
		"a redirect to another page":    {302, "", "/p1/", false},
		"a server that knows no method": {405, "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.fill(3)
			f.types = map[string]map[string]string{"recipe": {"slug": "recipe", "name": "Recipes", "rest_base": "recipes"}}
			f.serve = func(w http.ResponseWriter, r *http.Request) bool {
				switch r.URL.Path {
				case "/wp-json/wp/v2/recipes":
					w.Header().Set("X-WP-Total", "1")
					fmt.Fprintf(w, `[{"id":1,"status":"publish","link":"%s/recipe/bread/","modified_gmt":"2025-01-01T00:00:00",
						"title":{"rendered":"Bread"},"content":{"rendered":"<p>Flour.","protected":false}}]`, f.Server.URL)
				case "/recipe/bread/":
					w.Header().Set("Link", strings.ReplaceAll(tt.link, "AT", f.Server.URL))
					if tt.to != "" {
						w.Header().Set("Location", tt.to)
					}
					w.WriteHeader(tt.status)
				default:
					return false
				}
				return true
			}
			s := f.run(t, nil, "")
			if _, ok := s.puts["/recipe/bread/"]; ok != tt.public || s.err != nil {
				t.Errorf("public: %t, %v", ok, s.err)
			}
			if again := f.run(t, nil, s.cursor()); again.cursor() != s.cursor() || len(again.puts) > 0 {
				t.Errorf("without a change: %v, %+v", again.names(), again.marks)
			}
			if !tt.public {
				return
			}
			f.types = nil // the plugin was removed
			gone := f.run(t, nil, s.cursor())
			if m := gone.marks; len(m) != 1 || !m[0].Complete || m[0].Section != "recipe" {
				t.Errorf("a removed type: %+v", m)
			}
		})
	}
}
