package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A pull never writes to the store that serve chooses for the same site: it would delete
// published pages.
func TestMirrorIsNotStoreOfServe(t *testing.T) {
	t.Parallel()
	site := serve(t, copySite(t, "handbook"), "--store", filepath.Join(t.TempDir(), "s.db")).url
	state := t.TempDir()
	env := map[string]string{"XDG_STATE_HOME": state}
	if code, _, errs := command(t, env, "pull", site, "--allow-private"); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	files, err := os.ReadDir(filepath.Join(state, "millrace"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	p := newProcess(environment(env), nil, t.Output(), t.Output())
	p.start(&commonFlags{LogLevel: "info"})
	published, err := p.storePath(site)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), filepath.Base(published)) {
			t.Errorf("pull wrote %s, the store of serve", f.Name())
		}
	}
}
