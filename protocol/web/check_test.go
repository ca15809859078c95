package web

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// checked runs all rules against a handler.
func checked(t *testing.T, h http.Handler, o *check.TargetOptions) (*check.Report, *check.Target) {
	t.Helper()
	target, err := check.NewTarget(goodSite+"/", &http.Client{Transport: protocoltest.Answer(h)}, o)
	if err != nil {
		t.Fatal(err)
	}
	return protocoltest.Checked(t, Name, Rules(), target), target
}

func TestCheckGoodSite(t *testing.T) {
	r, target := checked(t, goodHandler(), nil)
	protocoltest.AllPassed(t, r)
	if n := target.Requests(); n > 45 {
		t.Errorf("%d requests for three pages", n)
	}
}

// faults returns checkFaults with complete rule IDs.
func faults() (out []protocoltest.Fault) {
	for _, f := range checkFaults {
		out = append(out, protocoltest.Fault{Rule: Name + "/" + f.rule, Name: f.name, Break: f.breaks})
	}
	return out
}

func TestCheckFaults(t *testing.T) {
	protocoltest.FaultsOf(t, Protocol(), faults(), func(t *testing.T, f protocoltest.Fault) *check.Report {
		r, _ := checked(t, f.Break(goodHandler()), nil)
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

// If a site does not use this protocol, its robots.txt is not checked.
func TestCheckAbsent(t *testing.T) {
	html := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>Soft</title>"))
	}
	plain := http.NewServeMux()
	plain.HandleFunc("/{$}", html)
	plain.HandleFunc("/robots.txt", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("Disallow everything")) })
	for name, h := range map[string]http.Handler{
		"nothing": http.NotFoundHandler(), "HTML for anything": http.HandlerFunc(html), "a site of pages": plain,
	} {
		r, target := checked(t, h, nil)
		if got := r.Protocols[Name]; got.Found || got.NotRun != len(Rules()) || len(r.Findings) != 0 || r.Failed() {
			t.Errorf("%s: got %+v", name, got)
			protocoltest.Explain(t, r)
		}
		if n := target.Requests(); n > 10 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
}

// If the requests are used up, or the site responds with 429, rules are not run, and no violation
// is reported by mistake.
func TestCheckLimits(t *testing.T) {
	for n := 1; n < 25; n++ {
		r, _ := checked(t, goodHandler(), &check.TargetOptions{MaxRequests: n})
		if got := r.Protocols[Name]; got.NotRun == 0 || len(r.Findings) != 0 {
			t.Errorf("with %d requests: %+v", n, got)
			protocoltest.Explain(t, r)
		}
		left := n
		good := goodHandler()
		r, _ = checked(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if left--; left < 0 {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			good.ServeHTTP(w, r)
		}), nil)
		if got := r.Protocols[Name]; got.NotRun == 0 || len(r.Findings) != 0 {
			t.Errorf("busy after %d requests: %+v", n, got)
			protocoltest.Explain(t, r)
		}
	}
}

// If a document needs a key, its rules are not run and report no finding.
func TestCheckClosed(t *testing.T) {
	good := goodHandler()
	r, _ := checked(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sitemap.xml" || strings.HasSuffix(r.URL.Path, ".md") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		good.ServeHTTP(w, r)
	}), nil)
	for _, o := range r.Outcomes {
		switch o.Rule.ID {
		case Name + "/sitemaps-index/there", Name + "/llmstxt/alternate":
			if o.State != check.NotRun || millrace.ErrorCode(o.Err) != "http-401" {
				t.Errorf("%s: %s, %v", o.Rule.ID, o.State, o.Err)
			}
		default:
			if o.State == check.Failed {
				t.Errorf("%s: %s", o.Rule.ID, o.State)
			}
		}
	}
}

// The checker does not fetch URLs on other hosts that a site names.
func TestCheckStaysOnSite(t *testing.T) {
	h := protocoltest.Both(
		protocoltest.ReplaceBody("/robots.txt", "Sitemap:", "Sitemap: https://victim.example/s.xml\nSitemap:"),
		protocoltest.ReplaceBody("/llms.txt", "/docs/a.html.md", "https://victim.example/a.md"),
		protocoltest.SetHeader("/", "Link", `<https://victim.example/feed>; rel="alternate"; type="application/atom+xml", <https://victim.example/x.md>; rel="alternate"; type="text/markdown"`),
		protocoltest.ReplaceBody("/sitemap.xml", "https://site.example/post/", "https://victim.example/post/"),
	)(goodHandler())
	target, err := check.NewTarget(goodSite, &http.Client{Transport: protocoltest.Transport(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host != "site.example" {
			t.Errorf("asked %s", r.URL)
			return nil, errors.New("no")
		}
		return protocoltest.Answer(h).RoundTrip(r)
	})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := check.Run(t.Context(), target, []check.Suite{{Name: Name, Rules: Rules()}}, nil); err != nil {
		t.Fatal(err)
	}
}

func TestLLMs(t *testing.T) {
	doc := decodeLLMs([]byte("\uFEFF# Mill #\n> One.\n> Two.\n\n```\n# no heading\n```\n> Later.\n\n## A\n### B\n* [x \\[y\\]](u(1)) : z\n  more\n+ [](a)\n\n## Optional\n- x\n# C\n"))
	want := &llmsDoc{
		Title: "Mill", Summary: "One. Two.",
		Links:    []llmsLink{{`x \[y\]`, "u(1)", "z", 12}, {"", "a", "", 14}},
		Problems: []llmsProblem{{17, "file-list", "- x"}, {18, "one-title", "# C"}},
	}
	if diff := cmp.Diff(want, doc); diff != "" {
		t.Error(diff)
	}
	for _, no := range []string{"", "\n\n", "text", "##  A", "```\n# A\n```", "#A"} {
		if doc := decodeLLMs([]byte(no)); doc != nil {
			t.Errorf("%q is %+v", no, doc)
		}
	}
}

// No response of a site makes a rule panic.
func FuzzCheck(f *testing.F) {
	f.Add(goodLLMs, goodRobots, goodSitemap, goodAtom, goodJSONFeed, goodCatalog)
	f.Add("#", "\xff:\n:", "<sitemapindex/>", "<feed/>", `{"items":[null,{}]}`, `{"linkset":[null,{"a":[{}]}]}`)
	f.Fuzz(func(t *testing.T, llms, robots, sitemap, atom, feed, catalog string) {
		files := map[string]string{
			"/llms.txt": llms, "/robots.txt": robots, "/sitemap.xml": sitemap, "/feed.atom": atom, "/feed.json": feed, "/.well-known/api-catalog": catalog,
		}
		good := goodHandler()
		r, _ := checked(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if b, ok := files[r.URL.Path]; ok {
				w.Header().Set("Content-Type", "text/x")
				_, _ = w.Write([]byte(b))
				return
			}
			good.ServeHTTP(w, r)
		}), nil)
		for _, o := range r.Outcomes {
			if errors.Is(o.Err, check.ErrPanic) {
				t.Errorf("%s: %s", o.Rule.ID, o.Reason)
			}
		}
	})
}

func TestCross(t *testing.T) {
	protocoltest.Agreement{
		Protocol: Protocol(), Good: goodHandler, Faults: faults(),
		Unseen: map[string]string{
			"/feed.atom#*":             "a site may have no feed; it alone tells of deletions",
			"/robots.txt#another site": "the checker asks no other site",
		},
	}.Run(t)
}
