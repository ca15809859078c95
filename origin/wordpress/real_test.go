package wordpress_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/origin/wordpress"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

const script = "../../testdata/real/wordpress.sh"

// real is a real WordPress in its own folder, and a store that mirrors it.
type real struct {
	*testing.T
	dir, root string
	store     *memory.Store
	site      store.Site
	client    *fetch.Client
	src       *wordpress.Site
	log       bytes.Buffer
}

// post is one line of the list that wp.php prints.
type post struct {
	ID        int
	Type      string
	Status    string
	Protected bool
	Link      string
	Title     string
	Secret    string
}

// public reports whether the post has a public page.
func (p post) public() bool {
	return p.Status == "publish" && !p.Protected && (p.Type == "post" || p.Type == "page" || p.Type == "recipe") && p.Title != "News"
}

func startReal(t *testing.T, args ...string) *real {
	t.Helper()
	testkit.Real(t, "mariadbd", "php", "/usr/share/wordpress/wp-load.php")
	r := &real{T: t, dir: filepath.Join(t.TempDir(), "s")}
	// The database server runs as another user and needs access to the folder.
	for d := filepath.Dir(r.dir); d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		r.must(os.Chmod(d, 0o755))
	}
	t.Cleanup(func() { _ = exec.Command("bash", script, "stop", r.dir).Run() })
	r.root = strings.TrimSpace(r.sh(append(args, r.dir)...))
	var err error
	r.store = memory.New(nil)
	r.site, err = r.store.Site(t.Context(), "site", r.root)
	r.must(err)
	r.restart()
	return r
}

// restart creates a new source, as in a new process.
func (r *real) restart() {
	r.client = fetch.New(&fetch.Options{AllowPrivate: true})
	var err error
	r.log.Reset()
	r.src, err = wordpress.New(r.client.HTTP(), r.root, &wordpress.Options{Logger: slog.New(slog.NewTextHandler(&r.log, nil))})
	r.must(err)
}

