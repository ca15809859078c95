//go:build amd64 || arm64

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/testkit"
)

// ciJob is the folder of a CI job, with a built site in public.
type ciJob struct {
	dir     string
	bin     string // folder of the commands
	env     []string
	base    string // URL of the site
	summary string // file of the job's summary
}

// newCIJob returns a job in which the command and the tools that the script needs are installed,
// and nothing else.
func newCIJob(t *testing.T, public string) *ciJob {
	t.Helper()
	j := &ciJob{dir: t.TempDir(), bin: t.TempDir(), base: "https://site.example/", summary: filepath.Join(t.TempDir(), "summary.md")}
	if err := os.CopyFS(filepath.Join(j.dir, "public"), os.DirFS(public)); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range strings.Fields("sh uname mkdir rm cp cat echo grep sed awk tar gzip sha256sum") {
		j.install(t, tool)
	}
	write(t, filepath.Join(j.bin, "millrace"), "#!/bin/sh\nMILLRACE_TEST_COMMAND=1 exec '"+self+"' \"$@\"\n")
	if err := os.Chmod(filepath.Join(j.bin, "millrace"), 0o700); err != nil {
		t.Fatal(err)
	}
	j.env = []string{"HOME=" + j.dir, "TMPDIR=" + t.TempDir(), "PATH=" + j.bin, "GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY=" + j.summary}
	return j
}

// install makes a program of this machine available in the job.
func (j *ciJob) install(t *testing.T, tool string) {
	t.Helper()
	at, err := exec.LookPath(tool)
	if err == nil {
		err = os.Symlink(at, filepath.Join(j.bin, tool))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run runs the script as the action does.
func (j *ciJob) run(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	script, err := filepath.Abs("../../ci/millrace.sh")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "sh", append([]string{script, "public", "--base-url", j.base}, args...)...)
	c.Dir, c.Env = j.dir, j.env
	b, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(b)
}

// text returns a file of the job.
func (j *ciJob) text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(j.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// checkCI runs the script on a site, and tests that it adds the documents, passes, and changes
// nothing in the next run with the same pages.
func checkCI(t *testing.T, j *ciJob) {
	t.Helper()
	before := folderState(t, filepath.Join(j.dir, "public"))
	if code, out := j.run(t, "--host", "github"); code != 0 || strings.Contains(out, "::error") {
		t.Fatalf("exit %d:\n%s", code, out)
	}
	for _, name := range []string{"public/llms.txt", "public/index.md", "public/arc-sitemap.json", "public/feed.atom", ".millrace-ci/findings.sarif"} {
		if j.text(t, name) == "" {
			t.Errorf("%s is empty", name)
		}
	}
	first := folderState(t, filepath.Join(j.dir, "public"))
	for name := range before {
		if first[name] == "" {
			t.Errorf("%s was removed", name)
		}
	}
	summary, err := os.ReadFile(j.summary)
	if err != nil || !strings.Contains(string(summary), "ARC ") || !strings.Contains(string(summary), "MUST ") {
		t.Errorf("summary: %v\n%s", err, summary)
	}
	if code, out := j.run(t); code != 1 || !strings.Contains(out, "earlier run") {
		t.Errorf("a folder with documents: exit %d:\n%s", code, out)
	}
}

// The script adds the documents to a built site. In the next run, with new files of the same
// pages and the store of the first, the documents stay the same.
func TestCI(t *testing.T) {
	t.Parallel()
	src := copySite(t, "handbook")
	j := newCIJob(t, src)
	checkCI(t, j)
	list := j.text(t, "public/arc-sitemap.json")
	if err := os.RemoveAll(filepath.Join(j.dir, "public")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(j.dir, "public"), os.DirFS(src)); err != nil {
		t.Fatal(err)
	}
	if code, out := j.run(t); code != 0 || j.text(t, "public/arc-sitemap.json") != list {
		t.Errorf("second run: exit %d:\n%s", code, out)
	}
}

// The script fails if the site breaks a MUST, and if there is nothing to build.
func TestCIBroken(t *testing.T) {
	t.Parallel()
	j := newCIJob(t, copySite(t, "handbook"))
	write(t, filepath.Join(j.dir, "public", "llms.txt"), "100% of it, without a title\n")
	code, out := j.run(t)
	if code != 1 || !strings.Contains(out, "::error file=public/llms.txt,title=web/llmstxt/title::") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	var log struct {
		Runs []struct {
			Results []struct {
				RuleID, Level string
				Locations     []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(j.text(t, ".millrace-ci/findings.sarif")), &log); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, r := range log.Runs[0].Results {
		at := r.Locations[0].PhysicalLocation
		if !strings.HasPrefix(at.ArtifactLocation.URI, "public/") || at.Region.StartLine != 1 {
			t.Errorf("%s is at %q, line %d; GitHub wants a path and a line", r.RuleID, at.ArtifactLocation.URI, at.Region.StartLine)
		}
		found = found || r.RuleID == "web/llmstxt/title" && r.Level == "error" && at.ArtifactLocation.URI == "public/llms.txt"
	}
	if !found {
		t.Errorf("a finding about llms.txt is missing: %+v", log)
	}
	j = newCIJob(t, t.TempDir())
	if code, out := j.run(t); code != 1 {
		t.Errorf("an empty folder: exit %d:\n%s", code, out)
	}
	if code, out := j.run(t, "--no-such-flag"); code != 1 {
		t.Errorf("an unknown flag: exit %d:\n%s", code, out)
	}
}

// If millrace is not installed, the script downloads the release for the machine. It refuses an
// archive with a wrong checksum.
func TestRealCIInstall(t *testing.T) {
	t.Parallel()
	testkit.Real(t, "curl")
	j := newCIJob(t, copySite(t, "handbook"))
	j.install(t, "curl")
	command, err := os.ReadFile(filepath.Join(j.bin, "millrace"))
	if err == nil {
		err = os.Remove(filepath.Join(j.bin, "millrace"))
	}
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: "millrace", Mode: 0o755, Size: int64(len(command)), Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(command); err != nil || w.Close() != nil || z.Close() != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("millrace_1.2.3_linux_%s.tar.gz", runtime.GOARCH)
	releases := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/latest/download/checksums.txt", "/download/v1.2.3/checksums.txt":
			fmt.Fprintf(w, "%064d  millrace_1.2.3_linux_other.tar.gz\n%s  %s\n", 0, canon.SHA256Hex(b.Bytes()), name)
		case "/latest/download/" + name:
			_, _ = w.Write(b.Bytes())
		case "/download/v1.2.3/" + name:
			_, _ = w.Write([]byte("another archive"))
		default:
			http.NotFound(w, r)
		}
	}))
	defer releases.Close()
	j.env = append(j.env, "MILLRACE_RELEASES="+releases.URL, "MILLRACE_VERSION=1.2.3")
	if code, out := j.run(t); code != 1 || !strings.Contains(out, "checksum") {
		t.Errorf("an archive with a wrong checksum: exit %d:\n%s", code, out)
	}
	j.env[len(j.env)-1] = "MILLRACE_VERSION=latest"
	if code, out := j.run(t); code != 0 {
		t.Errorf("the newest release: exit %d:\n%s", code, out)
	}
}

