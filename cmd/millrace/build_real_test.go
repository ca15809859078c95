package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/serving"
	"github.com/millrace/millrace/internal/static"
	"github.com/millrace/millrace/internal/testkit"
)

// unmet returns the rules that the host cannot meet according to a build report.
func unmet(r *serving.BuildReport) []string {
	ids := []string{}
	for _, u := range r.Host.Unmet {
		ids = append(ids, u.Rule)
	}
	return ids
}

// broken returns the MUST rules that `millrace check` finds broken.
func broken(t *testing.T, url string, wanted ...string) []string {
	t.Helper()
	return brokenIn(t, url, append(wanted, "tct-00", "scp", "openfeeder")...)
}

// brokenIn is like broken, but the site may lack all except the wanted protocols.
func brokenIn(t *testing.T, url string, wanted ...string) []string {
	t.Helper()
	_, out, errs := command(t, nil, "check", url, "--allow-private", "--json")
	var r struct {
		Protocols map[string]struct{ Found bool }
		Findings  []struct{ Rule, Level string }
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v:\n%s%s", err, out, errs)
	}
	for _, name := range wanted {
		if !r.Protocols[name].Found {
			t.Errorf("protocol %s not found:\n%s", name, out)
		}
	}
	ids := []string{}
	for _, f := range r.Findings {
		if f.Level == "MUST" && !slices.Contains(ids, f.Rule) {
			ids = append(ids, f.Rule)
		}
	}
	return ids
}

// realBuild builds a folder, serves it with a real server and its snippet, and checks and pulls
// the site.
func realBuild(t *testing.T, server, src string, options ...string) (url, out, at, file string) {
	t.Helper()
	out, file = filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "s.db")
	port := testkit.FreePort(t)
	base := "http://127.0.0.1:" + port + "/"
	r := built(t, src, out, base, "--store", file, "--host", server, "--complete")
	url, at = realSite(t, server, append(options, "--html", out, "--port", port)...)
	if d := cmp.Diff(unmet(&r), broken(t, url, "tct-01")); d != "" {
		t.Errorf("broken rules differ from the build report (-reported +found):\n%s", d)
	}
	for _, proto := range []string{"tct-00", "tct-01", "scp", "openfeeder", "arc"} {
		readBuild(t, proto, url, file, src)
	}
	if best := pullBest(t, url, filepath.Join(t.TempDir(), "best.db")); best.Via != "scp" || len(best.Notes) != 0 {
		t.Errorf("%+v", best)
	}
	if code, _, _ := get(t, url+".millrace/build.jsonl.gz"); code != 404 {
		t.Errorf("a request for the record of the build: status %d", code)
	}
	return url, out, at, file
}

