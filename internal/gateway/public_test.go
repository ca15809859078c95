package gateway

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	artifactmemory "github.com/millrace/millrace/artifact/memory"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// everything returns the gateway of a site with every protocol, and the paths of all
// documents.
func everything(t *testing.T, o *Options) (g *Gateway, paths []string) {
	t.Helper()
	base := "https://x.test/"
	pages := []*millrace.Page{page("/", "Home"), page("/a/", "A"), page("/b.html", "B"), page("/c/?n=1", "C")}
	var protocols []edition.Protocol
	var taggers []millrace.Tagger
	var names []string
	for _, p := range all.Protocols() {
		names = append(names, p.Name)
	}
	for _, p := range all.Protocols() {
		taggers = append(taggers, p.Tagger)
		policy := &millrace.Policy{Terms: base + "terms"}
		protocols = append(protocols, edition.Protocol{Name: p.Name, Publisher: p.NewPublisher(&protocol.PublisherOptions{Policy: policy, Protocols: names})})
	}
	for _, p := range pages {
		p.URL = strings.TrimSuffix(base, "/") + p.URL
	}
	view := protocoltest.NewView(millrace.Site{Base: base, EndpointBase: base, Epoch: "e", Seq: 1, Time: past}, pages, taggers...)
	server := edition.NewServer((&oneView{view: view}).source(), protocols, artifactmemory.New(nil), &edition.Options{Logger: slog.New(slog.DiscardHandler)})
	if _, err := server.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.Base, o.EndpointBase = base, base
	var err error
	if o.Origin, err = proxy.NewFiles(site(), base, nil); err != nil {
		t.Fatal(err)
	}
	if g, err = New(server, o); err != nil {
		t.Fatal(err)
	}
	ed := server.Current()
	paths = append(append(g.SiteWidePaths(t.Context()), ed.Large()...), ed.ArtifactPaths()...)
	for _, proto := range protocols {
		for d, err := range proto.Publisher.All(t.Context(), view) {
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, d.Path)
		}
	}
	slices.Sort(paths)
	return g, slices.Compact(paths)
}

// All documents, including those the gateway composes, check the method before the parameters,
// ignore unknown parameters, and read all lines of If-None-Match.
func TestPublicPaths(t *testing.T) {
	g, paths := everything(t, &Options{})
	if len(paths) < 30 {
		t.Errorf("%d documents: %q", len(paths), paths)
	}
	for _, path := range paths {
		more := "?"
		if strings.Contains(path, "?") {
			more = "&"
		}
		want := ask(g, "GET", path)
		tag := want.Header().Get("Etag")
		if want.Code != http.StatusOK || tag == "" {
			t.Errorf("%s: %d %v", path, want.Code, want.Header())
			continue
		}
		if canonical := `<https://x.test` + path + `>; rel="canonical"`; slices.Contains(want.Header()["Link"], canonical) {
			t.Errorf("%s is not the URL of its document: %q", path, want.Header()["Link"])
		}
		if strings.Contains(path, "?n=1") { // the query is part of the page's URL
			methods(t, g, path, "GET, HEAD, OPTIONS")
			continue
		}
		for _, query := range []string{"x=1", "utm_source=a&x=%20"} {
			target := path + more + query
			w := ask(g, "GET", target)
			if w.Code != http.StatusOK || w.Header().Get("Etag") != tag || w.Body.String() != want.Body.String() {
				t.Errorf("%s: %d %q, want that of %s, %q", target, w.Code, w.Header().Get("Etag"), path, tag)
			}
			if n := strings.Count(strings.Join(w.Header()["Link"], ","), `rel="canonical"`); n != 1 {
				t.Errorf("%s: Link %q", target, w.Header()["Link"])
			}
			if w := ask(g, "HEAD", target); w.Code != http.StatusOK || w.Header().Get("Etag") != tag {
				t.Errorf("HEAD %s: %d", target, w.Code)
			}
			if w := ask(g, "GET", target, "If-None-Match", tag); w.Code != http.StatusNotModified {
				t.Errorf("%s with its tag: %d", target, w.Code)
			}
		}
		if w := ask(g, "GET", path, "If-None-Match", `"other"`, "If-None-Match", tag); w.Code != http.StatusNotModified {
			t.Errorf("%s with two lines of tags: %d", path, w.Code)
		}
		for _, target := range []string{path, path + more + "since=rubbish&min_score=x&page=-1&x=1"} {
			methods(t, g, target, "GET, HEAD, OPTIONS")
		}
	}
	for target, allow := range map[string]string{
		"/openfeeder": "GET, HEAD, OPTIONS", "/openfeeder?url=//x": "GET, HEAD, OPTIONS", "/openfeeder?q=": "GET, HEAD, OPTIONS",
		"/openfeeder/events?since=rubbish": "GET, HEAD, OPTIONS",
	} {
		methods(t, g, target, allow)
	}
	// nginx allows 4 KiB for all fields of a response.
	if w := ask(g, "GET", "/openfeeder?x=1&limit=1&q="+strings.Repeat("wheel+", 650)); w.Code != http.StatusOK || len(fmt.Sprint(w.Header())) > 2000 {
		t.Errorf("a long question: %d, fields of %d bytes", w.Code, len(fmt.Sprint(w.Header())))
	}
	for _, path := range []string{"/healthz", "/readyz", "/healthz?x"} {
		for _, method := range []string{"OPTIONS", "POST", "FOO"} {
			if w := ask(g, method, path); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d %v", method, path, w.Code, w.Header())
			}
		}
	}
	file := ask(g, "GET", "/style.css")
	if w := ask(g, "GET", "/style.css", "If-None-Match", `"other"`, "If-None-Match", file.Header().Get("Etag")); w.Code != http.StatusNotModified {
		t.Errorf("a file with two lines of tags: %d", w.Code)
	}
}

