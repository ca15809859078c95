package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/s3server"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/internal/verify"
)

// A site is served from a bucket, also after restarts and while the bucket is down. Publication
// waits then. Verify reads the bucket, and another store is refused. No message has the secret.
func TestRealBucket(t *testing.T) {
	testkit.Real(t, s3server.Program)
	server, err := s3server.New(t.Context(), os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	bucket, err := server.Create(t.Context(), "documents", "site")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", s3server.Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3server.Secret)
	folder, dir := copySite(t, "handbook"), t.TempDir()
	config := filepath.Join(dir, "millrace.yaml")
	write(t, config, "source: "+folder+"\nstore: "+filepath.Join(dir, "pages.db")+"\nartifacts: "+bucket+"\n")
	start := func() *served {
		t.Helper()
		s := serve(t, "--config", config, "--llms-full", "--base-url", "https://handbook.example/")
		s.url = "http://" + listening.FindStringSubmatch(s.out.String())[1] + "/"
		return s
	}
	has := func(s *served, want string) {
		t.Helper()
		eventually(t, "the documents have "+want, func() bool {
			code, _, text := get(t, s.url+"llms-full.txt")
			return code == 200 && strings.Contains(text, want)
		})
	}
	verified := func() verify.Report {
		t.Helper()
		var r verify.Report
		_, out, errs := command(t, nil, "verify", "--json", filepath.Join(dir, "pages.db"), "--artifacts", bucket)
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v: %s%s", err, out, errs)
		}
		return r
	}
	s := start()
	has(s, "four metres")
	edit(t, folder, "four metres", "five metres")
	has(s, "five metres")
	if _, err := os.Stat(filepath.Join(dir, "pages.db-files")); err == nil {
		t.Error("the folder of artifacts exists, too")
	}
	// While the server is down, nothing is published and everything is served, also after a restart.
	server.Stop()
	edit(t, folder, "five metres", "six metres")
	eventually(t, "the log says that publication waits", func() bool {
		return strings.Contains(s.out.String(), "level=ERROR") && strings.Contains(s.out.String(), "code=bucket-down")
	})
	has(s, "five metres")
	if code, _, text := get(t, s.url+"readyz"); code != 200 {
		t.Errorf("readyz: %d %s", code, text)
	}
	s.ended(t)
	again := start()
	has(again, "five metres")
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	has(again, "six metres")
	again.ended(t)
	// A start without the cache reads the bucket.
	if err := os.RemoveAll(filepath.Join(dir, "pages.db-cache")); err != nil {
		t.Fatal(err)
	}
	if r := verified(); r.Damaged != 0 || r.Artifacts == 0 {
		t.Errorf("verify: %+v", r)
	}
	last := start()
	has(last, "six metres")
	last.ended(t)
	code, _, errs := command(t, nil, "serve", "--listen", "127.0.0.1:0", folder, "--store", filepath.Join(dir, "other.db"), "--artifacts", bucket)
	if code == 0 || !strings.Contains(errs, "owner") {
		t.Errorf("another store: exit %d: %s", code, errs)
	}
	for _, log := range []string{s.out.String(), again.out.String(), last.out.String(), errs} {
		if strings.Contains(log, s3server.Secret) {
			t.Errorf("the secret is in a log: %s", log)
		}
	}
}
