package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	artifactmemory "github.com/millrace/millrace/artifact/memory"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/config"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/origin"
	"github.com/millrace/millrace/origin/folder"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// keys runs a keys command on a store and fails the test if the command fails.
func keys(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := command(t, nil, append([]string{"keys"}, args...)...)
	if code != 0 {
		t.Fatalf("keys %s: exit %d: %s", args, code, errs)
	}
	return strings.TrimSpace(out)
}

func TestServeRequiresKey(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "site.db")
	read := keys(t, "add", "reader", "--store", db)
	update := keys(t, "add", "cms", "--store", db, "--scope", "update", "--expires", "90d")
	s := serve(t, copySite(t, "handbook"), "--store", db, "--require-key")
	status := func(path string, header ...string) (int, http.Header) {
		t.Helper()
		code, h, _ := get(t, strings.TrimSuffix(s.url, "/")+path, header...)
		return code, h
	}
	for path, want := range map[string]int{
		"/llm-pages.json": 401, "/about/llm.json": 401, "/about/": 200, "/": 200, "/readyz": 200,
		"/sitemap.xml":                401, // SCP is off
		"/llm-pages.json?key=" + read: 400,
	} {
		if code, h := status(path); code != want || code == 401 && !strings.HasPrefix(h.Get("Www-Authenticate"), `Bearer realm=`) {
			t.Errorf("%s: %d, want %d: %v", path, code, want, h)
		}
	}
	for _, path := range []string{"/llm-pages.json", "/about/llm.json"} {
		code, h := status(path, "Authorization", "Bearer "+read)
		if code != 200 || !strings.Contains(h.Get("Cache-Control"), "private") || !strings.Contains(h.Get("Vary"), "Authorization") || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %v", path, code, h)
		}
		if code, _ := status(path, "Authorization", "Bearer "+update); code != 403 {
			t.Errorf("%s without the scope: %d", path, code)
		}
	}
	keys(t, "revoke", "reader", "--store", db)
	eventually(t, "the key is revoked while the server runs", func() bool {
		code, h := status("/llm-pages.json", "Authorization", "Bearer "+read)
		return code == 401 && strings.Contains(h.Get("Www-Authenticate"), "revoked")
	})
	if strings.Contains(s.out.String(), read[5:20]) || strings.Contains(s.out.String(), update[5:20]) {
		t.Error("the log contains a key")
	}
	b, err := os.ReadFile(db)
	if err != nil || strings.Contains(string(b), read[5:20]) {
		t.Errorf("the store contains the key (%v)", err)
	}
}

func TestServeOpens(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "site.db")
	s := serve(t, copySite(t, "handbook"), "--store", db, "--require-key", "--public-protocols", "scp")
	for path, want := range map[string]int{"sitemap.xml": 200, "llm-pages.json": 401, "about/llm.json": 401} {
		if code, h, _ := get(t, s.url+path); code != want || code == 200 && strings.Contains(h.Get("Cache-Control"), "private") {
			t.Errorf("%s: %d %v", path, code, h)
		}
	}
	if len(warnings(s.out.String())) != 1 {
		t.Error(s.out.String())
	}
	if s.stop() != 0 {
		t.Fatal(s.out.String())
	}
	// Restart the same store without access restrictions.
	s = serve(t, copySite(t, "handbook"), "--store", db, "--rate", "1")
	codes := map[int]int{}
	for range 10 {
		code, h, _ := get(t, s.url+"about/llm.json")
		if codes[code]++; code == 429 && h.Get("Retry-After") != "1" {
			t.Errorf("%v", h)
		}
	}
	if codes[200] < 2 || codes[429] < 4 || codes[200]+codes[429] != 10 {
		t.Errorf("%v", codes)
	}
}

