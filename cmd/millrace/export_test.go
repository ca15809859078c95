package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A folder that holds documents of the protocol already, from an earlier
// export, say: what is published now is what counts.
func TestOldExport(t *testing.T) {
	dir := copySite(t, "handbook")
	for _, name := range []string{"llm-pages.json", "about/llm.json"} {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), `{"version":1,"items":[]}`)
	}
	s := serve(t, dir)
	if code, out, errs := command(t, nil, "check", s.url, "--allow-private"); code != 0 || !strings.Contains(out, "tct-01  MUST") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if r := pull(t, s.url, filepath.Join(t.TempDir(), "m.db")); r.Added < 10 || len(r.Notes) > 0 || len(r.Skipped) > 0 {
		t.Errorf("%+v", r)
	}
}
