package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/testkit"
)

// realSite sets up a real site by a script of testdata/real, for the duration of the
// test. It returns the URL of the home page and the folder. The script exits with 3 if
// a dependency is missing, which skips the test. A set-up that hangs is retried once.
func realSite(t *testing.T, name string, options ...string) (url, folder string) {
	t.Helper()
	bash := testkit.Real(t, "bash")
	script, err := filepath.Abs(filepath.Join("..", "..", "testdata", "real", name+".sh"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		folder = t.TempDir()
		if err := os.Chmod(filepath.Dir(folder), 0o755); err != nil { // the server may run as another user
			t.Fatal(err)
		}
		stop := func() {
			if out, err := exec.Command(bash, script, "stop", folder).CombinedOutput(); err != nil {
				t.Errorf("%s stop: %v\n%s", name, err, out)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var says strings.Builder
		cmd := exec.CommandContext(ctx, bash, slices.Concat([]string{script}, options, []string{folder})...)
		cmd.Stderr, cmd.WaitDelay = &says, 10*time.Second
		out, err := cmd.Output()
		if ctx.Err() != nil {
			t.Logf("%s hangs: %v\n%s%s", name, err, out, says.String())
			stop()
			continue
		}
		t.Cleanup(stop)
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == 3 {
			testkit.Missing(t, says.String())
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if url = lines[len(lines)-1]; err != nil || !strings.HasPrefix(url, "http://127.0.0.1:") {
			t.Fatalf("%s: %v\n%s%s", name, err, out, says.String())
		}
		return url, folder
	}
	t.Fatalf("%s hangs", name)
	return "", ""
}