func TestRealBuildNginx(t *testing.T) {
	t.Parallel()
	src := copySite(t, "handbook")
	url, out, at, file := realBuild(t, "nginx", src, "--build")

	// Until nginx reloads, it sends new bytes with the old validator.
	const document = "articles/reading-a-river/llm.json"
	_, before, _ := get(t, url+document)
	name := filepath.Join(src, "articles", "reading-a-river", "index.html")
	html, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	write(t, name, strings.Replace(string(html), "Two numbers say", "Three numbers say", 1))
	built(t, src, out, url, "--store", file, "--host", "nginx", "--complete")
	_, header, body := get(t, url+document)
	if !strings.Contains(body, "Three numbers say") || header.Get("Etag") != "" {
		t.Errorf("before the reload: %s:\n%s", header.Get("Etag"), body)
	}
	id, err := os.ReadFile(filepath.Join(at, "nginx.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(id)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the reload", func() bool {
		_, header, _ = get(t, url+document)
		return header.Get("Etag") != "" && header.Get("Etag") != before.Get("Etag")
	})
	if found := broken(t, url, "tct-01"); len(found) > 0 {
		t.Errorf("after the reload: %q", found)
	}
}

func TestRealBuildNginxManual(t *testing.T) {
	t.Parallel()
	realBuild(t, "nginx", pgdocOf(t, "index.", "tutorial", "queries", "ddl", "datatype", "indexes"), "--build")
}

func TestRealBuildCaddy(t *testing.T) { realBuild(t, "caddy", copySite(t, "handbook")) }

// A server without configuration breaks only the rules in the build report.
func TestRealBuildPlain(t *testing.T) {
	t.Parallel()
	src, out, port := copySite(t, "handbook"), filepath.Join(t.TempDir(), "out"), testkit.FreePort(t)
	r := built(t, src, out, "http://127.0.0.1:"+port+"/", "--complete")
	url, _ := realSite(t, "nginx", "--plain", "--html", out, "--port", port)
	if d := cmp.Diff(unmet(&r), broken(t, url)); d != "" {
		t.Errorf("broken rules differ from the build report (-reported +found):\n%s", d)
	}
}

// The server sends coded files unchanged, with their content coding, also for range
// requests. Other paths of the host stay unchanged too.
func TestRealBuildFixed(t *testing.T) {
	t.Parallel()
	const bytes = "(\xb5/\xfd must not be coded again, and is longer than the smallest body that a server compresses by default\n"
	site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		switch r.URL.Path {
		case "/sub/scp/all-0123.scp.zst":
			h.Set("Content-Type", "application/scp")
			h.Set("Content-Encoding", "zstd")
			h.Set("Cache-Control", "public, max-age=86400")
			h.Set("Etag", `"sha256:00ff"`)
			h.Set("Last-Modified", "Sun, 22 Nov 2026 08:00:00 GMT")
			fmt.Fprint(w, bytes)
		case "/sub/100% odd~.json":
			h.Set("Content-Type", "application/odd+json")
			h.Set("Etag", `"odd"`)
			fmt.Fprint(w, "{}")
		case "/sub/":
			fmt.Fprint(w, "<!DOCTYPE html><title>Home</title>")
		default:
			http.NotFound(w, r)
		}
	})
	for _, server := range []string{"nginx", "caddy"} {
		t.Run(server, func(t *testing.T) {
			top, port := filepath.Join(t.TempDir(), "out"), testkit.FreePort(t)
			b, err := static.Open(top, "http://127.0.0.1:"+port+"/sub/", site, &static.Options{Host: server})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			for _, it := range []static.Item{
				{Path: "/scp/all-0123.scp.zst", Protocol: "scp", Immutable: true}, {Path: "/100%25%20odd~.json", Protocol: "odd"}, {Path: "/", Name: "index.html"},
			} {
				if err := b.Add(t.Context(), it); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.Finish(t.Context()); err != nil {
				t.Fatal(err)
			}
			options := []string{"--html", top, "--port", port}
			if server == "nginx" {
				options = append(options, "--build")
			}
			url, _ := realSite(t, server, options...)
			code, h, body := get(t, url+"sub/100%25%20odd~.json")
			if code != 200 || h.Get("Content-Type") != "application/odd+json" || h.Get("Etag") != `"odd"` || body != "{}" {
				t.Errorf("an unusual name: %d %v %s", code, h, body)
			}
			url += "sub/scp/all-0123.scp.zst"
			for _, accept := range []string{"identity", "gzip, zstd"} {
				code, h, body := get(t, url, "Accept-Encoding", accept)
				got := []string{h.Get("Content-Type"), h.Get("Content-Encoding"), h.Get("Cache-Control"), h.Get("Etag"), h.Get("Last-Modified"), body}
				want := []string{"application/scp", "zstd", "public, max-age=86400", `"sha256:00ff"`, "Sun, 22 Nov 2026 08:00:00 GMT", bytes}
				if d := cmp.Diff(want, got); d != "" || code != 200 || h.Get("Content-Length") != strconv.Itoa(len(bytes)) {
					t.Errorf("%d %v (-want +got):\n%s", code, h, d)
				}
			}
			if code, _, body := get(t, url, "Range", "bytes=1-2", "Accept-Encoding", "zstd"); code != 206 || body != bytes[1:3] {
				t.Errorf("a range: %d %q", code, body)
			}
			for tag, want := range map[string]int{`"sha256:00ff"`: 206, `W/"sha256:00ff"`: 200, `"sha256:00"`: 200} {
				if code, h, _ := get(t, url, "Range", "bytes=1-2", "If-Range", tag); code != want || h.Get("Etag") != `"sha256:00ff"` || h.Get("Content-Encoding") != "zstd" {
					t.Errorf("resumed download of %s: %d %v", tag, code, h)
				}
			}
			for _, etag := range []string{`"sha256:00ff"`, `W/"sha256:00ff"`, "*"} {
				if code, h, _ := get(t, url, "If-None-Match", etag); code != 304 || h.Get("Etag") != `"sha256:00ff"` {
					t.Errorf("If-None-Match: %s: %d %v", etag, code, h)
				}
			}
			if code, _, _ := get(t, url, "If-None-Match", `"sha256:00"`); code != 200 {
				t.Errorf("a different validator: %d", code)
			}
		})
	}
}
