package gateway

import (
	"compress/gzip"
	"context"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/store"
)

// mapper adds an element to the sitemap.
type mapper struct{ lister }

const ourMap = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"` + "\n" +
	`  xmlns:x="https://x.test/ns?a&amp;b">` + "\n<x:version>1</x:version>\n<url><loc>https://x.test/a/</loc></url>\n</urlset>\n"

func (mapper) All(context.Context, millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(yield func(*millrace.Document, error) bool) {
		yield(&millrace.Document{
			Path: "/sitemap.xml", Large: true, Header: http.Header{"Content-Type": {"application/xml"}},
			Parts: millrace.SinglePart("", func(_ context.Context, w io.Writer) error { _, err := io.WriteString(w, ourMap); return err }),
		}, nil)
	}
}

func (mapper) Advertise(millrace.View) millrace.Advertisement {
	return millrace.Advertisement{Entries: []millrace.Entry{{URL: "/sitemap.xml", Type: "application/xml", Spec: "https://x.test/spec"}}}
}

// The site's own sitemap is unchanged except for the elements of the protocols and the hidden
// pages.
func TestOwnSitemap(t *testing.T) {
	protocols := []edition.Protocol{{Name: "mapper", Publisher: mapper{}}}
	const (
		start = "<?xml version='1.0'?>\n<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:image='http://www.google.com/schemas/sitemap-image/1.1'"
		rest  = "\n  <url><loc>https://x.test/a/</loc><image:image><image:loc>https://x.test/cart/a.png</image:loc></image:image></url>"
		end   = "\n  <!-- more -->\n  <url><loc>https://x.test/b.html</loc></url>\n</urlset>\n"
		index = "<sitemapindex xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><sitemap><loc>https://x.test/s1.xml</loc></sitemap></sitemapindex>"
	)
	const elements = ` xmlns:x="https://x.test/ns?a&amp;b">` + "\n<x:version>1</x:version>"
	for _, c := range []struct {
		name, own, want, wantOwn string
	}{
		{"none", "", ourMap, ""},
		{"a list", start + ">" + rest + end, start + elements + rest + end, ""},
		{
			"with hidden pages", start + ">" + rest + "\n<url> <loc> https://x.test/c%61rt/1 </loc> </url><url><loc>/Cart</loc></url>" + end,
			start + elements + rest + "\n" + end, "",
		},
		{"an index", index, ourMap, index},
		{"broken", start + ">" + rest, ourMap, start + ">" + rest},
		{"another with the prefix", start + " xmlns:x='https://y.test/'>" + rest + end, ourMap, start + " xmlns:x='https://y.test/'>" + rest + end},
		{"a page of HTML", "<!DOCTYPE html><html><head><title>Not here</title></head></html>", ourMap, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := site()
			if c.own != "" {
				files = inMemory("index.html", "<p>home", "sitemap.xml", c.own)
			}
			g := setup{files: files, protocols: protocols}.gateway(t)
			w := ask(g, "GET", "/sitemap.xml")
			if d := cmp.Diff(c.want, w.Body.String()); w.Code != 200 || d != "" || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/xml") {
				t.Fatalf("%d %v -want +got\n%s", w.Code, w.Header(), d)
			}
			if again := ask(g, "GET", "/sitemap.xml", "If-None-Match", w.Header().Get("ETag")); again.Code != 304 {
				t.Errorf("conditional: %d", again.Code)
			}
			robots := ask(g, "GET", "/robots.txt").Body.String()
			const line = "Sitemap: https://x.test/sitemap-own.xml\n"
			if w := ask(g, "GET", "/sitemap-own.xml"); c.wantOwn == "" && (w.Code != 404 || strings.Contains(robots, line)) {
				t.Errorf("no own sitemap expected, got %d %s; %s", w.Code, w.Body, robots)
			} else if c.wantOwn != "" && (w.Code != 200 || w.Body.String() != c.wantOwn) {
				t.Errorf("own sitemap: %d %s", w.Code, w.Body)
			}
		})
	}
}

