package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
)

// TestMain lets the test binary act as the command, so that tests can kill a real
// process.
func TestMain(m *testing.M) {
	if os.Getenv("MILLRACE_TEST_COMMAND") == "1" {
		version = os.Getenv("MILLRACE_TEST_VERSION")
		main()
	}
	// Most tests spend their time waiting.
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		_ = flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0))))
	}
	testkit.Main(m)
}

// buffer is a bytes.Buffer for concurrent use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// environment returns a lookup function for a map.
func environment(env map[string]string) func(string) (string, bool) {
	return func(k string) (string, bool) { v, ok := env[k]; return v, ok }
}

// command runs a command to its end.
func command(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	if env == nil {
		env = map[string]string{"HOME": t.TempDir()}
	}
	var out, errs buffer
	code = run(t.Context(), args, environment(env), strings.NewReader(""), &out, &errs)
	checkReport(t, args, out.String())
	return code, out.String(), errs.String()
}

// failure runs a command with --json that must fail without a report. It returns the
// exit status, the code of the error, and the whole output.
func failure(t *testing.T, env map[string]string, args ...string) (exit int, code, output string) {
	t.Helper()
	exit, out, errs := command(t, env, append(args[:len(args):len(args)], "--json")...)
	var r struct{ Error, Code string }
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Error == "" {
		t.Errorf("%q: %v: %s", args, err, out)
	}
	return exit, r.Code, out + errs
}

// get fetches a URL.
func get(t *testing.T, url string, header ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(body)
}

// eventually waits until ok returns true. The timeout covers an edition of a large site
// on a busy machine.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("timeout: %s", what)
}

// copySite copies a test site, for tests that change it.
func copySite(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "site")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "testdata", "sites", name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestUsage(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, bad, "listen: 127.0.0.1:0\nbase_url: https://example.com\n")
	twice := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, twice, "listen: a\nlisten: b\n")
	typed := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, typed, "authors: name\nrate: many\n")
	broken := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, broken, "listen: [a\n")
	listed := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, listed, "authors: name\nlisten: [a, b]\n")
	nested := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, nested, "exclude:\n  - /a\n  - {b: c}\n")
	documents := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, documents, "store: a\n---\n\"store\": b\n")
	quoted := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, quoted, "\"json\": true\n")
	site := copySite(t, "handbook")
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	missing := filepath.Join(t.TempDir(), "none")
	for _, tt := range []struct {
		name string
		env  map[string]string
		args []string
		exit int
		code string // of the JSON error
		part string // expected in the message
	}{
		{"unknown command", nil, []string{"sevre"}, 2, "usage", "sevre"},
		{"unknown flag", nil, []string{"serve", site, "--listn", "x"}, 2, "usage/listn", ""},
		{"bad choice", nil, []string{"serve", site, "--authors", "some"}, 2, "usage/authors", ""},
		{"no source", nil, []string{"serve"}, 2, "usage", "source"},
		{"no such folder", nil, []string{"serve", filepath.Join(site, "nowhere")}, 1, "file-not-found", "nowhere"},
		{"a live site as a folder", nil, []string{"serve", "https://example.com/", "--as", "folder"}, 2, "usage/as", ""},
		{"empty folder", nil, []string{"serve", t.TempDir(), "--listen", "127.0.0.1:0"}, 1, "no-page", ""},
		{"not a URL", nil, []string{"pull", "example.com"}, 2, "bad-url", "example.com"},
		{"a URL with a password", nil, []string{"pull", "http://a:b@example.com/"}, 2, "url-credentials", ""},
		{"unknown protocol", nil, []string{"pull", "http://example.com/", "--via", "tct-02"}, 2, "usage", "tct-01"},
		{"unknown purpose", nil, []string{"pull", "http://example.com/", "--purpose", "fun"}, 2, "usage/purpose", "ai-input"},
		{"no workers", nil, []string{"pull", "http://127.0.0.1:1/", "--workers", "0"}, 2, "usage/workers", ""},
		{"no home", map[string]string{}, []string{"serve", site, "--listen", "127.0.0.1:0"}, 2, "usage/store", ""},
		{"a base URL with a query", nil, []string{"serve", site, "--listen", "127.0.0.1:0", "--base-url", "https://example.com/?x"}, 2, "usage/base-url", ""},
		{"unknown key", nil, []string{"serve", site, "--config", bad}, 2, "usage", bad + ":2:1"},
		{"key set twice", nil, []string{"version", "--config", twice}, 2, "usage", twice + ":2:1"},
		{"bad value in the file", nil, []string{"serve", site, "--config", typed}, 2, "usage/rate", typed + ":2:1"},
		{"a list for a value", nil, []string{"version", "--config", listed}, 2, "usage", listed + ":2:1"},
		{"keys in a list", nil, []string{"version", "--config", nested}, 2, "usage", nested + ":1:1"},
		{"key set in two documents", nil, []string{"version", "--config", documents}, 2, "usage", documents + ":3:1"},
		{"no address", nil, []string{"serve", site, "--listen", ""}, 2, "usage/listen", ""},
		{"a path that hides nothing", nil, []string{"serve", site, "--exclude", "/a,drafts"}, 2, "usage/exclude", "drafts"},
		{"an unknown kind", nil, []string{"serve", site, "--hide-kinds", "forums"}, 2, "usage/hide-kinds", "forum"},
		{"a page for a source", nil, []string{"serve", filepath.Join(site, "index.html")}, 2, "usage", site},
		{"a store in the published folder", nil, []string{"serve", site, "--listen", "127.0.0.1:0", "--store", filepath.Join(site, "css", "s.db")}, 2, "usage/store", ""},
		{"no home folder", map[string]string{"HOME": file}, []string{"serve", site, "--listen", "127.0.0.1:0"}, 1, "internal", file},
		{"broken YAML", nil, []string{"version", "--config", broken}, 2, "usage", broken},
		{"no such configuration", nil, []string{"version", "--config", bad + "x"}, 2, "usage", bad + "x"},
		{"bad value in the environment", map[string]string{"MILLRACE_RATE": "many"}, []string{"serve", site}, 2, "usage/rate", "MILLRACE_RATE"},
		{"a private address", nil, []string{"pull", "http://127.0.0.1:1/", "--store", missing + ".db"}, 1, "address-loopback", ""},
		{"check of a private address", nil, []string{"check", "http://127.0.0.1:1/"}, 1, "address-loopback", ""},
		{"no server", nil, []string{"check", "http://127.0.0.1:1/", "--allow-private"}, 1, "connection-refused", ""},
		{"a value that is not one of several", nil, []string{"sites", "add", "https://x.example/", "--store", missing, "--priority", "x"}, 2, "usage/priority", `must be one of "low","normal","high" but got "x"`},
		{"no such file of SCP", nil, []string{"scp", "verify", missing}, 1, "file-not-found", ""},
		{"no such page", nil, []string{"extract", missing}, 1, "file-not-found", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			exit, code, out := failure(t, tt.env, tt.args...)
			if exit != tt.exit || code != tt.code || !strings.Contains(out, tt.part) {
				t.Errorf("exit %d %s, want %d %s, with %q in:\n%s", exit, code, tt.exit, tt.code, tt.part, out)
			}
			if strings.Contains(out, "goroutine ") {
				t.Errorf("stack trace in the output:\n%s", out)
			}
		})
	}
	if code, out, errs := command(t, nil, "version", "--config", quoted); code != 0 || !strings.Contains(out, `"version"`) {
		t.Errorf("a key in quotes: exit %d:\n%s%s", code, out, errs)
	}
	if code, out, errs := command(t, nil, "help", "serve", "--config", bad); code != 0 || !strings.Contains(out, "Usage:") {
		t.Errorf("help with a bad file: exit %d:\n%s%s", code, out, errs)
	}
}

