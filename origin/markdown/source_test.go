package markdown

import (
	"context"
	"errors"
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
)

func TestNewRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"file.md": "x", "empty/": "", "html/a.html": "x", "hidden/.a.md": "x", "good/a.md": "x"})
	for _, tt := range []struct {
		dir  string
		o    Options
		want error
		says string
	}{
		{"absent", Options{}, millrace.ErrNotFound, "not-found"},
		{"file.md", Options{}, millrace.ErrInvalid, "no-folder"},
		{"empty", Options{}, millrace.ErrInvalid, "no-page"},
		{"html", Options{}, millrace.ErrInvalid, "no-page"},
		{"hidden", Options{}, millrace.ErrInvalid, "no-page"},
		{"good", Options{Base: "ftp://mill.example/"}, millrace.ErrInvalid, "bad-base"},
		{"good", Options{Kind: "gatsby"}, millrace.ErrInvalid, "bad-kind"},
	} {
		if _, err := New(filepath.Join(dir, tt.dir), &tt.o); !errors.Is(err, tt.want) || millrace.ErrorCode(err) != tt.says {
			t.Errorf("New(%s, %+v) = %v: code %q, want %q", tt.dir, tt.o, err, millrace.ErrorCode(err), tt.says)
		}
	}
	for _, k := range []Kind{Plain, Hugo, Jekyll, MkDocs, Docusaurus} {
		if f := open(t, filepath.Join(dir, "good"), &Options{Kind: k}); f.Kind() != k {
			t.Errorf("requested the kind %s, got %s", k, f.Kind())
		}
	}
}

func TestUnchangedFilesStayClosed(t *testing.T) {
	f, dir := made(t, map[string]string{
		"a.md": "---\ntitle: A\n---\nx", "b.md": "[c](c.md)", "c.md": "x",
		"d.md": "---\ndraft: true\n---\nx", "e.md": "---\nexpiryDate: 2123-01-01\n---\nx",
	})
	var mu sync.Mutex
	var read []string
	f.open = func(file string) {
		mu.Lock()
		read = append(read, file)
		mu.Unlock()
	}
	first := walkAll(t, f)
	if len(first.names) != 4 || len(read) < 5 {
		t.Fatalf("pages %q, read %q", first.names, read)
	}
	read = nil
	second := walkAll(t, f)
	if d := cmp.Diff(first.versions, second.versions); d != "" {
		t.Error("an unchanged folder has other versions:\n" + d)
	}
	slices.Sort(read)
	if d := cmp.Diff([]string{"d.md", "e.md"}, slices.Compact(read)); d != "" {
		t.Error("read (-want +got): drafts and what may expire\n" + d)
	}
	if _, err := f.Page(t.Context(), millrace.Ref{URL: "/a.md", Version: first.versions["/a.md"]}); !errors.Is(err, millrace.ErrUnmodified) {
		t.Errorf("a page that has not changed: %v", err)
	}
	// If the text changes, only its page changes. If an address changes, all pages change, because
	// of their links.
	write(t, dir, map[string]string{"c.md": "xyz"})
	third := walkAll(t, f)
	changed := func(a, b walked) (out []string) {
		for n := range b.versions {
			if a.versions[n] != b.versions[n] {
				out = append(out, n)
			}
		}
		slices.Sort(out)
		return out
	}
	if d := cmp.Diff([]string{"/c.md"}, changed(second, third)); d != "" {
		t.Error(d)
	}
	write(t, dir, map[string]string{"c.md": "---\nslug: z\n---\nx"})
	if d := cmp.Diff([]string{"/a.md", "/b.md", "/c.md", "/e.md"}, changed(third, walkAll(t, f))); d != "" {
		t.Error(d)
	}
	if p := page(t, f, "/b.md"); p.Blocks[0].URL != noBase+"z/" {
		t.Errorf("the target of the link is %s", p.Blocks[0].URL)
	}
	// The clock advances past the expiry date.
	f.now = func() time.Time { return time.Date(2124, 1, 1, 0, 0, 0, 0, time.UTC) }
	if w := walkAll(t, f); !w.absent["/e.md"] || millrace.ErrorCode(w.skipped["/e.md"]) != "expired" {
		t.Errorf("skipped %v", w.skipped)
	}
}

