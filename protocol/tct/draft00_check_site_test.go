package tct

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"

	"github.com/millrace/millrace/protocol/protocoltest"
)

// goodSite00 is the URL of the in-memory site of these tests.
const goodSite00 = "https://site.example"

// goodPages00 are the pages of a site that follows every rule.
var goodPages00 = []struct{ path, title, content string }{
	{"/", "Home", "Home\n\nWelcome."},
	{"/post/", "Page 1", "Page 1\n\nCurly braces {}, \u201cquotes\u201d and \u00c4."},
	{"/about", "About", "About\n\nWrite <p>text</p>, as in a < b."},
}

func mPath00(path string) string { return strings.TrimSuffix(path, "/") + "/llm/" }

// goodHandler00 is a hand-written server of a site that follows the draft.
func goodHandler00() http.Handler {
	mux := http.NewServeMux()
	var items []string
	for _, p := range goodPages00 {
		curl, murl := goodSite00+p.path, goodSite00+mPath00(p.path)
		hash := fingerprintOf(p.content)
		body := jsonio.Encode(map[string]any{
			"profile": "tct-1", "canonical_url": curl, "title": p.title, "content": p.content, "hash": hash, "n": 1.5e300,
		})
		items = append(items, fmt.Sprintf(`{"cUrl":%q,"mUrl":%q,"modified":"2026-01-02T03:04:05Z","contentHash":"sha256-%s"}`, curl, murl, hash))
		mux.HandleFunc("GET "+route(mPath00(p.path)), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", `<`+curl+`>; rel="canonical"`)
			serveJSON00(w, r, body, hashPrefix+hash)
		})
		mux.HandleFunc("GET "+route(p.path), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, `<!doctype html><head><link rel=alternate type=application/json href="%s"><title>x</title></head><body><p>%s`,
				mPath00(p.path), html.EscapeString(p.content))
			if p.path == "/" {
				fmt.Fprint(w, `<a href="/tag/old/">old</a> <a href="https://other.example/tag/x/">x</a>`)
			}
		})
	}
	once := map[string]string{
		listName00:   `{"version":1,"profile":"tct-1","items":[` + strings.Join(items, ",") + `]}`,
		policyName:   `{"profile":"tct-policy-1","version":3,"purposes":{"allow_ai_train":false},"rate_hints":{"max_requests_per_second":null}}`,
		manifestName: `{"patterns":[{"cUrl":"` + goodSite00 + `{+path}","mUrl":"` + goodSite00 + `{+path}/llm/"}]}`,
	}
	for path, body := range once {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if path == listName00 {
				w.Header().Set("Link", `</llm-policy.json>; rel="describedby"`)
			}
			serveJSON00(w, r, []byte(body), canon.SHA256Hex([]byte(body)))
		})
	}
	return mux
}

func route(path string) string {
	if strings.HasSuffix(path, "/") {
		return path + "{$}"
	}
	return path
}

func serveJSON00(w http.ResponseWriter, r *http.Request, body []byte, tag string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", cacheControl)
	h.Set("Vary", draft00.Vary)
	h.Set("ETag", `"`+tag+`"`)
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(body)
		_ = z.Close()
		body = b.Bytes()
		h.Set("Content-Encoding", "gzip")
	}
	http.ServeContent(dated{w}, r, "", modified, bytes.NewReader(body))
}

var modified = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// dated adds Last-Modified to a 304, which the standard library removes.
type dated struct{ http.ResponseWriter }

func (w dated) WriteHeader(status int) {
	w.Header().Set("Last-Modified", modified.Format(http.TimeFormat))
	w.ResponseWriter.WriteHeader(status)
}

// breaker00 wraps the handler of a valid site and adds one fault.
type breaker00 = protocoltest.Breaker

// with00 sets one member of a document.
func with00(path, name string, value any) breaker00 {
	return onMembers(path, func(m map[string]any) { m[name] = value })
}

func without00(path, name string) breaker00 {
	return onMembers(path, func(m map[string]any) { delete(m, name) })
}

// onMembers edits the JSON object of the 200 responses of one path.
func onMembers(path string, f func(m map[string]any)) breaker00 {
	return protocoltest.OnBody(path, func(s string) string {
		var m map[string]any
		if err := json.Unmarshal([]byte(s), &m); err != nil {
			panic(err)
		}
		f(m)
		return string(jsonio.Encode(m))
	})
}

// tagged changes the ETag of a path, and accepts the changed one in If-None-Match.
func tagged(path string, f func(tag string) string) breaker00 {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != path {
				h.ServeHTTP(w, r)
				return
			}
			real := opaque00(protocoltest.ServeIdentity(h, httptest.NewRequest(http.MethodGet, goodSite00+path, nil)).Header())
			r = r.Clone(r.Context())
			if v := r.Header.Get("If-None-Match"); v != "" {
				r.Header.Set("If-None-Match", strings.ReplaceAll(v, f(real), real))
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			rec.Header().Set("ETag", `"`+f(real)+`"`)
			protocoltest.Send(w, rec)
		})
	}
}

func opaque00(h http.Header) string { return strings.Trim(h.Get("ETag"), `"`) }

// moved replaces old by new in all responses, and serves the documents there.
func moved(old, new string) breaker00 {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, new):
				r = r.Clone(r.Context())
				r.URL.Path = strings.TrimSuffix(r.URL.Path, new) + old
			case strings.HasSuffix(r.URL.Path, old):
				http.NotFound(w, r)
				return
			}
			rec := protocoltest.ServeIdentity(h, r)
			rec.Header().Del("Content-Digest")
			for _, values := range rec.Header() {
				for i := range values {
					values[i] = strings.ReplaceAll(values[i], old, new)
				}
			}
			rec.Body = bytes.NewBufferString(strings.ReplaceAll(rec.Body.String(), old, new))
			protocoltest.Send(w, rec)
		})
	}
}
