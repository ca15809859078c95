package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// answer is a path that serve answers.
type answer struct {
	of      string // protocol, or a heading
	method  string
	path    string // PAGE, SECTION, SUM, DATE and DIR vary
	sample  string // a request of that form
	kind    string // media type of the response
	returns string
	when    string // "" = always
	body    string // of the request
	status  int    // of the response, if it is an error
}

var answers = []answer{
	{"Server", "GET", "/healthz", "/healthz", "application/json", "Whether the process runs, and whether an edition is published.", "", "", 0},
	{"Server", "GET", "/readyz", "/readyz", "text/plain", "200 if an edition is published and the store exists, else 503.", "", "", 0},
	{"Server", "GET", "/metrics", "/metrics", "text/plain", "Prometheus metrics.", "to this machine, private networks and `--metrics`", "", 0},
	{"Server", "GET", "/dashboard/…", "/dashboard/login", "text/html", "The owner's dashboard.", "`--dashboard`", "", 0},
	{"Server", "POST", "/mcp", "/mcp", "application/json", "The Model Context Protocol.", "without `--no-mcp`", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 0},
	{"Site", "GET", "/robots.txt", "/robots.txt", "text/plain", "The site's robots.txt with the policy and the lines of the protocols.", "", "", 0},
	{"Site", "GET", "/sitemap.xml", "/sitemap.xml", "application/xml", "The site's sitemap with the elements of the protocols.", "", "", 0},
	{"Site", "GET", "/.well-known/api-catalog", "/.well-known/api-catalog", "application/linkset+json", "The API catalog (RFC 9727).", "", "", 0},
	{"Site", "GET", "/mcp/server-card", "/mcp/server-card", "application/mcp-server-card+json", "The card of the MCP server (SEP-2127).", "without `--no-mcp`", "", 0},
	{"Site", "GET", "/.well-known/mcp/server-card.json", "/.well-known/mcp/server-card.json", "application/json", "The card in its earlier form (SEP-1649).", "without `--no-mcp`", "", 0},
	{"Site", "GET", "/.well-known/ai-catalog.json", "/.well-known/ai-catalog.json", "application/json", "The AI Catalog, which lists the MCP server.", "without `--no-mcp`", "", 0},
	{"Site", "GET", "/.well-known/http-message-signatures-directory", "/.well-known/http-message-signatures-directory", "application/http-message-signatures-directory+json", "The keys that sign for the host.", "`--sign-directory` or `--sign-responses`", "", 0},
	{"Site", "GET", "/KEY.txt", "/" + indexNowKey + ".txt", "text/plain", "The key file of IndexNow.", "`--indexnow`", "", 0},
	{"Site", "GET", "PAGE", "/docs/leat/", "text/html", "The site's own pages and files, with links to their documents.", "a folder, or `--origin`", "", 0},
	{"SCP", "GET", "/scp/SECTION-SUM.scp.zst", "", "application/scp", "A collection, compressed with zstd.", "without `--require-key`", "", 0},
	{"SCP", "GET", "/scp/SECTION-SUM.scp.gz", "", "application/scp", "A collection, compressed with gzip.", "without `--require-key`", "", 0},
	{"SCP", "GET", "/scp/SECTION-SUM.scp", "", "application/scp", "A collection, not compressed.", "without `--require-key`", "", 0},
	{"TCT 03", "GET", "/tct-pages.json", "/tct-pages.json", "application/json", "The M-Sitemap.", "`--also tct-03`", "", 0},
	{"TCT 03", "GET", "PAGEtct.json", "/docs/leat/tct.json", "application/json", "The M-URL of a page.", "`--also tct-03`", "", 0},
	{"TCT 01", "GET", "/llm-pages.json", "/llm-pages.json", "application/json", "The M-Sitemap.", "", "", 0},
	{"TCT 01", "GET", "PAGEllm.json", "/docs/leat/llm.json", "application/json", "The M-URL of a page.", "", "", 0},
	{"TCT 00", "GET", "/llm-sitemap.json", "/llm-sitemap.json", "application/json", "The list of pages.", "", "", 0},
	{"TCT 00", "GET", "PAGEllm/", "/docs/leat/llm/", "application/json", "The M-URL of a page.", "", "", 0},
	{"TCT 00", "GET", "/llm-manifest.json", "/llm-manifest.json", "application/json", "The pattern of the M-URLs.", "", "", 0},
	{"TCT 00", "GET", "/llm-policy.json", "/llm-policy.json", "application/json", "The policy.", "the key `policy`", "", 0},
	{"OpenFeeder", "GET", "/.well-known/openfeeder.json", "/.well-known/openfeeder.json", "application/json", "The discovery document.", "", "", 0},
	{"OpenFeeder", "GET", "/openfeeder", "/openfeeder?page=1&limit=5", "application/json", "The index of pages, by `page` and `limit`.", "", "", 0},
	{"OpenFeeder", "GET", "/openfeeder?url=PAGE", "/openfeeder?url=/docs/leat/", "application/json", "A page in chunks, by `page` and `limit`.", "", "", 0},
	{"OpenFeeder", "GET", "/openfeeder?q=QUERY", "/openfeeder?q=mill", "application/json", "Passages that match a query, by `url`, `min_score`, `page` and `limit`.", "", "", 0},
	{"OpenFeeder", "GET", "/openfeeder?since=TIME", "/openfeeder?since=2020-01-01T00:00:00Z", "application/json", "The changes since a time or a sync token, also by `until`.", "", "", 0},
	{"OpenFeeder", "GET", "/openfeeder/events", "/openfeeder/events", "text/event-stream", "A stream of changes.", "", "", 0},
	{"OpenFeeder", "POST", "/openfeeder/update", "/openfeeder/update", "application/json", "Accepts the URLs of changed pages from the site.", "a key with the scope update", "{}", 401},
	{"ARC", "GET", "/arc-sitemap.json", "/arc-sitemap.json", "application/json", "The list of pages.", "", "", 0},
	{"ARC", "GET", "/.well-known/arc-sitemap.json", "/.well-known/arc-sitemap.json", "application/json", "The same list.", "", "", 0},
	{"ARC", "GET", "/arc-sitemap.yaml", "/arc-sitemap.yaml", "application/yaml", "The same list in YAML.", "", "", 0},
	{"ARC", "GET", "/arc-sitemap-deltas/DATE.json", "", "application/json", "The pages whose last change was on that day.", "", "", 0},
	{"ARC", "GET", "/.well-known/arc-policy.json", "/.well-known/arc-policy.json", "application/json", "The policy.", "the key `policy`", "", 0},
	{"Web", "GET", "PAGE", "/docs/leat/", "text/markdown", "The Markdown of a page.", "`Accept: text/markdown`", "", 0},
	{"Web", "GET", "PAGEindex.md", "/docs/leat/index.md", "text/markdown", "The Markdown of a page whose path ends in `/`.", "", "", 0},
	{"Web", "GET", "/llms.txt", "/llms.txt", "text/plain", "The pages of the site, or the files that list them.", "", "", 0},
	{"Web", "GET", "/llms-full.txt", "/llms-full.txt", "text/plain", "The Markdown of all pages.", "`--llms-full`", "", 0},
	{"Web", "GET", "/feed.atom", "/feed.atom", "application/atom+xml", "The latest changes; `/feed-2.atom` and so on have older ones.", "", "", 0},
	{"Web", "GET", "/feed.json", "/feed.json", "application/feed+json", "The latest changes; `/feed-2.json` and so on have older ones.", "", "", 0},
	{"Web", "GET", "/license.xml", "/license.xml", "application/rsl+xml", "The policy in RSL.", "the key `policy`", "", 0},
}

