package wordpress

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/origin/origintest"
)

// fake is the part of the WordPress API that this package uses. Its clock advances by ten
// seconds with every change.
type fake struct {
	*httptest.Server
	mu      sync.Mutex
	posts   []*fakePost // in the order of their IDs
	last    int64
	clock   time.Time
	trouble origintest.Trouble
	end     chan struct{} // closed when the test ends
	asked   []string      // routes, with their queries

	lists int                                               // number of list requests so far
	hook  func(n int)                                       // called before the response to list request n; may change the posts
	serve func(w http.ResponseWriter, r *http.Request) bool // responds instead of the fake if it returns true
	edit  func(route string, answer any, h http.Header) any // modifies a response
	order func(a, b *fakePost) int                          // order of lists, instead of the requested one
	types map[string]map[string]string                      // additional types
}

// fakePost is one published post.
type fakePost struct {
	id              int64
	slug            string
	title, content  string
	excerpt         string
	date, modified  time.Time
	closed, broken  bool
	status          string
	author, section string
}

func newFake(t testing.TB) *fake {
	f := &fake{clock: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), end: make(chan struct{})}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	t.Cleanup(func() { close(f.end) })
	return f
}

func (f *fake) tick() time.Time {
	f.clock = f.clock.Add(10 * time.Second)
	return f.clock
}

func (f *fake) post(slug string) *fakePost {
	if i := slices.IndexFunc(f.posts, func(p *fakePost) bool { return p.slug == slug }); i >= 0 {
		return f.posts[i]
	}
	return nil
}

// add publishes a post.
func (f *fake) add(slug, title, content string) *fakePost {
	f.last++
	now := f.tick()
	p := &fakePost{id: f.last, slug: slug, title: title, content: content, date: now, modified: now}
	f.posts = append(f.posts, p)
	return p
}

func (f *fake) remove(slug string) {
	f.posts = slices.DeleteFunc(f.posts, func(p *fakePost) bool { return p.slug == slug })
}

// Methods of origintest.Site.

func (f *fake) Address() string        { return f.Server.URL + "/" }
func (f *fake) Base() string           { return f.Server.URL + "/" }
func (f *fake) URL(name string) string { return "/" + name + "/" }

func (f *fake) Put(name, title, text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	content := "<p>" + html.EscapeString(text) + "</p>\n"
	if p := f.post(name); p != nil {
		p.title, p.content, p.modified = html.EscapeString(title), content, f.tick()
		return nil
	}
	f.add(name, html.EscapeString(title), content)
	return nil
}

func (f *fake) Delete(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remove(name)
	f.tick()
	return nil
}

// Break edits a post so that a plugin fails on it.
func (f *fake) Break(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.post(name)
	p.broken, p.modified = true, f.tick()
	return nil
}

func (f *fake) Repair(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.post(name).broken = false
	return nil
}

func (f *fake) Trouble(t origintest.Trouble) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trouble = t
	return nil
}

func (f *fake) Odd() ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add("closed", "Protected: closed", "").closed = true
	f.add("empty", "Empty", "<p>[vc_row][/vc_row]</p>")
	return []string{f.Server.URL + "/closed/", f.Server.URL + "/empty/"}, nil
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.trouble {
	case origintest.Down:
		http.Error(w, "Error establishing a database connection", http.StatusInternalServerError)
		return
	case origintest.Hung:
		f.mu.Unlock()
		select {
		case <-r.Context().Done():
		case <-f.end:
		}
		f.mu.Lock()
		return
	}
	w.Header().Set("Date", f.clock.Add(5*time.Second).Format(http.TimeFormat))
	f.asked = append(f.asked, r.Method+" "+r.URL.String())
	if f.serve != nil && f.serve(w, r) {
		return
	}
	if route, ok := strings.CutPrefix(r.URL.Path, "/wp-json/"); ok {
		f.api(w, strings.TrimSuffix(route, "/"), r.URL.Query())
		return
	}
	if r.URL.Path == "/robots.txt" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=UTF-8")
	w.Header().Add("Link", `<`+f.Server.URL+`/wp-json/>; rel="https://api.w.org/"`)
	p := f.post(strings.Trim(r.URL.Path, "/"))
	switch {
	case p != nil && !p.closed:
		w.Header().Add("Link", fmt.Sprintf(`<%s/wp-json/wp/v2/posts/%d>; rel="alternate"; title="JSON"; type="application/json"`, f.Server.URL, p.id))
	case r.URL.Path != "/":
		w.WriteHeader(http.StatusNotFound)
	}
	fmt.Fprint(w, `<!DOCTYPE html><html lang="en-GB"><head><title>The Mill</title></head><body></body></html>`)
}

