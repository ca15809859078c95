package arc

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// An offer counts pages without a snapshot as pages without content.
func TestProbePlainList(t *testing.T) {
	b := newPlainSite(t, 30)
	offer, err := Protocol().Probe(t.Context(), fetch.New(&fetch.Options{AllowPrivate: true}).HTTP(), b.URL+"/p/1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if offer.Pages != 30 || offer.WithoutContent != 30 || offer.Detail != millrace.DetailSummary || offer.Fields.Has(millrace.FieldContent) ||
		offer.Entry != b.URL+pathList || offer.Unchanged.Requests != 1 || offer.Unchanged.Bytes != 0 || !offer.Deletes {
		t.Errorf("%+v", offer)
	}
	if list := strings.Count(strings.Join(b.asked, " "), pathList); list != 1 || len(b.asked) != 1 {
		t.Errorf("asked for %q", b.asked)
	}
}

// Probe reads a list in YAML, even if it gets only the beginning.
func TestProbeYAML(t *testing.T) {
	entry := "  - url: https://x.test/%d\n    ai_indexable: true\n    ai_summary: A page of which not much is known, but that it is there and has a summary.\n"
	for _, n := range []int{3, 2000} {
		text := "arc_sitemap_version: \"2.1\"\nsite: https://x.test\ngenerated_at: \"2026-01-01T00:00:00Z\"\npages:\n" + numbered(entry, n)
		offer, err := Protocol().Probe(t.Context(), oneFile("https://x.test"+pathYAML, text), "https://x.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if offer.Pages < n*9/10 || offer.Pages > n*11/10 || offer.WithoutContent != offer.Pages || (offer.Basis == "") != (n == 3) {
			t.Errorf("of %d pages: %+v", n, offer)
		}
	}
}

// numbered repeats a line n times with the numbers from 0.
func numbered(line string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, line, i)
	}
	return b.String()
}

// oneFile returns a client of a network that contains only one YAML file.
func oneFile(at, text string) *http.Client {
	return &http.Client{Transport: protocoltest.Answer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() == at {
			w.Header().Set("Content-Type", yamlType)
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
			_, _ = io.WriteString(w, text)
		} else {
			http.NotFound(w, r)
		}
	}))}
}

// If the last day's delta contains most of the pages, as on the day of a site's first edition,
// the offer estimates the costs of later days, and its basis says so.
func TestProbeFirstDay(t *testing.T) {
	var list strings.Builder
	list.WriteString(`{"arc_sitemap_version":"2.1","site":"https://x.test","generated_at":"2026-01-02T12:00:00Z","pages":[`)
	list.WriteString(numbered(`{"url":"https://x.test/%d","ai_indexable":true,"ai_summary":"A page of which not much is known, but that it is there."},`, 1000))
	list.WriteString(`{"url":"https://x.test/end","ai_indexable":true}]}`)
	bases := map[string]bool{}
	for _, delta := range []int{list.Len() / 100, list.Len() - 1} {
		client := &http.Client{Transport: protocoltest.Answer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			switch r.URL.Path {
			case pathList:
				w.Header().Set("ETag", `"l"`)
				w.Header().Set("Last-Modified", "Fri, 02 Jan 2026 12:00:00 GMT")
				w.Header().Set("Content-Length", strconv.Itoa(list.Len()))
				_, _ = io.WriteString(w, list.String())
			case pathDeltas + "2026-01-02.json":
				w.Header().Set("Content-Length", strconv.Itoa(delta))
			default:
				http.NotFound(w, r)
			}
		}))}
		offer, err := Protocol().Probe(t.Context(), client, "https://x.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		bases[offer.Basis] = true
		if offer.Changed.Requests != 4 {
			t.Errorf("with a delta of %d bytes: %+v", delta, offer)
		}
	}
	if len(bases) != 2 {
		t.Errorf("the basis of the offer does not mention long deltas: %v", bases)
	}
}