const indexNowKey = "0123456789abcdef0123456789abcdef"

// pattern returns an expression that matches the paths of an answer.
func (a answer) pattern() *regexp.Regexp {
	s := regexp.QuoteMeta(a.path)
	for name, form := range map[string]string{"PAGE": "/(?:.*/)?", "SECTION": "[a-z]+", "SUM": "[0-9a-f]{16}", "DATE": `\d{4}-\d\d-\d\d`} {
		s = strings.ReplaceAll(s, name, form)
	}
	return regexp.MustCompile("^" + s + "$")
}

const referencePolicy = "policy:\n  contact: ai@example.com\n  purposes:\n    ai-train: false\n"

func TestReferenceEndpoints(t *testing.T) {
	t.Parallel()
	dir, site := t.TempDir(), copySite(t, "handbook")
	conf, out, key := filepath.Join(dir, "millrace.yaml"), filepath.Join(dir, "out"), filepath.Join(dir, "key.pem")
	hash, err := newPassword()
	if err != nil {
		t.Fatal(err)
	}
	write(t, conf, referencePolicy+"also: [tct-03]\nllms-full: true\ndashboard-password: '"+hash.Hash+"'\n")
	if code, _, errs := command(t, nil, "keys", "sign", key); code != exitGood {
		t.Fatal(errs)
	}
	if code, _, errs := command(t, nil, "build", site, "--complete", "--config", conf, "--out", out, "--base-url", "https://example.com", "--store", filepath.Join(dir, "b.db")); code != exitGood {
		t.Fatal(errs)
	}
	samples := map[string]string{}
	for _, path := range documentsOf(t, out, site) {
		i := slices.IndexFunc(answers, func(a answer) bool { return a.pattern().MatchString(path) })
		if i < 0 {
			t.Errorf("the page lists no endpoint for %s", path)
			continue
		}
		samples[answers[i].path] = path
	}
	s := serve(t, site, "--config", conf, "--store", filepath.Join(dir, "s.db"), "--base-url", "https://example.com", "--dashboard", "/dashboard", "--indexnow", "--indexnow-key", indexNowKey,
		"--indexnow-url", "http://127.0.0.1:1/", "--sign-directory", key)
	s.url = "http://" + regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(s.out.String())[1] + "/"
	eventually(t, "the index", func() bool { status, _, _ := get(t, s.url+"openfeeder?q=mill"); return status == http.StatusOK })
	_, _, sitemap := get(t, s.url+"sitemap.xml")
	var b strings.Builder
	b.WriteString(`# Endpoints

` + "`millrace serve`" + ` responds to requests for these paths under the base URL. PAGE is the path of a page of the site, which ends in ` + "`/`" + `
here. Every path that accepts GET also accepts HEAD. If two pages have the same name, or a page has a query, the path of its
document has one more segment that starts with ` + "`~`" + `. Errors have a body in JSON with a code; see [errors.md](errors.md).
`)
	heading := ""
	for _, a := range answers {
		if a.of != heading {
			heading = a.of
			fmt.Fprintf(&b, "\n## %s\n\n| method | path | returns | media type | only with |\n|---|---|---|---|---|\n", a.of)
		}
		path := "`" + a.path + "`"
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", a.method, path, a.returns, a.kind, a.when)
		sample := cmp.Or(a.sample, samples[a.path])
		if a.of == "SCP" { // the file names depend on the edition
			_, suffix, _ := strings.Cut(a.path, ".")
			suffix = regexp.QuoteMeta("." + suffix)
			m := regexp.MustCompile(`https://example\.com(/scp/[^"<]+` + suffix + `)["<]`).FindStringSubmatch(sitemap)
			if m == nil {
				t.Errorf("the sitemap names no collection in %s", suffix)
				continue
			}
			sample = m[1]
		}
		if status, kind := s.ask(t, a, sample); kind != a.kind || status >= 400 && a.status != status {
			t.Errorf("%s %s: %d %s, the page lists %s", a.method, sample, status, kind, a.kind)
		}
	}
	checkReference(t, "endpoints.md", b.String())
}

