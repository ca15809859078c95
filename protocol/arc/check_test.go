package arc

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// checked runs all rules against a handler on a test server.
func checked(t *testing.T, h http.Handler) *check.Report {
	t.Helper()
	srv := httptest.NewTLSServer(h)
	t.Cleanup(srv.Close)
	target, err := check.NewTarget(srv.URL+"/", srv.Client(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return protocoltest.Checked(t, Name, Rules(), target)
}

// outspoken returns the protocol with a publisher that sets all optional data.
func outspoken() protocol.Protocol {
	p := Protocol()
	p.NewPublisher = func(*protocol.PublisherOptions) millrace.Publisher {
		return NewPublisher(&protocol.PublisherOptions{
			Contact: "https://example.com/contact/",
			Policy: &millrace.Policy{
				Rate: millrace.RateHints{PerSecond: 2}, Retention: 24 * time.Hour, Access: "anybody", Consumers: []string{"ExampleBot"},
			},
		})
	}
	return p
}

// Each fault is applied to the site of the real publisher.
func TestCheckFaults(t *testing.T) {
	faults := make([]protocoltest.Fault, 0, len(checkFaults))
	for _, f := range checkFaults {
		faults = append(faults, protocoltest.Fault{Rule: Name + "/" + f.rule, Name: f.name, Break: f.breaks})
	}
	protocoltest.Faults(t, outspoken(), faults)
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
	text, err := os.ReadFile(filepath.Join(dir, "arc-appendix-e.md"))
	if err != nil {
		t.Fatal(err)
	}
	var headings []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (E(?:\.\d+)+)`).FindAllSubmatch(text, -1) {
		headings = append(headings, string(m[1]))
	}
	for _, r := range Rules() {
		if !slices.Contains(headings, r.Section) {
			t.Errorf("%s: the specification has no section %s", r.ID, r.Section)
		}
	}
}

// A finding names the input of a known checksum. A list with an unknown kind of checksum has
// no finding.
func TestCheckChecksums(t *testing.T) {
	const page = "<html><head><title>A page</title></head><body><p>What it says.</p></body></html>"
	for name, sum := range map[string]string{
		"raw":      "sha256:" + canon.SHA256Hex([]byte(page)),
		"text":     "sha256:" + canon.SHA256Hex([]byte(visible([]byte(page)))),
		"snapshot": "sha256:" + canon.SHA256Hex([]byte(`{"page":"a","title":"A page"}`)),
		"opaque":   "v17",
	} {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/":
				w.Header().Set("Content-Type", "text/html")
				_, _ = w.Write([]byte(page))
			case pathList:
				_, _ = w.Write([]byte(`{"arc_sitemap_version":"2.1","site":"https://` + r.Host + `","generated_at":"2026-01-01T00:00:00Z","pages":[
					{"url":"https://` + r.Host + `/","ai_indexable":true,"ai_checksum":"` + sum + `","ai_snapshot":{"title":"A page","page":"a"}}]}`))
			default:
				http.NotFound(w, r)
			}
		})
		r := checked(t, h)
		for _, o := range r.Outcomes {
			if o.Rule.ID != Name+"/E.11/checksum" {
				continue
			}
			want := check.Passed
			if name == "opaque" {
				want = check.NotApplicable
			}
			if o.State != want {
				t.Errorf("%s: %s %s", name, o.State, o.Reason)
			}
		}
	}
}

// Other documents at the locations of this protocol are not lists.
func TestCheckAbsent(t *testing.T) {
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
		"another list": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				_, _ = w.Write([]byte("Sitemap: /list.json\n"))
				return
			}
			_, _ = w.Write([]byte(`{"items":[]}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if r := checked(t, h); r.Protocols[Name].Found || len(r.Findings) > 0 {
				protocoltest.Explain(t, r)
				t.Error("another document is recognized as the protocol")
			}
		})
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"arc_sitemap_version":"2.1","pages":[{"url":"https://example.com/","ai_snapshot":{"sections":[{"fields":["x"]}]}}]}`), []byte(`<p>x`))
	f.Add([]byte(`{"arc_sitemap_version":{},"pages":[null,{},1],"site":null}`), []byte(`{}`))
	f.Add([]byte("arc_sitemap_version: 2\npages:\n- url: x\n"), []byte(`<html><script type=application/ld+json>[{"@type":"Dataset","url":"/arc-sitemap.json"}]`))
	f.Fuzz(func(t *testing.T, list, doc []byte) {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case bytes.HasPrefix([]byte(r.URL.Path), []byte("/arc-sitemap")), r.URL.Path == pathPolicy:
				_, _ = w.Write(list)
			default:
				w.Header().Set("Content-Type", "text/html")
				_, _ = w.Write(doc)
			}
		})
		target, err := check.NewTarget("https://example.com/", &http.Client{Transport: protocoltest.Answer(h)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := check.Run(t.Context(), target, []check.Suite{{Name: Name, Rules: Rules()}}, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// The rules for the public list do not apply to a list fetched with a key. A list served
// without a key is public, whatever its Cache-Control.
func TestCheckPartners(t *testing.T) {
	list := `{"arc_sitemap_version":"2.1","site":"https://example.com","generated_at":"2026-01-01T00:00:00Z","pages":[
		{"url":"https://example.com/","ai_indexable":true,"ai_snapshot":{"page":"a","ai_context":"personal"}}]}`
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != pathList {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "private, max-age=0")
		_, _ = w.Write([]byte(list))
	})
	for keyed, want := range map[bool]check.State{true: check.NotApplicable, false: check.Failed} {
		target, err := check.NewTarget("https://example.com/", &http.Client{Transport: protocoltest.Answer(h)}, &check.TargetOptions{Keyed: keyed})
		if err != nil {
			t.Fatal(err)
		}
		r, err := check.Run(t.Context(), target, []check.Suite{{Name: Name, Rules: Rules()}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Outcomes, func(o check.Outcome) bool { return o.Rule.ID == Name+"/E.6/sensitive" })
		if got := r.Outcomes[i]; got.State != want {
			t.Errorf("with a key %t: %s, %s", keyed, got.State, got.Reason)
		}
	}
}

func TestCross(t *testing.T) {
	var faults []protocoltest.Fault
	for _, f := range checkFaults {
		faults = append(faults, protocoltest.Fault{Rule: Name + "/" + f.rule, Name: f.name, Break: f.breaks})
	}
	protocoltest.Agreement{
		Protocol: outspoken(), Faults: faults,
		Unread: map[string]string{"E.4/canonical-url": "the list names pages and has their content; no HTML is read"},
		Unseen: map[string]string{"/robots.txt#another site": "the checker asks no other site"},
	}.Run(t)
}
