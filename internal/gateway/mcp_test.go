package gateway

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

type endpoint struct{}

func (endpoint) Scope(*http.Request) (millrace.Scope, bool) { return "", false }

func (endpoint) Serve(http.ResponseWriter, *http.Request, millrace.Live) error { return nil }

// The documents about an MCP server name its endpoint, in the forms of SEP-2127, SEP-1649 and
// the AI Catalog. A site's own file takes precedence.
func TestMCPDocuments(t *testing.T) {
	var own http.HandlerFunc = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/ai-catalog.json" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"mine":true}`))
	}
	options := Options{Service: endpoint{}, ServiceName: "mcp", ServiceVersion: "1.2.3", ServiceGuarded: true}
	g := setup{o: options, files: site()}.gateway(t)
	get := func(path, kind string) (out map[string]any) {
		t.Helper()
		w := ask(g, "GET", path)
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != 200 || w.Header().Get("Content-Type") != kind || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Fatalf("%s: %d %v %s", path, w.Code, w.Header(), w.Body)
		}
		if w := ask(g, "GET", path, "If-None-Match", w.Header().Get("Etag")); w.Code != 304 {
			t.Errorf("%s: conditional: %d", path, w.Code)
		}
		return out
	}
	card := get("/mcp/server-card", "application/mcp-server-card+json")
	remote, _ := card["remotes"].([]any)[0].(map[string]any)
	if name, _ := card["name"].(string); !regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`).MatchString(name) || name != "test.x/millrace" {
		t.Errorf("name %s", name)
	}
	if d, _ := card["description"].(string); d == "" || len([]rune(d)) > 100 || card["version"] != "1.2.3" ||
		card["$schema"] != "https://static.modelcontextprotocol.io/schemas/v2/server-card.schema.json" ||
		remote["type"] != "streamable-http" || remote["url"] != "https://x.test/mcp" || remote["headers"] == nil {
		t.Errorf("%v", card)
	}
	early := get("/.well-known/mcp/server-card.json", "application/json")
	info, _ := early["serverInfo"].(map[string]any)
	transport, _ := early["transport"].(map[string]any)
	if info["name"] != "millrace" || info["version"] != "1.2.3" || transport["endpoint"] != "https://x.test/mcp" || early["capabilities"] == nil {
		t.Errorf("%v", early)
	}
	catalog := get("/.well-known/ai-catalog.json", "application/json")
	entry, _ := catalog["entries"].([]any)[0].(map[string]any)
	if catalog["specVersion"] != "1.0" || entry["identifier"] != "urn:air:x.test:mcp:millrace" || entry["url"] != "https://x.test/mcp/server-card" || entry["type"] != "application/mcp-server-card+json" {
		t.Errorf("%v", catalog)
	}
	if w := ask(g, "GET", "/.well-known/api-catalog"); !strings.Contains(w.Body.String(), `{"anchor":"https://x.test/mcp","service-desc":[{"href":"https://x.test/mcp/server-card","type":"application/mcp-server-card+json"}]`) {
		t.Errorf("api-catalog: %s", w.Body)
	}

	options.Origin = own
	g = setup{o: options}.gateway(t)
	if w := ask(g, "GET", "/.well-known/ai-catalog.json"); w.Body.String() != `{"mine":true}` {
		t.Errorf("the site's own: %s", w.Body)
	}
	g = setup{files: site()}.gateway(t)
	for _, path := range []string{"/mcp/server-card", "/.well-known/mcp/server-card.json", "/.well-known/ai-catalog.json"} {
		if w := ask(g, "GET", path); w.Code != 404 {
			t.Errorf("without a server: %s: %d", path, w.Code)
		}
	}
}
