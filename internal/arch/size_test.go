package arch

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/testkit"
)

// maxBinary is the size limit in bytes of the stripped command for linux/amd64 (ADR 40).
const maxBinary = 46_000_000

func TestRealSize(t *testing.T) {
	goCommand := testkit.Real(t, "go")
	root, tr := readModule(t)
	build := func(flags string) string {
		out := filepath.Join(t.TempDir(), "millrace")
		c := exec.CommandContext(t.Context(), goCommand, "build", "-trimpath", "-ldflags", flags, "-o", out, "./cmd/millrace")
		c.Dir = root
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
		if b, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		return out
	}
	info, err := os.Stat(build("-s -w"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.2f MB", float64(info.Size())/1e6)
	if info.Size() > maxBinary {
		t.Errorf("the command has %d bytes, want at most %d. Symbols by module:\n%s", info.Size(), maxBinary, symbols(t, goCommand, build(""), tr))
	}
}

// symbols lists the bytes of code and data in a binary by module, the largest first.
func symbols(t *testing.T, goCommand, binary string, tr *tree) string {
	t.Helper()
	b, err := exec.CommandContext(t.Context(), goCommand, "tool", "nm", "-size", binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := append(slices.Collect(maps.Keys(readRows(tr.text[modulesFile]))), tr.module)
	sizes := make(map[string]int)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 4 || strings.EqualFold(f[2], "b") || strings.HasPrefix(f[3], "crypto/internal/fips140/drbg.memory") {
			continue // the symbol takes no space in the file
		}
		name := strings.TrimLeft(f[3], "(")
		size, err := strconv.Atoi(f[1])
		if err != nil {
			continue
		}
		i := strings.LastIndexByte(strings.SplitN(name, "[", 2)[0], '/') + 1
		folder, _, _ := strings.Cut(name[i:], ".")
		sizes[cmp.Or(moduleOf(name[:i]+folder, modules), "the standard library and the rest")] += size
	}
	var out strings.Builder
	for _, m := range slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return sizes[b] - sizes[a] })[:min(20, len(sizes))] {
		fmt.Fprintf(&out, "%6.2f MB %s\n", float64(sizes[m])/1e6, m)
	}
	return out.String()
}
