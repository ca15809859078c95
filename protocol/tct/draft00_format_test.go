package tct

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"
	"github.com/millrace/millrace/policy"
)

// This is the only content in the drafts whose hash other sources publish.
func TestVector00(t *testing.T) {
	d := &document{CanonicalURL: "https://example.com/hello-world/", Title: "Hello World", Content: "  Hello\n World "}
	body, hash := draft00.Encode(d)
	const helloWorld = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9" // SHA-256 of "hello world"
	if hash != helloWorld || !strings.Contains(string(body), `"hash":"`+helloWorld+`"`) {
		t.Errorf("hash is %s in %s", hash, body)
	}
	for _, same := range []string{helloWorld, hashPrefix + helloWorld, strings.ToUpper(helloWorld)} {
		if !isFingerprint("HELLO WORLD", same) {
			t.Errorf("the hash of %s is invalid", same)
		}
	}
	if isFingerprint("Hello, World", helloWorld) || isFingerprint("Hello World", "") {
		t.Error("the hash of another document is valid")
	}
}

// Golden documents: a page as JSON, and its document.
func TestGolden00(t *testing.T) {
	files, err := filepath.Glob("testdata/draft00/golden/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			switch a.Files[0].Name {
			case "policy.json":
				var p millrace.Policy
				if err := json.Unmarshal(a.Files[0].Data, &p); err != nil {
					t.Fatal(err)
				}
				if err := p.Validate(); err != nil {
					t.Fatal(err)
				}
				got = policy.WriteTCT(&p)
				back, err := policy.ReadTCT(got)
				p.Retention, p.Access, p.Consumers = 0, "", nil // the draft has no members for these
				if diff := cmp.Diff(&p, back); err != nil || diff != "" {
					t.Errorf("%v, -written +read:\n%s", err, diff)
				}
			case "site.json":
				var site millrace.Site
				if err := json.Unmarshal(a.Files[0].Data, &site); err != nil {
					t.Fatal(err)
				}
				got = jsonio.Encode(newManifest(site, true))
			default:
				var p millrace.Page
				if err := json.Unmarshal(a.Files[0].Data, &p); err != nil {
					t.Fatal(err)
				}
				got = []byte("none")
				if d := draft00.Document(millrace.Site{Base: "https://example.com/"}, &p); d != nil {
					got, _ = draft00.Encode(d)
				}
			}
			got = append(got, '\n')
			if *update {
				a.Files[1].Data = got
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(a.Files[1].Data), string(got)); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
		})
	}
}

// A document with any strings encodes to JSON, parses to an equal document, and does not
// change when it is carried again.
func FuzzDocument00(f *testing.F) {
	f.Add("https://example.com/", "Title", "Text\n\nmore", "A", "en", "D", `{"@type":"Article","n":1.0}`, int64(1700000000))
	f.Add("https://example.com/x?y=%20", "\u2028\x00\"", "", "", "", "", `[]`, int64(0))
	f.Add("http://host/", "\xff\xfe a", "\xff\xfe a\r\n\r\nb\r", "😀", "\ue000", "", `{"a":{"b":[1e400]}}`, int64(-1))
	f.Add("http://host/", "T", "T\n\nT", "", "", "", "", int64(-1))
	f.Fuzz(func(t *testing.T, u, title, text, author, language, description, schema string, unix int64) {
		p := &millrace.Page{
			URL: u, Title: title, Author: author, Language: language, Description: description,
			Published: time.Unix(unix, 1), Modified: time.Unix(unix/2, 0),
			Schema: []json.RawMessage{json.RawMessage(schema), json.RawMessage(`{"a":1}`)},
			Blocks: []millrace.Block{{Type: millrace.CodeBlock, Text: text}, {Type: millrace.TextBlock, Text: title}},
		}
		d := draft00.Document(millrace.Site{}, p)
		if d == nil {
			return
		}
		body, hash := draft00.Encode(d)
		back, wire, err := draft00.Decode(body)
		if err != nil || wire != hash || !isDigits(hash) || !isFingerprint(back.Content, hash) {
			t.Fatalf("%q was read with the hash %s: %v", body, wire, err)
		}
		if diff := cmp.Diff(d, back); diff != "" {
			t.Fatalf("-written +read:\n%s", diff)
		}
		once := Draft00().Carry(millrace.Site{}, p)
		if diff := cmp.Diff(once, draft00.Page(back)); diff != "" {
			t.Fatalf("-carried +read:\n%s", diff)
		}
		if diff := cmp.Diff(once, Draft00().Carry(millrace.Site{}, once)); diff != "" {
			t.Fatalf("-once +twice:\n%s", diff)
		}
		if got := once.Text(); got != (&draft{}).Document(millrace.Site{}, p).Content {
			t.Fatalf("the text %q has become %q", (&draft{}).Document(millrace.Site{}, p).Content, got)
		}
		other := p.Clone()
		other.Title += " other"
		if o := draft00.Document(millrace.Site{}, other); canon.NormalizeLower(o.Title) != canon.NormalizeLower(d.Title) {
			if _, moved := draft00.Encode(o); moved == hash {
				t.Fatal("another title has the same fingerprint")
			}
		}
	})
}

