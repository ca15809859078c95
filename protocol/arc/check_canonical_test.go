package arc

import (
	"net/http"
	"testing"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// A site under test on a temporary host may list the future URLs of its pages: those below the
// canonical URL of its home page or, without one, the pages' own canonical URLs.
func TestCheckTriedOut(t *testing.T) {
	for name, says := range map[string][2]string{
		"nothing":       {"", ""},
		"the host":      {"https://later.example/", "https://later.example/post/"},
		"a folder":      {"https://later.example/on/", "https://later.example/on/post/"},
		"the page only": {"", "https://later.example/post/"},
	} {
		link := func(u string) string {
			if u == "" {
				return "<html><head></head></html>"
			}
			return `<html><head><link rel="canonical" href="` + u + `"></head></html>`
		}
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			switch r.URL.Path {
			case "/":
				_, _ = w.Write([]byte(link(says[0])))
			case "/post/":
				_, _ = w.Write([]byte(link(says[1])))
			case pathList:
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"arc_sitemap_version":"2.1","site":"https://` + r.Host + `","generated_at":"2026-01-01T00:00:00Z","pages":[
					{"url":"https://` + r.Host + `/","ai_indexable":true},{"url":"https://` + r.Host + `/post/","ai_indexable":true}]}`))
			default:
				http.NotFound(w, r)
			}
		})
		report := checked(t, h)
		for _, o := range report.Outcomes {
			if o.Rule.ID == Name+"/E.4/canonical-url" && o.State != check.Passed {
				protocoltest.Explain(t, report)
				t.Errorf("%s: %s %s", name, o.State, o.Reason)
			}
		}
	}
}
