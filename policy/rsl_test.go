package policy

import (
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// A written license contains the same policy when it is read again.
func TestRSL(t *testing.T) {
	t.Parallel()
	for _, p := range []*millrace.Policy{
		{Purposes: map[millrace.Purpose]bool{millrace.Search: true}},
		{Purposes: map[millrace.Purpose]bool{millrace.AITrain: false}, Contact: "https://x.test/?a&b"},
		{
			Terms: "https://x.test/terms?a&b", Contact: "mailto:me@x.test", Updated: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			Purposes:     map[millrace.Purpose]bool{millrace.AITrain: false, millrace.AIInput: true, millrace.Search: true},
			Requirements: millrace.Requirements{Attribution: true},
		},
	} {
		body := WriteRSL(p, "X & Y", "/blog/")
		got, err := readRSL(body, "/blog/")
		if d := cmp.Diff(p, got); err != nil || d != "" {
			t.Errorf("%v, %s (-written +read):\n%s", err, body, d)
		}
		if _, err := readRSL(body, "/"); !errors.Is(err, millrace.ErrNotFound) {
			t.Errorf("another path: %v", err)
		}
	}
}

func TestReadRSL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, license, says string
	}{
		{"nothing", ``, ""},
		{"all", `<permits type="usage">all</permits>`, "search=yes, ai-input=yes, ai-train=yes"},
		{"no AI", `<permits type="usage">all</permits><prohibits type="usage">ai-all</prohibits>`, "search=yes, ai-input=no, ai-train=no"},
		{"some places only", `<permits type="geo">all</permits>`, ""},
		{"for a price", `<permits type="usage">search</permits><prohibits type="usage">ai-train</prohibits><payment type="crawl"/>`, "ai-train=no"},
		{"two", `<permits type="usage">search</permits></license><license><prohibits type="usage">search</prohibits>`, "search=no"},
	} {
		p, err := readRSL([]byte(`<rsl xmlns="`+rslSpace+`"><content url="/"><license>`+c.license+`</license></content></rsl>`), "/")
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got, _ := preferences(p.Purposes).fieldValues(); got != c.says {
			t.Errorf("%s: %q, want %q", c.name, got, c.says)
		}
	}
	for _, bad := range []string{"", "<rss/>", "<rsl><content/></rsl>", strings.Repeat("<a>", 100)} {
		if _, err := readRSL([]byte(bad), "/"); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// rslDocument is a license document, with the elements that [readRSL] reads.
type rslDocument struct {
	XMLName xml.Name `xml:"https://rslstandard.org/rsl rsl"`
	Content []struct {
		URL      string `xml:"url,attr"`
		Modified string `xml:"lastmod,attr"`
		Licenses []struct {
			Permits   []rslUsage `xml:"permits"`
			Prohibits []rslUsage `xml:"prohibits"`
			Payment   struct {
				Type string `xml:"type,attr"`
			} `xml:"payment"`
		} `xml:"license"`
		Copyright struct {
			URL  string `xml:"contactUrl,attr"`
			Mail string `xml:"contactEmail,attr"`
		} `xml:"copyright"`
		Terms string `xml:"terms"`
	} `xml:"content"`
}

type rslUsage struct {
	Type  string `xml:"type,attr"`
	Words string `xml:",chardata"`
}

// readRSL reads the licenses for the content below a path. It returns the purposes that a
// license names. A refusal takes precedence over a permission, and a permission with a price
// is ignored. The error is ErrNotFound for a document without a license for that path, or a
// [*millrace.FormatError] without a URL.
func readRSL(body []byte, path string) (*millrace.Policy, error) {
	var d rslDocument
	if err := xml.Unmarshal(body, &d); err != nil {
		return nil, &millrace.FormatError{Protocol: "rsl", Reason: "not a license document", Err: err}
	}
	for _, c := range d.Content {
		if c.URL != path {
			continue
		}
		p := &millrace.Policy{Terms: strings.TrimSpace(c.Terms), Updated: parseTime(c.Modified), Contact: c.Copyright.URL}
		if c.Copyright.Mail != "" {
			p.Contact = "mailto:" + c.Copyright.Mail
		}
		for _, l := range c.Licenses {
			credit := l.Payment.Type == "attribution"
			p.Requirements.Attribution = p.Requirements.Attribution || credit
			if credit || l.Payment.Type == "" || l.Payment.Type == "free" {
				p.Purposes = preferences(p.Purposes).merge(usageOf(l.Permits, true))
			}
			p.Purposes = preferences(p.Purposes).merge(usageOf(l.Prohibits, false))
		}
		return validated(p, "rsl", "")
	}
	return nil, fmt.Errorf("rsl: no license for %s: %w", path, millrace.ErrNotFound)
}

// usageOf returns the preferences for the purposes that elements name.
func usageOf(elements []rslUsage, allowed bool) preferences {
	out := make(preferences)
	for _, e := range elements {
		words := strings.Fields(e.Words)
		for _, u := range usages {
			all := slices.Contains(words, "all") || u.purpose != millrace.Search && slices.Contains(words, "ai-all")
			if e.Type == "usage" && (all || slices.Contains(words, u.word)) {
				out[u.purpose] = allowed
			}
		}
	}
	return out
}