// methods checks the methods of a public target.
func methods(t *testing.T, g *Gateway, target, allow string) {
	t.Helper()
	w := ask(g, "OPTIONS", target)
	if w.Code != http.StatusNoContent || w.Header().Get("Allow") != allow || w.Header()["Link"] != nil {
		t.Errorf("OPTIONS %s: %d %v", target, w.Code, w.Header())
	}
	for name := range w.Header() {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("OPTIONS %s without Origin has %s", target, name)
		}
	}
	w = ask(g, "OPTIONS", target, "Origin", "https://other.test", "Access-Control-Request-Method", "GET")
	if w.Code != http.StatusNoContent || w.Header().Get("Access-Control-Allow-Origin") != "*" || w.Header().Get("Access-Control-Allow-Methods") != allow {
		t.Errorf("preflight of %s: %d %v", target, w.Code, w.Header())
	}
	for _, method := range []string{"POST", "DELETE", "FOO"} {
		if w := ask(g, method, target); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != allow || w.Body.Len() == 0 {
			t.Errorf("%s %s: %d %v %q", method, target, w.Code, w.Header(), w.Body)
		}
	}
}

// Discovery works before the first edition. If the documents have a base path, their
// well-known documents are also served at the root of the host.
func TestDiscoveryEverywhere(t *testing.T) {
	early := setup{unready: true, files: site(), protocols: []edition.Protocol{{Name: "notes", Publisher: new(notes)}}}
	for target, want := range map[string]int{"/.well-known/notes": 200, "/.well-known/notes?x=1": 200, "/notes": 503, "/llm-pages.json": 503, "/": 200} {
		if w := ask(early.gateway(t), "GET", target); w.Code != want {
			t.Errorf("before the first edition: %s: %d, want %d", target, w.Code, want)
		}
	}
	for _, guarded := range []bool{false, true} {
		below := setup{base: "https://x.test/blog/", files: site(), protocols: []edition.Protocol{{Name: "notes", Publisher: new(notes), Guarded: guarded}}}
		g := below.gateway(t)
		root, own := ask(g, "GET", "/.well-known/notes"), ask(g, "GET", "/blog/.well-known/notes")
		if root.Code != 200 || root.Body.String() != own.Body.String() || root.Header().Get("Etag") != own.Header().Get("Etag") {
			t.Errorf("at the root: %d %q", root.Code, root.Body)
		}
		methods(t, g, "/.well-known/notes?x", "GET, HEAD, OPTIONS")
		for _, target := range []string{"/notes", "/.well-known/other", "/llm-pages.json"} {
			if w := ask(g, "GET", target); w.Code != 404 {
				t.Errorf("%s at the root: %d", target, w.Code)
			}
		}
	}
}

// A 412 or 416 has a body in the protocol's form, and a 416 has the Content-Range.
func TestConditionErrors(t *testing.T) {
	g := setup{files: site(), protocols: []edition.Protocol{{Name: "notes", Publisher: new(notes)}}}.gateway(t)
	w := ask(g, "GET", "/.well-known/notes", "If-Match", `"none"`)
	if w.Code != 412 || !strings.HasPrefix(w.Body.String(), `{"notes":`) {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
	}
	w = ask(g, "GET", "/.well-known/notes", "Range", "bytes=9999-")
	if w.Code != 416 || w.Header().Get("Content-Range") != "bytes */24" || !strings.HasPrefix(w.Body.String(), `{"notes":`) {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
	}
}

// A redirect may be cached.
func TestRedirectIsCacheable(t *testing.T) {
	g := setup{base: "https://x.test/blog/", files: site()}.gateway(t)
	for _, target := range []string{"/", "/blog", "/blog/a"} {
		if w := ask(g, "GET", target); w.Code != 301 || w.Header().Get("Cache-Control") != "max-age=3600" {
			t.Errorf("%s: %d %v", target, w.Code, w.Header())
		}
	}
}

func TestHealth(t *testing.T) {
	for unready, want := range map[bool]string{false: `{"status":"ok","ready":true}`, true: `{"status":"ok","ready":false}`} {
		w := ask(setup{files: site(), unready: unready}.gateway(t), "GET", "/healthz")
		if w.Code != 200 || w.Header().Get("Content-Type") != "application/json; charset=utf-8" || strings.TrimSpace(w.Body.String()) != want {
			t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
		}
	}
}

// A refused bot gets the error in the form of the protocol at the path.
func TestRefusalInForm(t *testing.T) {
	g, _ := everything(t, &Options{Access: access.Options{Bots: known(t), Rules: rules(t, "training=402")}})
	for target, part := range map[string]string{"/openfeeder?q=x": `{"schema":"openfeeder/1.0","error":{`, "/llm-pages.json": `{"title":"Payment Required"`} {
		w := ask(g, "GET", target, "User-Agent", "CCBot/2.0")
		if w.Code != 402 || !strings.HasPrefix(w.Body.String(), part) || (w.Header()["X-Openfeeder-Cache"] != nil) != strings.HasPrefix(target, "/openfeeder") {
			t.Errorf("%s: %d %v %s", target, w.Code, w.Header(), w.Body)
		}
	}
}
