package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// escapes are control sequences of terminals and changes of the writing direction.
const escapes = "=wheel\x1b]0;t\x07\x1b[2J\r\u009b31m\u202e\u2066\u061c\x7f\u2028\ufeff"

// TestEscapes sends escapes through each field of a page by each protocol, and through
// broken documents, to each command that reads sites or stores.
func TestEscapes(t *testing.T) {
	t.Parallel()
	dirty := filepath.Join(t.TempDir(), "dirty.db")
	storeEscapes(t, dirty)
	s := serve(t, dirty, "--llms-full", "--base-url", manual)
	eventually(t, "the site is published", func() bool {
		code, _, _ := get(t, address(s)+"llm-pages.json")
		return code == http.StatusOK
	})
	for _, name := range []string{"llms.txt", "llms-full.txt"} {
		if code, _, body := get(t, address(s)+name); code != http.StatusOK || !strings.Contains(body, "wheel") || hidden(body) != "" {
			t.Errorf("%s: status %d, %s", name, code, hidden(body))
		}
	}
	good := onward(address(s))
	shown := ""
	for name, h := range map[string]http.Handler{
		"good": good,
		"html": always(http.StatusOK, http.Header{"Content-Type": {"text/html; charset=utf-8"}, "Server": {"a\u009b\u202e"}},
			"<html lang='"+escapes+"'><title>"+escapes+"</title><meta name=description content='"+escapes+"'><link rel='"+escapes+"' href='/"+escapes+"'>"+
				"<main data-ai-schema='"+escapes+"'><h1>"+escapes+"</h1><p>"+escapes+strings.Repeat(" A wheel turns in the water. ", 50)+"<pre>"+escapes+"</pre><a href='/a"+escapes+"'>a</a></main>"),
		"error": always(http.StatusForbidden, http.Header{"Content-Type": {"\u009b\u202e"}, "Retry-After": {"\u009b"}, "Link": {"<\u009b>; rel=\u202e"}}, escapes),
		"moved": always(http.StatusFound, http.Header{"Location": {"http://\u202e/\u009b"}}, escapes),
		"torn":  spoiled(good, func(_ *http.Request, a *recorder) { a.body.Truncate(a.body.Len() / 2); a.body.WriteString(escapes) }),
		"keys": spoiled(good, func(_ *http.Request, a *recorder) {
			b := bytes.ReplaceAll(bytes.Clone(a.body.Bytes()), []byte(`":`), []byte("\u202e\u009b\x7f\":"))
			a.body.Reset()
			a.body.Write(b)
		}),
	} {
		shown += escapesBy(t, name, h)
	}
	for _, args := range [][]string{
		{"search", "wheel", "--store", dirty},
		{"search", "whxel\u202e", "--store", dirty},
		{"report", "--store", dirty},
		{"report", "--csv", "--store", dirty},
		{"export", "--format", "csv", "--store", dirty},
		{"export", "--format", "jsonl", "--store", dirty},
		{"config", "serve", dirty},
	} {
		shown += noEscape(t, nil, "", args...)
	}
	dir := filepath.Join(t.TempDir(), "out")
	noEscape(t, nil, "", "export", "--format", "markdown", "--store", dirty, "--out", dir)
	files := 0
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".md") {
			return err
		}
		b, err := os.ReadFile(name)
		if files++; hidden(string(b)) != "" {
			t.Errorf("%s: %s", name, hidden(string(b)))
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files, %v", files, err)
	}
	if !strings.Contains(shown, `\u202e`) {
		t.Error("no command printed the escapes in a visible form in a visible form")
	}
}

