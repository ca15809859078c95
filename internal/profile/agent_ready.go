package profile

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
)

// Sections of the profile. The rules of a section correspond to the checks of one scanner. The last
// part of a rule's ID is the scanner's name for the check.
const (
	scan   = "isitagentready" // isitagentready.com, as of September 2026
	afdocs = "afdocs"         // Agent-Friendly Documentation Spec 0.6
)

// AgentReady returns the rules by which scanners judge whether a site is ready for agents. A rule
// about an optional document does not apply to a site without the document, although isitagentready
// counts that as a failure.
func AgentReady() check.Suite {
	rule := func(section, word, sentence, fix string, f check.SiteCheck[*site]) check.Rule {
		r := aboutSite(section, word, check.Should, sentence, f)
		r.Fix = fix
		return r
	}
	const byMillrace = " millrace serve does this."
	rules := []check.Rule{
		rule(scan, "robots-txt", "The site has a robots.txt in text/plain with groups.", "Serve /robots.txt as text/plain with User-agent lines."+byMillrace, func(_ context.Context, s *site, fail check.Fail) error {
			switch {
			case s.robots == nil:
				fail(s.At("/robots.txt"), "no robots.txt", "a robots.txt")
			case !strings.Contains(strings.ToLower(string(s.robots.Body)), "user-agent:"):
				fail(s.robots.URL, "no group", "User-agent: *")
			default:
				kit.MediaType(s.robots.URL, s.robots, "text/plain", fail)
			}
			return nil
		}),
		rule(scan, "sitemap", "The site has a sitemap with pages.", "Publish /sitemap.xml and name it in robots.txt."+byMillrace, func(_ context.Context, s *site, fail check.Fail) error {
			if len(s.listed) == 0 {
				fail(s.At("/sitemap.xml"), "no sitemap with pages of the site", "a sitemap, at this path or named by robots.txt")
			}
			return nil
		}),
		rule(scan, "link-headers", "Link fields of the home page link to machine documents.", "Send Link fields with rel=api-catalog, service-desc, describedby or alternate."+byMillrace, func(_ context.Context, s *site, fail check.Fail) error {
			for _, l := range kit.FieldLinks(s.home) {
				for _, rel := range []string{"api-catalog", "service-desc", "service-doc", "describedby", "alternate"} {
					if l.Is(rel, "") {
						return nil
					}
				}
			}
			fail(s.home.URL, "no such Link field", `Link: </llms.txt>; rel="describedby"`)
			return nil
		}),
		rule(scan, "markdown-negotiation", "A request for the home page with Accept: text/markdown gets Markdown.", "Answer Accept: text/markdown with Markdown and Vary: Accept."+byMillrace+" Alongside another server, use the output of millrace snippet.", func(ctx context.Context, s *site, fail check.Fail) error {
			resp, err := s.Do(ctx, http.MethodGet, s.home.URL, http.Header{"Accept": {"text/markdown"}})
			if err != nil {
				return err
			}
			if !isMarkdown(resp) {
				fail(s.home.URL, resp.StatusText()+" with Content-Type: "+resp.Header.Get("Content-Type"), "text/markdown")
			}
			return nil
		}),
		rule(scan, "robots-txt-ai-rules", "robots.txt has a group for AI bots, or one for all bots.", "Add User-agent: * or groups for AI bots to robots.txt."+byMillrace, func(_ context.Context, s *site, fail check.Fail) error {
			if s.robots == nil {
				return check.ErrNotApplicable
			}
			for line := range strings.Lines(strings.ToLower(string(s.robots.Body))) {
				if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "user-agent" && slices.Contains(aiBots, strings.TrimSpace(value)) {
					return nil
				}
			}
			fail(s.robots.URL, "no group for AI bots", "User-agent: *")
			return nil
		}),
		rule(scan, "content-signals", "robots.txt has Content-Signal.", "Set policy.purposes in millrace.yaml; robots.txt and the header fields then contain it.", func(_ context.Context, s *site, fail check.Fail) error {
			if s.robots == nil {
				return check.ErrNotApplicable
			}
			for _, r := range fetch.ParseRobots(s.robots.Body, "millrace").Records() {
				if r.Name == "content-signal" {
					return nil
				}
			}
			fail(s.robots.URL, "no Content-Signal", "Content-Signal with the owner's choices, such as search=yes, ai-input=yes, ai-train=no")
			return nil
		}),
		rule(scan, "web-bot-auth", "The directory of Web Bot Auth has a key.", "Publish a JWK set with a key, or remove the file; millrace serve --sign-directory does this.", optional([]string{"/.well-known/http-message-signatures-directory"}, "keys")),
		rule(scan, "api-catalog", "The API catalog is a link set.", "Publish /.well-known/api-catalog as application/linkset+json (RFC 9727)."+byMillrace, func(ctx context.Context, s *site, fail check.Fail) error {
			resp, err := s.document(ctx, "/.well-known/api-catalog")
			switch {
			case err != nil:
				return err
			case resp == nil:
				fail(s.At("/.well-known/api-catalog"), "no API catalog", "a link set")
			case len(kit.Array(kit.Object(resp.Body)["linkset"])) == 0:
				fail(resp.URL, "no linkset", "an object with linkset, an array")
			default:
				kit.MediaType(resp.URL, resp, "application/linkset+json", fail)
			}
			return nil
		}),
		rule(scan, "oauth-discovery", "The metadata of the OAuth server is complete.", "Complete the document (RFC 8414).", optional([]string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"}, "issuer", "token_endpoint")),
		rule(scan, "oauth-protected-resource", "The metadata of the protected resource is complete.", "Complete the document (RFC 9728).", optional([]string{"/.well-known/oauth-protected-resource"}, "resource", "authorization_servers")),
		rule(scan, "mcp-server-card", "A site with an MCP endpoint has a server card.", "Publish /.well-known/mcp/server-card.json with serverInfo, transport and capabilities."+byMillrace, forMCP("/.well-known/mcp/server-card.json", func(m map[string]json.RawMessage) string {
			info := kit.Object(m["serverInfo"])
			if info == nil {
				info = m // SEP-2127
			}
			if kit.Text(info["name"]) == "" || kit.Text(info["version"]) == "" || m["transport"] == nil && m["remotes"] == nil {
				return "serverInfo with name and version, and transport"
			}
			return ""
		})),
		rule(scan, "ard", "A site with an MCP endpoint lists it in an AI Catalog.", "Publish /.well-known/ai-catalog.json with specVersion, host and entries."+byMillrace, forMCP("/.well-known/ai-catalog.json", func(m map[string]json.RawMessage) string {
			entries := kit.Array(m["entries"])
			for _, e := range entries {
				o := kit.Object(e)
				if kit.Text(o["identifier"]) == "" || kit.Text(o["type"]) == "" || (o["url"] == nil) == (o["data"] == nil) {
					return "identifier, type, and either url or data in each entry"
				}
			}
			if kit.Text(m["specVersion"]) == "" || kit.Text(kit.Object(m["host"])["displayName"]) == "" || len(entries) == 0 {
				return "specVersion, host with displayName, and entries"
			}
			return ""
		})),
		rule(scan, "a2a-agent-card", "The A2A agent card is complete.", "Complete the card.", optional([]string{"/.well-known/agent-card.json"}, "name", "version", "description", "skills")),
		rule(scan, "agent-skills", "The index of agent skills is complete.", "Complete the index, or remove it.", optional([]string{"/.well-known/agent-skills/index.json"}, "skills")),
		rule(scan, "web-mcp", "A form that is a WebMCP tool has a name and a description.", "Add tooldescription to the form.", checkPages(func(p *page, fail func(got, want string)) bool {
			text := strings.ToLower(string(p.html.Body))
			tools, described := strings.Count(text, "toolname="), strings.Count(text, "tooldescription=")
			if tools > described {
				fail(fmt.Sprintf("%d tools, %d descriptions", tools, described), "a description of each tool")
			}
			return tools > 0
		})),
		rule(scan, "x402", "The x402 document names the resources that can be paid for.", "Complete the document, or remove it.", optional([]string{"/.well-known/x402"}, "resources")),
		rule(scan, "ucp", "The UCP profile has its version.", "Complete the profile, or remove it.", optional([]string{"/.well-known/ucp"}, "ucp")),
		rule(scan, "acp", "The ACP document has its version.", "Complete the document, or remove it.", optional([]string{"/.well-known/acp.json"}, "protocol")),
		rule(scan, "ap2", "An agent card that declares AP2 names the extension by its URI.", "Add the uri of the extension to the card.", func(ctx context.Context, s *site, fail check.Fail) error {
			card, err := s.document(ctx, "/.well-known/agent-card.json")
			if card == nil {
				return cmpErr(err)
			}
			for _, e := range kit.Array(kit.Object(kit.Object(card.Body)["capabilities"])["extensions"]) {
				if strings.Contains(strings.ToLower(string(e)), "ap2") {
					if kit.Text(kit.Object(e)["uri"]) == "" {
						fail(card.URL, kit.ShortJSON(e), "an extension with a uri")
					}
					return nil
				}
			}
			return check.ErrNotApplicable
		}),
	}
	return check.Suite{Name: "agent-ready", Label: "Agent ready", Scored: true, Rules: append(rules, docsRules(rule)...)}
}

// aiBots are the User-agent values of robots.txt that apply to AI bots, in lower case.
var aiBots = []string{
	"*", "gptbot", "oai-searchbot", "chatgpt-user", "claudebot", "claude-web", "anthropic-ai", "google-extended",
	"perplexitybot", "amazonbot", "bytespider", "ccbot", "applebot-extended", "meta-externalagent",
}

// cmpErr returns err, or ErrNotApplicable if err is nil.
func cmpErr(err error) error {
	if err != nil {
		return err
	}
	return check.ErrNotApplicable
}

// optional returns a check of an optional JSON document, at the first of the paths that has a
// document. The check requires an object with the members.
func optional(paths []string, members ...string) check.SiteCheck[*site] {
	return func(ctx context.Context, s *site, fail check.Fail) error {
		for _, path := range paths {
			resp, err := s.document(ctx, path)
			if err != nil {
				return err
			}
			if resp == nil {
				continue
			}
			m := kit.Object(resp.Body)
			for _, name := range members {
				if v := strings.TrimSpace(string(m[name])); v == "" || v == "null" || v == `""` || v == "[]" {
					fail(resp.URL, "no "+name, "an object with "+strings.Join(members, ", "))
				}
			}
			return nil
		}
		return fmt.Errorf("the site has no %s: %w", paths[0], check.ErrNotApplicable)
	}
}

// forMCP returns a check of a JSON document that a site with an MCP endpoint must have. wrong
// returns what the document lacks, or "" if it is complete.
func forMCP(path string, wrong func(m map[string]json.RawMessage) string) check.SiteCheck[*site] {
	return func(ctx context.Context, s *site, fail check.Fail) error {
		resp, err := s.document(ctx, path)
		switch {
		case err != nil:
			return err
		case resp == nil && !s.mcp:
			return fmt.Errorf("the site has no MCP endpoint at /mcp: %w", check.ErrNotApplicable)
		case resp == nil:
			fail(s.At(path), "no such document", "a document about the MCP endpoint")
			return nil
		}
		if mt, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); mt != "application/json" && !strings.HasSuffix(mt, "+json") {
			fail(resp.URL, "Content-Type: "+resp.Header.Get("Content-Type"), "application/json")
		}
		if want := wrong(kit.Object(resp.Body)); want != "" {
			fail(resp.URL, kit.ShortJSON(resp.Body), want)
		}
		if resp.Header.Get("Access-Control-Allow-Origin") != "*" {
			fail(resp.URL, "no Access-Control-Allow-Origin: *", "a document that pages of any origin can read")
		}
		return nil
	}
}

// checkPages returns a check that runs f on each page of the sample. f reports whether the rule
// applies.
func checkPages(f func(p *page, fail func(got, want string)) bool) check.SiteCheck[*site] {
	return check.All(func(s *site) []*page { return s.pages }, func(_ *site, p *page, fail check.Fail) bool {
		return f(p, func(got, want string) { fail(p.html.URL, got, want) })
	})
}
