package gateway

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	artifactmemory "github.com/millrace/millrace/artifact/memory"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/origin/folder"
	"github.com/millrace/millrace/protocol/tct"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// A folder is imported into a store and served. The test covers the whole discovery chain over
// real connections, an edit, a deletion and a restart.
func TestFolderToClient(t *testing.T) {
	const base = "http://handbook.test/"
	ctx, log := t.Context(), slog.New(slog.DiscardHandler)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../testdata/sites/handbook")); err != nil {
		t.Fatal(err)
	}
	f, err := folder.New(dir, &folder.Options{Base: base})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	db := memory.New(&store.Options{Logger: log})
	draft := tct.Draft01()
	site, err := db.Site(ctx, "handbook", base)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := site.Publication(ctx, store.Config{Base: base, Taggers: []millrace.Tagger{draft.Tagger}})
	if err != nil {
		t.Fatal(err)
	}
	sync := func() *mirror.Report {
		t.Helper()
		report, err := mirror.Sync(ctx, "folder", absolute{f, base}, site, nil)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	artifacts := artifactmemory.New(nil)
	newGateway := func() (*Gateway, *edition.Server) {
		t.Helper()
		server := edition.NewServer(edition.Source{Store: db, Site: site, Publication: pub}, []edition.Protocol{{Name: draft.Name, Publisher: draft.NewPublisher(nil)}},
			artifacts, &edition.Options{Logger: log})
		origin, err := proxy.NewFiles(f, base, log)
		if err != nil {
			t.Fatal(err)
		}
		g, err := New(server, &Options{Base: base, Origin: origin, Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		return g, server
	}
	t.Logf("%+v", sync())
	g, server := newGateway()
	if _, err := server.Publish(ctx); err != nil {
		t.Fatal(err)
	}
	address, stop := serve(t, g)
	at := func(u string) string { return strings.Replace(u, base, "http://"+address+"/", 1) }

	type item struct {
		C string `json:"cUrl"`
		M string `json:"mUrl"`
		E string `json:"etag"`
	}
	list := func() (items []item, modified string) {
		t.Helper()
		home, _ := get(t, at(base))
		link := regexp.MustCompile(`</([^>]*)>; rel="index"; type="application/json"`).FindStringSubmatch(strings.Join(home.Header["Link"], ","))
		if link == nil {
			t.Fatalf("the home page has no link to a list: %v", home.Header)
		}
		res, body := get(t, at(base+link[1]))
		var l struct{ Items []item }
		if err := json.Unmarshal([]byte(body), &l); err != nil || res.StatusCode != http.StatusOK || len(l.Items) < 5 {
			t.Fatalf("list: %s %v %s", res.Status, err, body)
		}
		return l.Items, res.Header.Get("Last-Modified")
	}
	items, modified := list()
	for _, it := range items {
		res, _ := get(t, at(it.M))
		if res.StatusCode != http.StatusOK || strings.Trim(res.Header.Get("ETag"), `"`) != it.E {
			t.Errorf("%s: %s, validator %s, listed %s", it.M, res.Status, res.Header.Get("ETag"), it.E)
		}
		page, body := get(t, at(it.C))
		if page.StatusCode != http.StatusOK || !strings.Contains(strings.Join(page.Header["Link"], ","), it.M) || !strings.Contains(body, `href="`+it.M+`"/>`) {
			t.Errorf("%s does not link to %s: %s %v", it.C, it.M, page.Status, page.Header["Link"])
		}
	}

	// The date of the list has whole seconds.
	time.Sleep(1100 * time.Millisecond)
	edited := filepath.Join(dir, "about", "index.html")
	b, err := os.ReadFile(edited)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(edited, []byte(strings.Replace(string(b), "</p>", " Edited words.</p>", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if report := sync(); report.Updated != 1 {
		t.Fatalf("%+v", report)
	}
	server.Changed()
	waitFor(t, func() bool { return len(changed(items, first(list()))) == 1 })
	after, modifiedAfter := list()
	if c := changed(items, after); len(c) != 1 || !strings.HasSuffix(c[0].C, "/about/") || modifiedAfter == modified {
		t.Errorf("changed: %v, list of %s, then %s", c, modified, modifiedAfter)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	// Another process with the same store serves the same edition at once.
	g, _ = newGateway()
	address, _ = serve(t, g)
	waitFor(t, func() bool { res, _ := get(t, "http://"+address+"/readyz"); return res.StatusCode == http.StatusOK })
	again, modifiedAgain := list()
	if len(changed(after, again)) > 0 || modifiedAgain != modifiedAfter {
		t.Errorf("a different list after a restart: %v", changed(after, again))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at(again[0].M), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("If-None-Match", `"`+again[0].E+`"`)
	res, err := http.DefaultClient.Do(r)
	if err != nil || res.StatusCode != http.StatusNotModified {
		t.Errorf("%v %v", res, err)
	}
	res.Body.Close()
}

func first[A, B any](a A, _ B) A { return a }

// changed returns the items of b that are not in a.
func changed[T comparable](a, b []T) (out []T) {
	had := make(map[T]bool)
	for _, x := range a {
		had[x] = true
	}
	for _, x := range b {
		if !had[x] {
			out = append(out, x)
		}
	}
	return out
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the condition is never true")
		}
	}
}

// absolute makes the URLs of a folder absolute, the form that a store uses.
type absolute struct {
	millrace.Source
	base string
}

func (a absolute) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		for c, err := range a.Source.Changes(ctx, since) {
			if c.URL != "" {
				c.URL = canon.Absolute(a.base, c.URL)
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

func (a absolute) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	have.URL = canon.Relative(a.base, have.URL)
	return a.Source.Page(ctx, have)
}
