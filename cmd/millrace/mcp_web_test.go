package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// tools returns the names of the tools.
func (a mcpClient) tools() (names []string) {
	a.t.Helper()
	l, err := a.ListTools(a.t.Context(), nil)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, tool := range l.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// otherSite is a site of three pages. Its robots.txt disallows one of them, and its policy forbids
// what that of another site allows.
func otherSite(t *testing.T, robots string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			_, _ = w.Write([]byte(robots))
		case "/", "/private/", "/granary":
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<!DOCTYPE html><html lang=en><title>The granary</title><main><h1>The granary</h1><p>The granary of " + r.URL.Path + " holds forty sacks of rye.</p><p><a href=/granary>More</a></p></main>"))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/"
}

// A client that starts `millrace mcp URL` gets the site, its changes, pages of other sites
// and other sites.
func TestMCPURL(t *testing.T) {
	t.Parallel()
	dir := copySite(t, "handbook")
	s := serve(t, dir, "--store", filepath.Join(t.TempDir(), "store.db"))
	child := asProcess(t.Context(), t, "mcp", s.url, "--allow-private", "--delay", "0s")
	var errs buffer
	child.Stderr = &errs
	a := connect(t, &sdk.CommandTransport{Command: child})
	eventually(t, "the site is read", func() bool {
		out, ok := a.call("search", map[string]any{"query": "overshot wheel diameter"})
		hits, _ := out["hits"].([]any)
		return ok && len(hits) > 0
	})
	a.reads("overshot wheel diameter", "overshot")
	write(t, filepath.Join(dir, "zeppelin.html"), "<!DOCTYPE html><title>Zeppelins</title><main><h1>Zeppelins</h1><p>A zeppelin passed over the mill in the summer and moored at the granary for an hour.</p></main>")
	eventually(t, "the new page is available", func() bool {
		out, ok := a.call("search", map[string]any{"query": "zeppelin"})
		return ok && strings.Contains(toJSON(t, out), "/zeppelin")
	})

	other := otherSite(t, "User-agent: *\nDisallow: /private/\n")
	page, ok := a.call("read_page", map[string]any{"url": other + "granary"})
	if markdown, _ := page["markdown"].(string); !ok || !strings.Contains(markdown, "forty sacks") || page["site"] != other {
		t.Errorf("a page of another site: %v", page)
	}
	for _, refused := range []string{other + "private/", other + "nowhere", otherSite(t, "User-agent: *\nContent-Signal: ai-input=no\nAllow: /\n"), "file:///etc/passwd"} {
		if out, ok := a.call("read_page", map[string]any{"url": refused}); ok {
			t.Errorf("the forbidden page %s was read: %v", refused, out)
		}
	}
	if out, ok := a.call("add_site", map[string]any{"url": other}); !ok || out["name"] != other || out["complete"] != true || out["pages"] != 2.0 {
		t.Errorf("add_site: %v", out)
	}
	if out, ok := a.call("search", map[string]any{"query": "rye sacks", "site": other}); !ok || !strings.Contains(toJSON(t, out), "granary") {
		t.Errorf("search in the added site: %v", out)
	}
	if out, ok := a.call("add_site", map[string]any{"url": "http://127.0.0.1:1/"}); ok {
		t.Errorf("a site that is down is added: %v", out)
	}
	if err := a.Close(); err != nil || strings.Contains(errs.String(), "level=ERROR") {
		t.Errorf("the child process ended with %v:\n%s", err, errs.String())
	}
}

// Only the operator's own client may make this machine request other sites.
func TestMCPFetch(t *testing.T) {
	t.Parallel()
	file := mirrorOf(t, "handbook")
	for _, tt := range []struct {
		args []string
		want bool
	}{
		{[]string{"--store", file}, true},
		{nil, true},
		{[]string{"--store", file, "--no-fetch"}, false},
	} {
		child := asProcess(t.Context(), t, append([]string{"mcp"}, tt.args...)...)
		a := connect(t, &sdk.CommandTransport{Command: child})
		if got := slices.Contains(a.tools(), "add_site"); got != tt.want {
			t.Errorf("%v: add_site %v", tt.args, got)
		}
		if _, ok := a.call("read_page", map[string]any{"url": "http://127.0.0.1:1/"}); ok {
			t.Error("a page at a private address was read")
		}
		a.Close()
	}
	for _, flag := range []string{"--no-fetch", "--fetch", ""} {
		a := connect(t, overHTTP(mcpListening(t, file, flag), ""))
		if got := slices.Contains(a.tools(), "add_site"); got != (flag == "--fetch") {
			t.Errorf("over HTTP %s: add_site %v", flag, got)
		}
	}
	s := serve(t, copySite(t, "handbook"))
	if tools := connect(t, overHTTP(s.url+"mcp", "")).tools(); slices.Contains(tools, "add_site") {
		t.Errorf("serve has %v", tools)
	}
}

// mcpListening starts `millrace mcp --listen` until the end of the test.
func mcpListening(t *testing.T, file, flag string) (url string) {
	t.Helper()
	child := asProcess(t.Context(), t, slices.DeleteFunc([]string{"mcp", "--store", file, "--listen", "127.0.0.1:0", flag}, func(s string) bool { return s == "" })...)
	var errs buffer
	child.Stderr = &errs
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	eventually(t, "mcp listens", func() bool {
		if m := mcpReady.FindStringSubmatch(errs.String()); m != nil {
			url = m[1]
		}
		return url != ""
	})
	return url
}
