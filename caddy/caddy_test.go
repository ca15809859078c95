package caddy_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/millrace/millrace/caddy"
	"github.com/millrace/millrace/internal/testkit"
)

// TestMain keeps the data of Caddy in a temporary folder.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "millrace-caddy-")
	if err == nil {
		err = os.Setenv("XDG_DATA_HOME", dir)
	}
	if err == nil {
		err = os.Setenv("XDG_CONFIG_HOME", dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

const globals = "{\n\tadmin off\n\tpersist_config off\n\tskip_install_trust\n\tlog {\n\t\tlevel ERROR\n\t}\n\tmetrics\n\tservers {\n\t\ttrusted_proxies static 127.0.0.1/32 ::1/128\n\t}\n}\n"

// load runs a Caddyfile in this process, and replaces the previous one.
func load(t testing.TB, caddyfile string) error {
	t.Helper()
	b, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(globals+caddyfile), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return err
	}
	return caddy.Load(b, true)
}

// run runs a Caddyfile until the end of the test.
func run(t testing.TB, caddyfile string) {
	t.Helper()
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := load(t, caddyfile); err != nil {
		t.Fatal(err)
	}
}

// folder returns a folder with HTML pages by their paths.
func folder(t testing.TB, pages map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range pages {
		file := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		page := fmt.Sprintf("<!doctype html><html lang=en><head><title>About %s</title></head><body><main><h1>About %[1]s</h1><p>%s</p>", path, text)
		for _, to := range slices.Sorted(maps.Keys(pages)) {
			page += fmt.Sprintf("<a href=\"/%s\">%[1]s</a> ", to)
		}
		page += "</main></body></html>\n"
		if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// mill returns the pages of a small site.
func mill() map[string]string {
	pages := map[string]string{"index.html": "A mill with three wheels.", "office/rent.html": "The rent is due in May."}
	for i := range 8 {
		pages[fmt.Sprintf("wheels/%d.html", i)] = fmt.Sprintf("Wheel %d is of oak, and turns in the race of the river. ", i) + strings.Repeat("It has blades of elm. ", 40)
	}
	return pages
}

// get sends a request. Header fields are pairs.
func get(t testing.TB, url string, fields ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	resp, err := (&http.Client{Transport: &http.Transport{
		DisableCompression: true, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // a CA of this test
	}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// eventually waits until a document contains one text and does not contain another.
func eventually(t testing.TB, url, text, without string) {
	t.Helper()
	var resp *http.Response
	var body string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if resp, body = get(t, url); resp.StatusCode == http.StatusOK && strings.Contains(body, text) && (without == "" || !strings.Contains(body, without)) {
			return
		}
	}
	t.Fatalf("%s: %d, want %q and not %q:\n%.500s", url, resp.StatusCode, text, without, body)
}

// Three lines publish a folder: documents, Markdown, fields and elements.
func TestFileServer(t *testing.T) {
	dir, port := folder(t, mill()), testkit.FreePort(t)
	run(t, "http://localhost:"+port+" {\n\tmillrace\n\troot * "+dir+"\n\tfile_server\n}\n")
	base := "http://localhost:" + port
	eventually(t, base+"/llms.txt", base+"/wheels/3", "")
	resp, body := get(t, base+"/wheels/3.html", "Accept", "text/markdown")
	if resp.Header.Get("Content-Type") != "text/markdown; charset=utf-8" || !strings.Contains(body, "Wheel 3 is of oak") {
		t.Errorf("%v\n%s", resp.Header, body)
	}
	resp, body = get(t, base+"/wheels/3.html")
	if len(resp.Header["Link"]) == 0 || !strings.Contains(body, "<link rel=") || !strings.HasSuffix(body, "</html>\n") {
		t.Errorf("%v\n%s", resp.Header, body)
	}
	again, _ := get(t, base+"/wheels/3.html", "If-None-Match", resp.Header.Get("ETag"))
	if again.StatusCode != http.StatusNotModified {
		t.Errorf("page with its ETag %s: %d", resp.Header.Get("ETag"), again.StatusCode)
	}
	if resp, body := get(t, base+"/none"); resp.StatusCode != http.StatusNotFound || body != "" {
		t.Errorf("absent page: %d %q", resp.StatusCode, body)
	}
	// A new page is published when its file is written.
	if err := os.WriteFile(filepath.Join(dir, "race.html"), []byte("<!doctype html><title>The race</title><main><h1>The race</h1><p>It is deep.</p></main>"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, base+"/llms.txt", "/race.html", "")
}
