package tct

import (
	"bytes"
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
)

// Other implementations use the same test vector.
func TestVector01(t *testing.T) {
	d := &document{CanonicalURL: "https://example.com/hello-world/", Title: "Hello World", Content: "Hello World"}
	body, hash := draft01.Encode(d)
	const want = "sha256-af976cac6d5c89428a724e456311081ddbf3bab73cc4de7c85119b185ffbdab8"
	if hash != want {
		t.Errorf("hash is %s, want %s", hash, want)
	}
	without := strings.Replace(string(body), `"hash":"`+want+`",`, "", 1)
	if without != `{"canonical_url":"https://example.com/hello-world/","content":"Hello World","profile":"tct-1","title":"Hello World"}` {
		t.Errorf("hashed are %s", without)
	}
	if canon.SHA256Hex([]byte(without)) != want[len(hashPrefix):] {
		t.Error("the hash does not match the document")
	}
}

// Golden documents: a page as JSON, and its document.
func TestGolden01(t *testing.T) {
	files, err := filepath.Glob("testdata/draft01/golden/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var p millrace.Page
			if err := json.Unmarshal(a.Files[0].Data, &p); err != nil {
				t.Fatal(err)
			}
			got := []byte("none\n")
			if d := draft01.Document(millrace.Site{Base: "https://example.com/"}, &p); d != nil {
				got, _ = draft01.Encode(d)
				got = append(got, '\n')
			}
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

// A document with any strings has the canonical form that the library computes, matches its
// hash with and without white space, and parses to an equal document.
func FuzzDocument01(f *testing.F) {
	f.Add("https://example.com/", "Title", "Text\n\nmore", "A", "en", "D", `{"@type":"Article","n":1.0}`, int64(1700000000))
	f.Add("https://example.com/x?y=%20", "\u2028\x00\"", "", "", "", "", `[]`, int64(0))
	f.Add("http://host/", "\xff\xfe", "a\r\n\r\nb\r", "😀", "\ue000", "", `{"a":{"b":[1e400]}}`, int64(-1))
	f.Fuzz(func(t *testing.T, u, title, text, author, language, description, schema string, unix int64) {
		p := &millrace.Page{
			URL: u, Title: title, Author: author, Language: language, Description: description,
			Published: time.Unix(unix, 1), Modified: time.Unix(unix/2, 0),
			Schema: []json.RawMessage{json.RawMessage(schema)},
			Blocks: []millrace.Block{{Type: millrace.CodeBlock, Text: text}, {Type: millrace.TextBlock, Text: title}},
		}
		d := draft01.Document(millrace.Site{}, p)
		if d == nil {
			return
		}
		body, hash := draft01.Encode(d)
		c, err := jsonio.Canonical(body, nil)
		if err != nil || !bytes.Equal(c, body) {
			t.Fatalf("%q is not canonical: %q %v", body, c, err)
		}
		if !isLowerHash(hash) || !isHashOf(body, hash) {
			t.Fatalf("%q has hash %s", body, hash)
		}
		var spread bytes.Buffer
		if err := json.Indent(&spread, body, "", " "); err != nil || !isHashOf(spread.Bytes(), hash) {
			t.Fatalf("%q with white space lost its hash %s: %v", body, hash, err)
		}
		back, wire, err := draft01.Decode(body)
		if err != nil || wire != hash {
			t.Fatalf("%q is read with hash %s: %v", body, wire, err)
		}
		if diff := cmp.Diff(d, back); diff != "" {
			t.Fatalf("-written +read:\n%s", diff)
		}
		once := Draft01().Carry(millrace.Site{}, p)
		if diff := cmp.Diff(once, draft01.Page(back)); diff != "" {
			t.Fatalf("-carried +read:\n%s", diff)
		}
		if diff := cmp.Diff(once, Draft01().Carry(millrace.Site{}, once)); diff != "" {
			t.Fatalf("-once +twice:\n%s", diff)
		}
	})
}

func TestDecodeDocument01(t *testing.T) {
	const hash = `"hash":"sha256-af976cac6d5c89428a724e456311081ddbf3bab73cc4de7c85119b185ffbdab8"`
	const core = `"canonical_url":"https://e.com/","title":"T","content":"C",` + hash
	for _, c := range []struct {
		name, doc string
		position  string // of the error, "" = none
		section   string
	}{
		{"core", `{` + core + `}`, "", ""},
		{"unknown members", `{` + core + `,"x":{"y":[]},"Title":5}`, "", ""},
		{"extended of other types", `{` + core + `,"language":5,"author":{"name":"A"},"published":"soon","structured_data":"x"}`, "", ""},
		{"no title", `{"canonical_url":"https://e.com/","content":"C",` + hash + `}`, "/title", "1.5.2"},
		{"null content", `{"canonical_url":"https://e.com/","title":"T","content":null,` + hash + `}`, "/content", "1.5.2"},
		{"no canonical_url", `{"title":"T","content":"C",` + hash + `}`, "/canonical_url", "1.5.2"},
		{"no hash", `{"canonical_url":"https://e.com/","title":"T","content":"C"}`, "/hash", "1.5.2"},
		{"title is a number", `{"canonical_url":"https://e.com/","title":5,"content":"C",` + hash + `}`, "/title", "1.5.1"},
		{"twice", `{` + core + `,"title":"U"}`, "/title", "1.5.1"},
		{"array", `[]`, "line 1", "1.5.1"},
		{"null", `null`, "/canonical_url", "1.5.2"},
		{"cut", `{` + core, "line 1", "1.5.1"},
		{"empty", ``, "line 1", "1.5.1"},
		{"html", "<!DOCTYPE html>", "line 1", "1.5.1"},
		{"mark", "\uFEFF{" + core + "}", "line 1", "1.5.1"},
		{"bad UTF-8", "{" + core + ",\"x\":\"\xff\"}", "line 1", "1.5.1"},
		{"trailing", `{` + core + `} {}`, "line 1", "1.5.1"},
	} {
		d, _, err := draft01.Decode([]byte(c.doc))
		if c.position == "" {
			if err != nil || d.Title != "T" || d.Extended() {
				t.Errorf("%s: %+v %v", c.name, d, err)
			}
			continue
		}
		fe, ok := errors.AsType[*millrace.FormatError](err)
		if !ok || !errors.Is(err, millrace.ErrInvalid) || fe.Section != c.section || fe.Protocol != name01 || !strings.Contains(fe.Position, c.position) {
			t.Errorf("%s: %+v, want one at %s of section %s", c.name, err, c.position, c.section)
		}
	}
	deep := `{` + core + `,"x":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`
	if _, _, err := draft01.Decode([]byte(deep)); !errors.Is(err, millrace.ErrTooLarge) {
		t.Errorf("depth 300: %v", err)
	}
}

// Servers that use another canonical form hash the bytes that they send.
func TestHashHolds(t *testing.T) {
	own := `{"title":"T","profile":"tct-1","content":"a/b","canonical_url":"https://e.com/"}`
	hash := hashPrefix + canon.SHA256Hex([]byte(own))
	for _, body := range []string{
		strings.TrimSuffix(own, "}") + `,"hash":"` + hash + `"}`,
		`{"hash":"` + hash + `",` + own[1:],
		strings.Replace(own, `,"content"`, `,"hash":"`+hash+`","content"`, 1),
	} {
		if !isHashOf([]byte(body), hash) {
			t.Errorf("%s: its hash is invalid", body)
		}
		if isHashOf([]byte(strings.Replace(body, "a/b", "a/c", 1)), hash) {
			t.Errorf("%s: its hash is valid for other content", body)
		}
	}
	for _, bad := range []string{"", "sha256-", "sha256-" + strings.Repeat("A", 64), strings.Repeat("a", 71), hash + "0"} {
		if isLowerHash(bad) || isHashOf([]byte(`{"hash":"`+bad+`"}`), bad) {
			t.Errorf("%q is read as a hash", bad)
		}
	}
}

func FuzzDecodeDocument01(f *testing.F) {
	f.Add([]byte(`{"canonical_url":"https://e.com/","title":"T","content":"C","hash":"h","structured_data":[{}],"modified":"2026-01-01"}`))
	f.Add([]byte(`{"structured_data":{"a":"\ud83d\ude00"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, hash, err := draft01.Decode(body)
		if err != nil {
			if !errors.Is(err, millrace.ErrInvalid) && !errors.Is(err, millrace.ErrTooLarge) {
				t.Fatalf("unexpected error %v", err)
			}
			return
		}
		isHashOf(body, hash)
		again, _ := draft01.Encode(d)
		back, _, err := draft01.Decode(again)
		if err != nil {
			t.Fatalf("%q, read and written, is %q: %v", body, again, err)
		}
		if diff := cmp.Diff(d, back); diff != "" {
			t.Fatalf("-read +read again:\n%s", diff)
		}
	})
}
