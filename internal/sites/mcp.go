package sites

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/jsonio"
)

// MCP describes the MCP server of a site. The zero value means no server.
type MCP struct {
	Path    string // path of the endpoint below the endpoint base. If empty, there is no server.
	Version string // version of the server
	Key     bool   // requests need a key
}

// Documents about the MCP server. SEP-2127 reserves the path of the card below the endpoint, and
// the AI Catalog contains a link to it. Scanners look for the card of SEP-1649, an earlier
// proposal, at the well-known path.
const (
	cardPath      = "/server-card"
	cardWellKnown = "/.well-known/mcp/server-card.json"
	aiCatalogPath = "/.well-known/ai-catalog.json"

	cardType   = "application/mcp-server-card+json"
	cardSchema = "https://static.modelcontextprotocol.io/schemas/v2/server-card.schema.json"
	mcpName    = "millrace" // as in the serverInfo of the endpoint
)

type (
	cardHeader struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Required    bool   `json:"isRequired"`
		Secret      bool   `json:"isSecret"`
	}
	cardRemote struct {
		Type    string       `json:"type"`
		URL     string       `json:"url"`
		Headers []cardHeader `json:"headers,omitempty"`
	}
	// serverCard is the card of SEP-2127.
	serverCard struct {
		Schema      string       `json:"$schema"`
		Name        string       `json:"name"`
		Version     string       `json:"version"`
		Title       string       `json:"title"`
		Description string       `json:"description"`
		WebsiteURL  string       `json:"websiteUrl"`
		Remotes     []cardRemote `json:"remotes"`
	}
	serverInfo struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	}
	cardTransport struct {
		Type     string `json:"type"`
		Endpoint string `json:"endpoint"`
	}
	// earlyCard is the card of SEP-1649.
	earlyCard struct {
		ServerInfo   serverInfo          `json:"serverInfo"`
		Description  string              `json:"description"`
		Transport    cardTransport       `json:"transport"`
		Capabilities map[string]struct{} `json:"capabilities"`
		Remotes      []cardRemote        `json:"remotes"`
	}
	aiHost struct {
		DisplayName string `json:"displayName"`
		Identifier  string `json:"identifier"`
	}
	aiEntry struct {
		Identifier  string   `json:"identifier"`
		DisplayName string   `json:"displayName"`
		Type        string   `json:"type"`
		URL         string   `json:"url"`
		Queries     []string `json:"representativeQueries"`
	}
	aiCatalog struct {
		SpecVersion string    `json:"specVersion"`
		Host        aiHost    `json:"host"`
		Entries     []aiEntry `json:"entries"`
	}
)

// endpoint returns the URL of the MCP server, or "" for no server.
func (d *Documents) endpoint() string {
	if d.o.MCP.Path == "" {
		return ""
	}
	return strings.TrimRight(d.o.EndpointBase, "/") + d.o.MCP.Path
}

// isAbout reports whether a request is for a document about the MCP server. Its parameters
// are those of Serve.
func (d *Documents) isAbout(r, inner *http.Request) bool {
	at := r.URL.Path
	if at == cardWellKnown || at == aiCatalogPath {
		return d.o.MCP.Path != "" && (d.o.Base == "" || d.o.Host != nil)
	}
	return d.o.MCP.Path != "" && inner != nil && inner.URL.Path == d.o.MCP.Path+cardPath
}

// about serves a document about the MCP server, unless the site has its own file there.
func (d *Documents) about(w *response, r *http.Request, ed *edition.Edition) (bool, error) {
	if own := d.ownAt(r, r.URL.Path, maxCatalog); !own.Missing() {
		return false, nil
	}
	site := ed.View.Site()
	title, kind, endpoint := short(site.Title), "application/json", d.endpoint()
	remote := cardRemote{Type: "streamable-http", URL: endpoint}
	if d.o.MCP.Key {
		remote.Headers = []cardHeader{{"Authorization", "Bearer and a key of the site", true, true}}
	}
	description := short("Searches and reads the pages of " + site.Title)
	host := "localhost"
	if u, err := url.Parse(endpoint); err == nil && domain.MatchString(u.Hostname()) {
		host = u.Hostname()
	}
	var body any
	switch r.URL.Path {
	case aiCatalogPath:
		body = aiCatalog{"1.0", aiHost{title, host}, []aiEntry{{
			"urn:air:" + host + ":mcp:" + mcpName, title, cardType, endpoint + cardPath,
			[]string{"What does " + title + " say about a subject?", "What is new on " + title + "?"},
		}}}
	case cardWellKnown:
		body = earlyCard{
			serverInfo{mcpName, title, d.o.MCP.Version},
			description,
			cardTransport{remote.Type, endpoint},
			map[string]struct{}{"tools": {}, "resources": {}},
			[]cardRemote{remote},
		}
	default:
		kind = cardType
		labels := strings.Split(host, ".")
		slices.Reverse(labels)
		body = serverCard{cardSchema, strings.Join(labels, ".") + "/" + mcpName, d.o.MCP.Version, title, description, site.Base, []cardRemote{remote}}
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", "GET")
	h.Set("Access-Control-Allow-Headers", "Content-Type")
	return w.small(r, kind, "public, max-age=3600", jsonio.Encode(body))
}

// domain matches the hosts that identifiers may contain.
var domain = regexp.MustCompile(`^[a-zA-Z0-9.-]+$`)

// short truncates a text to the 100 characters that a card allows.
func short(s string) string {
	if r := []rune(s); len(r) > 100 {
		return string(r[:99]) + "…"
	}
	return s
}

// mcpContexts returns the MCP server as a link context of the API catalog.
func (d *Documents) mcpContexts() []linkContext {
	at := d.endpoint()
	if at == "" {
		return nil
	}
	return []linkContext{{
		Anchor: at, Desc: []linkTarget{{at + cardPath, cardType}},
		Doc: []linkTarget{{Href: "https://modelcontextprotocol.io/specification/"}},
	}}
}

// CatalogLinks returns the site-wide links of the home page.
func (d *Documents) CatalogLinks() []millrace.Link {
	links := []millrace.Link{d.catalogLink()}
	if at := d.endpoint(); at != "" {
		links = append(links, millrace.Link{URL: at + cardPath, Rel: "service-desc", Type: cardType})
	}
	return links
}
