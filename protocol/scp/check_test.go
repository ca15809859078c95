package scp

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// checked runs all rules against a handler.
func checked(t *testing.T, h http.Handler, o *check.TargetOptions) (*check.Report, *check.Target) {
	t.Helper()
	if o == nil {
		o = new(check.TargetOptions)
	}
	if o.Decode = fetch.Decode; o.Now == nil {
		o.Now = func() time.Time { return checkedAt }
	}
	target, err := check.NewTarget(goodSite, clientOf(h), o)
	if err != nil {
		t.Fatal(err)
	}
	return protocoltest.Checked(t, Name, rules(&OpenOptions{MaxLine: testLine}), target), target
}

func TestCheckGoodSite(t *testing.T) {
	r, target := checked(t, good().handler(), nil)
	protocoltest.AllPassed(t, r)
	if n := target.Requests(); n > 40 {
		t.Errorf("%d requests", n)
	}
}

// faults returns the faults of checkFaults. Each has its own site.
func faults() (out []protocoltest.Fault) {
	for _, f := range checkFaults {
		out = append(out, protocoltest.Fault{Rule: Name + "/" + f.rule, Name: f.name, Break: func(http.Handler) http.Handler {
			s := good()
			if f.make != nil {
				f.make(s)
			}
			h := s.handler()
			if f.breaks != nil {
				h = f.breaks(h)
			}
			return h
		}})
	}
	return out
}

func TestCheckFaults(t *testing.T) {
	protocoltest.FaultsOf(t, Protocol(), faults(), func(t *testing.T, f protocoltest.Fault) *check.Report {
		r, _ := checked(t, f.Break(good().handler()), nil)
		return r
	})
}

func TestRules(t *testing.T) {
	var faults []string
	for _, f := range checkFaults {
		faults = append(faults, Name+"/"+f.rule)
	}
	protocoltest.WellFormed(t, Name, Rules(), faults)
}

// Every section named by a rule is a heading of the specification.
func TestRuleSections(t *testing.T) {
	dir := testkit.Data(t, "MILLRACE_TEST_SPECS")
	text, err := os.ReadFile(filepath.Join(dir, "scp-0.1.md"))
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, r := range Rules() {
		i := strings.Index(string(text), "# "+r.Section+"\n")
		if i < 0 {
			t.Errorf("%s: the specification has no section %q", r.ID, r.Section)
		} else if i < at {
			t.Errorf("%s: its section precedes that of the previous rule", r.ID)
		}
		at = max(at, i)
	}
}

func TestCheckAbsent(t *testing.T) {
	list := func(text string) func(*madeSite) {
		return func(s *madeSite) { s.sitemap = func(string) string { return text } }
	}
	for name, change := range map[string]func(*madeSite){
		"empty":      list(""),
		"pages only": list(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://site.example/</loc></url></urlset>`),
		"an index":   list(`<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>https://other.example/sitemap.xml</loc></sitemap></sitemapindex>`),
		"an error":   list(`<!doctype html><title>Not found</title>`),
		"broken":     list(`<urlset`),
		"another extension": list(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">` +
			`<image:collection section="all"/><url><loc>https://site.example/</loc></url></urlset>`),
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			change(s)
			r, _ := checked(t, s.handler(), nil)
			if got := r.Protocols[Name]; got.Found || got.NotRun != len(Rules()) || len(r.Findings) != 0 || r.Failed() {
				t.Errorf("got %+v", got)
				protocoltest.Explain(t, r)
			}
		})
	}
}

// A sitemap with another name is found through robots.txt and an index.
func TestCheckIndex(t *testing.T) {
	s := good()
	s.at = "/maps/sitemap.xml"
	h := s.handler()
	r, _ := checked(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			_, _ = w.Write([]byte("Sitemap: /index.xml\nSitemap: https://cdn.example/none.xml"))
		case "/index.xml":
			_, _ = w.Write([]byte(`<sitemapindex><sitemap><loc>https://site.example/maps/sitemap.xml</loc></sitemap></sitemapindex>`))
		default:
			h.ServeHTTP(w, r)
		}
	}), nil)
	if got := r.Protocols[Name]; !got.Found || len(r.Findings) != 0 || got.NotRun != 0 {
		t.Errorf("got %+v", got)
		protocoltest.Explain(t, r)
	}
}

