package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
)

// A server without configuration serves a built folder, and a pull by each protocol reads the
// fields that the protocol carries. TCT draft-01 is missing, because it needs a Link field,
// which such a server does not send. OpenFeeder is missing, because its index needs an ETag.
// Tests with configured servers read both.
func TestBuildRead(t *testing.T) {
	t.Parallel()
	src, out, file := copySite(t, "handbook"), filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "s.db")
	srv := httptest.NewServer(http.FileServer(http.Dir(out)))
	defer srv.Close()
	base := srv.URL + "/"
	built(t, src, out, base, "--store", file, "--complete")
	for _, proto := range []string{"tct-00", "scp", "arc"} {
		t.Run(proto, func(t *testing.T) { readBuild(t, proto, base, file, src) })
	}
}

// readBuild pulls a built site by one protocol, compares the mirror with the build's
// store, and pulls again with one request.
func readBuild(t *testing.T, proto, base, file, src string) {
	t.Helper()
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	first := pullBest(t, base, mirror, "--via", proto)
	if first.Added == 0 || len(first.Skipped) != 0 {
		t.Fatalf("%+v", first)
	}
	wantMirror(t, proto, mirror, file, src, base)
	again := pullBest(t, base, mirror, "--via", proto)
	if again.Requests != 1 || again.Added+again.Updated+again.Deleted != 0 {
		t.Errorf("nothing changed: %+v", again)
	}
}
