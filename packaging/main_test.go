package packaging

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/millrace/millrace/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// nfpm is the newest version whose modules the proxy has. goreleaser has its own copy.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2"

// date is the time of the commit of the releases that the tests build.
var date = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// releaser has what the tests need of .goreleaser.yaml.
type releaser struct {
	Builds []struct {
		Env, Flags, Ldflags []string
	}
	NFPMs []map[string]any `yaml:"nfpms"`
}

// A release is reproducible, its package installs, and its image runs.
func TestRealRelease(t *testing.T) {
	testkit.Real(t, "go", "dpkg", "unshare", "mount", "chroot", "setpriv", "tar", "useradd", "curl", "systemd-analyze")
	dist := release(t, "..", "1.0.0")
	image(t, "..", dist)
	t.Run("reproducible", func(t *testing.T) { testReproducible(t, dist) })
	t.Run("image", func(t *testing.T) { testImage(t, dist) })
	t.Run("package", func(t *testing.T) { testPackage(t, dist) })
}

// output runs a program in a folder.
func output(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// release builds the release of a version for linux/amd64 from the source in a folder, by the
// rules of .goreleaser.yaml. It returns the folder of its files: millrace.deb, millrace.rpm,
// millrace_linux_amd64_v1/millrace and image.
func release(t *testing.T, root, version string) string {
	t.Helper()
	dist := t.TempDir()
	text, err := os.ReadFile(filepath.Join(root, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	expanded := strings.NewReplacer("{{.Version}}", version, "{{.FullCommit}}", "c0ffee", "{{.CommitDate}}", date.Format(time.RFC3339)).Replace(string(text))
	var r releaser
	if err := yaml.Unmarshal([]byte(expanded), &r); err != nil {
		t.Fatal(err)
	}
	b := r.Builds[0]
	binary := filepath.Join(dist, "millrace_linux_amd64_v1", "millrace")
	args := append([]string{"build", "-o", binary, "-ldflags", strings.Join(b.Ldflags, " ")}, b.Flags...)
	output(t, root, append(b.Env, "GOOS=linux", "GOARCH=amd64"), "go", append(args, "./cmd/millrace")...)
	if err := os.Chtimes(binary, date, date); err != nil {
		t.Fatal(err)
	}
	p := maps.Clone(r.NFPMs[0])
	delete(p, "formats")
	delete(p, "file_name_template")
	p["name"], p["version"], p["arch"] = "millrace", version, "amd64"
	for _, o := range p["overrides"].(map[string]any) {
		o := o.(map[string]any)
		o["depends"] = o["dependencies"]
		delete(o, "dependencies")
	}
	p["contents"] = append(p["contents"].([]any), map[string]any{"src": binary, "dst": "/usr/bin/millrace", "file_info": map[string]any{"mode": 0o755}})
	config, err := yaml.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dist, "nfpm.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"deb", "rpm"} {
		output(t, root, nil, "go", "run", nfpm, "package", "--config", file, "--packager", format, "--target", filepath.Join(dist, "millrace."+format))
	}
	return dist
}

// image builds the container image of a release. The binary of amd64 stands in for that of arm64.
func image(t *testing.T, root, dist string) {
	t.Helper()
	arm := filepath.Join(dist, "millrace_linux_arm64_v8.0")
	if err := os.Mkdir(arm, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dist, "millrace_linux_amd64_v1", "millrace"), filepath.Join(arm, "millrace")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dist, "metadata.json"), []byte(`{"version":"1.0.0","commit":"c0ffee"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	output(t, filepath.Join(root, "packaging"), nil, "go", "run", "./image", "-dist", dist)
}

// site writes a folder of HTML pages.
func site(t *testing.T, dir string, pages int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var links bytes.Buffer
	for i := range pages {
		fmt.Fprintf(&links, `<li><a href="/p%d.html">Wheel %d</a></li>`, i, i)
		page := fmt.Sprintf(`<!doctype html><title>Wheel %d</title><main><h1>Wheel %d</h1><p>The wheel %d of the mill turns in the river.</p></main>`, i, i, i)
		write(t, filepath.Join(dir, fmt.Sprintf("p%d.html", i)), page)
	}
	write(t, filepath.Join(dir, "index.html"), "<!doctype html><title>Mill</title><main><h1>Mill</h1><p>All wheels of the mill.</p><ul>"+links.String()+"</ul></main>")
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // the service's user reads it
		t.Fatal(err)
	}
}
