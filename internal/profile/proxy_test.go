package profile

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
)

// mill is a site that meets all rules of Proxy.
func mill(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	var body, kind string
	switch r.URL.Path {
	case "/":
		body, kind = "<!doctype html><title>Mill</title><p>Wheels.", "text/html"
		h.Set("Vary", "Accept")
		h.Set("Link", `</index.md>; rel="alternate"; type="text/markdown"`)
		if strings.Contains(r.Header.Get("Accept"), "markdown") {
			body, kind = "# Mill\n\nWheels.\n", "text/markdown; charset=utf-8"
		}
	case "/index.md":
		body, kind = "# Mill\n\nWheels.\n", "text/markdown; charset=utf-8"
	case "/llms.txt":
		body, kind = "# Mill\n\n- [Mill](/index.md)\n", "text/plain; charset=utf-8"
	default:
		http.NotFound(w, r)
		return
	}
	h.Add("Vary", "Accept-Encoding")
	content, tag := []byte(body), `"`+canon.SHA256Hex([]byte(body))[:8]
	if r.Header.Get("Accept-Encoding") == "gzip" {
		content, tag = zip(content), tag+"-gzip"
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", tag+`"`)
	h.Set("Content-Type", kind)
	if strings.TrimPrefix(r.Header.Get("If-None-Match"), "W/") == tag+`"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Digest", canon.Digest(content))
	if r.Method != http.MethodHead {
		_, _ = w.Write(content)
	}
}

func zip(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

// findings returns the report of a suite on a site.
func findings(t *testing.T, suite check.Suite, site http.HandlerFunc) *check.Report {
	t.Helper()
	srv := httptest.NewServer(site)
	defer srv.Close()
	target, err := check.NewTarget(srv.URL, http.DefaultClient, &check.TargetOptions{Decode: fetch.Decode})
	if err != nil {
		t.Fatal(err)
	}
	report, err := check.Run(t.Context(), target, []check.Suite{suite}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// changed returns the site behind a proxy that changes each response.
func changed(site http.HandlerFunc, change func(r *http.Request, rec *httptest.ResponseRecorder)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		site(rec, r)
		change(r, rec)
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	}
}

// TestProxy runs the rules through proxies with one fault each.
func TestProxy(t *testing.T) {
	t.Parallel()
	cache := make(map[string]*httptest.ResponseRecorder) // whose key is the path
	var cached http.HandlerFunc = func(w http.ResponseWriter, r *http.Request) {
		key := r.Method + r.URL.Path + r.Header.Get("Accept-Encoding") + r.Header.Get("If-None-Match")
		rec, hit := cache[key]
		if !hit {
			rec = httptest.NewRecorder()
			mill(rec, r)
			cache[key] = rec
		}
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		if hit {
			w.Header().Set("Age", "7")
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	}
	weaken := func(_ *http.Request, rec *httptest.ResponseRecorder) {
		if tag := rec.Header().Get("ETag"); rec.Header().Get("Content-Encoding") != "" {
			rec.Header().Set("ETag", "W/"+tag)
		}
	}
	for _, c := range []struct {
		name string
		site http.HandlerFunc
		want []string
	}{
		{"no proxy", mill, nil},
		{"compresses always", changed(mill, func(r *http.Request, rec *httptest.ResponseRecorder) {
			if r.Header.Get("Accept-Encoding") == "identity" && rec.Body.Len() > 0 {
				b := zip(rec.Body.Bytes())
				rec.Body = bytes.NewBuffer(b)
				rec.Header().Set("Content-Encoding", "gzip")
				rec.Header().Del("Content-Digest")
			}
		}), []string{"proxy/rfc9110-12.5.3/identity"}},
		{"weakens tags", changed(mill, weaken), []string{"proxy/rfc9110-8.8.1/weakened-etag"}},
		{"drops Vary", changed(mill, func(_ *http.Request, rec *httptest.ResponseRecorder) { rec.Header().Del("Vary") }), []string{
			"proxy/rfc9110-12.5.3/vary-coding", "proxy/rfc9110-12.5.5/vary-accept",
		}},
		{"rewrites", changed(mill, func(_ *http.Request, rec *httptest.ResponseRecorder) {
			if rec.Header().Get("Content-Encoding") == "" {
				rec.Body = bytes.NewBuffer(bytes.ReplaceAll(rec.Body.Bytes(), []byte("Mill"), []byte("<b>Mill")))
			}
		}), []string{"proxy/rfc9530-2/digest"}},
		{"refuses HEAD", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			mill(w, r)
		}, []string{"proxy/rfc9110-9.3.2/head"}},
		{"loses conditions", func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("If-None-Match")
			mill(w, r)
		}, []string{"proxy/rfc9110-13.1.2/not-modified"}},
		{"caches across Accept", cached, []string{"proxy/rfc9111-4.1/accept-markdown"}},
		{"caches Markdown", func(w http.ResponseWriter, r *http.Request) {
			if cache["md"] != nil && r.URL.Path == "/" {
				r.Header.Set("Accept", "text/markdown")
			}
			if strings.Contains(r.Header.Get("Accept"), "markdown") && r.URL.Path == "/" {
				cache["md"] = httptest.NewRecorder()
			}
			mill(w, r)
		}, []string{"proxy/rfc9111-4.1/accept-html"}},
	} {
		report := findings(t, Proxy(), c.site)
		got := []string(nil)
		for _, f := range report.Findings {
			if !slices.Contains(got, f.Rule) {
				got = append(got, f.Rule)
			}
			if !strings.Contains(f.Fix, "nginx") || !strings.Contains(f.Fix, "Caddy") || !strings.Contains(f.Fix, "Cloudflare") {
				t.Errorf("%s: %s has no fix for each proxy: %s", c.name, f.Rule, f.Fix)
			}
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s%+v", c.name, d, report.Findings)
		}
		for _, o := range report.Outcomes {
			if o.State == check.NotRun {
				t.Errorf("%s: %s: %s", c.name, o.Rule.ID, o.Reason)
			}
		}
	}
	named := findings(t, Proxy(), changed(mill, func(r *http.Request, rec *httptest.ResponseRecorder) {
		rec.Header().Set("Cf-Ray", "1")
		weaken(r, rec)
	}))
	if len(named.Findings) == 0 || !strings.Contains(named.Findings[0].Got, "(through Cloudflare)") {
		t.Errorf("the proxy is not named: %+v", named.Findings)
	}
}