// Collections on another host are not a fault.
func TestCheckCDN(t *testing.T) {
	s := good()
	s.base = "https://cdn.example"
	r, _ := checked(t, s.handler(), nil)
	if got := r.Protocols[Name]; len(r.Findings) != 0 || got.NotRun != 0 || got.NotApplicable != 0 {
		t.Errorf("got %+v", got)
		protocoltest.Explain(t, r)
	}
}

// If a site has many collections, only a few are examined.
func TestCheckManyCollections(t *testing.T) {
	s := good()
	for i := range 40 {
		for n, m := range good().all {
			if n == 1 {
				continue
			}
			name := fmt.Sprintf("part%d", i)
			for j := range m.lines {
				m.lines[j] += strings.Repeat(" ", 1000)
			}
			m.path += name
			m.declared, m.first = m.declared.set("section", name), strings.ReplaceAll(m.first, `"all`, `"`+name)
			s.all = append(s.all, m)
			s.sections = append(s.sections, attrs{"name", name, "updateFreq", "daily", "pages", "~3"})
		}
	}
	asked := map[string]bool{}
	h := s.handler()
	r, target := checked(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/scp/") {
			asked[r.URL.Path] = true
		}
		h.ServeHTTP(w, r)
	}), nil)
	if len(asked) != 5 || target.Requests() > 40 {
		t.Errorf("%d requests, for %v", target.Requests(), asked)
	}
	if len(r.Findings) != 0 {
		protocoltest.Explain(t, r)
		t.Error("findings")
	}
}

// Request limits and 429 responses leave rules not run, but cause no false findings.
func TestCheckLimits(t *testing.T) {
	for n := 1; n < 30; n++ {
		r, _ := checked(t, good().handler(), &check.TargetOptions{MaxRequests: n})
		if got := r.Protocols[Name]; got.NotRun == 0 || len(r.Findings) != 0 {
			protocoltest.Explain(t, r)
			t.Errorf("with %d requests: %+v", n, got)
		}
		asked, h := 0, good().handler()
		r, _ = checked(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked > n {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			h.ServeHTTP(w, r)
		}), nil)
		if got := r.Protocols[Name]; got.NotRun == 0 || len(r.Findings) != 0 {
			protocoltest.Explain(t, r)
			t.Errorf("after %d requests: %+v", n, got)
		}
	}
	r, _ := checked(t, http.NotFoundHandler(), nil)
	if got := r.Protocols[Name]; got.Found || len(r.Findings) != 0 {
		t.Errorf("nothing: %+v", got)
	}
	long := good()
	for i := range 20 {
		long.all[0].lines = append(long.all[0].lines, pageLine(fmt.Sprintf("/%d/", i), "2026-01-12T00:00:00Z", everyBlock))
	}
	r, _ = checked(t, long.handler(), &check.TargetOptions{MaxBody: 8 << 10})
	if got := r.Protocols[Name]; got.NotRun == 0 || len(r.Findings) != 0 {
		protocoltest.Explain(t, r)
		t.Errorf("with truncated bodies: %+v", got)
	}
}

// A site that publishes during the check has no findings.
func TestCheckMovingSite(t *testing.T) {
	old, now := good(), good()
	now.all[2].lines = append(now.all[2].lines, pageLine("/four/", "2026-01-15T11:00:00Z", plainBlock))
	now.all[0].path += "-2"
	first, second := old.handler(), now.handler()
	lists := 0
	r, _ := checked(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sitemap.xml" {
			lists++
		}
		if lists < 2 && !strings.HasPrefix(r.URL.Path, "/scp/") {
			first.ServeHTTP(w, r)
			return
		}
		second.ServeHTTP(w, r)
	}), nil)
	if len(r.Findings) != 0 || lists != 2 {
		protocoltest.Explain(t, r)
		t.Errorf("findings, after %d sitemaps", lists)
	}
}

