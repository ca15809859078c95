package main

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpClient is a client of the Model Context Protocol.
type mcpClient struct {
	t *testing.T
	*sdk.ClientSession
}

// connect connects a client to a server.
func connect(t *testing.T, transport sdk.Transport) mcpClient {
	t.Helper()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return mcpClient{t, c}
}

// bearer sends a key with every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func overHTTP(url, key string) sdk.Transport {
	o := &sdk.StreamableClientTransport{Endpoint: url, MaxRetries: -1}
	if key != "" {
		o.HTTPClient = &http.Client{Transport: bearer(key)}
	}
	return o
}

// call calls a tool and returns its data, and whether the call succeeded.
func (a mcpClient) call(tool string, args map[string]any) (out map[string]any, ok bool) {
	a.t.Helper()
	r, err := a.CallTool(a.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		a.t.Fatalf("%s %v: %v", tool, args, err)
	}
	if r.IsError {
		return nil, false
	}
	b, err := json.Marshal(r.StructuredContent)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return out, true
}

// reads searches for a page and reads it.
func (a mcpClient) reads(query, phrase string) {
	a.t.Helper()
	var found map[string]any
	eventually(a.t, "the site is indexed", func() (ok bool) {
		found, ok = a.call("search", map[string]any{"query": query})
		return ok
	})
	hits, _ := found["hits"].([]any)
	if len(hits) == 0 {
		a.t.Fatalf("no results for %q", query)
	}
	hit, _ := hits[0].(map[string]any)
	page, ok := a.call("read_page", map[string]any{"url": hit["url"]})
	if markdown, _ := page["markdown"].(string); !ok || !strings.Contains(markdown, phrase) {
		a.t.Errorf("%v does not contain %q: %v", hit["url"], phrase, page)
	}
}

// A client starts the command as a child process. Pages that are pulled in the meantime become
// available.
func TestMCPAsChild(t *testing.T) {
	t.Parallel()
	dir := copySite(t, "handbook")
	s := serve(t, dir, "--store", filepath.Join(t.TempDir(), "store.db"))
	file := filepath.Join(t.TempDir(), "mirror.db")
	pull(t, s.url, file)
	child := asProcess(t.Context(), t, "mcp", "--store", file)
	var errs buffer
	child.Stderr = &errs
	a := connect(t, &sdk.CommandTransport{Command: child})
	sites, _ := a.call("list_sites", nil)
	list, _ := sites["sites"].([]any)
	if len(list) != 1 {
		t.Fatalf("sites: %v", sites)
	}
	site, _ := list[0].(map[string]any)
	a.reads("overshot wheel diameter", "overshot")

	write(t, filepath.Join(dir, "zeppelin.html"), "<!DOCTYPE html><title>Zeppelins</title><main><h1>Zeppelins</h1><p>A zeppelin passed over the mill in the summer and moored at the granary for an hour.</p></main>")
	eventually(t, "the new page is mirrored", func() bool { return pull(t, s.url, file).Added == 1 })
	a.reads("zeppelin granary", "moored")
	news, ok := a.call("list_changes", map[string]any{"since": site["cursor"]})
	changes, _ := news["changes"].([]any)
	if !ok || len(changes) == 0 || !strings.Contains(toJSON(t, changes), "/zeppelin") {
		t.Errorf("changes: %v", news)
	}
	if err := a.Close(); err != nil {
		t.Errorf("the child process ended with %v:\n%s", err, errs.String())
	}
	if strings.Contains(errs.String(), "level=ERROR") {
		t.Errorf("the child process has logged:\n%s", errs.String())
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Agents can read what serve publishes, and nothing hidden.
func TestMCPOfServe(t *testing.T) {
	t.Parallel()
	dir := copySite(t, "handbook")
	store := filepath.Join(t.TempDir(), "store.db")
	s := serve(t, dir, "--store", store, "--exclude", "/about")
	a := connect(t, overHTTP(s.url+"mcp", ""))
	a.reads("overshot wheel diameter", "overshot")
	if out, ok := a.call("read_page", map[string]any{"url": s.url + "about/"}); ok {
		t.Errorf("a hidden page is read: %v", out)
	}
	if status, _, _ := get(t, s.url+"mcp"); status != http.StatusNotFound {
		t.Errorf("a browser gets status %d", status)
	}
	s.stop()

	code, key, errs := command(t, nil, "keys", "add", "reader", "--store", store)
	if code != 0 {
		t.Fatal(errs)
	}
	key = strings.TrimSpace(key)
	s = serve(t, dir, "--store", store, "--require-key")
	if _, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), overHTTP(s.url+"mcp", ""), nil); err == nil {
		t.Error("a request without a key is allowed")
	}
	connect(t, overHTTP(s.url+"mcp", key)).reads("overshot wheel diameter", "overshot")
	s.stop()

	s = serve(t, dir, "--store", store, "--no-mcp")
	if _, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), overHTTP(s.url+"mcp", ""), nil); err == nil {
		t.Error("an unauthorized request is allowed")
	}
}

var mcpReady = regexp.MustCompile(`(?m)^ready (http://\S+/mcp)$`)

func TestMCPListens(t *testing.T) {
	t.Parallel()
	file := mirrorOf(t, "handbook")
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs buffer
	done := make(chan int, 1)
	go func() {
		env := environment(map[string]string{"HOME": t.TempDir(), "MILLRACE_LISTEN": "192.0.2.1:1"}) // where serve listens
		done <- run(ctx, []string{"mcp", "--store", file, "--listen", "127.0.0.1:0"}, env, strings.NewReader(""), &out, &errs)
	}()
	var url string
	eventually(t, "mcp listens", func() bool {
		if m := mcpReady.FindStringSubmatch(errs.String()); m != nil {
			url = m[1]
		}
		return url != ""
	})
	connect(t, overHTTP(url, "")).reads("overshot wheel diameter", "overshot")
	if status, _, _ := get(t, strings.TrimSuffix(url, "/mcp")+"/readyz"); status != http.StatusOK {
		t.Errorf("/readyz: status %d", status)
	}
	if status, _, _ := get(t, strings.TrimSuffix(url, "/mcp")+"/"); status != http.StatusNotFound {
		t.Errorf("/: status %d", status)
	}
	cancel()
	if code := <-done; code != 0 || out.String() != "" {
		t.Errorf("the command ended with %d and printed %q:\n%s", code, out.String(), errs.String())
	}
}

func TestMCPUsage(t *testing.T) {
	t.Parallel()
	file := mirrorOf(t, "handbook")
	for _, q := range []struct {
		args []string
		exit int
		code string
	}{
		{[]string{"--store", filepath.Join(t.TempDir(), "none.db"), "--listen", "127.0.0.1:0"}, 1, "not-found"},
		{[]string{"--store", file}, 2, "usage/json"},
		{[]string{"--store", file, "--listen", "0.0.0.0:0"}, 2, "usage/listen"},
		{[]string{"--store", file, "--listen", "127.0.0.1:0", "--rate", "-1"}, 2, "usage/rate"},
		{[]string{"ftp://example.com/", "--listen", "127.0.0.1:0"}, 2, "bad-scheme"},
	} {
		if exit, code, out := failure(t, nil, append([]string{"mcp"}, q.args...)...); exit != q.exit || code != q.code {
			t.Errorf("%v: %d %s, want %s: %s", q.args, exit, code, q.code, out)
		}
	}
	// A client that disconnects at once is not a failure.
	if code, out, errs := command(t, nil, "mcp", "--store", file); code != 0 || out != "" {
		t.Errorf("%d %q %s", code, out, errs)
	}
}