// escapesBy runs the commands that read a site.
func escapesBy(t *testing.T, name string, h http.Handler) (shown string) {
	t.Helper()
	srv := &http.Server{Handler: h, ErrorLog: quiet}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = srv.Serve(ln) }()
	defer srv.Close()
	dir := t.TempDir()
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, ln.Addr().String())
	}
	for _, via := range vias {
		file := filepath.Join(dir, "via-"+via+".db")
		shown += noEscape(t, dial, name, append([]string{"pull", manual, "--store", file}, by(via)...)...)
		if _, err := os.Stat(file); err == nil {
			shown += noEscape(t, nil, name, "search", "wheel", "--store", file)
			shown += noEscape(t, nil, name, "export", "--format", "csv", "--store", file)
		}
	}
	for _, args := range [][]string{
		{"discover", manual},
		{"check", manual},
		{"read", manual + "a"},
		{"extract", manual + "a"},
		{"init", manual, filepath.Join(dir, "init.yaml")},
		{"scp", "inspect", manual + "scp.scp"},
		{"scp", "verify", manual + "scp.scp"},
		{"scp", "cat", manual + "scp.scp"},
		{"arc", "lint", manual + "a"},
		{"watch", manual, "--store", filepath.Join(dir, "watch.db")},
		{"discover", manual, "--json"},
		{"check", manual, "--json"},
	} {
		shown += noEscape(t, dial, name, args...)
	}
	return shown
}

// noEscape runs a command, and returns its output, which must have no escapes.
func noEscape(t *testing.T, dial func(ctx context.Context, network, addr string) (net.Conn, error), site string, args ...string) string {
	t.Helper()
	var out buffer
	p := newProcess(environment(map[string]string{"HOME": t.TempDir(), "MILLRACE_DELAY": "1ms", "MILLRACE_ALLOW_PRIVATE": "true"}), strings.NewReader(""), &out, &out)
	p.dial = dial
	end := time.Minute
	if args[0] == "watch" {
		end = 500 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(t.Context(), end)
	defer cancel()
	code := p.run(ctx, append(args, "--log-level=debug"))
	if found := hidden(out.String()); found != "" {
		t.Errorf("%s: millrace %q: exit %d, %s", site, args, code, found)
	}
	return out.String()
}

// hidden returns the text around the first unseen character.
func hidden(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if i := strings.IndexFunc(s, canon.IsInvisible); i >= 0 {
		return strings.ToValidUTF8(strings.Trim(s[max(0, i-60):min(len(s), i+60)], "\n"), "")
	}
	return ""
}

// storeEscapes creates a store whose pages have escapes in all texts.
func storeEscapes(t *testing.T, file string) {
	t.Helper()
	st := openStore(t, file, false)
	site, err := st.Site(t.Context(), manual, manual)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []millrace.Block
	for _, kind := range []millrace.BlockType{
		millrace.HeadingBlock, millrace.TextBlock, millrace.CodeBlock, millrace.ImageBlock, millrace.VideoBlock, millrace.AudioBlock,
		millrace.EmbedBlock, millrace.MathBlock, millrace.LinkBlock, millrace.TableBlock, millrace.QuoteBlock, millrace.CalloutBlock, millrace.FootnoteBlock,
	} {
		b := millrace.Block{
			Media: &millrace.Media{Chapters: make([]millrace.Chapter, 1)}, Rows: [][]millrace.Cell{make([]millrace.Cell, 2), make([]millrace.Cell, 2)},
			Items: make([]millrace.Item, 1), Blocks: make([]millrace.Block, 1), Rel: []string{""}, Tracks: make([]millrace.Track, 1), Sources: make([]millrace.MediaSource, 1),
		}
		fill(reflect.ValueOf(&b).Elem())
		b.Type, b.Level, b.URL, b.Blocks[0].Type = kind, 2, manual+"media", millrace.TextBlock
		blocks = append(blocks, b)
	}
	var batch []millrace.Change
	for _, path := range []string{"", "a"} {
		p := &millrace.Page{Tags: []string{""}, Blocks: blocks, Known: millrace.AllFields, Detail: millrace.DetailBlocks}
		kept := p.Blocks
		p.Blocks = nil
		fill(reflect.ValueOf(p).Elem())
		p.Blocks, p.URL, p.Published, p.Modified = kept, manual+path, time.Unix(1e9, 0).UTC(), time.Unix(1e9, 0).UTC()
		batch = append(batch, millrace.Change{Ref: millrace.Ref{URL: p.URL}, Page: p})
	}
	batch = append(batch, millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Complete: true}})
	if _, err := site.Apply(t.Context(), manual, batch); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// fill sets all texts of a value to escapes.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(escapes)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type() != reflect.TypeFor[time.Time]() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem())
		}
	}
}