func TestKeysCommands(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	env := map[string]string{"HOME": home}
	dir := copySite(t, "handbook")
	run := func(args ...string) (int, string, string) {
		return command(t, env, append([]string{"keys"}, args...)...)
	}
	refused := func(args ...string) (int, string, string) {
		return failure(t, env, append([]string{"keys"}, args...)...)
	}
	if exit, code, out := refused("list", dir); exit != 1 || code != "not-found" {
		t.Errorf("without a store: %d %s: %s", exit, code, out)
	}
	code, out, errs := run("add", "Ann's agent", dir, "--json", "--scope", "read,update", "--expires", "2h")
	var made access.KeyReport
	if err := json.Unmarshal([]byte(out), &made); code != 0 || err != nil || made.Name != "Ann's agent" || len(made.Scopes) != 2 || !made.Valid || made.Expires == nil {
		t.Fatalf("%d %s %s %v", code, out, errs, err)
	}
	if _, err := store.ReadKey(made.Key); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		args []string
		exit int
		code string
	}{
		{[]string{"add", "Ann's agent", dir}, 1, "conflict"},
		{[]string{"add", "b", dir, "--scope", "write"}, 2, "usage"},
		{[]string{"add", "b", dir, "--expires", "soon"}, 2, "usage/expires"},
		{[]string{"add", "b", dir, "--expires", "-1d"}, 2, "usage/expires"},
		{[]string{"add", "b", dir, "--expires", "2020-01-01"}, 2, "usage/expires"},
		{[]string{"add", "", dir}, 2, "usage"},
		{[]string{"add", "b"}, 2, "usage/store"},
		{[]string{"add", "b", filepath.Join(dir, "nothing")}, 1, "file-not-found"},
		{[]string{"revoke", "b", dir}, 1, "not-found"},
		{[]string{"list"}, 2, "usage/store"},
	} {
		if exit, code, out := refused(c.args...); exit != c.exit || code != c.code {
			t.Errorf("%q: %d %s, want %s: %s", c.args, exit, code, c.code, out)
		}
	}
	if exit, code, out := refused("revoke", made.Key, dir); exit != 2 || code != "usage" || strings.Contains(out, made.Key[10:]) {
		t.Errorf("a key in place of its name: %d %s: %s", exit, code, out)
	}
	if code, out, _ := run("revoke", "Ann's agent", dir); code != 0 || !strings.Contains(out, "revoked") {
		t.Errorf("%d %s", code, out)
	}
	_, out, _ = run("list", dir)
	if !strings.Contains(out, "Ann's agent  read,update") || !strings.Contains(out, "revoked 20") || strings.Contains(out, "mill_") {
		t.Error(out)
	}
	_, out, _ = run("list", dir, "--json")
	var all []access.KeyReport
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 1 || all[0].Key != "" || all[0].Valid || all[0].Revoked == nil {
		t.Errorf("%s %v", out, err)
	}
	// The server of the same source uses the same store.
	stores, err := filepath.Glob(filepath.Join(home, ".local", "state", "millrace", "*.db"))
	if err != nil || len(stores) != 1 {
		t.Fatal(stores, err)
	}
}

func TestAccessFlagsInvalid(t *testing.T) {
	t.Parallel()
	dir := copySite(t, "handbook")
	for _, args := range [][]string{
		{"--public-protocols", "scp"},
		{"--public-protocols", ""},
		{"--require-key", "--public-protocols", ""},
		{"--require-key", "--public-protocols="},
		{"--require-key", "--public-protocols", "scp,"},
		{"--require-key", "--public-protocols", "scp", "--public-protocols", ""},
		{"--require-key", "--public-protocols", "--rate", "1"},
		{"--rate", "-1"},
		{"--rate", "NaN"},
		{"--rate", "+Inf"},
		{"--rate", "0.0001"},
		{"--proxies", "0.0.0.0/0"},
		{"--proxies", "localhost"},
		{"--proxies", "::ffff:10.0.0.0/104"},
		{"--proxies", "fe80::1%eth0"},
	} {
		if code, _, errs := command(t, nil, append([]string{"serve", dir, "--listen", "127.0.0.1:0"}, args...)...); code != 2 {
			t.Errorf("%q: %d %s", args, code, errs)
		}
	}
}

