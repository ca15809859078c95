package caddy_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/testkit"
)

// wordpress starts a WordPress whose pages have the address of home, and returns its own URL.
func wordpress(t *testing.T, home string) string {
	t.Helper()
	bash := testkit.Real(t, "bash")
	script, err := filepath.Abs(filepath.Join("..", "testdata", "real", "wordpress.sh"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Chmod(filepath.Dir(folder), 0o755); err != nil { // the server may run as another user
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bash, script, "--pages", "40", "--home", home, folder)
	var says strings.Builder
	cmd.Stderr, cmd.WaitDelay = &says, 10*time.Second
	out, err := cmd.Output()
	t.Cleanup(func() {
		if out, err := exec.Command(bash, script, "stop", folder).CombinedOutput(); err != nil {
			t.Errorf("stop: %v\n%s", err, out)
		}
	})
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 3 {
		testkit.Missing(t, says.String())
	}
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, says.String())
	}
	lines := strings.Fields(string(out))
	return lines[len(lines)-1]
}

// A real WordPress behind reverse_proxy conforms to every protocol, from outside, with encode
// around it. A post that needs a password of Caddy is in no document, although WordPress's REST
// API has it.
func TestRealWordPress(t *testing.T) {
	base := "http://localhost:" + testkit.FreePort(t)
	behind := wordpress(t, base+"/")
	open := base + " {\nencode\nmillrace\nreverse_proxy " + strings.TrimSuffix(behind, "/") + "\n}\n"
	run(t, open)
	eventually(t, base+"/llms.txt", base+"/", "")
	_, list := get(t, base+"/llms.txt")
	var links []string
	for line := range strings.Lines(list) {
		if _, at, ok := strings.Cut(line, "]("+base); ok && strings.HasPrefix(line, "- [") {
			path, _, _ := strings.Cut(at, ".md)")
			links = append(links, path)
		}
	}
	if len(links) < 40 {
		t.Fatalf("%d pages in:\n%s", len(links), list)
	}
	page := strings.TrimSuffix(links[20], "/index")
	resp, body := get(t, base+page+"/", "Accept", "text/markdown")
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/markdown") {
		t.Errorf("%s: %d %v\n%.300s", page, resp.StatusCode, resp.Header, body)
	}
	conforms(t, base)

	answered := clients(t, base, "/llms.txt", "/", "/sitemap.xml")
	for i := range 3 {
		answered(10)
		if err := load(t, strings.Replace(open, "millrace\n", "millrace {\ncontact mailto:mill"+strconv.Itoa(i)+"@example.com\n}\n", 1)); err != nil {
			t.Fatal(err)
		}
	}
	answered(10)
	if err := load(t, base+" {\nencode\n"+password(t, page+"/*")+"millrace\nreverse_proxy "+strings.TrimSuffix(behind, "/")+"\n}\n"); err != nil {
		t.Fatal(err)
	}
	eventually(t, base+"/llms.txt", links[10], page)
	if found := leaks(t, base, page); found != nil {
		t.Errorf("private page in %s", found)
	}
	if resp, _ := get(t, base+page+"/", "Accept", "text/markdown"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("private page: %d", resp.StatusCode)
	}
	if err := load(t, open); err != nil {
		t.Fatal(err)
	}
	eventually(t, base+"/llms.txt", page, "")
}