func TestFreshFilesHaveNoVersion(t *testing.T) {
	f, _ := made(t, map[string]string{"a.md": "x"})
	f.now = time.Now
	if v := walkAll(t, f).versions["/a.md"]; v != "" {
		t.Errorf("version %q of a file that may change without a trace", v)
	}
	if p := page(t, f, "/a.md"); p.Version != "" {
		t.Errorf("version %q", p.Version)
	}
}

func TestOneURLTwice(t *testing.T) {
	f, dir := made(t, map[string]string{
		"README.md": "A read me.", "index.md": "An index.", "a.md": "First.", "a/index.md": "Second.",
		"b.md": "---\npermalink: /a/\n---\nThird.", "link.md": "[x](a/index.md)",
	})
	w := walkAll(t, f)
	if d := cmp.Diff([]string{"/a.md", "/index.md", "/link.md"}, w.names); d != "" {
		t.Error(d)
	}
	for _, n := range []string{"/README.md", "/a/index.md", "/b.md"} {
		if !w.absent[n] || millrace.ErrorCode(w.skipped[n]) != "same-url" {
			t.Errorf("%s: %v", n, w.skipped[n])
		}
		if _, err := f.Page(t.Context(), millrace.Ref{URL: n}); !errors.Is(err, millrace.ErrNotFound) {
			t.Errorf("the page of %s: %v", n, err)
		}
	}
	if p := page(t, f, "/link.md"); p.Blocks[0].URL != noBase+"a/" {
		t.Errorf("%+v", p.Blocks[0])
	}
	must(t, os.Remove(filepath.Join(dir, "a.md")))
	if w := walkAll(t, f); !slices.Contains(w.names, "/a/index.md") || slices.Contains(w.names, "/b.md") {
		t.Errorf("pages %q", w.names)
	}
}

// found reports whether err has the code, or a position that contains it.
func found(err error, code string) bool {
	fault, ok := errors.AsType[*millrace.FormatError](err)
	return millrace.ErrorCode(err) == code || ok && strings.Contains(fault.Position, code)
}

