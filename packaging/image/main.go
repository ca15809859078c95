// Command image creates the container image of a release, an OCI layout, from the binaries that
// goreleaser has built. It needs no registry and no container engine, and the same binaries produce
// the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	user  = 65532 // the same as in other images that do not run as root
	state = "/var/lib/millrace"
)

func main() {
	dist := flag.String("dist", "dist", "folder of goreleaser's output; the image is written to the folder image in it")
	flag.Parse()
	if err := build(*dist); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// release is the metadata of a release from goreleaser.
type release struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
}

// build writes an index with an image for each Linux binary.
func build(dist string) error {
	var r release
	text, err := os.ReadFile(filepath.Join(dist, "metadata.json"))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range []string{"amd64", "arm64"} {
		files, err := filepath.Glob(filepath.Join(dist, "millrace_linux_"+arch+"*", "millrace"))
		if err != nil || len(files) != 1 {
			return errors.Join(err, fmt.Errorf("%s: %d binaries for linux/%s, want 1", dist, len(files), arch))
		}
		img, err := r.image(files[0], arch)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	out := filepath.Join(dist, "image")
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	path, err := layout.Write(out, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.Version}))
}

// image returns the image of a binary. Its time is the modification time of the file, which
// goreleaser sets to the time of the commit.
func (r *release) image(file, arch string) (v1.Image, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	binary, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // only Go programs could apply the constraint
			_ = pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // writing to memory never fails
		}
	}
	base := []entry{
		{name: "etc/passwd", mode: 0o644, data: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\nmillrace:x:%[1]d:%[1]d:millrace:%[2]s:/sbin/nologin\n", user, state)},
		{name: "etc/group", mode: 0o644, data: fmt.Appendf(nil, "root:x:0:\nmillrace:x:%d:\n", user)},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: roots.Bytes()},
		{name: "tmp/", mode: 0o1777},
		{name: state[1:] + "/", mode: 0o750, owner: user},
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, files := range [][]entry{base, {{name: "usr/bin/millrace", mode: 0o755, data: binary}}} {
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return archive(files, info.ModTime()) }, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, err
		}
		if img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: info.ModTime().UTC()}}}); err != nil {
			return nil, err
		}
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: info.ModTime().UTC()}
	config.Config = v1.Config{
		User:         fmt.Sprintf("%[1]d:%[1]d", user),
		Env:          []string{"PATH=/usr/bin", "HOME=" + state, "XDG_STATE_HOME=" + filepath.Dir(state), "MILLRACE_LISTEN=:8080"},
		Entrypoint:   []string{"/usr/bin/millrace"},
		Cmd:          []string{"serve"},
		WorkingDir:   state,
		Volumes:      map[string]struct{}{state: {}},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Healthcheck:  &v1.HealthConfig{Test: []string{"CMD", "/usr/bin/millrace", "ready"}, Interval: 30 * time.Second, Timeout: 10 * time.Second, StartPeriod: time.Minute},
		Labels: map[string]string{
			"org.opencontainers.image.title": "millrace", "org.opencontainers.image.source": "https://github.com/millrace/millrace",
			"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.version": r.Version, "org.opencontainers.image.revision": r.Commit,
		},
	}
	return mutate.ConfigFile(img, config)
}

// entry is a file of a layer, or a folder if its name ends with "/".
type entry struct {
	name  string
	mode  int64
	owner int
	data  []byte
}

func archive(files []entry, date time.Time) (io.ReadCloser, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.data)), ModTime: date.Truncate(time.Second), Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	return io.NopCloser(&b), w.Close()
}
