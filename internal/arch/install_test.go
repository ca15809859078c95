package arch

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/millrace/millrace/internal/testkit"
)

// maxZip limits the zip file of the module, which every importer downloads. Larger data belongs in
// bench, which is a separate module.
const maxZip = 10 << 20

// zipFile is a file of the module in its zip.
type zipFile struct{ root, path string }

func (f zipFile) Path() string                 { return f.path }
func (f zipFile) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join(f.root, f.path)) }
func (f zipFile) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(f.root, f.path)) }

// TestRealInstall publishes the module through a proxy of files. The command is installed from
// there, and the Examples of the public packages are built and run in a separate module. The
// modules that this one requires come from the cache.
func TestRealInstall(t *testing.T) {
	goCommand := testkit.Real(t, "go", "git")
	root, tr := readModule(t)
	dir := t.TempDir()
	env := []string{
		"CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOSUMDB=off", "GOTOOLCHAIN=local", "GOWORK=off",
		"GOPROXY=file://" + filepath.Join(dir, "proxy"), "GOMODCACHE=" + filepath.Join(dir, "cache"), "GOBIN=" + filepath.Join(dir, "bin"),
	}
	run := func(in string, env []string, name string, args ...string) string {
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir, c.Env = in, append(os.Environ(), env...)
		var errs bytes.Buffer
		c.Stderr = &errs
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s %s: %v\n%.3000s%.3000s", name, strings.Join(args, " "), err, out, &errs)
		}
		return string(out)
	}
	program := filepath.Join(dir, "program")
	makeFolder(t, program)

	// Publish the files of the module that are in git.
	release := module.Version{Path: tr.module, Version: "v0.0.1"}
	at := filepath.Join(dir, "proxy", release.Path, "@v")
	makeFolder(t, at)
	write(t, at, "list", release.Version+"\n")
	write(t, at, release.Version+".info", `{"Version":"`+release.Version+`"}`)
	write(t, at, release.Version+".mod", tr.text["go.mod"])
	var files []zip.File
	for name := range strings.SplitSeq(strings.TrimSuffix(run(root, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil { // not removed
			files = append(files, zipFile{root, name})
		}
	}
	var packed bytes.Buffer
	if err := zip.Create(&packed, release, files); err != nil {
		t.Fatal(err)
	}
	if packed.Len() > maxZip {
		t.Errorf("the module's zip has %d bytes, at most %d", packed.Len(), maxZip)
	}
	write(t, at, release.Version+".zip", packed.String())
	linkCache(t, strings.TrimSpace(run(root, nil, goCommand, "env", "GOMODCACHE")), filepath.Join(dir, "cache"), release.Path, "cache/download/"+release.Path)

	run(program, env, goCommand, "install", tr.module+"/cmd/millrace@"+release.Version)
	if got := run(program, nil, filepath.Join(dir, "bin", "millrace"), "version"); !strings.HasPrefix(got, "millrace "+release.Version+" ") {
		t.Errorf("the installed command has version %q", got)
	}

	write(t, program, "go.mod", "module program.example\n\ngo 1.26.0\n")
	get := []string{"get"}
	for _, p := range tr.sorted() {
		for _, f := range p.files {
			text := tr.text[f.path]
			if !f.test || !isPublic(p.path) || !strings.Contains(text, "\nfunc Example") || strings.Contains(text, "testdata") || strings.Contains(text, tr.module+"/internal/") {
				continue
			}
			makeFolder(t, filepath.Join(program, p.path))
			write(t, program, f.path, text)
		}
		if isPublic(p.path) {
			get = append(get, path.Join(tr.module, p.path)+"@"+release.Version)
		}
	}
	run(program, env, goCommand, get...)
	run(program, env, goCommand, "get", "-t", "./...") // other modules that the Examples import
	run(program, env, goCommand, "vet", "./...")
	t.Log(run(program, env, goCommand, "test", "-vet=off", "./agent", "./publish"))
}

func makeFolder(t *testing.T, name string) {
	t.Helper()
	if err := os.MkdirAll(name, 0o777); err != nil {
		t.Fatal(err)
	}
}

// linkCache creates a module cache that has the entries of another, except those at the paths own.
// Go writes there without changing the other cache.
func linkCache(t *testing.T, from, to string, own ...string) {
	t.Helper()
	makeFolder(t, to)
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		var below []string
		for _, p := range own {
			if rest, ok := strings.CutPrefix(p, e.Name()+"/"); ok {
				below = append(below, rest)
			}
		}
		old, link := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch {
		case len(below) > 0:
			linkCache(t, old, link, below...)
		case slices.ContainsFunc(own, func(p string) bool { return strings.HasPrefix(e.Name(), p) }):
		default:
			if err := os.Symlink(old, link); err != nil {
				t.Fatal(err)
			}
		}
	}
}
