package policy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// A written licence contains the same policy when it is read again.
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
		got, err := ReadRSL(body, "/blog/")
		if d := cmp.Diff(p, got); err != nil || d != "" {
			t.Errorf("%v, %s (-written +read):\n%s", err, body, d)
		}
		if _, err := ReadRSL(body, "/"); !errors.Is(err, millrace.ErrNotFound) {
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
		p, err := ReadRSL([]byte(`<rsl xmlns="`+rslSpace+`"><content url="/"><license>`+c.license+`</license></content></rsl>`), "/")
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got, _ := preferences(p.Purposes).words(); got != c.says {
			t.Errorf("%s: %q, want %q", c.name, got, c.says)
		}
	}
	for _, bad := range []string{"", "<rss/>", "<rsl><content/></rsl>", strings.Repeat("<a>", 100)} {
		if _, err := ReadRSL([]byte(bad), "/"); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