// A request for the sitemap is not attributed to the protocol that writes it, because every
// crawler fetches it.
func TestEventOfSitemap(t *testing.T) {
	for _, files := range []tree{
		inMemory("index.html", "<p>home"),
		inMemory("index.html", "<p>home", "sitemap.xml", "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'></urlset>"),
	} {
		eventLog := new(events)
		g := setup{files: files, protocols: []edition.Protocol{{Name: "map", Publisher: mapper{}}}, o: Options{Events: eventLog, Access: access.Options{Bots: known(t)}}}.gateway(t)
		w := ask(g, "GET", "/sitemap.xml", "User-Agent", gptBot)
		got := eventLog.last()
		if w.Code != 200 || len(got) != 1 || got[0].Protocol != "site" || got[0].Endpoint != store.EndpointIndex || got[0].Path != "/sitemap.xml" || got[0].Bytes == 0 {
			t.Errorf("%d, %+v", w.Code, got)
		}
	}
}

// moved is a site whose sitemap redirects and whose page restricts its usage.
var moved = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/sitemap.xml":
		http.Redirect(w, r, "/wp-sitemap.xml", http.StatusFound)
	case "/wp-sitemap.xml":
		w.Header().Set("Content-Type", "application/xml")
		_, _ = io.WriteString(w, "<sitemapindex/>")
	case "/down.html":
		w.Header()["Content-Usage"] = []string{"search=n, bots=n"}
		_, _ = io.WriteString(w, "<!DOCTYPE html><p>down")
	case "/.well-known/api-catalog":
		w.Header().Set("Content-Type", "application/linkset+json")
		_, _ = io.WriteString(w, `{"linkset":[{"anchor":"https://x.test/api","status":[{"href":"https://x.test/<ok>"}]}]}`)
	default:
		http.NotFound(w, r)
	}
})

