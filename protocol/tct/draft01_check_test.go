package tct

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/check"

	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// checked01 runs all rules against a handler at a URL.
func checked01(t *testing.T, h http.Handler, site string, o *check.TargetOptions) (*check.Report, *check.Target) {
	t.Helper()
	target, err := check.NewTarget(site, &http.Client{Transport: protocoltest.Answer(h, "site.example")}, o)
	if err != nil {
		t.Fatal(err)
	}
	return protocoltest.Checked(t, name01, Draft01().Rules(), target), target
}

func TestCheckGoodSite01(t *testing.T) {
	r, target := checked01(t, goodHandler01(), goodSite01+"/", nil)
	protocoltest.AllPassed(t, r)
	if n := target.Requests(); n > 45 {
		t.Errorf("%d requests for three pages", n)
	}
}

func TestCheckFaults01(t *testing.T) {
	for _, f := range checkFaults01 {
		t.Run(f.rule+" "+f.name, func(t *testing.T) {
			r, _ := checked01(t, f.breaks(goodHandler01()), goodSite01+"/", nil)
			protocoltest.OneFailed(t, r, name01+"/"+f.rule)
		})
	}
}

// The same faults break the real publisher's site. Its server is on loopback, where rule
// 1.10/https does not apply.
func TestCheckFaultsPublished01(t *testing.T) {
	p := Draft01()
	p.Rules = func() []check.Rule {
		return slices.DeleteFunc(Draft01().Rules(), func(r check.Rule) bool { return r.ID == name01+"/1.10/https" })
	}
	var faults []protocoltest.Fault
	for _, f := range checkFaults01 {
		if f.rule != "1.10/https" {
			faults = append(faults, protocoltest.Fault{Rule: name01 + "/" + f.rule, Name: f.name, Break: f.breaks})
		}
	}
	protocoltest.Faults(t, p, faults)
}

func TestRules01(t *testing.T) {
	var faults []string
	for _, f := range checkFaults01 {
		faults = append(faults, name01+"/"+f.rule)
	}
	protocoltest.WellFormed(t, name01, Draft01().Rules(), faults)
}

// Every section that a rule names is a heading of the draft.
func TestRuleSections01(t *testing.T) {
	dir := testkit.Data(t, "MILLRACE_TEST_SPECS")
	draft, err := os.ReadFile(filepath.Join(dir, "tct-draft-01.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Draft01().Rules() {
		if !bytes.Contains(draft, []byte("\n"+r.Section+".  ")) {
			t.Errorf("the draft has no section %s", r.Section)
		}
	}
}

func TestCheckAbsent01(t *testing.T) {
	page := func(link, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			if link != "" {
				w.Header().Set("Link", link)
			}
			if r.URL.Path == "/" {
				return
			}
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, h := range map[string]http.Handler{
		"nothing":             page("", ""),
		"no root":             http.NotFoundHandler(),
		"another index":       page(`</i.json>; rel="index"; type="application/json"`, `{"pages":[]}`),
		"draft-00's document": page(`</llm/>; rel="alternate"; type="application/json"`, `{"canonical_url":"https://site.example/","hash":"`+strings.Repeat("0", 64)+`"}`),
		"an API":              page(`</api>; rel="alternate"; type="application/json"`, `[]`),
		"elsewhere":           page(`<https://other.example/llm.json>; rel="alternate"; type="application/json"`, ``),
		// A client that guesses paths would find it.
		"not announced": protocoltest.OnHeader("/", func(_ *http.Request, h http.Header) { h.Del("Link") })(goodHandler01()),
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := checked01(t, h, goodSite01+"/", nil)
			if got := r.Protocols[name01]; got.Found || got.NotRun != len(Draft01().Rules()) || len(r.Findings) != 0 || r.Failed() {
				t.Errorf("got %+v", got)
				protocoltest.Explain(t, r)
			}
		})
	}
}

// A single page can be checked if its site has no list.
func TestCheckSinglePage(t *testing.T) {
	h := protocoltest.Both(protocoltest.Respond("/", http.StatusNotFound), protocoltest.Respond(listPath, http.StatusNotFound))(goodHandler01())
	r, _ := checked01(t, h, goodSite01+"/post/", nil)
	got := r.Protocols[name01]
	if !got.Found || len(r.Findings) != 0 || got.NotRun != 0 || got.Must.Pass < 20 {
		t.Errorf("got %+v", got)
		protocoltest.Explain(t, r)
	}
}

