package kit_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol"
)

// A stream ends with the error of its source, and without an error if its consumer stops.
func TestStream(t *testing.T) {
	lost := errors.New("lost")
	stream := kit.Stream(func(y kit.Yield) error {
		if err := y.Checkpoint(struct{ At int }{1}, true, "a"); err != nil {
			return err
		}
		return lost
	})
	var last error
	for c, err := range stream {
		if err == nil && (c.Checkpoint.Cursor != `{"At":1}` || c.Checkpoint.Section != "a" || !c.Checkpoint.Complete) {
			t.Errorf("%+v", c.Checkpoint)
		}
		last = err
	}
	if !errors.Is(last, lost) {
		t.Error(last)
	}
	for range stream {
		break
	}
	if c := kit.Cursor(struct{ At int }{}); c != "" {
		t.Errorf("the cursor of the start is %q", c)
	}
}

// A cursor of another site is ErrConflict, and so is an invalid cursor.
func TestResume(t *testing.T) {
	r := kit.NewReader("x", nil, "https://example.com/a", new(protocol.ReaderOptions))
	for since, want := range map[millrace.Cursor]error{
		"": nil, `{"root":"https://example.com/"}`: nil, `{"root":"https://example.org/"}`: millrace.ErrConflict, "x": millrace.ErrConflict,
	} {
		var is struct {
			Root string `json:"root"`
		}
		if err := r.Resume(since, &is, func() bool { return is.Root == r.Root }); !errors.Is(err, want) {
			t.Errorf("%q: %v", since, err)
		}
	}
	if r = kit.NewReader("x", nil, "x", new(protocol.ReaderOptions)); !errors.Is(r.Resume("", nil, nil), millrace.ErrInvalid) {
		t.Error(r.Err)
	}
}

// A host with another port is another host; the default port of the scheme is ignored.
func TestNear(t *testing.T) {
	target, err := check.NewTarget("https://Site.example:443/a", http.DefaultClient, nil)
	if err != nil {
		t.Fatal(err)
	}
	site := kit.NewSiteContext(target)
	for u, want := range map[string]bool{
		"https://site.example/b": true, "http://site.example:80/": true, "https://SITE.example:443/": true,
		"https://site.example:8443/": false, "http://site.example:443/": false, "https://other.example/": false, "": false,
	} {
		if site.HasHost(u) != want {
			t.Errorf("%q: %t", u, !want)
		}
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9:80": true, "[::1]": true, "[::1]:80": true, "localhost": true, "a.localhost:1": true,
		"10.0.0.1": false, "example.com": false, "localhost.example.com": false, "": false,
	} {
		if kit.IsLoopback("http://"+host+"/") != want {
			t.Errorf("%q", host)
		}
	}
}
