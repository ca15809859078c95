package protocoltest

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
)

// Breaker wraps the handler of a valid site and introduces a fault.
type Breaker = func(http.Handler) http.Handler

// ServeIdentity serves a request without a content coding, so that the body can be edited.
func ServeIdentity(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	r = r.Clone(r.Context())
	r.Header.Del("Accept-Encoding")
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

// Send writes a recorded response.
func Send(w http.ResponseWriter, rec *httptest.ResponseRecorder) {
	rec.Header().Del("Content-Length")
	maps.Copy(w.Header(), rec.Header())
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

// OnRequest edits the requests for one path.
func OnRequest(path string, f func(r *http.Request)) Breaker {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
				r = r.Clone(r.Context())
				f(r)
			}
			h.ServeHTTP(w, r)
		})
	}
}

// OnResponse edits the responses for one path, without content codings.
func OnResponse(path string, f func(r *http.Request, rec *httptest.ResponseRecorder)) Breaker {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != path {
				h.ServeHTTP(w, r)
				return
			}
			rec := ServeIdentity(h, r)
			rec.Header().Del("Content-Digest") // the digest is that of the original body
			f(r, rec)
			Send(w, rec)
		})
	}
}

// OnHeader edits the header of the 200 responses for one path, and keeps their content codings.
func OnHeader(path string, f func(r *http.Request, h http.Header)) Breaker {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != path {
				h.ServeHTTP(w, r)
				return
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			if rec.Code == http.StatusOK {
				f(r, rec.Header())
			}
			Send(w, rec)
		})
	}
}

// SetHeader sets a header field of the 200 responses for one path; "" removes the field.
func SetHeader(path, name, value string) Breaker {
	return OnHeader(path, func(_ *http.Request, h http.Header) {
		h.Del(name)
		if value != "" {
			h.Set(name, value)
		}
	})
}

// OnBody edits only the body of the 200 responses for one path.
func OnBody(path string, f func(string) string) Breaker {
	return OnResponse(path, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		if rec.Code == http.StatusOK {
			rec.Body = bytes.NewBufferString(f(rec.Body.String()))
		}
	})
}

// ReplaceBody replaces the first occurrence of old in the body of the 200 responses for one path.
// BASE stands for the site's origin.
func ReplaceBody(path, old, new string) Breaker {
	return OnResponse(path, func(r *http.Request, rec *httptest.ResponseRecorder) {
		if rec.Code != http.StatusOK {
			return
		}
		base := strings.NewReplacer("BASE", baseOf(r))
		before, after, ok := strings.Cut(rec.Body.String(), base.Replace(old))
		if !ok {
			panic(base.Replace(old) + " is not in " + rec.Body.String())
		}
		rec.Body = bytes.NewBufferString(before + base.Replace(new) + after)
	})
}

func baseOf(r *http.Request) string {
	switch {
	case r.URL.Host != "":
		return r.URL.Scheme + "://" + r.URL.Host
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// Both combines several breakers into one fault.
func Both(fs ...Breaker) Breaker {
	return func(h http.Handler) http.Handler {
		for _, f := range fs {
			h = f(h)
		}
		return h
	}
}

// Respond sends an empty response with a status code for one path.
func Respond(path string, code int) Breaker {
	return OnResponse(path, func(_ *http.Request, rec *httptest.ResponseRecorder) {
		rec.Code = code
		rec.Body = new(bytes.Buffer)
		clear(rec.Header())
	})
}