func TestCheckSample(t *testing.T) {
	const n = 500
	asked := map[string]bool{}
	body := func(i int) ([]byte, string) {
		return encodePage(map[string]any{"profile": "tct-1", "canonical_url": fmt.Sprintf("%s/%d/", goodSite01, i), "title": "T", "content": "C"})
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var i int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d/llm.json", &i); err == nil {
			asked[r.URL.Path] = true
			b, hash := body(i)
			w.Header().Set("Link", fmt.Sprintf(`</%d/>; rel=canonical`, i))
			serveJSON01(w, r, b, hash)
			return
		}
		if r.URL.Path == listPath {
			var b bytes.Buffer
			b.WriteString(listHead)
			for i := range n {
				_, hash := body(i)
				fmt.Fprintf(&b, `%s{"cUrl":"%s/%d/","mUrl":"%s/%d/llm.json","etag":"%s"}`, map[bool]string{true: ","}[i > 0], goodSite01, i, goodSite01, i, hash)
			}
			b.WriteString(listTail)
			serveJSON01(w, r, b.Bytes(), "x")
			return
		}
		w.Header().Set("Link", fmt.Sprintf(`</llm-pages.json>; rel=index; type=application/json, <%sllm.json>; rel=alternate; type=application/json`, r.URL.Path))
	})
	r, _ := checked01(t, h, goodSite01, &check.TargetOptions{Sample: 3})
	if len(asked) != 3 || !asked["/0/llm.json"] || !asked["/499/llm.json"] {
		t.Errorf("asked for %v", asked)
	}
	if len(r.Findings) != 0 {
		protocoltest.Explain(t, r)
		t.Error("findings")
	}
	// If the requests are used up, rules are not run, and no violation is reported by mistake.
	for n := 1; n < 30; n++ {
		r, _ = checked01(t, h, goodSite01, &check.TargetOptions{Sample: 3, MaxRequests: n})
		if got := r.Protocols[name01]; got.NotRun == 0 || len(r.Findings) != 0 {
			protocoltest.Explain(t, r)
			t.Errorf("with %d requests: %+v", n, got)
		}
	}
}

// A site that responds with 429 has no findings.
func TestCheckBusySite(t *testing.T) {
	for allowed := 1; allowed < 30; allowed++ {
		good, n := goodHandler01(), 0
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n++; n > allowed {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			good.ServeHTTP(w, r)
		})
		r, _ := checked01(t, h, goodSite01, nil)
		if got := r.Protocols[name01]; got.NotRun == 0 || len(r.Findings) != 0 {
			protocoltest.Explain(t, r)
			t.Errorf("after %d requests: %+v", allowed, got)
		}
	}
}

