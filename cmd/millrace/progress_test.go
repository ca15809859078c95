package main

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/terminal"
)

// A refresh that has ended is no longer shown.
func TestRefreshing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out buffer
		p := &process{stderr: terminal.New(&out, environment(nil)), commonFlags: &commonFlags{}, log: slog.New(slog.NewTextHandler(&out, nil))}
		show := p.refreshing("refreshing", "pages")
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
