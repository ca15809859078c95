package openfeeder

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// The reader and the checker apply the robots.txt rules and the comment of section 11 in the
// same way.
func TestRobotsTxt(t *testing.T) {
	t.Parallel()
	const all = "User-agent: *\nDisallow: /\n"
	const comment = "\n# OpenFeeder-compliant agents may use /.well-known/openfeeder.json\n"
	for _, c := range []struct {
		name, robots string
		static, may  bool
	}{
		{"nothing refused", "User-agent: *\nDisallow: /private/\n", false, true},
		{"all refused", all, false, false},
		{"the comment", all + comment, false, true},
		{"the comment, of files", all + comment, true, true},
		{"the comment in other letters", comment[:len(comment)-1] + ".\n" + strings.ToLower(all), false, true},
		{"the comment of another document", all + "# OpenFeeder-compliant agents may use /feeds/about.json\n", false, false},
		{"another comment", all + "# OpenFeeder is at /.well-known/openfeeder.json\n", false, false},
		{"the comment is not for whom a group names", comment + "User-agent: millrace\nDisallow: /\n", false, false},
		{"lines", all + "Allow: /.well-known/openfeeder.json\nAllow: /openfeeder\n", false, true},
		{"lines without the endpoint", all + "Allow: /.well-known/openfeeder.json\n", false, false},
		{"the endpoint refused", "User-agent: *\nDisallow: /openfeeder\n", false, false},
		{"questions refused", "User-agent: *\nDisallow: /*?\n", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			p := Protocol()
			s := protocoltest.Serve(p, &protocol.PublisherOptions{Static: c.static})
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/robots.txt" {
					_, _ = w.Write([]byte(c.robots))
					return
				}
				asked = append(asked, r.URL.Path)
				s.ServeHTTP(w, r)
			}))
			t.Cleanup(srv.Close)
			pages := []*millrace.Page{{URL: "/a", Title: "A", Blocks: millrace.TextBlocks("text"), Known: millrace.AllFields}, {URL: "/b", Title: "B", Blocks: millrace.TextBlocks("more"), Known: millrace.AllFields}}
			v := protocoltest.NewView(millrace.Site{Base: srv.URL + "/"}, pages, p.Tagger)
			if err := s.Show(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			client := fetch.New(&fetch.Options{AllowPrivate: true, Delay: -1}).HTTP()
			src, n := NewReader(client, srv.URL, nil), 0
			var failed error
			for change, err := range src.Changes(t.Context(), "") {
				if failed = err; err != nil {
					break
				}
				if change.Kind == millrace.Put {
					if _, err := src.Page(t.Context(), millrace.Ref{URL: change.URL, Location: change.Location}); err != nil {
						failed = err
						break
					}
					n++
				}
			}
			_, refused := errors.AsType[*fetch.RobotsError](failed)
			if may := failed == nil && n == len(pages); may != c.may || !may && !refused {
				t.Errorf("%d pages, %v", n, failed)
			}
			if c.may && slices.Contains(asked, "/") {
				t.Errorf("asked for %q", asked)
			}
			if _, err := probe(t.Context(), client, srv.URL, nil); (err == nil) != c.may {
				t.Errorf("look: %v", err)
			}
			target, err := check.NewTarget(srv.URL, srv.Client(), &check.TargetOptions{Decode: fetch.Decode})
			if err != nil {
				t.Fatal(err)
			}
			r, err := check.Run(t.Context(), target, []check.Suite{{Name: Name, Rules: Rules()}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(r.Findings, func(f check.Finding) bool { return f.Rule == Name+"/11/robots-txt" })
			if found == c.may {
				t.Errorf("findings %+v", r.Findings)
			}
		})
	}
}
