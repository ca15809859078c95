package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// If a command line has no SOURCE, the key source of the configuration applies.
func TestSourceKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "millrace.yaml")
	write(t, file, "source: "+copySite(t, "handbook")+"\nbase-url: https://www.example.com/\n")
	s := serve(t, "--config", file)
	if code, _, body := get(t, address(s)+"llm-pages.json"); code != http.StatusOK || !strings.Contains(body, "https://www.example.com/about/") {
		t.Errorf("%d %.300s", code, body)
	}
	if code, out, errs := command(t, nil, "build", "--config", file, "--out", filepath.Join(dir, "out")); code != 0 {
		t.Errorf("build: exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := command(t, nil, "config", "--config", file); code != 0 || !strings.Contains(out, file+":1:1") {
		t.Errorf("config: exit %d\n%s%s", code, out, errs)
	}
	write(t, file, "source: /nowhere/at/all\n")
	if exit, code, out := failure(t, nil, "config", "--config", file); exit != exitFailure || code != "file-not-found" {
		t.Errorf("config with a missing folder: exit %d %s: %s", exit, code, out)
	}
	write(t, file, "listen: 127.0.0.1:0\n")
	for _, args := range [][]string{{"serve"}, {"build", "--out", dir, "--base-url", "https://www.example.com/"}} {
		if exit, _, out := failure(t, nil, append(args, "--config", file)...); exit != exitUsage || !strings.Contains(out, "SOURCE is missing") {
			t.Errorf("%q: exit %d: %s", args, exit, out)
		}
	}
}
