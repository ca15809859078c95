package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
)

// teller has JSON-LD for the home page.
type teller struct {
	lister
	data string
}

func (d teller) Advertise(millrace.View) millrace.Advertisement {
	return millrace.Advertisement{RootData: []json.RawMessage{json.RawMessage(d.data)}}
}

// The home page has the elements in its head, other pages do not, and its
// validator moves with them.
func TestRootData(t *testing.T) {
	head := func(data, path string) (body, tag string) {
		g := setup{
			files: inMemory("index.html", "<!DOCTYPE html><html><head><title>T</title></head><body>B</body></html>", "other.html", "<p>other"),
			rooms: []edition.Room{{Name: "teller", Publisher: teller{data: data}}},
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
		t.Errorf("other data, and the same tag %s", tag)
	}
	if other, _ := head(`{"@type":"Dataset"}`, "/other.html"); strings.Contains(other, "script") {
		t.Errorf("another page is %s", other)
	}
	if broken, _ := head(`{"@type":`, "/"); strings.Contains(broken, "script") {
		t.Errorf("what is no JSON is in %s", broken)
	}
}

// What is inserted reads as the same JSON, and nothing in it ends the element
// early, whatever a page's character set is.
func TestScript(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"a": "</script><!-- & é 𝄞 \u2028"}`, `{"a":"</script><!-- & é 𝄞 ` + "\u2028" + `"}`},
		{`{}`, `{}`},
		{`[1]`, ""},
		{`"x"`, ""},
		{``, ""},
		{`{"a":`, ""},
	} {
		got := script(json.RawMessage(c.in))
		if c.want == "" {
			if got != "" {
				t.Errorf("%s: %s", c.in, got)
			}
			continue
		}
		if strings.IndexFunc(got, func(r rune) bool { return r >= 0x7f }) >= 0 {
			t.Errorf("%s: not ASCII: %s", c.in, got)
		}
		z := html.NewTokenizer(strings.NewReader(got))
		z.Next()
		if tok := z.Token(); tok.Data != "script" || len(tok.Attr) != 1 || tok.Attr[0].Val != "application/ld+json" {
			t.Fatalf("%s: the element is %v", c.in, tok)
		}
		z.Next()
		var have, want any
		if err := json.Unmarshal(z.Raw(), &have); err != nil {
			t.Fatalf("%s: %v in %s", c.in, err, got)
		}
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		h, _ := json.Marshal(have)
		w, _ := json.Marshal(want)
		if string(h) != string(w) {
			t.Errorf("%s: reads as %s, want %s", c.in, h, w)
		}
		z.Next()
		if tok := z.Token(); tok.Type != html.EndTagToken || tok.Data != "script" {
			t.Errorf("%s: %v follows the text", c.in, tok)
		}
	}
}
