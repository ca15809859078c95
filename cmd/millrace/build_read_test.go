package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
)

// The law over a folder that was built, by a server that knows nothing of it:
// what a room reads there is what it carries of the store. TCT draft-01 is not
// among them: it is found by a Link field, which such a server does not say; nor
// is OpenFeeder, which has an index without an ETag again. Both are read behind
// servers that know the folder.
func TestBuildRead(t *testing.T) {
	t.Parallel()
	src, out, file := copySite(t, "handbook"), filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "s.db")
	srv := httptest.NewServer(http.FileServer(http.Dir(out)))
	defer srv.Close()
	base := srv.URL + "/"
	built(t, src, out, base, "--store", file)
	for _, room := range []string{"tct-00", "scp", "arc"} {
		t.Run(room, func(t *testing.T) { readBuild(t, room, base, file, src) })
	}
}

// readBuild pulls a site that was built from nothing by one room, compares it
// with the store that it was built of, and pulls it again, for one request.
func readBuild(t *testing.T, room, base, file, src string) {
	t.Helper()
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	first := pullBest(t, base, mirror, "--via", room)
	if first.Added == 0 || len(first.Skipped) != 0 {
		t.Fatalf("%+v", first)
	}
	wantMirror(t, room, mirror, file, src, base)
	again := pullBest(t, base, mirror, "--via", room)
	if again.Requests != 1 || again.Added+again.Updated+again.Deleted != 0 {
		t.Errorf("nothing changed: %+v", again)
	}
}
