package main

import (
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/serving"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol/all"
)

// pagesIn writes the pages of a folder, with texts by path, and removes all other pages.
func pagesIn(t *testing.T, dir string, texts map[string]string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, ok := texts[f.Name()+"/"]; ok || !f.IsDir() {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range texts {
		if err := os.MkdirAll(filepath.Join(dir, path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, path, "index.html"), fmt.Sprintf("<title>The page /%s</title><main><h1>The page</h1><p>%s</p></main>", path, text))
	}
}

// textsOf returns the published pages by path, and the host of their URLs. It returns nil if the
// list and the documents belong to different editions.
func textsOf(t *testing.T, s *served) (texts map[string]string, host string) {
	t.Helper()
	var list struct {
		Items []struct{ CURL, MURL string }
	}
	_, _, body := get(t, address(s)+"llm-pages.json")
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	texts = make(map[string]string)
	for _, item := range list.Items {
		c, err := url.Parse(item.CURL)
		if err != nil {
			t.Fatal(err)
		}
		m, err := url.Parse(item.MURL)
		if err != nil {
			t.Fatal(err)
		}
		code, _, body := get(t, address(s)+strings.TrimPrefix(m.Path, "/"))
		var doc struct {
			URL     string `json:"canonical_url"`
			Content string
		}
		if err := json.Unmarshal([]byte(body), &doc); code != http.StatusOK || err != nil || doc.URL != item.CURL {
			return nil, ""
		}
		if host = c.Host; host != m.Host {
			t.Errorf("%s has its document at %s", item.CURL, item.MURL)
		}
		texts[strings.TrimPrefix(c.Path, "/")] = doc.Content
	}
	return texts, host
}

// openFeederToken is a sync token.
type openFeederToken struct {
	Seq   uint64 `json:"n"`
	Epoch string `json:"e"`
}

// syncToken returns the current token of a server, decoded and in the form in which it was sent.
func syncToken(t *testing.T, s *served) (is openFeederToken, sent string) {
	t.Helper()
	var index struct {
		Token string `json:"sync_token"`
	}
	_, _, body := get(t, address(s)+"openfeeder")
	err := json.Unmarshal([]byte(body), &index)
	var b []byte
	if err == nil {
		b, err = base64.URLEncoding.DecodeString(index.Token)
	}
	if err == nil {
		err = json.Unmarshal(b, &is)
	}
	if err != nil || is.Epoch == "" {
		t.Fatalf("%v: %s", err, body)
	}
	return is, index.Token
}

// sequences returns the newest sequence number of each publication in a store, by
// its epoch.
func sequences(t *testing.T, file string) map[string]uint64 {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "SELECT epoch, seq FROM publication JOIN log USING (id)")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	out := make(map[string]uint64)
	for rows.Next() {
		var epoch string
		var seq uint64
		if err := rows.Scan(&epoch, &seq); err != nil {
			t.Fatal(err)
		}
		out[epoch] = seq
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// shared is a set of servers over one store, each with its own configuration.
type shared struct {
	dir, file string
	texts     map[string]string // of the folder, by path
	servers   []*sharing
}

// sharing is one of the servers over a store.
type sharing struct {
	*served
	hidden string // path of the page that it hides
	host   string // of the URLs
}

// edit changes the folder, and waits until each server shows what its configuration
// allows.
func (s *shared) edit(t *testing.T, change func(texts map[string]string)) {
	t.Helper()
	change(s.texts)
	pagesIn(t, s.dir, s.texts)
	for i, server := range s.servers {
		want := maps.Clone(s.texts)
		if server.hidden != "" {
			delete(want, server.hidden)
		}
		var diff string
		for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			got, host := textsOf(t, server.served)
			if diff = cmp.Diff(want, got); diff == "" {
				if host != server.host {
					t.Errorf("server %d publishes for %s, want %s", i, host, server.host)
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("server %d (-want +got):\n%s%s", i, diff, server.out)
			}
		}
	}
}

// Servers, builds and pulls with different configurations use one store at once. Each
// shows what its configuration allows, and writes only to its own publication, which
// gets entries only for its own changes.
func TestSharedStore(t *testing.T) {
	t.Parallel()
	const base = "https://mill.example/"
	s := &shared{dir: t.TempDir(), file: filepath.Join(t.TempDir(), "s.db"), texts: map[string]string{}}
	for _, name := range []string{"", "a/", "b/", "c/"} {
		s.texts[name] = "At first it says this in " + name + "."
	}
	pagesIn(t, s.dir, s.texts)
	for _, c := range []struct {
		hidden string
		args   []string
	}{
		{"", []string{"--base-url", base}},
		{"b/", []string{"--base-url", base, "--exclude", "/b"}},
		{"c/", []string{"--exclude", "/c"}},
		{"b/", []string{"--base-url", base, "--exclude", "/b"}},
		{"b/", []string{"--base-url", base, "--exclude", "/b", "--llms-full"}},
	} {
		one := &sharing{served: serve(t, append([]string{s.dir, "--store", s.file}, c.args...)...), hidden: c.hidden}
		at, err := url.Parse(one.url)
		if err != nil {
			t.Fatal(err)
		}
		one.host = at.Host
		s.servers = append(s.servers, one)
	}
	own := s.servers[2]
	var epochs []string
	for _, one := range s.servers {
		token, _ := syncToken(t, one.served)
		epochs = append(epochs, token.Epoch)
	}
	// Three servers share one publication, and one of them has different documents.
	if len(sequences(t, s.file)) != 3 || epochs[0] == epochs[1] || epochs[1] == epochs[2] || epochs[0] == epochs[2] || epochs[3] != epochs[1] || epochs[4] != epochs[1] {
		t.Fatalf("epochs %q", epochs)
	}
	if indexes, err := filepath.Glob(filepath.Join(s.file+".index", "*.db")); err != nil || len(indexes) != 3 {
		t.Errorf("one search index for each: %q %v", indexes, err)
	}

	out := filepath.Join(t.TempDir(), "out")
	build := func() (report serving.BuildReport, exit int, errs string) {
		exit, text, errs := command(t, nil, "build", s.dir, "--complete", "--out", out, "--base-url", base, "--store", s.file, "--exclude", "/a", "--json")
		if err := json.Unmarshal([]byte(text), &report); err != nil {
			t.Errorf("%v: %s", err, text)
		}
		return report, exit, errs
	}
	for round := range 4 {
		var others sync.WaitGroup
		others.Go(func() {
			if _, exit, errs := build(); exit != 0 {
				t.Errorf("build exits with %d:\n%s", exit, errs)
			}
		})
		others.Go(func() {
			if exit, out, errs := command(t, nil, "pull", own.url, "--store", s.file, "--via", "openfeeder", "--allow-private", "--json"); exit != 0 {
				t.Errorf("pull exits with %d:\n%s%s", exit, out, errs)
			}
		})
		s.edit(t, func(texts map[string]string) {
			delete(texts, fmt.Sprintf("new%d/", round-1))
			for _, name := range []string{"a/", "b/", "c/", fmt.Sprintf("new%d/", round)} {
				texts[name] = fmt.Sprintf("In round %d it says something else in %s.", round, name)
			}
		})
		others.Wait()
	}
	if r, exit, errs := build(); exit != 0 || r.Pages != len(s.texts)-1 {
		t.Errorf("%+v:\n%s", r, errs)
	}
	for _, name := range []string{"a/", "b/"} {
		if _, err := os.Stat(filepath.Join(out, name, "llm.json")); os.IsNotExist(err) != (name == "a/") {
			t.Errorf("%s in the built folder: %v", name, err)
		}
	}
	last := pullBest(t, own.url, s.file, "--via", "openfeeder")
	pulled := storedPages(t, s.file, own.url, own.url)
	if len(pulled) != len(s.texts)-1 || pulled[own.url+"c/"] != nil {
		t.Errorf("pulled: %+v, %q", last, slices.Sorted(maps.Keys(pulled)))
	}

	before := sequences(t, s.file)
	s.edit(t, func(texts map[string]string) { texts["b/"] = "Only some can read this." })
	s.edit(t, func(texts map[string]string) { texts[""] = "All can read this." })
	want := maps.Clone(before)
	want[epochs[0]] += 2
	want[epochs[1]]++
	want[epochs[2]] += 2
	if d := cmp.Diff(want, sequences(t, s.file)); d != "" {
		t.Errorf("sequence numbers after two edits (-want +got):\n%s", d)
	}
	for range 2 {
		if _, exit, errs := build(); exit != 0 {
			t.Error(errs)
		}
	}
	after := sequences(t, s.file)
	n := 0
	for epoch, seq := range after {
		if seq != want[epoch] {
			n++
			if seq != want[epoch]+2 || slices.Contains(epochs, epoch) {
				t.Errorf("two builds: %d entries, %d before", seq, want[epoch])
			}
		}
	}
	if n != 1 || len(after) != len(want) {
		t.Errorf("two builds: %v, before %v", after, want)
	}
	for i, one := range s.servers {
		if token, _ := syncToken(t, one.served); token != (openFeederToken{want[epochs[i]], epochs[i]}) {
			t.Errorf("server %d: %+v", i, token)
		}
		if code, _, _ := get(t, address(one.served)+"llms-full.txt"); (code == http.StatusOK) != (i == 4) {
			t.Errorf("server %d: llms-full.txt: %d", i, code)
		}
		if reads := strings.Contains(one.out.String(), " msg=ingested "); reads != (i == 0) {
			t.Errorf("server %d reads the folder: %t", i, reads)
		}
	}

	// The next server reads the folder when the first one has ended.
	s.servers[0].ended(t)
	s.servers = s.servers[1:]
	s.edit(t, func(texts map[string]string) { texts["a/"] = "The first server cannot read this." })
	for _, one := range s.servers {
		one.ended(t)
	}
}

// announced returns the pages in a sync response of OpenFeeder.
func announced(t *testing.T, s *served, token string) (added, updated, deleted []string) {
	t.Helper()
	type item struct{ URL string }
	var reply struct{ Added, Updated, Deleted []item }
	code, _, body := get(t, s.url+"openfeeder?since="+url.QueryEscape(token))
	if err := json.Unmarshal([]byte(body), &reply); err != nil || code != http.StatusOK {
		t.Fatalf("%d, %v: %s", code, err, body)
	}
	urls := func(items []item) (out []string) {
		for _, it := range items {
			out = append(out, strings.TrimPrefix(it.URL, s.url))
		}
		return out
	}
	return urls(reply.Added), urls(reply.Updated), urls(reply.Deleted)
}

// A changed --exclude announces the hidden pages as deleted in every protocol to
// returning clients.
func TestExcludeAnnounced(t *testing.T) {
	t.Parallel()
	const phrase = "overshot wheel of four metres and two pairs" // only on /about/
	dir, file, ln := copySite(t, "handbook"), filepath.Join(t.TempDir(), "s.db"), "127.0.0.1:"+testkit.FreePort(t)
	config := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, config, "markdown-public: true\nllms-full: true\n")
	start := func(args ...string) *served {
		t.Helper()
		return serve(t, append([]string{dir, "--store", file, "--listen", ln, "--config", config, "--also", "tct-03"}, args...)...)
	}
	s := start()
	mirrors := make(map[string]string)
	for _, proto := range all.Protocols() {
		mirrors[proto.Name] = filepath.Join(t.TempDir(), "mirror.db")
		if r := pullBest(t, s.url, mirrors[proto.Name], "--via", proto.Name); r.Added == 0 {
			t.Fatalf("%s: %+v", proto.Name, r)
		}
	}
	pull := func(added, deleted int) {
		t.Helper()
		for via, mirror := range mirrors {
			if r := pullBest(t, s.url, mirror, "--via", via); r.Added != added || r.Updated != 0 || r.Deleted != deleted {
				t.Errorf("%s: %+v, want %d added, %d deleted", via, r, added, deleted)
			}
		}
	}
	collections := func() (paths []string) {
		_, _, sitemap := get(t, s.url+"sitemap.xml")
		for part := range strings.SplitSeq(sitemap, s.url) {
			if end := strings.IndexAny(part, "<\" "); end > 0 && strings.HasPrefix(part, "scp/") {
				paths = append(paths, part[:end])
			}
		}
		return paths
	}
	visible, first := syncToken(t, s)
	listed := collections()
	listed = slices.DeleteFunc(listed, func(path string) bool {
		_, _, body := get(t, s.url+path)
		return filepath.Ext(path) != ".scp" || !strings.Contains(body, phrase)
	})
	if len(listed) == 0 {
		t.Fatal("no SCP collection contains the page")
	}

	s.ended(t)
	s = start()
	if again, _ := syncToken(t, s); again != visible {
		t.Errorf("started again: %+v, want %+v", again, visible)
	}
	pull(0, 0)

	s.ended(t)
	days := []string{time.Now().UTC().Format(time.DateOnly)}
	s = start("--exclude", "/about")
	days = append(days, time.Now().UTC().Format(time.DateOnly))
	hidden, second := syncToken(t, s)
	if hidden.Epoch == visible.Epoch || hidden.Seq <= visible.Seq {
		t.Errorf("token %+v after %+v", hidden, visible)
	}
	if added, updated, deleted := announced(t, s, first); len(added)+len(updated) > 0 || !slices.Equal(deleted, []string{"about/"}) {
		t.Errorf("OpenFeeder: %q %q %q", added, updated, deleted)
	}
	var delta struct {
		Pages []struct {
			URL       string `json:"url"`
			Indexable bool   `json:"ai_indexable"`
		}
	}
	gone := false
	for _, day := range days {
		if code, _, body := get(t, s.url+"arc-sitemap-deltas/"+day+".json"); code == http.StatusOK {
			if err := json.Unmarshal([]byte(body), &delta); err != nil {
				t.Fatal(err)
			}
			for _, p := range delta.Pages {
				gone = gone || p.URL == s.url+"about/" && !p.Indexable
			}
		}
	}
	if !gone {
		t.Errorf("ARC: %+v", delta)
	}
	for _, path := range listed {
		if code, _, _ := get(t, s.url+path); code != http.StatusGone {
			t.Errorf("SCP: %s: %d", path, code)
		}
	}
	eventually(t, "the index of the new publication", func() bool {
		code, _, _ := get(t, s.url+"openfeeder?q=overshot+wheel")
		return code == http.StatusOK
	})
	for _, path := range append(collections(), "about/llm.json", "about/llm/", "about/index.md", "llm-pages.json", "llm.json", "arc-sitemap.json", "arc-sitemap.yaml",
		"arc-sitemap-deltas/"+days[0]+".json", "openfeeder", "openfeeder?url=/about/", "openfeeder?q=overshot+wheel", "openfeeder?since=2000-01-01T00:00:00Z",
		"openfeeder?since="+url.QueryEscape(first), "sitemap.xml", "llms.txt", "llms-full.txt", "feed.json", "feed.atom") {
		code, h, body := get(t, s.url+path, "Accept-Encoding", "identity")
		if strings.Contains(plainText(t, h.Get("Content-Encoding"), body), phrase) {
			t.Errorf("%s contains the hidden text", path)
		}
		if code != http.StatusOK && !strings.Contains(path, "about/") && !strings.Contains(path, "deltas/") {
			t.Errorf("%s: %d", path, code)
		}
	}
	pull(0, 1)
	for via, mirror := range mirrors {
		if storedPages(t, mirror, s.url, s.url)[s.url+"about/"] != nil {
			t.Errorf("%s: the mirror has the hidden page", via)
		}
	}

	s.ended(t)
	s = start()
	if added, updated, deleted := announced(t, s, second); len(updated)+len(deleted) > 0 || !slices.Equal(added, []string{"about/"}) {
		t.Errorf("OpenFeeder, shown again: %q %q %q", added, updated, deleted)
	}
	if added, updated, deleted := announced(t, s, first); len(added)+len(updated) != 1 || len(deleted) > 0 {
		t.Errorf("OpenFeeder, since it was hidden and shown: %q %q %q", added, updated, deleted)
	}
	pull(1, 0)
	s.ended(t)
}

// A folder that is served with another base has that base in all its pages and links. The
// publication with the first base is kept.
func TestBaseChanges(t *testing.T) {
	t.Parallel()
	dir, file := copySite(t, "handbook"), filepath.Join(t.TempDir(), "s.db")
	addresses := []string{"127.0.0.1:" + testkit.FreePort(t), "127.0.0.1:" + testkit.FreePort(t)}
	mirrors := []string{filepath.Join(t.TempDir(), "m.db"), filepath.Join(t.TempDir(), "m.db")}
	tokens := make([]openFeederToken, 2)
	for round := range 3 {
		i := round % 2
		s := serve(t, dir, "--store", file, "--listen", addresses[i])
		r := pullBest(t, s.url, mirrors[i], "--via", "tct-01")
		token, _ := syncToken(t, s)
		switch {
		case round < 2 && (r.Added < 10 || r.Deleted > 0):
			t.Errorf("round %d: %+v", round, r)
		case round == 2 && (r.Requests != 1 || r.Added+r.Updated+r.Deleted > 0 || token != tokens[0]):
			t.Errorf("under the first base again: %+v in %d requests, %+v, want %+v", r, r.Requests, token, tokens[0])
		}
		tokens[i] = token
		wantMirror(t, "tct-01", mirrors[i], file, dir, s.url)
		wantMirror(t, "tct-01", mirrors[i], ingested(t, dir, s.url), dir, s.url)

		out, links := filepath.Join(t.TempDir(), "out"), 0
		built(t, dir, out, s.url, "--store", file, "--complete")
		err := filepath.WalkDir(out, func(name string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			if filepath.Ext(name) == ".gz" {
				b = []byte(plainText(t, "gzip", string(b)))
			}
			links += strings.Count(string(b), addresses[i])
			if other := addresses[1-i]; strings.Contains(string(b), other) {
				t.Errorf("%s names %s", name, other)
			}
			return nil
		})
		if err != nil || links < 100 {
			t.Errorf("%d links to %s, %v", links, addresses[i], err)
		}
		s.ended(t)
	}
}