// The script passes on the sites that real generators build. It fails if the sitemap of MkDocs is
// for another URL.
func TestRealCI(t *testing.T) {
	t.Parallel()
	for _, g := range []struct {
		site    string
		base    string
		command []string
	}{
		{"md-hugo", "https://mill.example/site/", []string{"hugo", "--quiet", "--destination"}},
		{"md-jekyll", "https://rivers.example/valley/", []string{"jekyll", "build", "--quiet", "--destination"}},
		{"md-mkdocs", "https://weirs.example/manual/", []string{"mkdocs", "build", "--quiet", "--site-dir"}},
	} {
		t.Run(g.site, func(t *testing.T) {
			t.Parallel()
			testkit.Real(t, g.command[0])
			src, public := copySite(t, g.site), filepath.Join(t.TempDir(), "public")
			if g.site == "md-hugo" { // Hugo before 0.110 uses this name
				if err := os.Rename(filepath.Join(src, "hugo.toml"), filepath.Join(src, "config.toml")); err != nil {
					t.Fatal(err)
				}
			}
			c := exec.CommandContext(t.Context(), g.command[0], append(g.command[1:], public)...)
			c.Dir, c.Env = src, append(os.Environ(), "LANG=C.UTF-8")
			if text, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			j := newCIJob(t, public)
			j.base = g.base
			checkCI(t, j)
			if g.site != "md-mkdocs" {
				return
			}
			j = newCIJob(t, public)
			if code, out := j.run(t); code != 1 || !strings.Contains(out, "::error file=public/sitemap.xml,title=web/sitemaps-location/host::") {
				t.Errorf("another base URL: exit %d:\n%s", code, out)
			}
		})
	}
}