// The log line of an error includes the code of the error.
func TestLoggedCode(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: withCode})).Info("x", "err", fmt.Errorf("y: %w", millrace.ErrConflict), "n", 1)
	if !strings.Contains(log.String(), " code=conflict n=1") {
		t.Error(log.String())
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The command line overrides the environment, which overrides the file.
func TestConfigOrder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.yaml")
	write(t, file, "json: true\nquiet: true\n")
	if code, out, errs := command(t, nil, "version", "--config", file); code != 0 || !strings.HasPrefix(out, "{") {
		t.Errorf("exit %d: the file was ignored: %s%s", code, out, errs)
	}
	env := map[string]string{"MILLRACE_JSON": "false", "MILLRACE_CONFIG": file}
	if _, out, _ := command(t, env, "version"); strings.HasPrefix(out, "{") {
		t.Errorf("the file overrode the environment: %s", out)
	}
	env["MILLRACE_JSON"] = ""
	if _, out, _ := command(t, env, "version"); !strings.HasPrefix(out, "{") {
		t.Errorf("an empty variable counts as set: %s", out)
	}
	env["MILLRACE_JSON"] = "false"
	if _, out, _ := command(t, env, "version", "--json"); !strings.HasPrefix(out, "{") {
		t.Errorf("the environment overrode the command line: %s", out)
	}
}

func TestVersionAndHelp(t *testing.T) {
	t.Parallel()
	code, out, _ := command(t, nil, "version", "--json")
	var v map[string]string
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 || v["version"] == "" || v["go"] == "" {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
	for _, args := range [][]string{nil, {"help"}, {"--help"}, {"help", "serve"}, {"pull", "--help"}} {
		code, out, errs := command(t, nil, args...)
		if code != 0 || !strings.Contains(out, "Usage: millrace") {
			t.Errorf("%v: exit %d: %s%s", args, code, out, errs)
		}
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if exit, code, out := failure(t, nil, "serve", copySite(t, "handbook"), "--listen", ln.Addr().String()); exit != 1 || code != "address-in-use" {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
}

// Help shows the common flags, grouped by task; with --all it shows every flag.
func TestHelpOfServe(t *testing.T) {
	t.Parallel()
	flag := regexp.MustCompile(`(?m)^ +(-\w, )?--`)
	_, short, _ := command(t, nil, "help", "serve")
	_, all, _ := command(t, nil, "help", "serve", "--all")
	few, many := len(flag.FindAllString(short, -1)), len(flag.FindAllString(all, -1))
	if few > 45 || many < few+20 || !strings.Contains(short, "\nServer\n") || strings.Contains(short, "--files-url") || !strings.Contains(all, "--files-url") {
		t.Errorf("%d flags, with --all %d:\n%s", few, many, short)
	}
}
