package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

var known = map[string]Flag{"drop": {List: true}, "keep": {List: true}, "listen": {}, "quiet": {}}

// readConfig reads a configuration file with a command line that sets some flags.
func readConfig(t *testing.T, file string, env map[string]string, set ...string) *Config {
	t.Helper()
	c := New(environment(env))
	if err := c.Load(file, known); err != nil {
		t.Fatal(err)
	}
	for flag := range known {
		if !slices.Contains(set, flag) {
			c.Resolve(flag)
		}
	}
	return c
}

func environment(env map[string]string) func(string) (string, bool) {
	return func(k string) (string, bool) { v, ok := env[k]; return v, ok }
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEdit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, was  string
		keep, drop []string
		want       string
	}{
		{"an empty file", "", []string{".intro"}, nil, "keep:\n  - \".intro\"\n"},
		{"a file of comments", "# ours\n", nil, []string{`a[href="x"]`}, "# ours\n\ndrop:\n  - \"a[href=\\\"x\\\"]\"\n"},
		{
			"after the others, both, without a newline at the end", "listen: 127.0.0.1:0 # here\n\n# until here",
			[]string{"#a"},
			[]string{"#b"},
			"listen: 127.0.0.1:0 # here\n\n# until here\n\ndrop:\n  - \"#b\"\n\nkeep:\n  - \"#a\"\n",
		},
		{"an empty list that stays empty", "quiet: true\n", nil, nil, "quiet: true\n"},
		{
			"a list keeps its comments and its lines",
			"# what goes\ndrop: # these\n  # of the shop\n  - .promo   # loud\n\n  # of summer\n  - '.banner'\n  # after it\n\n# other\nquiet: true\n",
			nil,
			[]string{".promo", ".new", ".banner"},
			"# what goes\ndrop: # these\n  # of the shop\n  - .promo   # loud\n  - \".new\"\n\n  # of summer\n  - '.banner'\n  # after it\n\n# other\nquiet: true\n",
		},
		{
			"one item is removed, and the comment above it stays",
			"drop:\n# of the shop\n- .promo # loud\n# of summer\n- .banner\nquiet: true\n", nil,
			[]string{".banner"},
			"drop:\n# of the shop\n# of summer\n- .banner\nquiet: true\n",
		},
		{
			"all go", "drop: # these\n  # why\n  - .promo\nquiet: true\n", nil, nil,
			"drop: [] # these\n  # why\nquiet: true\n",
		},
		{
			"another order", "drop:\n  - .a # 1\n  - .b # 2\n", nil,
			[]string{".b", ".a"},
			"drop:\n  - .b # 2\n  - \".a\"\n",
		},
		{
			"a list on one line", "keep: ['.a#b', \".c\"]   # two\nquiet: true\n",
			[]string{".a#b", ".d"},
			nil,
			"keep:  # two\n  - \".a#b\"\n  - \".d\"\nquiet: true\n",
		},
		{
			"a list over lines", "keep: [ # all\n  .a, # first\n  '.b#c'\n]\n# end\n",
			[]string{".d"},
			nil,
			"keep:  # all\n  # first\n  - \".d\"\n# end\n",
		},
		{"one value", "\"keep\": .a # one\n", []string{".a", ".b"}, nil, "\"keep\":  # one\n  - \".a\"\n  - \".b\"\n"},
		{"the only value is removed", "keep: .a # one\nquiet: true\n", nil, nil, "keep: []  # one\nquiet: true\n"},
		{"an empty list", "keep: []\n", []string{".a"}, nil, "keep:\n  - \".a\"\n"},
		{"line ends of Windows", "quiet: true\r\nkeep:\r\n  - .a\r\n", []string{".a", ".b"}, nil, "quiet: true\r\nkeep:\r\n  - .a\r\n  - \".b\"\r\n"},
		{"a document with start and end marks", "---\nkeep:\n  - .a\n...\n", []string{".b"}, nil, "---\nkeep:\n  - \".b\"\n...\n"},
		{"indented keys", "  quiet: true\n", []string{".b"}, nil, "  quiet: true\n\n  keep:\n    - \".b\"\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "millrace.yaml")
			write(t, file, c.was)
			got, err := readConfig(t, file, nil).edit([]byte(c.was), Changes{Lists: map[string][]string{"keep": c.keep, "drop": c.drop}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Save leaves a file unchanged if it has an unsupported form, or if another source sets
// the key.
func TestEditRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, was string
		part      string // expected in the message
		env       map[string]string
		set       []string // flags of the command line
	}{
		{"keys in braces", "{quiet: true}\n", "", nil, nil},
		{"a key in braces", "{keep: .a}\n", "", nil, nil},
		{"an environment variable", "quiet: true\n", "MILLRACE_KEEP", map[string]string{"MILLRACE_KEEP": ".b"}, nil},
		{"the command line", "quiet: true\n", "--keep", nil, []string{"keep"}},
		{"the command line, with the values of the file", "keep: .b\n", "--keep", nil, []string{"keep"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "millrace.yaml")
			write(t, file, c.was)
			err := readConfig(t, file, c.env, c.set...).Save(Changes{Lists: map[string][]string{"keep": {".b"}}}, func() error {
				t.Error("the new configuration is used")
				return nil
			})
			if !errors.Is(err, millrace.ErrForbidden) || !strings.Contains(err.Error(), c.part) {
				t.Errorf("%v, want %s", err, c.part)
			}
			if b, err := os.ReadFile(file); err != nil || string(b) != c.was {
				t.Errorf("%v: %s", err, b)
			}
		})
	}
}

func TestSave(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real.yaml"), filepath.Join(dir, "millrace.yaml")
	const was = "# ours\ndrop: .a\n"
	write(t, file, was)
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	conf := readConfig(t, link, nil)
	lists := map[string][]string{"drop": {".b"}}
	holds := func(want string) {
		t.Helper()
		b, err := os.ReadFile(file)
		info, serr := os.Stat(file)
		if err := errors.Join(err, serr); err != nil || string(b) != want || info.Mode().Perm() != 0o640 {
			t.Errorf("%v, %v:\n%s", err, info.Mode(), b)
		}
		if to, err := os.Readlink(link); err != nil || to != file {
			t.Errorf("the link leads to %s, %v", to, err)
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) != 2 {
			t.Errorf("%v, %v", names, err)
		}
	}
	failure := errors.New("the changes are rejected")
	if err := conf.Save(Changes{Lists: lists}, func() error { return failure }); !errors.Is(err, failure) {
		t.Error(err)
	}
	holds(was)
	if err := conf.Save(Changes{Lists: lists}, func() error { return nil }); err != nil {
		t.Error(err)
	}
	const is = "# ours\ndrop:\n  - \".b\"\n"
	holds(is)
	// The file has changed since conf read it.
	if err := conf.Save(Changes{Lists: map[string][]string{"drop": {".c"}}}, func() error { return nil }); !errors.Is(err, millrace.ErrConflict) {
		t.Error(err)
	}
	holds(is)
	if err := readConfig(t, link, nil).Save(Changes{Lists: lists}, func() error { return failure }); err != nil {
		t.Error("values that the file already has:", err)
	}
	if err := readConfig(t, link, nil).Save(Changes{Lists: map[string][]string{"drop": nil}}, func() error { return nil }); err != nil {
		t.Error(err)
	}
	holds("# ours\ndrop: []\n")
	if got := readConfig(t, link, nil).list("drop"); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// FuzzEdit edits any readable file: the result has the same values except for the list,
// or the edit is refused. edit checks the values itself; the test checks that no
// comments are lost.
func FuzzEdit(f *testing.F) {
	for _, was := range []string{"", "keep: [.a] # x\n", "keep:\n  # y\n  - .a # z\n  - .b\nquiet: true\n", "keep: |\n  .a\n", "quiet: true\n---\nkeep: '.a''#b'\n"} {
		f.Add(was, ".c")
	}
	f.Fuzz(func(t *testing.T, was, item string) {
		conf := New(environment(nil))
		conf.Path, conf.known, conf.asked = FileName, known, map[string]bool{"keep": true, "drop": true}
		if conf.read([]byte(was)) != nil {
			return
		}
		is, err := conf.edit([]byte(was), Changes{Lists: map[string][]string{"keep": append(conf.list("keep"), item)}})
		if err != nil {
			return
		}
		for line := range strings.Lines(was) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "# ") && !strings.ContainsAny(was, "|>\"'") && !strings.Contains(string(is), line) {
				t.Errorf("the comment %q is lost:\n%q\n%q", line, was, is)
			}
		}
	})
}
