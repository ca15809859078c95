package arch

import (
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestOSSFuzz runs the build of OSS-Fuzz with a compiler that only prints its arguments. The
// compiler must be called for every fuzz target of the module, with a unique name and the file of
// the target.
func TestOSSFuzz(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the build runs on Linux")
	}
	root, tr := readModule(t)
	var want []string
	names := map[string]bool{}
	for _, p := range tr.sorted() {
		for _, f := range p.files {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && f.test && strings.HasPrefix(fn.Name.Name, "Fuzz") {
					dir := filepath.Join(root, filepath.FromSlash(p.path))
					want = append(want, fmt.Sprintf("%s %s %s %s", fn.Name.Name, dir, strings.TrimSuffix(tr.module+"/"+p.path, "/."), f.path))
				}
			}
		}
	}
	bin, src := t.TempDir(), t.TempDir()
	if err := os.Symlink(root, filepath.Join(src, "millrace")); err != nil {
		t.Fatal(err)
	}
	compiler := "build_native_go_fuzzer() { echo \"$1 $2 $(cd \"$3\" && pwd -P) $4 ${fuzzer_filename#./}\"; }\n"
	for name, text := range map[string]string{"go_utils.sh": compiler, "compile_native_go_fuzzer_v2": "#!/bin/sh\n"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "ossfuzz", "build.sh"))
	c.Env = append(os.Environ(), "SRC="+src, "PATH="+bin+":"+os.Getenv("PATH"))
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if names[name] {
			t.Errorf("two targets have the name %s", name)
		}
		names[name], got = true, append(got, rest)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("targets built:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
