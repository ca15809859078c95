package profile

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/check"
)

// paragraph is prose of some length.
const paragraph = "The wheel turns because the water falls, and the stones turn because the wheel does, day and night."

// folder is a site as files: the media type, a line end, and the body.
type folder map[string]string

func (f folder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if strings.Contains(r.Header.Get("Accept"), "text/markdown") && f["negotiated "+path] != "" {
		path = "negotiated " + path
	}
	file, ok := f[path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	head, body, _ := strings.Cut(file, "\n\n")
	kind, fields, _ := strings.Cut(head, "\n")
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cache-Control", "no-cache")
	for line := range strings.Lines(fields) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		w.Header().Set(name, value)
	}
	if to := w.Header().Get("Location"); to != "" {
		w.WriteHeader(http.StatusFound)
	} else if w.Header().Get("X-Status") != "" {
		w.WriteHeader(http.StatusForbidden)
	}
	_, _ = w.Write([]byte(body))
}

// ready is a site that meets every rule, and to which every rule applies.
func ready() folder {
	const markdown = "text/markdown\nLink: </>; rel=canonical\n\n---\nindex: /llms.txt\n---\n\n# Mill\n\n" + paragraph + "\n\n```\nx\n```\n\nSee [it](https://x.test/it).\n"
	return folder{
		"/": "text/html\nLink: </llms.txt>; rel=\"describedby\"\n\n<!doctype html><title>Mill</title><body><a href=/llms.txt>Agents</a>" +
			"<main><h1>Mill</h1><p>" + paragraph + "</p><form toolname=find tooldescription=\"finds pages\"></form>" +
			"<div role=tabpanel><h2>On Linux</h2></div><div role=tabpanel><h2>On Windows</h2></div></main>",
		"/index.md":    markdown,
		"negotiated /": markdown,
		"/llms.txt":    "text/plain\n\n# Mill\n\n> How it turns.\n\n## Pages\n\n- [Mill](/index.md)\n",
		"/robots.txt":  "text/plain\n\nUser-agent: *\nContent-Signal: search=yes, ai-train=no\nDisallow:\nSitemap: /sitemap.xml\n",
		"/sitemap.xml": "application/xml\n\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>HOST/</loc></url></urlset>",
		"/mcp":         "text/event-stream\n\n",
		"/.well-known/http-message-signatures-directory": "application/json\n\n{\"keys\":[{}]}",
		"/.well-known/api-catalog":                       "application/linkset+json\n\n{\"linkset\":[{}]}",
		"/.well-known/oauth-authorization-server":        "application/json\n\n{\"issuer\":\"x\",\"token_endpoint\":\"y\"}",
		"/.well-known/oauth-protected-resource":          "application/json\n\n{\"resource\":\"x\",\"authorization_servers\":[\"y\"]}",
		"/.well-known/mcp/server-card.json":              "application/json\n\n{\"serverInfo\":{\"name\":\"a\",\"version\":\"1\"},\"transport\":{}}",
		"/.well-known/ai-catalog.json":                   "application/json\n\n{\"specVersion\":\"1.0\",\"host\":{\"displayName\":\"x\"},\"entries\":[{\"identifier\":\"urn:air:x:y:z\",\"type\":\"a/b\",\"url\":\"/c\"}]}",
		"/.well-known/agent-card.json":                   "application/json\n\n{\"name\":\"a\",\"version\":\"1\",\"description\":\"b\",\"skills\":[{}],\"capabilities\":{\"extensions\":[{\"uri\":\"https://x.test/ap2\"}]}}",
		"/.well-known/agent-skills/index.json":           "application/json\n\n{\"skills\":[{}]}",
		"/.well-known/x402":                              "application/json\n\n{\"resources\":[{}]}",
		"/.well-known/ucp":                               "application/json\n\n{\"ucp\":{}}",
		"/.well-known/acp.json":                          "application/json\n\n{\"protocol\":{}}",
	}
}