// The checker does not fetch URLs of a list that are on other hosts.
func TestCheckStaysOnSite(t *testing.T) {
	h := protocoltest.ReplaceBody(listPath, `"mUrl":"BASE/post/`, `"mUrl":"https://victim.example/post/`)(goodHandler01())
	target, err := check.NewTarget(goodSite01, &http.Client{Transport: protocoltest.Transport(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host != "site.example" {
			t.Errorf("asked %s", r.URL)
		}
		return protocoltest.Answer(h, "site.example").RoundTrip(r)
	})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := check.Run(t.Context(), target, []check.Suite{{Name: name01, Rules: Draft01().Rules()}}, nil); err != nil {
		t.Fatal(err)
	}
}

// An M-URL that cannot be fetched is a finding; the other rules still run.
func TestCheckBrokenConnection(t *testing.T) {
	good := protocoltest.Answer(goodHandler01(), "site.example")
	target, err := check.NewTarget(goodSite01, &http.Client{Transport: protocoltest.Transport(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == pagePath01 {
			return nil, errors.New("connection reset")
		}
		return good.RoundTrip(r)
	})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := check.Run(t.Context(), target, []check.Suite{{Name: name01, Rules: Draft01().Rules()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 || r.Findings[0].Rule != name01+"/1.7.1/m-url" || r.Protocols[name01].NotRun != 0 {
		protocoltest.Explain(t, r)
		t.Error("expected one finding")
	}
}

// Editing a page during the check causes no finding.
func TestCheckMovingSite(t *testing.T) {
	n := 0
	moving := pageAs(pagePath01, true, func(*http.Request) bool { n++; return n > 1 }, func(m map[string]any) ([]byte, string, string) {
		m["title"] = "Page 1, edited"
		body, hash := encodePage(m)
		return body, hash, hash
	})
	// The list is out of date at first.
	lists := 0
	lag := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == listPath {
				if lists++; lists == 1 {
					goodHandler01().ServeHTTP(w, r)
					return
				}
			}
			h.ServeHTTP(w, r)
		})
	}
	r, _ := checked01(t, lag(moving(goodHandler01())), goodSite01, nil)
	if len(r.Findings) != 0 {
		protocoltest.Explain(t, r)
		t.Error("findings")
	}
}

func TestTimely(t *testing.T) {
	for value, good := range map[string]bool{
		"":                                      false,
		"public":                                false,
		"must-revalidate":                       false,
		"max-age=0, must-revalidate":            true,
		"Max-Age=3600":                          true,
		`max-age="60"`:                          true,
		"max-age=86401":                         false,
		"max-age=x":                             false,
		"no-cache":                              true,
		"no-store":                              true,
		"private, no-cache, immutable":          false,
		"public, max-age=31536000, s-maxage=60": false,
	} {
		ok := true
		timely("u", &check.Response{Header: http.Header{"Cache-Control": {value}}}, func(string, string, string) { ok = false })
		if ok != good {
			t.Errorf("%q: %v", value, ok)
		}
	}
}

func TestPlainText(t *testing.T) {
	for content, want := range map[string][]string{
		"a < b > c":               nil,
		"List<T> and <none>":      nil,
		"<p>x</p>":                {"<p>", "</p>"},
		"x <BR/> y <a href='/'>z": {"<BR/>", "<a href='/'>"},
		"<!-- x --><b":            nil,
	} {
		if diff := cmp.Diff(want, htmlTags(content)); diff != "" {
			t.Errorf("%q: %s", content, diff)
		}
	}
	got := visibleText([]byte(`<p title="a <i>">Write <b>&lt;p</b>&gt; &amp;`))
	if !strings.Contains(got, "<i>") || !strings.Contains(got, "write <p> &") {
		t.Errorf("got %q", got)
	}
}

// On loopback, https is not required.
func TestHTTPSOnLoopback(t *testing.T) {
	for u, want := range map[string]error{"http://127.0.0.1:8080/llm-pages.json": check.ErrNotApplicable, "http://site.example/": nil} {
		n := 0
		s := &siteContext{Lists: []*seenList{{URL: u, Resp: new(check.Response)}}}
		err := checkHTTPS(t.Context(), s, func(string, string, string) { n++ })
		if !errors.Is(err, want) || (n == 0) != (want != nil) {
			t.Errorf("%s: %v, %d findings", u, err, n)
		}
	}
}

// No response of a site makes a rule panic.
func FuzzCheck01(f *testing.F) {
	page, hash := encodePage(map[string]any{"canonical_url": goodSite01 + "/", "title": "T", "content": "<p>"})
	list := fmt.Sprintf(`%s{"cUrl":"%s/","mUrl":"%s/llm.json","etag":"%s"}%s`, listHead, goodSite01, goodSite01, hash, listTail)
	const index = `</llm-pages.json>; rel=index; type="application/json", </>; rel=canonical`
	f.Add(index, `"`+hash+`"`, list, string(page))
	f.Add(index, hash, `{"items":[{"mUrl":"https://site.example/llm.json"},null,1]}`, `{"hash":null,"content":"<p"}`)
	f.Add(index, `W/""`, `{"items":[{"mUrl":"https://site.example/llm.json","etag":7}]}`, `{"hash":"sha256-","hash":"","title":"\ud800"}`)
	f.Add(`</llm.json>; rel=alternate; type=application/json`, "", "", `{"canonical_url":"","hash":"sha256-"}`)
	f.Add(index, "", "null", "")
	f.Fuzz(func(t *testing.T, link, tag, list, page string) {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", link)
			w.Header().Set("ETag", tag)
			w.Header().Set("Content-Type", "text/html")
			switch r.URL.Path {
			case "/", "/llm.json":
				_, _ = w.Write([]byte(page))
			case listPath:
				_, _ = w.Write([]byte(list))
			default:
				http.NotFound(w, r)
			}
		})
		r, _ := checked01(t, h, goodSite01, nil)
		for _, o := range r.Outcomes {
			if errors.Is(o.Err, check.ErrPanic) {
				t.Errorf("%s: %s", o.Rule.ID, o.Reason)
			}
		}
	})
}

func TestCross01(t *testing.T) {
	var faults []protocoltest.Fault
	for _, f := range checkFaults01 {
		faults = append(faults, protocoltest.Fault{Rule: name01 + "/" + f.rule, Name: f.name, Break: f.breaks})
	}
	protocoltest.Agreement{
		Protocol: Draft01(), Good: goodHandler01, Faults: faults,
		Unread: map[string]string{
			"1.5.1/content-type":          "JSON is UTF-8 without a charset, too",
			"1.7.2/content-type":          "JSON is UTF-8 without a charset, too",
			"1.5.3/*":                     "shows in two requests; a reader makes one",
			"1.6.1/no-whitespace":         "the hash is over the canonical form, and holds",
			"1.6.2/wire-form":             "the hash is over the canonical form, and holds",
			"1.6.2/same-tag-same-body":    "shows in two requests; a reader makes one",
			"1.6.3/tag-per-request":       "shows in two requests; a reader makes one",
			"1.7.1/etag-form#draft-00":    "items are read by either draft's member",
			"1.7.1/etag-form#bare digits": "validators are compared without the name of the hash",
			"1.8.2/*":                     "what a 304 spares; a new reader sends no condition",
		},
	}.Run(t)
}
