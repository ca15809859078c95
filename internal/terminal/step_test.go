package terminal

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestProgressText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		g    *Step
		want string
	}{
		{&Step{unit: "pages", done: 120, total: 200, expected: 900, received: func() int64 { return 3_400_000 }}, "120 / 900 pages, 3.4 MB, 12 pages/s, 1m5s left"},
		{&Step{unit: "pages", done: 120, total: 256, open: true}, "120 / 256 pages, 12 pages/s"},
		{&Step{unit: "pages", total: 200}, "0 / 200 pages, 0 pages/s"},
		{&Step{unit: "MB", done: 50, total: 50, expected: 10}, "50 / 50 MB, 5 MB/s"},
	} {
		if got := c.g.text(10 * time.Second); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if attrs := fmt.Sprint(c.g.attrs(10 * time.Second)); strings.Contains(attrs, "left") != strings.Contains(c.want, "left") {
			t.Error(attrs)
		}
	}
}
