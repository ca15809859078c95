package tct

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// checked00 runs all rules against a handler at a URL.
func checked00(t *testing.T, h http.Handler, site string) *check.Report {
	t.Helper()
	target, err := check.NewTarget(site, &http.Client{Transport: protocoltest.Answer(h, "site.example")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return protocoltest.Checked(t, name00, Draft00().Rules(), target)
}

func TestCheckGoodSite00(t *testing.T) {
	for _, site := range []string{goodSite00 + "/", goodSite00 + "/post/"} {
		r := checked00(t, goodHandler00(), site)
		protocoltest.AllPassed(t, r, name00+"/3.3/manifest") // no other pattern is in use
	}
}

// M-URLs may have another pattern that the manifest declares.
func TestCheckOtherPattern(t *testing.T) {
	r := checked00(t, moved("/llm/", "/m.json")(goodHandler00()), goodSite00+"/")
	protocoltest.AllPassed(t, r)
}

func TestCheckFaults00(t *testing.T) {
	for _, f := range checkFaults00 {
		t.Run(f.rule+" "+f.name, func(t *testing.T) {
			r := checked00(t, f.breaks(goodHandler00()), goodSite00+"/")
			protocoltest.OneFailed(t, r, name00+"/"+f.rule)
		})
	}
}

// The target of an HTML refresh on the home page is not checked.
func TestCheckHomeRefreshes(t *testing.T) {
	last := onMembers(listName00, func(m map[string]any) {
		items := m["items"].([]any)
		m["items"] = append(items[1:], items[0])
	})
	for part, want := range map[string]int{"": 1, `<META content="0; url=/post/" http-equiv=refresh>`: 0} {
		found := 0
		for _, f := range checked00(t, protocoltest.OnBody("/", func(s string) string { return s + part })(last(goodHandler00())), goodSite00+"/").Findings {
			if f.Rule == name00+"/6.1/homepage-first" {
				found++
			}
		}
		if found != want {
			t.Errorf("%q: %d findings, want %d", part, found, want)
		}
	}
}

// withPolicy returns the protocol with a publisher that has a policy.
func withPolicy() protocol.Protocol {
	p := Draft00()
	p.NewPublisher = func(*protocol.PublisherOptions) millrace.Publisher {
		return draft00.NewPublisher(&protocol.PublisherOptions{Policy: &millrace.Policy{
			Terms: "https://example.com/terms/", Revision: 2, Purposes: map[millrace.Purpose]bool{millrace.AITrain: false},
		}})
	}
	return p
}

// The same faults break the real publisher's site.
func TestCheckFaultsPublished00(t *testing.T) {
	faults := make([]protocoltest.Fault, 0, len(checkFaults00))
	for _, f := range checkFaults00 {
		faults = append(faults, protocoltest.Fault{Rule: name00 + "/" + f.rule, Name: f.name, Break: f.breaks})
	}
	protocoltest.Faults(t, withPolicy(), faults)
}

func TestRules00(t *testing.T) {
	var faults []string
	for _, f := range checkFaults00 {
		faults = append(faults, name00+"/"+f.rule)
	}
	protocoltest.WellFormed(t, name00, Draft00().Rules(), faults)
}

// The numbers of sections are those of the draft's headings, in their order.
func TestRuleSections00(t *testing.T) {
	dir := testkit.Data(t, "MILLRACE_TEST_SPECS")
	draft, err := os.ReadFile(filepath.Join(dir, "tct-draft-00.md"))
	if err != nil {
		t.Fatal(err)
	}
	titles := map[string]string{}
	section, sub, code := 0, 0, false
	for line := range bytes.Lines(draft) {
		heading, title, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		switch {
		case strings.HasPrefix(heading, "~~~"):
			code = !code
		case code:
		case heading == "#":
			section, sub = section+1, 0
			titles[fmt.Sprint(section)] = title
		case heading == "##":
			sub++
			titles[fmt.Sprintf("%d.%d", section, sub)] = title
		}
	}
	for number, title := range map[string]string{
		"3.1": "C-URL to M-URL Mapping", "4.2": "ETag Generation", "5.2": "304 Not Modified Response", "6.1": "JSON Sitemap Format",
		"7.3": "Discovery", "8.2": "JSON Payload Schema", "9.3": "Denial of Service", "10.8": "Recommendations for Implementers",
	} {
		if titles[number] != title {
			t.Errorf("section %s is %q, not %q", number, titles[number], title)
		}
	}
	for _, r := range Draft00().Rules() {
		if titles[r.Section] == "" {
			t.Errorf("the draft has no section %s", r.Section)
		}
	}
}

// Unrelated documents at the paths of this protocol are not treated as the protocol.
func TestCheckAbsent00(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"nothing": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/" {
				http.NotFound(w, r)
			}
		},
		"HTML everywhere": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html><body>Not here</body></html>"))
		},
		"draft-01": func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/":
				w.Header().Set("Content-Type", "text/html")
				w.Header().Set("Link", `</llm.json>; rel="alternate"; type="application/json"`)
			case "/llm.json":
				_, _ = w.Write([]byte(document01))
			default:
				http.NotFound(w, r)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if r := checked00(t, h, goodSite00+"/"); r.Protocols[name00].Found || len(r.Findings) > 0 {
				protocoltest.Explain(t, r)
				t.Error("another document is recognized as the protocol")
			}
		})
	}
}

// document01 is a document of draft-01 whose hash is valid in that draft.
const document01 = `{"canonical_url":"https://example.com/hello-world/","content":"Hello World","hash":"sha256-af976cac6d5c89428a724e456311081ddbf3bab73cc4de7c85119b185ffbdab8","profile":"tct-1","title":"Hello World"}`

func FuzzCheck00(f *testing.F) {
	f.Add([]byte(`{"version":1,"items":[{"cUrl":"https://site.example/post/","mUrl":"https://site.example/post/llm/"}]}`), []byte(`{"hash":1}`))
	f.Add([]byte(`{"items":[null,{}],"version":{}}`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, list, doc []byte) {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == listName00:
				_, _ = w.Write(list)
			case r.URL.Path == policyName, r.URL.Path == manifestName, strings.HasSuffix(r.URL.Path, docName00):
				w.Header().Set("ETag", string(doc[:min(len(doc), 5)]))
				_, _ = w.Write(doc)
			default:
				w.Header().Set("Content-Type", "text/html")
				_, _ = w.Write([]byte(`<a href="/tag/x/">` + string(list)))
			}
		})
		checked00(t, h, goodSite00+"/")
	})
}

func TestCross00(t *testing.T) {
	var faults []protocoltest.Fault
	for _, f := range checkFaults00 {
		faults = append(faults, protocoltest.Fault{Rule: name00 + "/" + f.rule, Name: f.name, Break: f.breaks})
	}
	protocoltest.Agreement{
		Protocol: Draft00(), Good: goodHandler00, Faults: faults,
		Unread: map[string]string{
			"6.1/content-hash#bare digits": "validators are compared without the name of the hash",
			"3.1/alternate-element":        "the list names the document; CheckPageLinks fetches pages",
			"3.3/manifest":                 "the list names each document, whatever its pattern",
			"5.*":                          "what a 304 spares; a new reader sends no condition",
			"6.1/version#missing":          "there is one version, and the items are as it wants them",
			"6.1/content-hash#draft-01":    "items are read by either draft's member",
		},
	}.Run(t)
}
