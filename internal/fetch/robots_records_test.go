package fetch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Records returns the records of other kinds in the product's groups, those before all groups,
// and licenses.
func TestRobotsRecords(t *testing.T) {
	const text = "\ufeffLicense: https://rsl.example/a.xml # everywhere\nFoo: bar\nUser-agent: *\nContent-Signal: search=yes\nAllow: /\n" +
		"User-agent: Mill\nUser-agent: other\nContent-Usage: train-ai=n\nDisallow:\nSitemap: /x\nCrawl-delay: 1\nEmpty:\n: none\n" +
		"User-agent: stranger\nContent-Signal: search=no\nlicense: /b.xml\n"
	for agent, want := range map[string][]RobotsRecord{
		"mill": {{"license", "https://rsl.example/a.xml", 1}, {"foo", "bar", 2}, {"content-usage", "train-ai=n", 8}, {"license", "/b.xml", 16}},
		"bot":  {{"license", "https://rsl.example/a.xml", 1}, {"foo", "bar", 2}, {"content-signal", "search=yes", 4}, {"license", "/b.xml", 16}},
	} {
		if d := cmp.Diff(want, ParseRobots([]byte(text), agent).Records()); d != "" {
			t.Errorf("%s (-want +got):\n%s", agent, d)
		}
	}
	if r := (*Robots)(nil).Records(); r != nil {
		t.Errorf("without records: %v", r)
	}
	many := ParseRobots([]byte("a: "+strings.Repeat("x", maxOther)+"\n"+strings.Repeat("a: b\xff\n", 2*maxOthers)), "mill").Records()
	if len(many) != maxOthers || many[0] != (RobotsRecord{"a", "b\ufffd", 2}) {
		t.Errorf("%d records, %+v", len(many), many[0])
	}
}
