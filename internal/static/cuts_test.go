package static

import (
	"regexp"
	"testing"

	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/internal/testkit/powercut"
)

// After a power cut, the next build repairs the folder.
func TestRealPowerCuts(t *testing.T) {
	second := func() site {
		s := mill()
		delete(s, "/c/doc.json")
		s["/c"] = data("now a file", "c2")
		s["/a.html"] = page("a.html", "<p>another")
		s["/large"] = data(string(make([]byte, 5*4096)), "large")
		return s
	}
	for name, before := range map[string]site{"first": nil, "second": mill()} {
		t.Run(name, func(t *testing.T) {
			powercut.Run(t, testkit.Size(40, 40, 200), powercut.Writer{
				Before: func(t *testing.T, dir string) {
					if before != nil {
						build(t, dir, before, nil)
					}
				},
				Write: func(t *testing.T, dir string) {
					if r := build(t, dir, second(), nil); r.LeftOutCount != 4 {
						t.Errorf("omitted: %+v", r.LeftOut)
					}
				},
				Ignore: regexp.MustCompile(`^\.millrace/`), // these files contain times
			})
		})
	}
}
