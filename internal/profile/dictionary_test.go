package profile

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/dcz"
)

// versions is mill with documents that are coded against their earlier versions.
func versions(w http.ResponseWriter, r *http.Request) {
	accept, plain := r.Header.Get("Accept-Encoding"), r.Clone(r.Context())
	plain.Header.Del("Accept-Encoding")
	rec := httptest.NewRecorder()
	mill(rec, plain)
	if !strings.Contains(accept, dcz.Name) || rec.Code != http.StatusOK {
		mill(w, r)
		return
	}
	h := w.Header()
	h.Set(dcz.Use, `match="/"`)
	h.Set("Vary", "Accept-Encoding, Available-Dictionary")
	h.Set("Content-Type", rec.Header().Get("Content-Type"))
	body := rec.Body.Bytes()
	if id := dcz.Sum(body); r.Header.Get(dcz.Available) == id.Field() {
		h.Set("Content-Encoding", dcz.Name)
		body, _ = new(dcz.Encoder).Encode(body, id, body)
	}
	_, _ = w.Write(body)
}

// TestDictionary runs the rules of dictionaries through proxies with one fault each.
func TestDictionary(t *testing.T) {
	t.Parallel()
	coded := func(rec *httptest.ResponseRecorder) bool { return rec.Header().Get("Content-Encoding") == dcz.Name }
	stale := func(always bool) http.HandlerFunc {
		var first *httptest.ResponseRecorder
		return changed(versions, func(r *http.Request, rec *httptest.ResponseRecorder) {
			switch {
			case first == nil && coded(rec):
				kept := *rec
				kept.Body = bytes.NewBuffer(bytes.Clone(rec.Body.Bytes()))
				first = &kept
			case first != nil && r.Header.Get(dcz.Available) != "" && (always || strings.Contains(r.Header.Get("Accept-Encoding"), dcz.Name)):
				*rec = *first
				rec.Body = bytes.NewBuffer(bytes.Clone(first.Body.Bytes()))
			}
		})
	}
	match := func(value string) http.HandlerFunc {
		return changed(versions, func(_ *http.Request, rec *httptest.ResponseRecorder) {
			if rec.Header().Get(dcz.Use) != "" {
				rec.Header().Set(dcz.Use, value)
			}
		})
	}
	const rules = "proxy/rfc9842-"
	for _, c := range []struct {
		name string
		site http.HandlerFunc
		want []string
	}{
		{"no proxy", versions, nil},
		{"no dictionaries", mill, nil},
		{"a cache that ignores Vary", stale(true), []string{rules + "6.1/dictionary-known"}},
		{"a cache that ignores one field", stale(false), []string{rules + "6.1/dictionary-known"}},
		{"drops Vary", changed(versions, func(_ *http.Request, rec *httptest.ResponseRecorder) {
			if coded(rec) {
				rec.Header().Set("Vary", "Accept-Encoding")
			}
		}), []string{rules + "6.2/dictionary-vary"}},
		{"truncates the frame", changed(versions, func(_ *http.Request, rec *httptest.ResponseRecorder) {
			if coded(rec) {
				rec.Body.Truncate(rec.Body.Len() - 3)
			}
		}), []string{rules + "6.1/dictionary-known"}},
		{"no match", match(`id="x"`), []string{rules + "2.1/dictionary-match"}},
		{"a token as match", match(`match=x`), []string{rules + "2.1/dictionary-match"}},
		{"a regular expression", match(`match="/([a-z]+)"`), []string{rules + "2.1/dictionary-match"}},
		{"a parenthesis", match(`match="/\\(a"`), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range findings(t, Proxy(), c.site).Findings {
				if strings.HasPrefix(f.Rule, rules) && !slices.Contains(got, f.Rule) {
					got = append(got, f.Rule)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