func TestMovedSitemap(t *testing.T) {
	g := setup{o: Options{Origin: moved}, protocols: []edition.Protocol{{Name: "mapper", Publisher: mapper{}}}}.gateway(t)
	if w := ask(g, "GET", "/sitemap.xml"); w.Body.String() != ourMap {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	g = setup{o: Options{Origin: moved}, protocols: []edition.Protocol{{Name: "mapper", Publisher: mapper{}}, {Name: "lister", Publisher: lister{}}}}.gateway(t)
	want := "User-agent: *\nDisallow:\n\nSitemap: https://x.test/sitemap.xml\nSitemap: https://x.test/wp-sitemap.xml\n"
	if w := ask(g, "GET", "/robots.txt"); w.Body.String() != want {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestCatalog(t *testing.T) {
	protocols := []edition.Protocol{{Name: "mapper", Publisher: mapper{}}}
	const ours = `{"anchor":"https://x.test/.well-known/api-catalog","item":[{"href":"https://x.test/llm-pages.json","type":"application/json"},` +
		`{"href":"https://x.test/sitemap.xml","type":"application/xml"}],"terms-of-service":[{"href":"https://x.test/terms?a&b"}]},` +
		`{"anchor":"https://x.test/llm-pages.json","service-doc":[{"href":"https://datatracker.ietf.org/doc/draft-jurkovikj-collab-tunnel/01/"}]},` +
		`{"anchor":"https://x.test/sitemap.xml","service-doc":[{"href":"https://x.test/spec"}]}]}`
	policy := &millrace.Policy{Terms: "https://x.test/terms?a&b"}
	for name, c := range map[string]struct {
		s    setup
		want string
	}{
		"a mirror":           {setup{protocols: protocols}, `{"linkset":[` + ours},
		"a site without one": {setup{protocols: protocols, files: site()}, `{"linkset":[` + ours},
		"a site with one":    {setup{protocols: protocols, o: Options{Origin: moved}}, `{"linkset":[{"anchor":"https://x.test/api","status":[{"href":"https://x.test/<ok>"}]},` + ours},
	} {
		c.s.o.Policy = policy
		g := c.s.gateway(t)
		w := ask(g, "GET", "/.well-known/api-catalog")
		if d := cmp.Diff(c.want, w.Body.String()); d != "" || w.Code != 200 {
			t.Errorf("%s: %d -want +got\n%s", name, w.Code, d)
		}
		head := ask(g, "HEAD", "/.well-known/api-catalog")
		if head.Header().Get("Content-Type") != `application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"` ||
			head.Header().Get("Link") != `<https://x.test/.well-known/api-catalog>; rel="api-catalog"; type="application/linkset+json"` || head.Body.Len() > 0 {
			t.Errorf("%s: HEAD: %v", name, head.Header())
		}
		if w := ask(g, "GET", "/.well-known/api-catalog", "If-None-Match", head.Header().Get("ETag")); w.Code != 304 {
			t.Errorf("%s: conditional: %d", name, w.Code)
		}
	}
}

// Every response has the policy's usage fields. A response's own fields can only be stricter.
func TestUsageFields(t *testing.T) {
	policy := &millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AITrain: false, millrace.Search: true}}
	g := setup{o: Options{Origin: moved, Policy: policy}}.gateway(t)
	list := ask(g, "GET", "/llm-pages.json")
	for _, w := range []http.Header{list.Header(), ask(g, "GET", "/llm-pages.json", "If-None-Match", list.Header().Get("ETag")).Header(), ask(g, "GET", "/robots.txt").Header()} {
		if w.Get("Content-Signal") != "search=yes, ai-train=no" || w.Get("Content-Usage") != "search=y, train-ai=n" {
			t.Errorf("%v", w)
		}
	}
	own := ask(g, "GET", "/down.html").Header()
	if own.Get("Content-Signal") != "search=no, ai-train=no" || own.Get("Content-Usage") != "search=n, train-ai=n, bots=n" {
		t.Errorf("%v", own)
	}
	if w := ask(g, "GET", "/nothing"); w.Code != 404 || w.Header().Get("Content-Signal") != "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// In front of a server, site-wide documents include the server's own files, whatever their
// coding, for the whole host. This also applies if the pages are in a folder.
func TestComposedInFront(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := map[string]string{
			"/robots.txt":       "User-agent: *\nDisallow: /mine\n",
			"/blog/sitemap.xml": `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://x.test/blog/a/</loc><priority>0.1</priority></url></urlset>`,
		}[r.URL.Path]
		if body == "" || r.Host != "x.test" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, body)
		_ = z.Close()
	}))
	t.Cleanup(origin.Close)
	front, err := proxy.New(origin.URL, &proxy.Options{Base: "https://x.test/blog/", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(front.Close)
	policy := &millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AITrain: false}}
	g := setup{base: "https://x.test/blog/", protocols: []edition.Protocol{{Name: "mapper", Publisher: mapper{}}}, o: Options{Origin: front, Policy: policy}}.gateway(t)
	get := func(path string) string {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "x.test"
		r.Header.Set("Accept-Encoding", "br")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		return w.Body.String()
	}
	if got := get("/robots.txt"); got != "User-agent: *\nContent-Signal: ai-train=no\nDisallow: /mine\n" {
		t.Errorf("robots.txt: %s", got)
	}
	if got := get("/blog/sitemap.xml"); !strings.Contains(got, "<x:version>1</x:version><url><loc>https://x.test/blog/a/</loc><priority>0.1</priority>") {
		t.Errorf("sitemap.xml: %s", got)
	}
	if got := get("/.well-known/api-catalog"); !strings.Contains(got, `"https://x.test/blog/llm-pages.json"`) {
		t.Errorf("api-catalog: %s", got)
	}

	// If the site's server is down, the response is its error.
	origin.Close()
	r := httptest.NewRequest(http.MethodGet, "/robots.txt", nil)
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	if w.Code != http.StatusBadGateway {
		t.Errorf("of a server that is down: %d %s", w.Code, w.Body)
	}
}
