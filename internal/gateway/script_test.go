package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
)

// rootData has JSON-LD for the home page.
type rootData struct {
	lister
	data string
}

func (d rootData) Advertise(millrace.View) millrace.Advertisement {
	return millrace.Advertisement{RootData: []json.RawMessage{json.RawMessage(d.data)}}
}

// Only the home page has the JSON-LD elements in its head. Its validator changes with them.
func TestRootData(t *testing.T) {
	head := func(data, path string) (body, tag string) {
		g := setup{
			files:     inMemory("index.html", "<!DOCTYPE html><html><head><title>T</title></head><body>B</body></html>", "other.html", "<p>other"),
			protocols: []edition.Protocol{{Name: "root-data", Publisher: rootData{data: data}}},
		}.gateway(t)
		w := ask(g, "GET", path)
		if w.Code != 200 {
			t.Fatalf("%s: %d", path, w.Code)
		}
		if tag = w.Header().Get("ETag"); tag != "" {
			if w := ask(g, "GET", path, "If-None-Match", tag); w.Code != 304 {
				t.Errorf("%s: its own tag gives %d", path, w.Code)
			}
		}
		return w.Body.String(), tag
	}
	one, tag := head(`{"@type":"Dataset"}`, "/")
	const element = `<script type="application/ld+json">{"@type":"Dataset"}</script>`
	if at := strings.Index(one, element); at < 0 || at > strings.Index(one, "</head>") {
		t.Errorf("the home page is %s", one)
	}
	if _, other := head(`{"@type":"Other"}`, "/"); other == tag {
		t.Errorf("different data, but the same tag %s", tag)
	}
	if other, _ := head(`{"@type":"Dataset"}`, "/other.html"); strings.Contains(other, "script") {
		t.Errorf("another page is %s", other)
	}
	if broken, _ := head(`{"@type":`, "/"); strings.Contains(broken, "script") {
		t.Errorf("invalid JSON is in %s", broken)
	}
}