// ask sends a request for an answer, and returns the status and the media type.
func (s *served) ask(t *testing.T, a answer, path string) (status int, kind string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, a.method, s.url+strings.TrimPrefix(path, "/"), strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", a.kind)
	if a.body != "" {
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	kind, _, _ = strings.Cut(resp.Header.Get("Content-Type"), ";")
	return resp.StatusCode, kind
}

// documentsOf lists the paths of the documents in a built folder, which the site's folder does
// not contain.
func documentsOf(t *testing.T, out, site string) (paths []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(out), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".millrace":
			return fs.SkipDir
		case d.IsDir() || name == "_headers" || strings.HasSuffix(name, ".html") || strings.HasPrefix(name, "openfeeder/pages/") || name == "openfeeder.json":
			return nil // for static hosts only
		}
		if _, err := os.Stat(filepath.Join(site, name)); err == nil {
			return nil
		}
		paths = append(paths, "/"+name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	db := filepath.Join(t.TempDir(), "store.db")
	if code, _, out := command(t, nil, "sites", "add", "https://example.com/", "--store", db); code != exitGood {
		t.Fatal(out)
	}
	s := serve(t, copySite(t, "handbook"), "--store", db, "--events-to", "plausible="+srv.URL+"/?domain=example.com")
	get(t, s.url+"docs/llm.json", "User-Agent", gptBot)
	var body string
	eventually(t, "a look at the source", func() bool {
		_, _, body = get(t, s.url+"metrics")
		return strings.Contains(body, "\nmillrace_source_scan_age_seconds ") && strings.Contains(body, "\nmillrace_exporter_lag_seconds{")
	})
	type metric struct{ help, kind, labels string }
	metrics := map[string]*metric{}
	at := func(name string) *metric {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base := strings.TrimSuffix(name, suffix); metrics[base] != nil && metrics[base].kind == "histogram" {
				name = base
			}
		}
		if metrics[name] == nil {
			metrics[name] = new(metric)
		}
		return metrics[name]
	}
	label := regexp.MustCompile(`([a-z_]+)="`)
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		words := strings.SplitN(line, " ", 4)
		switch {
		case !strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "), "millrace_"):
		case strings.HasPrefix(line, "# HELP "):
			at(words[2]).help = words[3]
		case strings.HasPrefix(line, "# TYPE "):
			at(words[2]).kind = words[3]
		default:
			name, labels, _ := strings.Cut(words[0], "{")
			var names []string
			for _, m := range label.FindAllStringSubmatch(labels, -1) {
				if m[1] != "le" {
					names = append(names, "`"+m[1]+"`")
				}
			}
			at(name).labels = strings.Join(names, " ")
		}
	}
	var b bytes.Buffer
	b.WriteString(`# Metrics

` + "`millrace serve`" + ` publishes these metrics at ` + "`/metrics`" + ` for Prometheus, to this machine, to private networks and to ` + "`--metrics`" + `.
The standard ` + "`go_`" + ` and ` + "`process_`" + ` metrics are also included.

| metric | type | labels | meaning |
|---|---|---|---|
`)
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		m := metrics[name]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, m.kind, m.labels, m.help)
	}
	checkReference(t, "metrics.md", b.String())
}
