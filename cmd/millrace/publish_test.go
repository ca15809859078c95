package main

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/millrace/millrace/internal/serving"
)

// Every publishing flag changes the configuration of the publication or the key of its
// editions.
func TestPublishingKey(t *testing.T) {
	key := func(args ...string) string {
		t.Helper()
		var c struct{ publishing }
		parser, err := kong.New(&c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(args); err != nil {
			t.Fatal(err)
		}
		if err := c.validate(); err != nil {
			t.Fatal(err)
		}
		conf, err := c.configure("https://mill.example/", "https://mill.example/")
		if err != nil {
			t.Fatal(err)
		}
		_, editions, err := serving.Protocols(c.publisher(nil, false, false), nil)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal([]any{conf, editions})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	values := map[string]string{
		"exclude": "/drafts", "hide-kinds": "forum", "authors": "hidden", "list-items": "7", "site-contact": "mailto:miller@mill.example",
		"sections": "/docs", "update-frequency": "daily", "files-url": "https://cdn.example", "arc-listed": "/members",
		"crawl-priority": "/docs=0.5", "hub": "https://hub.example/",
	}
	elsewhere := map[string]bool{
		"help":          true,
		"exclude-types": true, // selects what is read
		"rehost":        true, // the base URL
	}
	var c struct{ publishing }
	parser, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{key(): "no flag"}
	for _, f := range parser.Model.Flags {
		if elsewhere[f.Name] {
			continue
		}
		arg := "--" + f.Name + "=" + values[f.Name]
		if f.Target.Kind() == reflect.Bool {
			if arg = "--" + f.Name; f.HasDefault && f.Default == "true" {
				arg = "--no-" + f.Name
			}
		}
		is := key(arg)
		if was := seen[is]; was != "" {
			t.Errorf("%s: the same publication as with %s", arg, was)
		}
		seen[is] = arg
	}
	if len(seen) < 15 {
		t.Errorf("%d flags", len(seen))
	}
}
