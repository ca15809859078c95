//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// When a server is stopped, another one takes over the folder and the publication. When the
// stopped server continues, it writes nothing and shows the pages of the other one. A killed
// server is replaced in the same way.
func TestSharedStoreStopped(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the leases must expire")
	}
	for _, kill := range []bool{false, true} {
		s := &shared{dir: t.TempDir(), file: filepath.Join(t.TempDir(), "s.db"), texts: map[string]string{"": "At first it says this.", "a/": "So does this."}}
		pagesIn(t, s.dir, s.texts)
		var out buffer
		first := asProcess(t.Context(), t, "serve", s.dir, "--store", s.file, "--listen", "127.0.0.1:0", "--base-url", "https://mill.example/")
		first.Stderr = &out
		if err := first.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = first.Process.Kill()
			_ = first.Wait()
		}()
		eventually(t, "the first server is ready", func() bool { return readyLine.MatchString(out.String()) })
		second := &sharing{served: serve(t, s.dir, "--store", s.file, "--base-url", "https://mill.example/"), host: "mill.example"}
		other := &sharing{served: serve(t, s.dir, "--store", s.file, "--base-url", "https://mill.example/", "--exclude", "/a"), hidden: "a/", host: "mill.example"}
		s.servers = []*sharing{second, other}
		s.edit(t, func(texts map[string]string) { texts[""] = "The first server reads this." })
		if strings.Contains(second.out.String()+other.out.String(), " msg=ingested ") {
			t.Errorf("two servers read the folder:\n%s%s", second.out, other.out)
		}
		signal := syscall.SIGSTOP
		if kill {
			signal = syscall.SIGKILL
		}
		if err := first.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		s.edit(t, func(texts map[string]string) {
			texts[""], texts["b/"] = "Another server reads this.", "And this."
		})
		if !kill {
			written := contents(t, s.file)
			before := out.String()
			if err := first.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the first server has noticed the loss of its lease the loss of its lease", func() bool { return strings.Contains(out.String()[len(before):], "lease") })
			one := &sharing{served: &served{out: &out}, host: "mill.example"}
			s.servers = []*sharing{one}
			s.edit(t, func(map[string]string) {})
			if d := cmp.Diff(written, contents(t, s.file)); d != "" {
				t.Errorf("the store (-before +after):\n%s", d)
			}
			s.servers = []*sharing{second, other, one}
			s.edit(t, func(texts map[string]string) { texts["b/"] = "All three show this." })
		}
		second.ended(t)
		other.ended(t)
	}
}

// contents returns the log entries of all sites of a store, and the manifests of all
// publications.
func contents(t *testing.T, file string) (lines []string) {
	t.Helper()
	st, err := stores.Open(t.Context(), file, &store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for name, err := range st.Sites(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		site, err := st.Site(t.Context(), name, "")
		if err != nil {
			t.Fatal(err)
		}
		v, err := site.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprint(name, " at ", v.Site().Seq))
		for c, err := range v.Changes(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprint(c.Kind, " ", c.URL, " ", c.Version))
		}
	}
	for m, err := range st.Manifests(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(m))
	}
	return lines
}
