//go:build unix

package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/pgcluster"
	"github.com/millrace/millrace/internal/testkit"
)

// startCluster starts a PostgreSQL server. See [pgcluster.New].
func startCluster(t *testing.T, settings ...string) *pgcluster.Cluster {
	t.Helper()
	testkit.Real(t, pgcluster.Programs...)
	c, err := pgcluster.New(t.Context(), os.TempDir(), settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// startDatabase starts a PostgreSQL server with a database.
func startDatabase(t *testing.T, name string) (c *pgcluster.Cluster, dsn string) {
	t.Helper()
	c = startCluster(t)
	dsn, err := c.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return c, dsn
}

// Every command accepts a database as its store, and never shows the password.
func TestRealPostgres(t *testing.T) {
	c := startCluster(t, "fsync=off")
	const password = "hush-hush"
	for _, q := range []string{"CREATE ROLE miller LOGIN PASSWORD '" + password + "'", "CREATE DATABASE site OWNER miller", "CREATE DATABASE mirror OWNER miller", "CREATE DATABASE empty OWNER miller"} {
		if err := c.Exec(t.Context(), "postgres", q); err != nil {
			t.Fatal(err)
		}
	}
	dsn := func(database string) string {
		u, err := url.Parse(c.URL(database))
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword("miller", password)
		return u.String()
	}
	env := map[string]string{"HOME": t.TempDir()}
	site, mirror := dsn("site"), dsn("mirror")
	run := func(want int, phrase string, args ...string) string {
		t.Helper()
		code, out, errs := command(t, env, args...)
		if code != want || !strings.Contains(out+errs, phrase) || strings.Contains(out+errs, password) {
			t.Errorf("%q: exit %d: %s%s", args, code, out, errs)
		}
		return out
	}
	folder := copySite(t, "handbook")
	s := serve(t, folder, "--store", site)
	for _, path := range []string{"llm-pages.json", "about/llm.json", "readyz"} {
		if code, _, text := get(t, s.url+path); code != 200 {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	run(0, "mill_", "keys", "add", "reader", "--store", site)
	run(0, "reader", "keys", "list", "--store", site)
	run(0, "about", "search", "about", "--store", site)
	run(0, "", "report", "--store", site)
	run(0, `"pages": 21`, "export", "--store", site, "--format", "jsonl", "--json", "--out", filepath.Join(t.TempDir(), "pages.jsonl"))
	run(0, "", "mcp", "--store", site)
	run(0, "", "pull", s.url, "--allow-private", "--store", mirror, "--json")
	run(0, "about", "search", "about", "--store", mirror)
	run(0, "", "build", copySite(t, "handbook"), "--store", site, "--out", filepath.Join(t.TempDir(), "out"), "--base-url", "https://example.com/", "--json")
	if m := serve(t, mirror, "--rehost"); m.stop() != 0 || strings.Contains(m.out.String(), password) {
		t.Errorf("serve of a mirror: %s", m.out.String())
	}
	for _, args := range [][]string{{"search", "about"}, {"keys", "list"}, {"export", "--format", "jsonl"}, {"mcp"}} {
		run(1, "not found", append(args, "--store", dsn("empty"))...)
	}
	run(1, "does not exist", "search", "about", "--store", dsn("nowhere"))
	if code, _, _ := get(t, s.url+"about/llm.json"); code != 200 { // the edition at the start may be replaced
		t.Errorf("about/llm.json: %d", code)
	}
	c.Kill()
	for path, want := range map[string]int{"llm-pages.json": 200, "about/llm.json": 200, "readyz": 200, "glossary/llm.json": 503} {
		if code, _, text := get(t, s.url+path); code != want {
			t.Errorf("%s without a server: %d %s", path, code, text)
		}
	}
	write(t, filepath.Join(folder, "new.html"), "<!doctype html><title>New</title><main><h1>New</h1><p>The server is there again, and so is this page.</p></main>")
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new page is published", func() bool {
		code, _, _ := get(t, s.url+"new.html/llm.json")
		return code == 200
	})
	if s.stop() != 0 || strings.Contains(s.out.String(), password) {
		t.Errorf("serve: %s", s.out.String())
	}
	if left, _ := filepath.Glob("postgres:*"); left != nil {
		t.Errorf("files %v", left)
	}
}
