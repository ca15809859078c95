package packaging

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/millrace/millrace/internal/testkit"
)

// testImage runs the image: it is small, starts fast, without root, and is healthy.
func testImage(t *testing.T, dist string) {
	top, err := layout.ImageIndexFromPath(filepath.Join(dist, "image"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := top.IndexManifest()
	if err != nil || len(m.Manifests) != 1 {
		t.Fatal(err, m)
	}
	index, err := top.ImageIndex(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = index.IndexManifest(); err != nil || len(m.Manifests) != 2 || m.Manifests[1].Platform.Architecture != "arm64" {
		t.Fatal(err, m)
	}
	img, err := index.Image(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	root := filepath.Join(t.TempDir(), "root")
	if size := unpack(t, img, root); size >= 45<<20 {
		t.Errorf("the image has %d bytes, want less than 45 MB", size)
	}
	site(t, filepath.Join(root, "srv"), 10)
	run := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "chroot", append([]string{"--userspec=" + c.User, "--groups=", root}, args...)...)
		cmd.Env = append([]string{"MILLRACE_TEST_SCRATCH=" + os.Getenv("MILLRACE_TEST_SCRATCH")}, c.Env...)
		return cmd
	}
	if out, err := run(append(c.Entrypoint, "version", "--json")...).CombinedOutput(); err != nil {
		testkit.Missing(t, "chroot, which needs root: "+string(out))
	}
	if err := run(c.Healthcheck.Test[1:]...).Run(); err == nil {
		t.Error("healthy without a server")
	}
	start := time.Now()
	server := run(append(append(c.Entrypoint, c.Cmd...), "/srv")...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = server.Process.Kill(), server.Wait() }()
	for {
		resp, err := http.Get("http://127.0.0.1:8080/readyz") //nolint:noctx // on loopback
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Since(start) > time.Minute {
			t.Fatal("not ready in time")
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Logf("ready after %s", time.Since(start))
	if out, err := run(c.Healthcheck.Test[1:]...).CombinedOutput(); err != nil {
		t.Errorf("unhealthy: %v %s", err, out)
	}
	if stores, err := filepath.Glob(filepath.Join(root, c.WorkingDir, "*.db")); err != nil || len(stores) != 1 {
		t.Errorf("stores in the volume: %q %v", stores, err)
	}
	var v struct{ Version string }
	if out, err := run(append(c.Entrypoint, "version", "--json")...).Output(); err != nil || json.Unmarshal(out, &v) != nil || v.Version != config.Config.Labels["org.opencontainers.image.version"] {
		t.Errorf("%v %s", err, out)
	}
}

// unpack writes the files of an image, and returns their bytes.
func unpack(t *testing.T, img v1.Image, root string) (size int64) {
	t.Helper()
	if err := os.Mkdir(root, 0o755); err != nil { //nolint:gosec // the image's user reads it
		t.Fatal(err)
	}
	files := mutate.Extract(img)
	tar := exec.CommandContext(t.Context(), "tar", "-x", "-C", root, "--same-owner", "-p")
	tar.Stdin = files
	if out, err := tar.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	err := filepath.Walk(root, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}
