package wordpress

import (
	"bytes"
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

// zines adds a type "zine" with n items to the fake. closed maps the numbers of items to the
// status codes of their pages.
func (f *fake) zines(n int, closed map[int]int) {
	f.types = map[string]map[string]string{"zine": {"slug": "zine", "name": "Zines", "rest_base": "zines", "rest_namespace": "wp/v2"}}
	f.serve = func(w http.ResponseWriter, r *http.Request) bool {
		if name, ok := strings.CutPrefix(r.URL.Path, "/zine"); ok {
			i, _ := strconv.Atoi(strings.Trim(name, "/"))
			w.Header().Set("Location", "/")
			w.WriteHeader(cmp.Or(closed[i], http.StatusOK))
			return true
		}
		if r.URL.Path != "/wp-json/wp/v2/zines" {
			return false
		}
		offset, _ := strconv.Atoi(r.URL.Query().Get("offset"))
		size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
		var items []string
		for i := offset; i < min(n, offset+size); i++ {
			items = append(items, fmt.Sprintf(`{"id":%d,"status":"publish","link":"%s/zine%d/","date_gmt":"2020-01-01T00:00:00","modified_gmt":"2020-01-01T00:00:00",`+
				`"title":{"rendered":"Zine"},"content":{"rendered":"<p>Zine %d</p>"}}`, i+1000, f.Server.URL, i, i))
		}
		w.Header().Set("X-WP-Total", strconv.Itoa(n))
		fmt.Fprintf(w, "[%s]", strings.Join(items, ","))
		return true
	}
}

// If a run ends during the first listing of one type, the next run still detects deleted items of
// another type.
func TestCutOffBeforeTheEnd(t *testing.T) {
	f := newFake(t)
	f.fill(120)
	first := f.run(t, nil, "")
	f.remove("p5")
	f.tick()
	f.zines(250, nil)
	site, err := New(&http.Client{}, f.Address(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var middle millrace.Cursor
	for c, err := range site.Changes(t.Context(), first.cursor()) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Kind == millrace.KindCheckpoint {
			middle = c.Checkpoint.Cursor
			break
		}
	}
	s := f.run(t, nil, middle)
	if m := s.marks[len(s.marks)-1]; s.err != nil || !m.Complete || m.Section != "" {
		t.Errorf("p5 was deleted but not reported: %v, %+v", s.err, s.marks)
	}
}

// If a site does not report the total number of items, every run lists all items.
func TestNoTotal(t *testing.T) {
	f := newFake(t)
	f.fill(150)
	f.edit = func(_ string, answer any, h http.Header) any {
		h.Del("X-WP-Total")
		return answer
	}
	s := f.run(t, nil, "")
	f.remove("p5")
	f.tick()
	if s = f.run(t, nil, s.cursor()); s.err != nil || !s.marks[len(s.marks)-1].Complete {
		t.Errorf("p5 was deleted but not reported: %v, %+v", s.err, s.marks)
	}
}

// A single item that is closed or redirects does not determine whether its type has pages.
func TestTypesByMoreThanOneItem(t *testing.T) {
	for name, c := range map[string]struct {
		closed map[int]int
		open   bool
	}{
		"all open":          {nil, true},
		"one closed":        {map[int]int{0: 403}, true},
		"one leads away":    {map[int]int{0: 302}, true},
		"two gone":          {map[int]int{0: 404, 1: 410}, true},
		"none has a page":   {map[int]int{0: 404, 1: 404, 2: 404, 3: 404}, false},
		"all lead to a one": {map[int]int{0: 302, 1: 302, 2: 302, 3: 302}, false},
	} {
		f := newFake(t)
		f.zines(4, c.closed)
		s := f.run(t, nil, "")
		if _, ok := s.puts["/zine3/"]; s.err != nil || ok != c.open {
			t.Errorf("%s: read %v, %v", name, ok, s.err)
		}
	}
}

// Types that are in the sitemap but not in the API are logged. This takes one request per day.
func TestUnread(t *testing.T) {
	index := func(base string, names ...string) string {
		s := `<?xml version="1.0" encoding="UTF-8"?><sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`
		for _, n := range names {
			s += "<sitemap><loc>" + base + n + "</loc></sitemap>"
		}
		return s + "</sitemapindex>"
	}
	f := newFake(t)
	f.fill(3)
	f.zines(2, map[int]int{0: 404, 1: 404})
	other, status, body := f.serve, 200, index(f.Address(), "wp-sitemap-posts-post-1.xml", "wp-sitemap-posts-errand-1.xml", "wp-sitemap-posts-errand-2.xml",
		"wp-sitemap-posts-zine-1.xml", "?sitemap=posts&amp;sitemap-subtype=my_type&amp;paged=1", "wp-sitemap-taxonomies-genre-1.xml", "wp-sitemap-users-1.xml",
		"wp-sitemap-posts-%0A--1.xml")
	f.serve = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/wp-sitemap.xml" {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return true
		}
		return other(w, r)
	}
	now := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	var not []string
	run := func(since millrace.Cursor) (s stream, asked int, log string) {
		var b bytes.Buffer
		f.asked = nil
		s = f.run(t, &Options{ExcludeTypes: not, Now: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(&b, nil))}, since)
		if s.err != nil {
			t.Fatal(s.err)
		}
		for _, a := range f.asked {
			if a == "GET /wp-sitemap.xml" {
				asked++
			}
		}
		return s, asked, b.String()
	}
	unread := func(s stream) (slugs []string) {
		for at, err := range s.skips {
			if millrace.ErrorCode(err) == "type-not-in-api" {
				slugs = append(slugs, strings.TrimSuffix(strings.TrimPrefix(at, "/wp-sitemap-posts-"), "-1.xml"))
			}
		}
		slices.Sort(slugs)
		return slugs
	}
	want := []string{"errand", "my_type", "zine"}
	first, n, _ := run("")
	if n != 1 || !slices.Equal(unread(first), want) {
		t.Errorf("%d requests in the first run: %q", n, unread(first))
	}
	second, n, _ := run(first.cursor())
	if n != 0 || !slices.Equal(unread(second), want) {
		t.Errorf("%d requests in a new process: %q", n, unread(second))
	}
	if second.cursor() != first.cursor() || len(second.marks) != 1 || second.marks[0].Complete {
		t.Error("a run without a change advances the cursor")
	}
	now = now.Add(24 * time.Hour)
	body = index(f.Address(), "wp-sitemap-posts-post-1.xml")
	if s, n, _ := run(second.cursor()); n != 1 || len(unread(s)) > 0 {
		t.Errorf("a day later, with all types read: %d requests: %q", n, unread(s))
	}
	// A missing or unavailable sitemap causes no error.
	for code, again := range map[int]int{404: 0, 403: 0, 500: 1, 503: 1} {
		status = code
		s, n, log := run("")
		_, m, _ := run(s.cursor())
		if n != 1 || m != again || log != "" {
			t.Errorf("status %d: %d requests, then %d: %s", code, n, m, log)
		}
	}
	status, body = 200, "<html>"
	if s, n, log := run(""); n != 1 || log != "" || !slices.Contains(s.names(), "/p0/") {
		t.Errorf("HTML: %d requests: %s", n, log)
	}
	not = []string{"posts", "zine"}
	if _, _, log := run(""); strings.Count(log, "WARN") != 1 || !strings.Contains(log, "types=posts") {
		t.Errorf("an excluded type that does not exist: %s", log)
	}
}