// TestBroken checks that broken files are reported with their position, and not as absent. A page
// that its owner withdraws is absent.
func TestBroken(t *testing.T) {
	f, dir := made(t, map[string]string{
		"ok.md": "x", "yaml.md": "---\ntitle: a\nlist: [b\n---\nx", "toml.md": "+++\ntitle = \"a\nb = 1\n+++\nx", "json.md": "{\n \"a\": tru\n}\nx",
		"open.md": "---\ntitle: a\n\nx", "long.md": "---\n" + strings.Repeat("a: b\n", 20_000) + "---\nx", "rule.md": "---\n\nA rule above.",
		"bomb.md": "---\na: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n---\nx",
		"self.md": "---\na: &a [*a]\n---\nx", "deep.md": "---\na: " + strings.Repeat("[", 5000) + "\n---\nx", "list.md": "---\n- a\n---\nx",
		"empty.md": "",
	})
	w := walkAll(t, f)
	for name, says := range map[string]string{
		"/yaml.md": "yaml.md:3:", "/toml.md": "toml.md:2:", "/json.md": "json.md:", "/open.md": "front-matter-unclosed",
		"/long.md": "front-matter-size", "/bomb.md": "bomb.md:", "/self.md": "self.md:", "/deep.md": "front-matter-depth", "/list.md": "list.md:2:", "/empty.md": "invalid",
	} {
		if err := w.skipped[name]; !found(err, says) || w.absent[name] {
			t.Errorf("%s: %v (absent %v), want %q", name, err, w.absent[name], says)
		}
		if _, err := f.Page(t.Context(), millrace.Ref{URL: name}); err == nil || errors.Is(err, millrace.ErrNotFound) {
			t.Errorf("the page of %s: %v", name, err)
		}
	}
	if d := cmp.Diff([]string{"/ok.md", "/rule.md"}, w.names); d != "" {
		t.Error(d)
	}
	write(t, dir, map[string]string{"ok.md": "---\npublished: false\n---\nx"})
	if w := walkAll(t, f); !w.absent["/ok.md"] {
		t.Errorf("skipped %v", w.skipped)
	}
	write(t, dir, map[string]string{"ok.md": "abc\nd\xff", "utf16.md": "\xff\xfea\x00"})
	for name, says := range map[string]string{"/ok.md": "ok.md:2:2", "/utf16.md": "utf16.md:1:1"} {
		if _, err := f.Page(t.Context(), millrace.Ref{URL: name}); !errors.Is(err, millrace.ErrInvalid) || !found(err, says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNames(t *testing.T) {
	f, _ := made(t, map[string]string{"a b%.md": "x", "dir/ü.md": "y"})
	got := slices.Sorted(maps.Keys(urls(t, f)))
	if d := cmp.Diff([]string{"/a%20b%25.md", "/dir/%C3%BC.md"}, got); d != "" {
		t.Error(d)
	}
	for _, u := range []string{"", "/", "a.md", "/absent.md", "/a b%.md", "/dir/../a%20b%25.md", "/dir//%C3%BC.md", "/.git/a.md", "/dir", "/dir%2F%C3%BC.md", "/%00.md", "/../x.md"} {
		if _, err := f.Page(t.Context(), millrace.Ref{URL: u}); !errors.Is(err, millrace.ErrNotFound) {
			t.Errorf("page %q: %v", u, err)
		}
	}
}

func TestFolderGoes(t *testing.T) {
	_, dir := made(t, map[string]string{"site/a.md": "x"})
	f := open(t, filepath.Join(dir, "site"), nil)
	walkAll(t, f)
	must(t, os.Rename(filepath.Join(dir, "site"), filepath.Join(dir, "away")))
	for _, err := range f.Changes(t.Context(), "") {
		if !errors.Is(err, millrace.ErrUnavailable) {
			t.Errorf("a folder that was removed: %v", err)
		}
	}
	write(t, dir, map[string]string{"site/b.md": "y"})
	if w := walkAll(t, f); !slices.Equal(w.names, []string{"/b.md"}) {
		t.Errorf("pages %q", w.names)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range f.Changes(ctx, "") {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a walk whose context has ended: %v", err)
		}
	}
}

func TestWatch(t *testing.T) {
	f, dir := made(t, map[string]string{"hugo.toml": "baseURL = 'https://a.example/'\n", "content/a.md": "x"})
	ctx, cancel := context.WithCancel(t.Context())
	called, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() { ended <- f.Watch(ctx, func() { called <- struct{}{} }) }()
	next := func(what string) {
		t.Helper()
		select {
		case <-called:
		case <-time.After(5 * time.Minute):
			t.Fatal("not reported: " + what)
		}
	}
	next("the start")
	write(t, dir, map[string]string{"content/a.md": "y"})
	next("a file written")
	write(t, dir, map[string]string{"content/new/deep/b.md": "y"})
	next("a directory made")
	write(t, dir, map[string]string{"content/new/deep/b.md": "z"})
	next("a file in a directory that was made")
	write(t, dir, map[string]string{"hugo.toml": "baseURL = 'https://b.example/'\n"})
	next("another configuration")
	walkAll(t, f)
	if f.Base() != "https://b.example/" {
		t.Errorf("base %s", f.Base())
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Watch has ended with %v", err)
	}
}

// TestYAML decodes YAML that the parser alone would reject or misread.
func TestYAML(t *testing.T) {
	for in, want := range map[string]matter{
		"a: !!python/name:x.y\nb: 1":               {"a": "", "b": "1"},
		"a:\n  - c: !ENV\nb: [!t x, 'y']":          {"a": []any{map[string]any{"c": ""}}, "b": []any{"x", "y"}},
		"a: !t\n  c: d\nb: |\n  !x\n":              {"a": map[string]any{"c": "d"}, "b": "!x\n"},
		"a: 1\nA: 2\na: 3":                         {"a": "3"},
		"a: 007\nb: 1.50\nc: 2024-01-02\nd: yes":   {"a": "007", "b": "1.50", "c": "2024-01-02", "d": "yes"},
		"a: &x {b: c}\nd: {<<: *x, e: f}\ng: true": {"a": map[string]any{"b": "c"}, "d": map[string]any{"b": "c", "e": "f"}, "g": true},
		"": {},
	} {
		got, err := decodeYAML([]byte(in))
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%q: %v\n%s", in, err, d)
		}
	}
}
