package export

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// mill returns two sites. The first has terms of use.
func mill() []Site {
	pages := []*millrace.Page{
		{
			URL: "/", Title: "The mill", Description: "What \"grinds\" here,\nand when.", Author: "Ada", Language: "en", Kind: millrace.Article,
			Published: noon.AddDate(-1, 0, 0), Modified: noon, Tags: []string{"water", "wheels; gates"}, Section: "mill", Known: millrace.AllFields,
			Detail: millrace.DetailBlocks, Schema: []json.RawMessage{json.RawMessage(`{"@type":"Thing","name":"<mill>"}`)},
			Blocks: []millrace.Block{
				{Type: millrace.HeadingBlock, Level: 2, Text: "Wheel"},
				{Type: millrace.TextBlock, Text: "It turns."},
				{Type: millrace.HeadingBlock, Level: 3, Text: "Paddles"},
				{Type: millrace.ListBlock, Items: []millrace.Item{{Text: "one"}, {Text: "two"}}},
			},
		},
		{URL: "/gate/", Title: "=HYPERLINK(\"http://evil.example\")", Modified: noon, Known: millrace.FieldTitle},
		{URL: "/gate/open.html?to=1&fro=2", Title: "- open", Modified: noon, Blocks: millrace.TextBlocks("Lift."), Detail: millrace.DetailText, Unconfirmed: true, Known: millrace.FieldTitle | millrace.FieldContent},
	}
	yes, no := true, false
	docs := []protocol.Terms{
		{URL: "https://mill.example/.well-known/arc-policy.json", Policy: &millrace.Policy{
			Terms: "https://mill.example/terms", Contact: "mailto:miller@mill.example", Purposes: map[millrace.Purpose]bool{millrace.AITrain: yes, millrace.AIInput: yes},
			Requirements: millrace.Requirements{Attribution: true}, Retention: 48 * time.Hour,
		}},
		{URL: "https://mill.example/llm-policy.json", Policy: &millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AITrain: no}}},
	}
	river := []*millrace.Page{{URL: "/", Title: "The river", Modified: noon, Known: millrace.FieldTitle}}
	return []Site{
		{View: protocoltest.NewView(millrace.Site{Base: "https://mill.example/"}, pages), Terms: docs},
		{View: protocoltest.NewView(millrace.Site{Base: "https://river.example:8443/en/"}, river)},
	}
}

func tree(dir string, sites []Site) Tree {
	var bases []string
	for _, s := range sites {
		bases = append(bases, s.View.Site().Base)
	}
	return Tree{Dir: dir, Folders: Folders(bases)}
}

// files returns the contents of the files of a folder by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		out[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// exported exports sites in all text formats.
func exported(t *testing.T, sites []Site) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if _, err := Markdown(t.Context(), tree(dir, sites), sites, nil); err != nil {
		t.Fatal(err)
	}
	out := files(t, dir)
	for name, write := range map[string]func(context.Context, io.Writer, []Site, *Options) (Counts, error){"pages.jsonl": Lines, "pages.csv": CSV} {
		var b bytes.Buffer
		c, err := write(t.Context(), &b, sites, nil)
		if err != nil || c.Bytes != int64(b.Len()) {
			t.Fatalf("%s: %d bytes of %d: %v", name, c.Bytes, b.Len(), err)
		}
		out[name] = b.String()
	}
	return out
}