// Long lines are checked like short ones.
func TestCheckLongLines(t *testing.T) {
	for _, c := range []struct{ old, new, rule string }{
		{"Changed", noise(4 << 20), ""},
		{`Changed"`, noise(4<<20) + `","level":1},{"type":"image"`, "blocks/image"},
		{`Changed"`, noise(4<<20) + `",`, "format/json-lines"},
	} {
		s := good()
		onLine(2, c.old, c.new)(s)
		target, err := check.NewTarget(goodSite, clientOf(s.handler()), &check.TargetOptions{
			Decode: fetch.Decode, Now: func() time.Time { return checkedAt },
		})
		if err != nil {
			t.Fatal(err)
		}
		r, err := check.Run(t.Context(), target, []check.Suite{{Name: Name, Rules: Rules()}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range r.Findings {
			got = strings.TrimPrefix(f.Rule, Name+"/")
		}
		if got != c.rule {
			protocoltest.Explain(t, r)
			t.Errorf("%.20s: %q, want %q", c.new, got, c.rule)
		}
	}
}

// No site content makes a rule panic.
func FuzzCheck(f *testing.F) {
	s := good()
	text := s.all[0].first + "\n" + s.all[0].lines[0] + "\n" + s.all[0].lines[2]
	element := `<scp:version>0.1</scp:version><scp:section name="all" updateFreq="daily" pages="~1"/><scp:collection section="all" type="snapshot" ` +
		`url="/x.scp" generated="2026-01-15T00:00:00Z" expires="2026-01-17T00:00:00Z" pages="1" size="7"/>`
	f.Add(element, text, `"`+cutSum(text)+`"`)
	f.Add(strings.ReplaceAll(element, ".scp", ".scp.gz"), string(coded(".gz", []byte(text))), `W/"`)
	f.Add(strings.ReplaceAll(element, ".scp", ".scp.zst"), string(coded(".zst", []byte(text))), "x")
	f.Add(`<scp:delta url="/x.scp" since=""/><scp:x><scp:y/></scp:x>`, `{"collection":{"id":1,"type":"delta","since":null}}`+"\n{}\nnull\n", "")
	f.Add(`<scp:collection url="/x.scp"/>`, `{"collection":{}}`+"\n"+`{"url":"https://site.example/","content":[{"type":"video","url":[1,{"href":2}],"icon":{"type":1},"chapters":[{"time":1e999}]},{"type":"heading","level":-0}]}`, `""`)
	f.Fuzz(func(t *testing.T, elements, body, tag string) {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", tag)
			switch {
			case r.URL.Path == "/sitemap.xml":
				_, _ = w.Write([]byte(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:scp="` + namespace + `">` + elements + `</urlset>`))
			case strings.Contains(r.URL.Path, ".scp"):
				w.Header().Set("Last-Modified", "Thu, 15 Jan 2026 00:00:00 GMT")
				_, _ = w.Write([]byte(body))
			default:
				http.NotFound(w, r)
			}
		})
		r, _ := checked(t, h, nil)
		for _, o := range r.Outcomes {
			if errors.Is(o.Err, check.ErrPanic) {
				t.Errorf("%s: %s", o.Rule.ID, o.Reason)
			}
		}
	})
}

func TestCross(t *testing.T) {
	now := func() time.Time { return checkedAt }
	p := Protocol()
	p.Rules = func() []check.Rule { return rules(&OpenOptions{MaxLine: testLine}) }
	p.NewReader = func(client *http.Client, endpoint string, o *protocol.ReaderOptions) millrace.Source {
		own := &ReaderOptions{ReaderOptions: *o}
		own.Now = now
		return NewReader(client, endpoint, own)
	}
	protocoltest.Agreement{Protocol: p, Good: func() http.Handler { return good().handler() }, Faults: faults(), Hosts: []string{"cdn.example", "x.test"}, Now: now}.Run(t)
}
