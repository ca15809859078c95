package tct

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"

	"github.com/millrace/millrace/protocol"
)

// The policy option receives each policy before the list is applied, and can stop the stream.
func TestReaderTerms(t *testing.T) {
	const (
		list      = `{"version":1,"profile":"tct-1","items":[]}`
		forbids   = `{"profile":"tct-policy-1","purposes":{"allow_ai_train":false}}`
		described = `</terms.json>; rel="describedby"`
	)
	type doc struct {
		status    int
		typ, body string
	}
	enough := fmt.Errorf("enough: %w", millrace.ErrForbidden)
	for _, tt := range []struct {
		name     string
		policy   doc // of /llm-policy.json
		terms    doc // of /terms.json, to which the list links
		refuse   bool
		received string // paths of the policies that the option received
		ends     error  // nil = the stream ends without an error
		notes    int
	}{
		{name: "none", policy: doc{status: 404}},
		{name: "there", policy: doc{body: forbids}, received: "/llm-policy.json"},
		{name: "refused", policy: doc{body: forbids}, refuse: true, received: "/llm-policy.json", ends: enough},
		{name: "named by the list", policy: doc{status: 404}, terms: doc{body: forbids}, received: "/terms.json"},
		{name: "named by the list and refused", policy: doc{status: 404}, terms: doc{body: forbids}, refuse: true, received: "/terms.json", ends: enough},
		{name: "closed", policy: doc{status: 403}},
		{name: "bad request", policy: doc{status: 400}},
		{name: "not understood", policy: doc{body: `{"purposes":{"allow_ai_train":"no"}}`}, notes: 1},
		{name: "not understood, as text", policy: doc{typ: "text/plain", body: `{"purposes":`}, notes: 1},
		{name: "too long", policy: doc{body: `{"x":"` + strings.Repeat("x", 1<<20) + `"}`}, notes: 1},
		{name: "anything for any path", policy: doc{typ: "text/plain", body: "ok\n"}},
		{name: "an array", policy: doc{body: "[]"}, notes: 1},
		{name: "a page", policy: doc{typ: "text/html", body: "<p>"}},
		{name: "as text", policy: doc{typ: "text/plain", body: forbids}, received: "/llm-policy.json"},
		{name: "in trouble", policy: doc{status: 500}, notes: 1},
		{name: "named and not understood", policy: doc{status: 404}, terms: doc{body: "{"}, notes: 1},
		{name: "named and not there", policy: doc{status: 404}, terms: doc{status: 404}, notes: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				d := doc{status: 404}
				switch r.URL.Path {
				case listName00:
					d = doc{body: list}
					if tt.terms != (doc{}) {
						w.Header().Set("Link", described)
					}
				case policyName:
					d = tt.policy
				case "/terms.json":
					d = tt.terms
				}
				if d.typ == "" {
					d.typ = mediaType
				}
				w.Header().Set("Content-Type", d.typ)
				if d.status != 0 {
					w.WriteHeader(d.status)
				}
				fmt.Fprint(w, d.body)
			}))
			defer srv.Close()
			paths, notes := "", 0
			client := fetch.New(&fetch.Options{AllowPrivate: true})
			defer client.CloseIdleConnections()
			r := Draft00().NewReader(client.HTTP(), srv.URL, &protocol.ReaderOptions{
				Note: func(protocol.Note) { notes++ },
				Policy: func(terms protocol.Terms) error {
					paths += strings.TrimPrefix(terms.URL, srv.URL)
					if allowed, stated := terms.Policy.Purposes[millrace.AITrain]; !stated || allowed || terms.Names.Purposes[millrace.AITrain] != "purposes.allow_ai_train" {
						t.Errorf("reported %+v", terms)
					}
					if tt.refuse {
						return enough
					}
					return nil
				},
			})
			var ended error
			marks := 0
			for ch, err := range r.Changes(t.Context(), "") {
				if err != nil {
					ended = err
				} else if ch.Kind == millrace.KindCheckpoint {
					marks++
				}
			}
			if paths != tt.received || notes != tt.notes || !errors.Is(ended, tt.ends) || (marks == 1) != (tt.ends == nil) {
				t.Errorf("reported %q, %d notes, %d marks, ended by %v; want %q, %d notes, ended by %v", paths, notes, marks, ended, tt.received, tt.notes, tt.ends)
			}
		})
	}
}