func (f *fake) api(w http.ResponseWriter, route string, q url.Values) {
	var answer any
	switch id, isItem := strings.CutPrefix(route, "wp/v2/posts/"); {
	case route == "":
		answer = map[string]any{"home": f.Server.URL, "name": "Tom &#038; Jerry", "namespaces": []string{"oembed/1.0", "wp/v2"}}
	case route == "wp/v2/types":
		types := map[string]map[string]string{
			"post":       {"slug": "post", "name": "Posts", "rest_base": "posts", "rest_namespace": "wp/v2"},
			"attachment": {"slug": "attachment", "name": "Media", "rest_base": "media"},
			"wp_block":   {"slug": "wp_block", "name": "Blocks", "rest_base": "blocks"},
		}
		for k, v := range f.types {
			types[k] = v
		}
		answer = types
	case isItem:
		i := slices.IndexFunc(f.posts, func(p *fakePost) bool { return strconv.FormatInt(p.id, 10) == id })
		if i < 0 {
			wrong(w, http.StatusNotFound, "rest_post_invalid_id", "Invalid post ID.")
			return
		}
		if f.posts[i].broken {
			wrong(w, http.StatusInternalServerError, "internal_server_error", "<p>There has been a critical error on this website.</p>")
			return
		}
		answer = f.json(f.posts[i], true)
	case route == "wp/v2/posts":
		f.lists++
		if f.hook != nil {
			f.hook(f.lists)
		}
		items, total, broken := f.list(q)
		if broken {
			wrong(w, http.StatusInternalServerError, "internal_server_error", "")
			return
		}
		w.Header().Set("X-WP-Total", strconv.Itoa(total))
		answer = items
	default:
		wrong(w, http.StatusNotFound, "rest_no_route", "No route was found matching the URL and request method.")
		return
	}
	if f.edit != nil {
		answer = f.edit(route, answer, w.Header())
	}
	if answer == nil {
		wrong(w, http.StatusUnauthorized, "rest_forbidden", "Sorry, you are not allowed to do that.")
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("X-Robots-Tag", "noindex")
	if s, ok := answer.(string); ok {
		fmt.Fprint(w, s)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func wrong(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"code": code, "message": message, "data": map[string]int{"status": status}})
}

// list returns the same items as WP_Query.
func (f *fake) list(q url.Values) (items []any, total int, broken bool) {
	posts := slices.DeleteFunc(slices.Clone(f.posts), func(p *fakePost) bool {
		after, err := time.Parse(time.RFC3339, q.Get("modified_after"))
		return err == nil && !p.modified.After(after) || q.Has("slug") && p.slug != q.Get("slug")
	})
	slices.SortStableFunc(posts, func(a, b *fakePost) int {
		switch {
		case f.order != nil:
			return f.order(a, b)
		case q.Get("orderby") == "id":
			return cmp.Compare(a.id, b.id)
		case q.Get("orderby") == "modified":
			return b.modified.Compare(a.modified)
		}
		return b.date.Compare(a.date)
	})
	offset, _ := strconv.Atoi(q.Get("offset"))
	size, err := strconv.Atoi(q.Get("per_page"))
	if err != nil {
		size = 10
	}
	if total = len(posts); offset >= total {
		return []any{}, 0, false // WP_Query does not count past the end
	}
	items = []any{}
	full := strings.Contains(q.Get("_fields"), ",content,")
	for _, p := range posts[offset:min(total, offset+size)] {
		broken = broken || p.broken && full
		items = append(items, f.json(p, full))
	}
	return items, total, broken
}

func (f *fake) json(p *fakePost, full bool) map[string]any {
	it := map[string]any{
		"id": p.id, "status": cmp.Or(p.status, "publish"), "link": f.Server.URL + "/" + p.slug + "/",
		"date_gmt": p.date.Format(gmtLayout), "modified_gmt": p.modified.Format(gmtLayout),
		"content": map[string]any{"protected": p.closed}, "excerpt": map[string]any{"protected": p.closed},
	}
	if full {
		it["title"] = map[string]any{"rendered": p.title}
		it["content"] = map[string]any{"protected": p.closed, "rendered": p.content}
		it["excerpt"] = map[string]any{"protected": p.closed, "rendered": p.excerpt}
		it["_embedded"] = map[string]any{
			"author":  []any{map[string]string{"name": cmp.Or(p.author, "Ada Miller"), "slug": "login"}},
			"wp:term": []any{[]any{map[string]string{"name": cmp.Or(p.section, "Water"), "slug": "water", "taxonomy": "category"}}, []any{}},
		}
	}
	return it
}