func TestGolden(t *testing.T) {
	const golden = "testdata/mill.txtar"
	got := exported(t, mill())
	delete(got, lockName)
	got["pages.csv"] = strings.ReplaceAll(got["pages.csv"], "\r\n", "\n")
	if *update {
		a := &txtar.Archive{Comment: []byte("The output of internal/export for the pages of its tests.\n\n")}
		for _, name := range slices.Sorted(func(yield func(string) bool) {
			for n := range got {
				if !yield(n) {
					return
				}
			}
		}) {
			a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(got[name])})
		}
		if err := os.WriteFile(golden, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a, err := txtar.ParseFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, f := range a.Files {
		want[f.Name] = string(f.Data)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(exported(t, mill())["pages.jsonl"], got["pages.jsonl"]); d != "" {
		t.Errorf("the second time:\n%s", d)
	}
}

// A line of JSON Lines decodes to the same page.
func TestLinesPage(t *testing.T) {
	sites := mill()
	var b bytes.Buffer
	if _, err := Lines(t.Context(), &b, sites, nil); err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(&b)
	for _, s := range sites {
		for want, err := range s.View.Scan(t.Context(), millrace.Scan{WithBlocks: true}) {
			if err != nil {
				t.Fatal(err)
			}
			var got millrace.Page
			if err := d.Decode(&got); err != nil {
				t.Fatal(err)
			}
			got.Version = want.Version
			if d := cmp.Diff(want, &got); d != "" {
				t.Error(d)
			}
		}
	}
}

// following is a view with a log.
type following struct {
	*protocoltest.View
	log []millrace.Change
}

func (f following) Changes(_ context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		if since == "old" {
			yield(millrace.Change{}, millrace.ErrConflict)
			return
		}
		for _, c := range f.log {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func TestChanges(t *testing.T) {
	ref := func(u string) millrace.Ref { return millrace.Ref{URL: "https://mill.example" + u} }
	site := mill()[0]
	site.View = following{site.View.(*protocoltest.View), []millrace.Change{
		{Ref: ref("/gate/")},
		{Kind: millrace.Delete, Ref: ref("/old/")},
		{Kind: millrace.Delete, Ref: ref("/brief/"), New: true},
		{Ref: ref("/hidden/"), New: true},
		{Ref: ref("/hidden-now/")},
		{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{}},
	}}
	var b bytes.Buffer
	c, err := Changes(t.Context(), &b, site, "some", nil)
	if err != nil || c.Pages != 1 || c.Removed != 2 || c.Bytes != int64(b.Len()) {
		t.Errorf("%+v %v", c, err)
	}
	first, second, _ := strings.Cut(b.String(), "\n")
	if all := exported(t, mill())["pages.jsonl"]; !strings.Contains(all, first+"\n") {
		t.Error(first)
	}
	if second != `{"url":"https://mill.example/old/","site":"https://mill.example/","deleted":true}`+"\n"+
		`{"url":"https://mill.example/hidden-now/","site":"https://mill.example/","deleted":true}`+"\n" {
		t.Error(second)
	}
	if _, err := Changes(t.Context(), &b, site, "old", nil); !errors.Is(err, millrace.ErrConflict) {
		t.Error(err)
	}
}

// A cell is restored by removing one apostrophe.
func TestCells(t *testing.T) {
	for in, want := range map[string]string{
		"":                   "",
		"plain":              "plain",
		"=1+2":               "'=1+2",
		"+49 30":             "'+49 30",
		"-1":                 "'-1",
		"@SUM(A1)":           "'@SUM(A1)",
		" \t=1":              "'=1",
		"\r\n=1":             "'=1",
		"\x00=1":             "'=1",
		"＝1":                 "'＝1",
		"'=1":                "''=1",
		"'tis":               "'tis",
		"a\r\nb\x00c\u2028d": "a bc d",
		`say "x"`:            `say "x"`,
		"a;=1":               "a;=1",
		"\xff=":              "\uFFFD=",
	} {
		if got := canon.CSVCell(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	record := appendRecord(nil, []string{`a;"=1`, "b,c", ""})
	if want := "\"a;\"\"=1\",\"b,c\",\"\"\r\n"; string(record) != want {
		t.Errorf("%q", record)
	}
	read, err := csv.NewReader(bytes.NewReader(record)).Read()
	if d := cmp.Diff([]string{`a;"=1`, "b,c", ""}, read); d != "" || err != nil {
		t.Error(d, err)
	}
}

// closed is a writer that fails after a given number of bytes.
type closed struct{ after int }

var errClosed = errors.New("closed")

func (c *closed) Write(b []byte) (int, error) {
	if c.after -= len(b); c.after < 0 {
		return 0, errClosed
	}
	return len(b), nil
}

// large returns a site whose pages are generated when they are read.
func large(pages, text int) Site {
	body := strings.Repeat("The wheel turns in the water of the leat. ", text/42+1)[:text]
	return Site{View: generated{
		View: protocoltest.NewView(millrace.Site{Base: "https://large.example/"}, nil), pages: pages, text: body,
	}}
}

// An export ends with the first error of its writer.
func TestClosedPipe(t *testing.T) {
	read := 0
	o := &Options{Progress: func(int) { read++ }}
	for _, write := range []func(context.Context, io.Writer, []Site, *Options) (Counts, error){Lines, CSV} {
		read = 0
		_, err := write(t.Context(), &closed{after: 200_000}, []Site{large(20_000, 1000)}, o)
		if !errors.Is(err, errClosed) || read > 5_000 {
			t.Errorf("%d pages: %v", read, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Lines(ctx, io.Discard, []Site{large(20_000, 10)}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