// judged returns the report on a site whose sitemap names its host as HOST.
func judged(t *testing.T, files folder) *check.Report {
	t.Helper()
	return findings(t, AgentReady(), func(w http.ResponseWriter, r *http.Request) {
		own := maps.Clone(files)
		for path, file := range own {
			own[path] = strings.ReplaceAll(file, "HOST", "http://"+r.Host)
		}
		own.ServeHTTP(w, r)
	})
}

func TestAgentReady(t *testing.T) {
	t.Parallel()
	report := judged(t, ready())
	result := report.Protocols["agent-ready"]
	if len(report.Findings) > 0 || result.Score == nil || *result.Score != 100 || result.NotRun > 0 {
		t.Errorf("a good site: %+v, %+v", result, report.Findings)
	}
	scanned, docs := 0, 0
	for _, o := range report.Outcomes {
		if o.State == check.NotApplicable && !strings.HasSuffix(o.Rule.ID, "auth-alternative-access") {
			t.Errorf("%s does not apply: %s", o.Rule.ID, o.Reason)
		}
		if o.Rule.Fix == "" {
			t.Errorf("%s has no fix", o.Rule.ID)
		}
		if strings.HasPrefix(o.Rule.ID, "agent-ready/isitagentready/") {
			scanned++
		} else if strings.HasPrefix(o.Rule.ID, "agent-ready/afdocs/") {
			docs++
		}
	}
	if scanned != 19 || docs != 28 { // its 18 checks of 2025, and the AI Catalog
		t.Errorf("%d rules of isitagentready, %d of AFDocs", scanned, docs)
	}
}

