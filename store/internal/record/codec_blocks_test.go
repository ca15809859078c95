package record

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// everything returns blocks with all of their fields set, except the rare ones: the fields of media
// and the relations of links.
func everything(s string) []millrace.Block {
	spans := []millrace.Span{{Type: millrace.LinkSpan, Start: 1, End: 20, URL: "https://x.example/[a}],b]" + s}, {Type: "new", End: -3}}
	inner := []millrace.Block{{Type: millrace.TextBlock, Text: s, Spans: spans}, {Type: "poem"}}
	return []millrace.Block{{
		Type: millrace.HeadingBlock, Text: s, Spans: spans, Level: 3, Anchor: s, Language: s, Ordered: true, Reversed: true, Start: -7,
		Items:  []millrace.Item{{Term: s, Text: s, Spans: spans, Task: true, Done: true, Blocks: inner}, {}},
		Rows:   [][]millrace.Cell{{{Text: s, Spans: spans, Header: true, Colspan: 2, Rowspan: 3}, {}}, {}},
		Blocks: inner, Caption: s, Title: s, Kind: s, Cite: s, URL: s, Alt: s,
	}, {}}
}

const awkward = "a \"quoted\" \\ line\n\t\r\b\f\x01\u2028 <&> 水 é 😀"

func TestDecodeBlocks(t *testing.T) {
	blocks := everything(awkward)
	data, err := EncodeBlocks(blocks)
	if err != nil {
		t.Fatal(err)
	}
	r := blockReader{text: string(data)}
	if r.blocks(); r.unsupported || r.at != len(r.text) {
		t.Errorf("stopped at %.40q", r.text[r.at:])
	}
	// A new field of a block must be added to everything. Otherwise, the fast decoder is not tested
	// with it.
	b := reflect.ValueOf(&blocks[0]).Elem()
	for i := range b.NumField() {
		switch name := b.Type().Field(i).Name; name {
		case "Poster", "Sources", "Tracks", "Rel", "Media":
		default:
			if b.Field(i).IsZero() {
				t.Errorf("everything does not set Block.%s", name)
			}
		}
	}
	for _, data := range []string{
		string(data), `[]`, ` [ {"type" : "text"} ] `, `[{"TYPE":"text"}]`, `[{"text":null}]`, `[{"type":"video","media":{"width":3}}]`, `[{"text":"\ud83d\ude00"}]`,
		`[{"level":1e2}]`, `[{"level":007}]`, `[{"text":"a","text":"b"}]`, `[{"unknown":[{}]}]`, `[{"ordered":false}]`, `null`, `[{"spans":[]}]`, `[{"level":12345678901}]`,
		strings.Repeat(`[{"type":"quote","blocks":`, 2*maxNested) + "[]" + strings.Repeat("}]", 2*maxNested),
		`[{"text":"\x"}]`, `[{]`, `[{"text":"` + "\n" + `"}]`, `[{"text":"a]`, `[{"level":}]`, `[{"type":"text"}`, `[{}],`, `[,]`, "[{\"text\":\"\xff\"}]",
	} {
		decodesAlike(t, []byte(data))
	}
}

// decodesAlike checks that decodeBlocks and encoding/json decode data equally.
func decodesAlike(t *testing.T, data []byte) {
	t.Helper()
	if len(data) == 0 {
		return // no blocks
	}
	var want []millrace.Block
	wrong := json.Unmarshal(data, &want)
	got, err := decodeBlocks(data)
	if (err == nil) != (wrong == nil) || err == nil && !reflect.DeepEqual(got, want) {
		t.Errorf("%.100q: %v, want %v: %s", data, err, wrong, cmp.Diff(want, got))
	}
}

func FuzzDecodeBlocks(f *testing.F) {
	data, err := EncodeBlocks(everything(awkward))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`[{"type":"text","text":"a","spans":[{"type":"link","start":0,"end":1,"url":"}],\":"}]}]`))
	f.Add([]byte(`[{"type":"table","rows":[[{"text":"\u00e9"}],[]]},{"type":"video","media":{}}]`))
	f.Fuzz(func(t *testing.T, data []byte) { decodesAlike(t, data) })
}