func (r *real) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *real) sh(args ...string) string {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", append([]string{script}, args...)...)
	var errs bytes.Buffer
	cmd.Stderr, cmd.WaitDelay = &errs, 10*time.Second
	out, err := cmd.Output()
	if err != nil {
		r.Fatalf("wordpress.sh %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return string(out)
}

func (r *real) wp(command string, id int) string {
	r.Helper()
	return r.sh("wp", r.dir, command, strconv.Itoa(id))
}

func (r *real) posts() []post {
	r.Helper()
	var out []post
	for line := range strings.Lines(r.wp("list", 0)) {
		var p post
		r.must(json.Unmarshal([]byte(line), &p))
		var err error
		p.Link, err = canon.URL(p.Link) // WordPress escapes in lower case
		r.must(err)
		out = append(out, p)
	}
	return out
}

// sync runs once, as in a new process, and returns the number of requests.
func (r *real) sync() (*mirror.Report, int) {
	r.Helper()
	r.restart()
	report, err := mirror.Sync(r.Context(), r.root+" wordpress", r.src, r.site, nil)
	r.must(err)
	return report, int(r.client.Stats().Requests)
}

// storedPages returns the pages of the store, by URL.
func (r *real) storedPages() map[string]*millrace.Page {
	r.Helper()
	v, err := r.site.Head(r.Context())
	r.must(err)
	out := map[string]*millrace.Page{}
	for p, err := range v.Scan(r.Context(), millrace.Scan{WithBlocks: true}) {
		r.must(err)
		out[p.URL] = p
	}
	return out
}

// check fails the test unless the store contains exactly the public pages, and its files contain no
// text of the other ones.
func (r *real) check(when string) {
	r.Helper()
	want, got := map[string]bool{}, map[string]bool{}
	posts := r.posts()
	for _, p := range posts {
		if p.public() {
			want[p.Link] = true
		}
	}
	for u := range r.storedPages() {
		got[u] = true
	}
	if d := cmp.Diff(want, got); d != "" {
		r.Fatalf("%s: the pages (-want +got):\n%s", when, d)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(r.dir), "store.db*"))
	r.must(err)
	for _, name := range files {
		data, err := os.ReadFile(name)
		r.must(err)
		for _, p := range posts {
			if p.Secret != "" && !p.public() && bytes.Contains(data, []byte(p.Secret)) {
				r.Errorf("%s: %s of %s %d (%s) is in %s", when, p.Secret, p.Type, p.ID, p.Status, filepath.Base(name))
			}
		}
	}
}

// state returns the content of the store without times.
func (r *real) state() []any {
	r.Helper()
	v, err := r.site.Head(r.Context())
	r.must(err)
	out := []any{v.Site().Seq}
	for ref, err := range r.site.KnownRefs(r.Context(), r.root+" wordpress") {
		r.must(err)
		out = append(out, ref)
	}
	c, err := r.site.Cursor(r.Context(), r.root+" wordpress")
	r.must(err)
	return append(out, c)
}

// quiet runs until every change is older than a second, so that no post may change again in the
// same second.
func (r *real) quiet() {
	r.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; {
		before := r.state()
		r.sync()
		if time.Since(began) > 3*time.Second && cmp.Equal(before, r.state()) {
			return
		}
	}
	r.Fatal("nothing changes any more, and the runs still write")
}

// unchanged fails the test unless a run needs few requests and writes nothing.
func (r *real) unchanged(most int) {
	r.Helper()
	before := r.state()
	report, n := r.sync()
	if d := cmp.Diff(before, r.state()); d != "" || report.Requested > 0 || report.Added+report.Updated+report.Deleted > 0 {
		r.Errorf("nothing has changed, and a run writes: %+v (-before +after):\n%s", report, d)
	}
	if n > most {
		r.Errorf("%d requests without a change, want at most %d", n, most)
	}
}

// some returns a public post of a type.
func (r *real) some(typ string, n int) post {
	r.Helper()
	for _, p := range r.posts() {
		if p.public() && p.Type == typ {
			if n--; n < 0 {
				return p
			}
		}
	}
	r.Fatalf("no public %s", typ)
	return post{}
}

func TestRealWordPress(t *testing.T) {
	r := startReal(t)
	posts := r.posts()
	report, n := r.sync()
	r.check("after the first run")
	if n > 19 {
		t.Errorf("the first run took %d requests", n)
	}
	// The type ledger has no pages. The type errand has pages, but is not in the API.
	unread := slices.DeleteFunc(slices.Clone(report.Skipped), func(s mirror.Skip) bool { return s.Code != "type-not-in-api" })
	if len(unread) != 1 || !strings.Contains(unread[0].URL, "-errand-") {
		t.Errorf("unread types: %+v, want only errands", unread)
	}
	r.unchanged(10)
	r.words(posts)

	future := 0
	for _, p := range posts {
		if p.Status == "future" {
			future = p.ID
		}
	}
	post, page, recipe := r.some("post", 7), r.some("page", 9), r.some("recipe", 3)
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"a post was edited", func() { r.wp("edit", post.ID) }},
		{"a page was edited", func() { r.wp("edit", page.ID) }},
		{"a post was trashed", func() { r.wp("trash", post.ID) }},
		{"it was restored", func() { r.wp("restore", post.ID) }},
		{"a recipe was renamed", func() { r.wp("rename", recipe.ID) }},
		{"a page with pages below it was renamed", func() { r.wp("rename", page.ID) }},
		{"a post has got a password", func() { r.wp("protect", r.some("post", 20).ID) }},
		{"a page has got a password", func() { r.wp("protect", r.some("page", 2).ID) }},
		{"a post is a draft again", func() { r.wp("draft", post.ID) }},
		{"the draft was published", func() { r.wp("publish", post.ID) }},
		{"a scheduled post came out as another was trashed", func() { r.wp("publish", future); r.wp("trash", r.some("post", 100).ID) }},
		{"a post was added", func() { r.wp("add", 0) }},
	} {
		step.do()
		r.sync()
		r.check("when " + step.what)
	}
	for u, p := range r.storedPages() {
		if u == page.Link {
			t.Errorf("%s still exists after a rename", u)
		}
		if strings.Contains(u, "renamed-"+strconv.Itoa(page.ID)) && strings.Count(u, "/") == strings.Count(page.Link, "/") && !strings.Contains(p.Text(), "An edited end.") {
			t.Errorf("%s lost its edit", u)
		}
	}
	r.quiet()
	r.check("when all is quiet")
	r.unchanged(10)

	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = exec.Command("bash", script, "wp", r.dir, "flood").Run() //nolint:noctx // ends by itself
	}()
	for flooding := true; flooding; {
		r.sync()
		select {
		case <-done:
			flooding = false
		default:
		}
	}
	r.sync()
	r.check("after a flood of posts")
}