// The flag, the environment and the configuration use the same names of protocols.
func TestPublicProtocols(t *testing.T) {
	t.Parallel()
	dir := copySite(t, "handbook")
	conf := func(yaml string) string {
		file := filepath.Join(t.TempDir(), "millrace.yaml")
		write(t, file, "require-key: true\n"+yaml)
		return file
	}
	for _, c := range []struct {
		conf string
		env  string
		args []string
		part string // expected in the message
	}{
		{"", "", []string{"--public-protocols", "scp,tct-01", "--public-protocols", "x1"}, "x1"},
		{"", "scp,x2", nil, "x2"},
		{"public-protocols: scp,x3\n", "", nil, "x3"},
		{"public-protocols: [scp, x4]\n", "", nil, "x4"},
		{"public-protocols: x5\n", "scp", []string{"--public-protocols", "x6"}, "x6"},
		{"public-protocols: \"\"\n", "", nil, `""`},
		{"public-protocols: [scp, \"\"]\n", "", nil, `""`},
	} {
		args := append([]string{"serve", dir, "--listen", "127.0.0.1:0", "--config", conf(c.conf)}, c.args...)
		exit, code, out := failure(t, map[string]string{"MILLRACE_PUBLIC_PROTOCOLS": c.env}, args...)
		if exit != exitUsage || code != "usage/public-protocols" || !strings.Contains(out, c.part) {
			t.Errorf("%q %q %q: %d %s: %s", c.conf, c.env, c.args, exit, code, out)
		}
	}
}

func TestParseExpiry(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 5, 0, 0, 500, time.UTC)
	for s, want := range map[string]string{
		"90d": "2027-02-20T05:00:00Z", "12h": "2026-11-22T17:00:00Z", "1h30m": "2026-11-22T06:30:00Z", "2027-01-31": "2027-01-31T00:00:00Z",
	} {
		if got, err := config.ParseExpiry(s, now); err != nil || got.Format(time.RFC3339Nano) != want {
			t.Errorf("%s: %s %v", s, got, err)
		}
	}
	for _, s := range []string{"0d", "-1d", "d", "1.5d", "99999999d", "0s", "-1h", "1", "2026-11-22", "2026-02-30", "31.01.2027", "never"} {
		if got, err := config.ParseExpiry(s, now); err == nil {
			t.Errorf("%s: %s", s, got)
		}
	}
}

// update refreshes the named pages and no others.
func TestUpdate(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), copySite(t, "handbook")
	p := &process{stderr: terminal.New(&buffer{}, environment(nil)), commonFlags: &commonFlags{Quiet: true}, log: slog.New(slog.DiscardHandler)}
	const base = "https://www.example.com/"
	o := p.newSource("folder", base, ingest.Rules{})
	o.Name, o.From = "folder", "folder"
	way := folder.Origin()
	f, err := way.Open(dir, &origin.Options{Base: base})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	o.Store = memory.New(nil)
	site, err := o.Store.Site(ctx, "folder", base)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := site.Publication(ctx, store.Config{Base: base})
	if err != nil {
		t.Fatal(err)
	}
	server := edition.NewServer(edition.Source{Store: o.Store, Site: site, Publication: pub}, nil, artifactmemory.New(nil), nil)
	update := func(gone bool, urls ...string) (millrace.Counts, error) {
		return o.Update(ctx, site, server, urls, gone)
	}
	if _, err := update(false, "/about/"); !errors.Is(err, millrace.ErrUnavailable) {
		t.Errorf("a mirror: %v", err)
	}
	o.Use(way, f)
	if _, err := o.Sync(ctx, site); err != nil {
		t.Fatal(err)
	}
	about := filepath.Join(dir, "about", "index.html")
	html, err := os.ReadFile(about)
	if err != nil {
		t.Fatal(err)
	}
	write(t, about, strings.Replace(string(html), "Alderford is a mill", "Alderford was a mill", 1))
	for i, c := range []struct {
		gone bool
		urls []string
		want millrace.Counts
		err  error
	}{
		{false, []string{"/about/", "https://elsewhere.example/"}, millrace.Counts{}, millrace.ErrInvalid},
		{false, []string{"/about/", "https://www.example.com.evil.example/"}, millrace.Counts{}, millrace.ErrInvalid},
		{false, []string{"/about/", "/about/", "/nothing/"}, millrace.Counts{Updated: 1}, nil},
		{false, []string{base + "about/"}, millrace.Counts{Unchanged: 1}, nil},
		{true, []string{"/about/", "/nothing/"}, millrace.Counts{Deleted: 1, Unchanged: 1}, nil},
		{false, []string{"/about/"}, millrace.Counts{Added: 1}, nil},
		{false, nil, millrace.Counts{}, nil},
	} {
		if got, err := update(c.gone, c.urls...); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%d: %+v %v, want %+v", i, got, err, c.want)
		}
	}
	if err := os.Remove(about); err != nil {
		t.Fatal(err)
	}
	if got, err := update(false, "/about/"); err != nil || got.Deleted != 1 {
		t.Errorf("a deleted file: %+v %v", got, err)
	}
}
