package scp

import (
	"net/http"
	"testing"
	"time"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// atServer serves the documents of a server, and a page at every other URL.
type atServer struct {
	*published
	t *testing.T
}

func (p atServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch done, err := p.server.Serve(w, r); {
	case err != nil:
		p.t.Errorf("%s: %v", r.URL, err)
	case !done && r.URL.Path == "/robots.txt":
		http.NotFound(w, r)
	case !done:
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<p>A page"))
	}
}

// The protocol's own publisher violates no rule, at any time in the life of a site.
func TestCheckPublisher(t *testing.T) {
	frequencies := []string{"", hourly, daily, weekly, monthly}
	if !testkit.Soaking() {
		frequencies = frequencies[:2]
	}
	for _, frequency := range frequencies {
		t.Run(frequency, func(t *testing.T) {
			p := publishingEvery(t, frequency, nil)
			p.put(t, handbook()...)
			examined := func(when string) {
				t.Helper()
				p.publish(t)
				target, err := check.NewTarget("https://x.test/", clientOf(atServer{p, t}), &check.TargetOptions{
					Decode: fetch.Decode, Now: func() time.Time { return p.now },
				})
				if err != nil {
					t.Fatal(err)
				}
				r, err := check.Run(t.Context(), target, []check.Suite{{Name: Name, Rules: Rules()}}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := r.Protocols[Name]; len(r.Findings) > 0 || got.NotRun > 0 || !got.Found {
					protocoltest.Explain(t, r)
					t.Fatalf("%s: %+v", when, got)
				}
			}
			examined("new")
			for day := range 5 {
				p.now = p.now.Add(time.Duration(day*day*12) * time.Hour)
				if day%4 != 3 {
					p.put(t, "/blog/1", "changed at "+p.now.String(), "/docs/"+p.now.Format("20060102150405"), "new")
				}
				examined(p.now.String())
				p.now = p.now.Add(time.Minute)
				p.put(t, "/blog/2", "changed at "+p.now.String(), "/blog/1", "again at "+p.now.String())
				examined("changed again")
			}
			p.put(t, "/blog/1", "", "/blog/2", "", "/", "")
			examined("without pages")
		})
	}
}