// words checks the fields and texts of some pages.
func (r *real) words(posts []post) {
	r.Helper()
	pages := r.storedPages()
	authors, sections, tags, own := map[string]int{}, map[string]int{}, 0, 0
	for _, p := range pages {
		authors[p.Author]++
		sections[p.Section]++
		tags += len(p.Tags)
		if strings.HasPrefix(p.Summary, "A short word of it, number") {
			own++
		} else if p.Summary != "" {
			r.Errorf("%s: the summary %q is not the author's", p.URL, p.Summary)
		}
		if p.Language != "en-US" || p.Published.IsZero() || p.Modified.Year() != 2024 || p.Detail != millrace.DetailBlocks || len(p.Blocks) == 0 {
			r.Errorf("%s: %+v", p.URL, p)
		}
		if p.URL == r.root && p.Title != "Page 0" {
			r.Errorf("the title of the front page is %q", p.Title)
		}
		if kind := map[bool]millrace.PageKind{true: millrace.Article}[strings.Contains(p.URL, "/20")]; p.Kind != kind {
			r.Errorf("%s is a %q", p.URL, p.Kind)
		}
	}
	for _, want := range []struct {
		in   map[string]int
		keys []string
	}{
		{authors, []string{"", "Ada Miller", "Müller & Sohn"}},
		{sections, []string{"Grain", "Pages", "Posts", "Recipes", "Stone & Iron", "Water"}},
	} {
		if d := cmp.Diff(want.keys, slices.Sorted(maps.Keys(want.in))); d != "" {
			r.Error("(-want +got):\n" + d)
		}
	}
	if own < 50 || tags < 200 {
		r.Errorf("%d summaries, %d tags", own, tags)
	}
	for _, want := range []struct{ title, here, text string }{
		{"Codes [left] over", "Codes [left] over", "What the [sic] plugin left [1]."},
		{"In parts", "In parts", "First part.\n\nSecond part.\n\nThird part."},
		{"&lt;b&gt; is <em>bold</em> &amp; “quoted”", "<b> is bold & “quoted”", ""},
	} {
		i := slices.IndexFunc(posts, func(p post) bool { return p.Title == want.title })
		if i < 0 {
			r.Fatalf("no post has the title %q", want.title)
		}
		p := pages[posts[i].Link]
		if p == nil || p.Title != want.here || want.text != "" && strings.TrimSpace(p.Text()) != want.text {
			r.Errorf("%q: %+v, text %q", want.title, p, p.Text())
		}
	}
}

// The sites have another configuration: they are in a subfolder, or have no permalinks.
func TestRealWordPressElsewhere(t *testing.T) {
	for _, args := range [][]string{{"--subfolder", "--pages", "120"}, {"--plain", "--pages", "20"}} {
		t.Run(args[0], func(t *testing.T) {
			r := startReal(t, args...)
			some := r.some("post", 3)
			for _, at := range []string{r.root, some.Link, r.some("page", 3).Link} {
				if root, err := wordpress.Find(t.Context(), r.client.HTTP(), at); err != nil || root != r.root {
					t.Errorf("Find(%s) = %s, %v; want %s", at, root, err, r.root)
				}
			}
			r.sync()
			r.check("after the first run")
			r.unchanged(10)
			p, err := r.src.Page(t.Context(), millrace.Ref{URL: some.Link})
			if err != nil || p.URL != some.Link || p.Title != some.Title {
				t.Errorf("Page(%s) = %+v, %v", some.Link, p, err)
			}
			for _, p := range r.posts() {
				if p.public() || p.Title == "News" {
					continue
				}
				if p, err := r.src.Page(t.Context(), millrace.Ref{URL: p.Link}); !errors.Is(err, millrace.ErrNotFound) {
					t.Errorf("%s: %+v, %v", p.URL, p, err)
				}
			}
			r.wp("rename", some.ID)
			r.wp("trash", r.some("page", 5).ID)
			r.sync()
			r.check("after a rename and a deletion")
		})
	}
}

// If the API of a site is closed, this package reports that it cannot read the site.
func TestRealWordPressClosed(t *testing.T) {
	r := startReal(t, "--no-rest", "--pages", "1")
	if _, err := wordpress.Find(t.Context(), r.client.HTTP(), r.root); !errors.Is(err, millrace.ErrForbidden) || millrace.ErrorCode(err) != "rest-disabled" {
		t.Errorf("Find: %v", err)
	}
	for _, err := range r.src.Changes(t.Context(), "") {
		if !errors.Is(err, millrace.ErrForbidden) || millrace.ErrorCode(err) != "rest-disabled" {
			t.Errorf("Changes: %v", err)
		}
	}
}
