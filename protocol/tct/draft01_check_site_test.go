package tct

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"

	"github.com/millrace/millrace/protocol/protocoltest"
)

// goodSite01 is the URL of the in-memory site of these tests.
const goodSite01 = "https://site.example"

// goodPages01 are the pages of a site that follows every rule; one of them is about HTML.
var goodPages01 = []struct{ path, title, content string }{
	{"/", "Home", "Home\nWelcome."},
	{"/post/", "Page 1", "Page 1\nCurly braces {}, quotes \" and a line\u2028separator."},
	{"/about", "Page <b>", "Page <b>\nWrite <p>text</p>, as in a < b."},
}

func mPath01(path string) string { return strings.TrimSuffix(path, "/") + "/llm.json" }

// goodHandler01 is a hand-written server of a site that follows the draft.
func goodHandler01() http.Handler {
	mux := http.NewServeMux()
	var items []string
	for _, p := range goodPages01 {
		curl, murl := goodSite01+p.path, goodSite01+mPath01(p.path)
		body, hash := encodePage(map[string]any{
			"profile": "tct-1", "canonical_url": curl, "title": p.title, "content": p.content, "n": 1.5e300,
		})
		items = append(items, fmt.Sprintf(`{"cUrl":%q,"mUrl":%q,"etag":%q}`, curl, murl, hash))
		mux.HandleFunc("GET "+pattern01(mPath01(p.path)), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", `<`+curl+`>; rel="canonical"`)
			serveJSON01(w, r, body, hash)
		})
		mux.HandleFunc("GET "+pattern01(p.path), func(w http.ResponseWriter, r *http.Request) {
			head := ""
			if p.path == "/" {
				w.Header().Add("Link", `</llm-pages.json>; rel="index"; type="application/json"`)
			}
			if p.path == "/about" {
				head = `<link rel=alternate type=application/json href="` + mPath01(p.path) + `">`
			} else {
				w.Header().Add("Link", `<`+murl+`>; rel="alternate"; type="application/json"`)
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, "<!doctype html><head>%s<title>x</title></head><body><p>%s", head,
				strings.ReplaceAll(html.EscapeString(p.content), "&gt;", "<i>&gt;</i>"))
		})
	}
	list := []byte(`{"version":1,"profile":"tct-1","items":[` + strings.Join(items, ",") + `]}`)
	mux.HandleFunc("GET /llm-pages.json", func(w http.ResponseWriter, r *http.Request) {
		serveJSON01(w, r, list, canon.SHA256Hex(list))
	})
	return mux
}

func pattern01(path string) string {
	if strings.HasSuffix(path, "/") {
		return path + "{$}"
	}
	return path
}

// encodePage returns the canonical body of a page, and its hash.
func encodePage(m map[string]any) (body []byte, hash string) {
	m = maps.Clone(m)
	delete(m, "hash")
	hash = hashPrefix + canon.SHA256Hex(canonical(m))
	m["hash"] = hash
	return canonical(m), hash
}

func canonical(v any) []byte {
	b, err := json.Marshal(v)
	if err == nil {
		b, err = jsonio.Canonical(b, nil)
	}
	if err != nil {
		panic(err)
	}
	return b
}

func serveJSON01(w http.ResponseWriter, r *http.Request, body []byte, tag string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", cacheControl)
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", `"`+tag+`"`)
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(body)
		_ = z.Close()
		body = b.Bytes()
		h.Set("Content-Encoding", "gzip")
	}
	http.ServeContent(w, r, "", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), bytes.NewReader(body))
}

// breaker01 wraps the handler of a valid site and adds one fault.
type breaker01 = protocoltest.Breaker

// pageAs serves another body and tag for a page if when reports true. If listed is set, it
// also updates the tag in the list.
func pageAs(path string, listed bool, when func(*http.Request) bool, f func(old map[string]any) (body []byte, hash, tag string)) breaker01 {
	return func(h http.Handler) http.Handler {
		load := func() (old string, body []byte, hash, tag string) {
			rec := protocoltest.ServeIdentity(h, httptest.NewRequest(http.MethodGet, goodSite01+path, nil))
			var m map[string]any
			if err := json.Unmarshal(rec.Body.Bytes(), &m); err != nil {
				panic(err)
			}
			old = m["hash"].(string)
			body, hash, tag = f(m)
			return
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == path && when(r):
				unconditional := httptest.NewRequest(http.MethodGet, r.URL.String(), nil)
				maps.Copy(w.Header(), protocoltest.ServeIdentity(h, unconditional).Header())
				w.Header().Del("Content-Length")
				w.Header().Del("Content-Digest")
				_, body, _, tag := load()
				serveJSON01(w, r, body, tag)
			case listed && r.URL.Path == "/llm-pages.json":
				rec := protocoltest.ServeIdentity(h, r)
				rec.Header().Del("Content-Digest")
				old, _, hash, _ := load()
				rec.Body = bytes.NewBufferString(strings.ReplaceAll(rec.Body.String(), old, hash))
				protocoltest.Send(w, rec)
			default:
				h.ServeHTTP(w, r)
			}
		})
	}
}

func always(*http.Request) bool { return true }

// edited edits the members of a page, and updates its hash, tag and list item.
func edited(path string, f func(m map[string]any)) breaker01 {
	return pageAs(path, true, always, func(m map[string]any) ([]byte, string, string) {
		f(m)
		body, hash := encodePage(m)
		return body, hash, hash
	})
}

func without01(path, name string) breaker01 {
	return edited(path, func(m map[string]any) { delete(m, name) })
}

func with01(path, name string, value any) breaker01 {
	return edited(path, func(m map[string]any) { m[name] = value })
}

// noLinks removes the links from a page's header and HTML.
func noLinks(path string) breaker01 {
	return protocoltest.OnResponse(path, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		rec.Header().Del("Link")
		rec.Body = bytes.NewBufferString(strings.ReplaceAll(rec.Body.String(), "alternate", "prefetch"))
	})
}