func TestHeaded(t *testing.T) {
	for _, c := range [][3]string{
		{"T", "a\n\nb", "T\n\na\n\nb"},
		{"T", "", "T"},
		{"T", "T\n\na", "T\n\nT\n\na"},
		{" T \n u ", "a", "T u\n\na"},
	} {
		doc := &document{Title: c[0]}
		doc.Content = headed(doc, millrace.TextBlocks(c[1]))
		if blocks, _ := unheaded(doc); doc.Content != c[2] || millrace.Text(blocks) != c[1] {
			t.Errorf("%q over %q is %q, and without it %q", c[0], c[1], doc.Content, millrace.Text(blocks))
		}
	}
	for _, as := range [][2]string{{"T", "Text"}, {"T", "T\nx"}, {"T", "a\n\nT"}, {"", "a"}, {"T", ""}} {
		if blocks, _ := unheaded(&document{Title: as[0], Content: as[1]}); millrace.Text(blocks) != as[1] {
			t.Errorf("%q under %q has become %q", as[1], as[0], millrace.Text(blocks))
		}
	}
}

func TestDecodeDocument00(t *testing.T) {
	const hash = `"hash":"af976cac6d5c89428a724e456311081ddbf3bab73cc4de7c85119b185ffbdab8"`
	const core = `"canonical_url":"https://e.com/","title":"T","content":"C",` + hash
	for _, c := range []struct {
		name, doc string
		position  string // of the error, "" = none
	}{
		{"core", `{` + core + `}`, ""},
		{"unknown members", `{` + core + `,"x":{"y":[]},"Title":5}`, ""},
		{"extended of other types", `{` + core + `,"language":5,"author":{"name":"A"},"published":"soon","structured_data":"x"}`, ""},
		{"no title", `{"canonical_url":"https://e.com/","content":"C",` + hash + `}`, "/title"},
		{"null content", `{"canonical_url":"https://e.com/","title":"T","content":null,` + hash + `}`, "/content"},
		{"no canonical_url", `{"title":"T","content":"C",` + hash + `}`, "/canonical_url"},
		{"no hash", `{"canonical_url":"https://e.com/","title":"T","content":"C"}`, "/hash"},
		{"title is a number", `{"canonical_url":"https://e.com/","title":5,"content":"C",` + hash + `}`, "/title"},
		{"twice", `{` + core + `,"title":"U"}`, "/title"},
		{"array", `[]`, "line 1"},
		{"null", `null`, "/canonical_url"},
		{"cut", `{` + core, "line 1"},
		{"empty", ``, "line 1"},
		{"html", "<!DOCTYPE html>", "line 1"},
		{"bad UTF-8", "{" + core + ",\"x\":\"\xff\"}", "line 1"},
		{"trailing", `{` + core + `} {}`, "line 1"},
	} {
		d, _, err := draft00.Decode([]byte(c.doc))
		if c.position == "" {
			if err != nil || d.Title != "T" || d.Extended() {
				t.Errorf("%s: %+v %v", c.name, d, err)
			}
			continue
		}
		fe, ok := errors.AsType[*millrace.FormatError](err)
		if !ok || !errors.Is(err, millrace.ErrInvalid) || fe.Section != "8.2" || fe.Protocol != name00 || !strings.Contains(fe.Position, c.position) {
			t.Errorf("%s: %+v, want one at %s", c.name, err, c.position)
		}
	}
	deep := `{` + core + `,"x":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`
	if _, _, err := draft00.Decode([]byte(deep)); !errors.Is(err, millrace.ErrTooLarge) {
		t.Errorf("depth 300: %v", err)
	}
}

func FuzzDecodeDocument00(f *testing.F) {
	f.Add([]byte(`{"canonical_url":"https://e.com/","title":"T","content":"C","hash":"h","structured_data":[{}],"modified":"2026-01-01"}`))
	f.Add([]byte(`{"structured_data":{"a":"\ud83d\ude00"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, hash, err := draft00.Decode(body)
		if err != nil {
			if !errors.Is(err, millrace.ErrInvalid) && !errors.Is(err, millrace.ErrTooLarge) {
				t.Fatalf("unexpected error %v", err)
			}
			return
		}
		isFingerprint(d.Content, hash)
		isHashOf(body, hash)
		again, _ := draft00.Encode(d)
		back, _, err := draft00.Decode(again)
		if err != nil {
			t.Fatalf("%q, read and written, is %q: %v", body, again, err)
		}
		if diff := cmp.Diff(d, back); diff != "" {
			t.Fatalf("-read +read again:\n%s", diff)
		}
	})
}
