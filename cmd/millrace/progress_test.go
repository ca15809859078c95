package main

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		g    *progress
		want string
	}{
		{&progress{unit: "pages", done: 120, total: 200, expected: 900, received: func() int64 { return 3_400_000 }}, "120 / 900 pages, 3.4 MB, 12 pages/s, 1m5s left"},
		{&progress{unit: "pages", done: 120, total: 256, open: true}, "120 / 256 pages, 12 pages/s"},
		{&progress{unit: "pages", total: 200}, "0 / 200 pages, 0 pages/s"},
		{&progress{unit: "MB", done: 50, total: 50, expected: 10}, "50 / 50 MB, 5 MB/s"},
	} {
		if got := c.g.text(10 * time.Second); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if attrs := fmt.Sprint(c.g.attrs(10 * time.Second)...); strings.Contains(attrs, "left") != strings.Contains(c.want, "left") {
			t.Error(attrs)
		}
	}
}

// A step that has ended, and may come again, is not shown any more.
func TestRefreshing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out buffer
		p := &process{stderr: &out, common: &common{}, log: slog.New(slog.NewTextHandler(&out, nil))}
		show := p.refreshing("refreshing")
		for range 2 {
			show(0, 0)
			before := out.String()
			time.Sleep(time.Minute)
			if out.String() != before {
				t.Errorf("shown before it begins:\n%s", &out)
			}
			show(1, 5)
			time.Sleep(time.Minute)
			if out.String() == before {
				t.Error("not shown")
			}
		}
		show(0, 0)
	})
}
