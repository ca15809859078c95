package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/s3server"
	"github.com/millrace/millrace/internal/testkit"
)

// A site is served from a bucket, even after restarts and while the bucket is down. Meanwhile,
// publication waits. verify reads the bucket, and a second store for the same bucket is refused.
// No message contains the secret.
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
	s := start()
	has(s, "four metres")
	edit(t, folder, "four metres", "five metres")
	has(s, "five metres")
	if _, err := os.Stat(filepath.Join(dir, "pages.db-files")); err == nil {
		t.Error("the folder of artifacts exists, too")
	}
	// While the server is down, nothing is published and everything is served, even after a
	// restart.
	server.Stop()
	edit(t, folder, "five metres", "six meters")
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
	has(again, "six meters")
	again.ended(t)
	// A start without the cache reads the bucket.
	if err := os.RemoveAll(filepath.Join(dir, "pages.db-cache")); err != nil {
		t.Fatal(err)
	}
	if r := verified(t, exitGood, filepath.Join(dir, "pages.db"), "--artifacts", bucket); r.Damaged != 0 || r.Artifacts == 0 {
		t.Errorf("verify: %+v", r)
	}
	last := start()
	has(last, "six meters")
	last.ended(t)
	code, _, errs := command(t, nil, "serve", "--listen", "127.0.0.1:0", folder, "--store", filepath.Join(dir, "other.db"), "--artifacts", bucket)
	if code == 0 || !strings.Contains(errs, "owner") {
		t.Errorf("another store: exit %d: %s", code, errs)
	}
	for _, log := range []string{s.out.String(), again.out.String(), last.out.String(), errs} {
		if strings.Contains(log, s3server.Secret) {
			t.Errorf("a log contains the secret: %s", log)
		}
	}
}

// Whenever the server or the bucket is killed during publication, the published edition has all of
// its artifacts.
func TestRealBucketKills(t *testing.T) {
	testkit.Real(t, s3server.Program)
	server, err := s3server.New(t.Context(), os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	bucket, err := server.Create(t.Context(), "documents", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", s3server.Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3server.Secret)
	folder, store := copySite(t, "handbook"), filepath.Join(t.TempDir(), "pages.db")
	args := []string{"serve", folder, "--listen", "127.0.0.1:0", "--base-url", "https://handbook.example/", "--store", store, "--artifacts", bucket, "--llms-full"}
	text := "four metres"
	rng := rand.New(rand.NewPCG(46, 2))
	for round := range testkit.Size(3, 8, 200) {
		var log buffer
		c := asProcess(t.Context(), t, args...)
		c.Env = append(c.Env, "AWS_ACCESS_KEY_ID="+s3server.Key, "AWS_SECRET_ACCESS_KEY="+s3server.Secret)
		c.Stderr = &log
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is ready", func() bool { return readyLine.MatchString(log.String()) })
		next := fmt.Sprint(round, " meters")
		edit(t, folder, text, next)
		text = next
		<-time.After(time.Duration(rng.IntN(2500)) * time.Millisecond)
		if round%3 == 2 {
			server.Stop()
			<-time.After(time.Duration(rng.IntN(500)) * time.Millisecond)
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // killed
		if round%3 == 2 {
			if err := server.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if r := verified(t, exitGood, store, "--artifacts", bucket); r.Damaged != 0 || r.Artifacts == 0 {
			t.Errorf("round %d: %+v", round, r)
		}
	}
	s := serve(t, append(args[1:2], args[4:]...)...)
	eventually(t, "the last edit is published", func() bool {
		_, _, got := get(t, "http://"+listening.FindStringSubmatch(s.out.String())[1]+"/llms-full.txt")
		return strings.Contains(got, text)
	})
}