// Each rule finds its fault.
func TestAgentReadyFaults(t *testing.T) {
	t.Parallel()
	set := func(path, file string) func(folder) { return func(f folder) { f[path] = file } }
	drop := func(paths ...string) func(folder) {
		return func(f folder) { maps.DeleteFunc(f, func(p, _ string) bool { return slices.Contains(paths, p) }) }
	}
	swap := func(path, old, with string) func(folder) {
		return func(f folder) {
			if !strings.Contains(f[path], old) {
				t.Errorf("page %s does not contain %s", path, old)
			}
			f[path] = strings.ReplaceAll(f[path], old, with)
		}
	}
	both := func(old, with string) func(folder) {
		return func(f folder) {
			swap("/index.md", old, with)(f)
			swap("negotiated /", old, with)(f)
		}
	}
	long := strings.Repeat(paragraph+"\n\n", 600)
	for rule, fault := range map[string]func(folder){
		"isitagentready/robots-txt":               drop("/robots.txt"),
		"isitagentready/sitemap":                  drop("/sitemap.xml"),
		"isitagentready/link-headers":             swap("/", "describedby", "icon"),
		"isitagentready/markdown-negotiation":     drop("negotiated /"),
		"isitagentready/robots-txt-ai-rules":      swap("/robots.txt", "User-agent: *", "User-agent: mybot"),
		"isitagentready/content-signals":          swap("/robots.txt", "Content-Signal", "Crawl-delay"),
		"isitagentready/web-bot-auth":             swap("/.well-known/http-message-signatures-directory", "[{}]", "[]"),
		"isitagentready/api-catalog":              drop("/.well-known/api-catalog"),
		"isitagentready/oauth-discovery":          swap("/.well-known/oauth-authorization-server", "issuer", "isuer"),
		"isitagentready/oauth-protected-resource": swap("/.well-known/oauth-protected-resource", "resource", "res"),
		"isitagentready/mcp-server-card":          drop("/.well-known/mcp/server-card.json"),
		"isitagentready/ard":                      swap("/.well-known/ai-catalog.json", "identifier", "id"),
		"isitagentready/a2a-agent-card":           swap("/.well-known/agent-card.json", "description", "about"),
		"isitagentready/agent-skills":             swap("/.well-known/agent-skills/index.json", "skills", "tools"),
		"isitagentready/web-mcp":                  swap("/", "tooldescription", "title"),
		"isitagentready/x402":                     swap("/.well-known/x402", "resources", "things"),
		"isitagentready/ucp":                      swap("/.well-known/ucp", `"ucp"`, `"x"`),
		"isitagentready/acp":                      swap("/.well-known/acp.json", "protocol", "x"),
		"isitagentready/ap2":                      swap("/.well-known/agent-card.json", "uri", "url"),
		"afdocs/llms-txt-exists":                  drop("/llms.txt"),
		"afdocs/llms-txt-valid":                   swap("/llms.txt", "> How", "How"),
		"afdocs/llms-txt-size":                    swap("/llms.txt", "## Pages", long+"## Pages"),
		"afdocs/llms-txt-links-resolve":           swap("/llms.txt", "/index.md", "/gone.md"),
		"afdocs/llms-txt-links-markdown":          swap("/llms.txt", "/index.md", "/"),
		"afdocs/llms-txt-directive-html":          swap("/", "href=/llms.txt", "href=/x"),
		"afdocs/llms-txt-directive-md":            both("/llms.txt", "/x"),
		"afdocs/markdown-url-support":             drop("/index.md"),
		"afdocs/content-negotiation":              drop("negotiated /"),
		"afdocs/rendering-strategy":               set("/", "text/html\n\n<body><script src=/app.js></script>"),
		"afdocs/page-size-markdown":               both("# Mill", "# Mill\n\n"+long),
		"afdocs/page-size-html":                   swap("/", "<h1>", long+"<h1>"),
		"afdocs/page-size-transfer":               swap("/", "<h1>", "<script>"+strings.Repeat(long, 20)+"</script><h1>"),
		"afdocs/content-start-position":           swap("/", "<main>", "<nav>"+strings.Repeat("<a href=/x>Here</a> ", 200)+"</nav><main>"),
		"afdocs/single-fetch-completeness":        both("See", "Next page. See"),
		"afdocs/tabbed-content-serialization":     swap("/", "<h1>", long+"<h1>"),
		"afdocs/section-header-quality":           swap("/", "On Windows", "On Linux"),
		"afdocs/markdown-code-fence-validity":     both("x\n```\n", "x\n"),
		"afdocs/markdown-link-portability":        both("https://x.test/it", "it"),
		"afdocs/embedded-data-serialization":      swap("/", "<h1>", "<table><tr><td>"+long+"</table><h1>"),
		"afdocs/http-status-codes":                set("/millrace-check-no-such-page", "text/html\n\n<p>Sorry"),
		"afdocs/redirect-behavior":                swap("/", "<title>", "<meta http-equiv=refresh content=0><title>"),
		"afdocs/llms-txt-coverage":                swap("/llms.txt", "/index.md", "/other.md"),
		"afdocs/markdown-content-parity":          both(paragraph, "Nothing."),
		"afdocs/cache-header-hygiene":             swap("/", "Link:", "Cache-Control: max-age=86400\nLink:"),
		"afdocs/auth-gate-detection":              set("/", "text/html\nX-Status: 403\n\n<p>Log in"),
		"afdocs/bot-protection-interference":      set("/", "text/html\nX-Status: 403\n\n<p>Just a moment..."),
		"afdocs/auth-alternative-access": func(f folder) {
			drop("/llms.txt")(f)
			set("/", "text/html\nX-Status: 403\n\n<p>Log in")(f)
		},
	} {
		files := ready()
		fault(files)
		report := judged(t, files)
		if !slices.ContainsFunc(report.Findings, func(f check.Finding) bool { return f.Rule == "agent-ready/"+rule && f.Fix != "" }) {
			t.Errorf("%s: not found: %+v", rule, report.Findings)
		}
		if score := report.Protocols["agent-ready"].Score; score == nil || *score >= 100 {
			t.Errorf("%s: score %v", rule, score)
		}
	}
}

// A plain site has few rules that apply, and loses no points for optional features.
func TestAgentReadyPlain(t *testing.T) {
	t.Parallel()
	report := judged(t, folder{"/": "text/html\n\n<body><p>" + paragraph})
	for _, f := range report.Findings {
		for _, optional := range []string{"oauth", "x402", "ucp", "acp", "ap2", "a2a", "agent-skills", "mcp", "ard", "web-bot-auth"} {
			if strings.HasSuffix(f.Rule, "/"+optional) || strings.Contains(f.Rule, "/"+optional+"-") {
				t.Errorf("%s: %s", f.Rule, f.Got)
			}
		}
	}
}
