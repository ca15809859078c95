package scp

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/testkit"
)

// lineCase replaces a text of a valid line, and has the expected result.
type lineCase struct {
	name     string
	old, new string // old is a part of plainLine
	want     lineResult
	at, rule string // position of the error, and the violated rule
}

const plainLine = `{"url":"https://example.com/a","title":"T","description":"D","author":"A","published":"2025-01-14T10:00:00Z","modified":"2025-01-15T10:00:00Z","language":"en","canonical":"https://example.com/a","schema":{"@type":"Article"},"content":[{"type":"heading","level":1,"text":"H"},{"type":"text","text":"x"}]}`

func (c *lineCase) line() string { return strings.Replace(plainLine, c.old, c.new, 1) }

const oneBlock = `{"type":"text","text":"x"}`

func aBlock(name, block string, want lineResult, at, rule string) lineCase {
	return lineCase{name, oneBlock, block, want, at, rule}
}

var lineCases = []lineCase{
	{"as it is", "", "", taken, "", ""},
	{"white space", `,"title":`, " ,\t\"title\"\r : ", taken, "", ""},
	{"CRLF", `]}`, "]}\r\n", taken, "", ""},
	{"escapes", `"T"`, `"\"\\\/\b\f\n\r\t\u00e9\ud834\udd1e\ud834x\udd1e"`, taken, "", ""},
	{"escaped name", `"title"`, `"\u0074itle"`, taken, "", ""},
	{"unknown members", `"title"`, `"x":{"a":[1,-2.5e+3,true,false,null,"",{},[]]},"title"`, taken, "", ""},
	{"order", `{"type":"text","text":"x"}`, `{"text":"x","level":"not of a text","type":"text"}`, taken, "", ""},
	{"planes", `"T"`, `"é日𝄞` + "\U0010ffff\u2028\ufeff" + `"`, taken, "", ""},

	{"empty", plainLine, "", fatalLine, "line 7", "format/json-lines"},
	{"cut", `}]}`, `}`, fatalLine, "line 7 (/content", "format/json-lines"},
	{"trailing", `}]}`, `}]}x`, fatalLine, "line 7", "format/json-lines"},
	{"two", `}]}`, `}]} {}`, fatalLine, "line 7", "format/json-lines"},
	{"BOM", `{"url"`, "\ufeff" + `{"url"`, fatalLine, "line 7", "format/json-lines"},
	{"control", `"T"`, "\"a\tb\"", fatalLine, "line 7 (/title)", "format/json-lines"},
	{"escape", `"T"`, `"\x"`, fatalLine, "line 7 (/title)", "format/json-lines"},
	{"short escape", `"T"`, `"\u12g4"`, fatalLine, "line 7 (/title)", "format/json-lines"},
	{"not UTF-8", `"T"`, "\"caf\xe9 au lait\"", fatalLine, "line 7 (/title)", "format/json-lines"},
	{"surrogate in UTF-8", `"T"`, "\"\xed\xa0\x80\"", fatalLine, "line 7 (/title)", "format/json-lines"},
	{"comma", `,"title"`, `"title"`, fatalLine, "line 7", "format/json-lines"},
	{"trailing comma", `"x"}]`, `"x"},]`, fatalLine, "line 7 (/content", "format/json-lines"},
	{"trailing comma in an object", `"text":"x"}`, `"text":"x",}`, fatalLine, "line 7 (/content/1", "format/json-lines"},
	{"number", `"level":1`, `"level":01`, fatalLine, "line 7 (/content/0/level)", "format/json-lines"},
	{"number without digits", `"level":1`, `"level":1.`, fatalLine, "line 7 (/content/0/level)", "format/json-lines"},
	{"exponent without digits", `"level":1`, `"level":1e+`, fatalLine, "line 7 (/content/0/level)", "format/json-lines"},
	{"NaN", `"level":1`, `"level":NaN`, fatalLine, "line 7 (/content/0/level)", "format/json-lines"},
	{"literal", `"level":1`, `"level":nul`, fatalLine, "line 7 (/content/0/level)", "format/json-lines"},
	{"single quotes", `"T"`, `'T'`, fatalLine, "line 7 (/title)", "format/json-lines"},
	{"array", plainLine, `[1]`, fatalLine, "line 7", "format/json-lines"},
	{"metadata", plainLine, `{"collection":{"id":"a"}}`, fatalLine, "line 7", "format/pages"},
	{"deep", `{"@type":"Article"}`, `{"a":` + strings.Repeat("[", 62) + strings.Repeat("]", 62) + `}`, taken, "", ""},
	{"too deep", `{"@type":"Article"}`, `{"a":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`, fatalLine, "line 7 (/schema/a", "reader/refused"},
	{"far too deep", `{"@type":"Article"}`, strings.Repeat("[", 1e6), fatalLine, "line 7 (/schema", "reader/refused"},
	{"no url", `"url":"https://example.com/a",`, ``, fatalLine, "line 7 (/url)", "page/required"},
	{"no title", `"title":"T",`, ``, fatalLine, "line 7 (/title)", "page/required"},
	{"no description", `"description":"D",`, ``, fatalLine, "line 7 (/description)", "page/required"},
	{"no modified", `"modified":"2025-01-15T10:00:00Z",`, ``, fatalLine, "line 7 (/modified)", "page/required"},
	{"no language", `"language":"en",`, ``, fatalLine, "line 7 (/language)", "page/required"},
	{"no content", `"content"`, `"contents"`, fatalLine, "line 7 (/content)", "page/required"},
	{"case", `"title"`, `"Title"`, fatalLine, "line 7 (/title)", "page/required"},

	{"null", `"T"`, `null`, skipped, "line 7 (/title)", "page/title"},
	{"no string", `"D"`, `[{"a":1}]`, skipped, "line 7 (/description)", "page/description"},
	{"author", `"A"`, `{"name":"A"}`, skipped, "line 7 (/author)", "page/author"},
	{"twice", `"title":"T"`, `"title":"T","title":"T"`, skipped, "line 7 (/title)", "page/title"},
	{"script", `"https://example.com/a"`, `"javascript:alert(1)"`, skipped, "line 7 (/url)", "page/url"},
	{"ftp", `"https://example.com/a"`, `"ftp://example.com/a"`, skipped, "line 7 (/url)", "page/url"},
	{"no host", `"https://example.com/a"`, `"https:///a"`, skipped, "line 7 (/url)", "page/url"},
	{"relative", `"https://example.com/a"`, `"/a"`, skipped, "line 7 (/url)", "page/url"},
	{"credentials", `"https://example.com/a"`, `"https://u:p@example.com/a"`, skipped, "line 7 (/url)", "page/url"},
	{"date alone", `"2025-01-15T10:00:00Z"`, `"2025-01-15"`, skipped, "line 7 (/modified)", "page/modified"},
	{"no such day", `"2025-01-15T10:00:00Z"`, `"2025-02-29T10:00:00Z"`, skipped, "line 7 (/modified)", "page/modified"},
	{"leap day", `"2025-01-15T10:00:00Z"`, `"2024-02-29T10:00:00.123456789123+05:30"`, taken, "", ""},
	{"leap second", `"2025-01-15T10:00:00Z"`, `"2016-12-31T18:59:60-05:00"`, taken, "", ""},
	{"no leap second", `"2025-01-15T10:00:00Z"`, `"2016-12-31T18:58:60-05:00"`, skipped, "line 7 (/modified)", "page/modified"},
	{"time without zone", `"2025-01-15T10:00:00Z"`, `"2025-01-15T10:00:00"`, skipped, "line 7 (/modified)", "page/modified"},
	{"hour of one digit", `"2025-01-15T10:00:00Z"`, `"2025-01-15T1:00:00.5Z"`, skipped, "line 7 (/modified)", "page/modified"},
	{"comma in a time", `"2025-01-15T10:00:00Z"`, `"2025-01-15T10:00:00,5Z"`, skipped, "line 7 (/modified)", "page/modified"},
	{"time with a line end", `"2025-01-15T10:00:00Z"`, `"2025-01-15T10:00:00Z\n"`, skipped, "line 7 (/modified)", "page/modified"},
	{"published", `"2025-01-14T10:00:00Z"`, `"14 January"`, skipped, "line 7 (/published)", "page/published"},
	{"language", `"en"`, `"zh-Hans-CN-x-y"`, taken, "", ""},
	{"language case", `"en"`, `"EN"`, skipped, "line 7 (/language)", "page/language"},
	{"language underscore", `"en"`, `"en_US"`, skipped, "line 7 (/language)", "page/language"},
	{"language with a line end", `"en"`, `"en\n"`, skipped, "line 7 (/language)", "page/language"},
	{"canonical", `"canonical":"https://example.com/a"`, `"canonical":"/a"`, taken, "", ""},
	{"schema", `{"@type":"Article"}`, `[{"@type":"Article"}]`, skipped, "line 7 (/schema)", "page/schema"},
	{"schema with spaces", `{"@type":"Article"}`, `{ "@type" : "Art \" \\" , "a":[ 1 ] }`, taken, "", ""},
	{"content object", `[{"type":"heading","level":1,"text":"H"},` + oneBlock + `]`, `{}`, skipped, "line 7 (/content)", "page/content"},
	{"empty content", `[{"type":"heading","level":1,"text":"H"},` + oneBlock + `]`, `[]`, skipped, "line 7 (/content)", "page/content"},
	{"1000 blocks", `{"type":"heading","level":1,"text":"H"}`, strings.Repeat(oneBlock+",", 998) + oneBlock, taken, "", ""},
	{"1001 blocks", `{"type":"heading","level":1,"text":"H"}`, strings.Repeat(oneBlock+",", 999) + oneBlock, skipped, "line 7 (/content/1000)", "limits/blocks"},

	aBlock("unknown type", `{"type":"poem","text":{"a":1}}`, taken, "", ""),
	aBlock("no type", `{"text":"x"}`, skipped, "line 7 (/content/1)", "blocks/type"),
	aBlock("empty block", `{}`, skipped, "line 7 (/content/1)", "blocks/type"),
	aBlock("type of no string", `{"type":1,"text":"x"}`, skipped, "line 7 (/content/1/type)", "blocks/type"),
	aBlock("no object", `"text"`, skipped, "line 7 (/content/1)", "blocks/type"),
	aBlock("no text", `{"type":"text"}`, skipped, "line 7 (/content/1)", "blocks/text"),
	aBlock("text twice", `{"type":"text","text":"a","text":"b"}`, skipped, "line 7 (/content/1/text)", "blocks/text"),
	aBlock("type twice", `{"type":"heading","type":"text","text":"b"}`, skipped, "line 7 (/content/1/type)", "blocks/heading"),
	aBlock("type twice, late", `{"text":"b","type":"heading","type":"text"}`, skipped, "line 7 (/content/1/type)", "blocks/text"),
	aBlock("level", `{"type":"heading","level":9,"text":"x"}`, taken, "", ""),
	aBlock("level below", `{"type":"heading","level":-1e400,"text":"x"}`, taken, "", ""),
	aBlock("whole level", `{"type":"heading","level":20e-1,"text":"x"}`, taken, "", ""),
	aBlock("fraction of a level", `{"type":"heading","level":2.5,"text":"x"}`, skipped, "line 7 (/content/1/level)", "blocks/heading"),
	aBlock("level of a string", `{"type":"heading","level":"2","text":"x"}`, skipped, "line 7 (/content/1/level)", "blocks/heading"),
	aBlock("link", `{"type":"link","url":"https://example.com/?a=b#c","text":"x","rel":["nofollow"]}`, taken, "", ""),
	aBlock("rel", `{"type":"link","url":"https://example.com/","text":"x","rel":"nofollow"}`, skipped, "line 7 (/content/1/rel)", "blocks/link"),
	aBlock("link to a script", `{"type":"link","url":"javascript:alert(1)","text":"x"}`, taken, "", ""),
	aBlock("link to itself", `{"type":"link","url":"#a","text":"x"}`, taken, "", ""),
	aBlock("link of no URI", `{"type":"link","url":"https://example.com/é a","text":"x"}`, taken, "", ""),
	aBlock("image", `{"type":"image","url":"data:image/png;base64,AA","alt":"x"}`, taken, "", ""),
	aBlock("image without alt", `{"type":"image","url":"https://example.com/i.png"}`, skipped, "line 7 (/content/1)", "blocks/image"),
	aBlock("list", `{"type":"list","ordered":true,"items":["a","b\n"]}`, taken, "", ""),
	aBlock("list ordered", `{"type":"list","ordered":1,"items":[]}`, skipped, "line 7 (/content/1/ordered)", "blocks/list"),
	aBlock("list of objects", `{"type":"list","ordered":false,"items":["a",{"b":1}]}`, skipped, "line 7 (/content/1/items/1)", "blocks/list"),
	aBlock("code", `{"type":"code","language":"go","code":"a\n"}`, taken, "", ""),
	aBlock("table", `{"type":"table","rows":[["a","b"],[],["c"]]}`, taken, "", ""),
	aBlock("table of cells", `{"type":"table","rows":["a"]}`, skipped, "line 7 (/content/1/rows/0)", "blocks/table"),
	aBlock("quote", `{"type":"quote","text":"a","citation":"b"}`, taken, "", ""),
	aBlock("video", `{"type":"video","name":"a","url":"https://example.com/v.mp4","width":1,"height":0,"duration":"PT1H2M3.5S"}`, taken, "", ""),
	aBlock("video sources", `{"type":"video","name":"a","url":[{"href":"https://example.com/v.mp4","mediaType":"video/mp4","rel":"alternate"},{"href":"javascript:x","mediaType":""}],"icon":{"type":"Image","url":"https://example.com/p.jpg","x":1},"captions":[{"language":"en","url":"https://example.com/c.vtt","label":"E"},{"language":"en","url":"x:y","label":"E"}],"chapters":[{"time":0,"title":"a"}],"transcript":"t","summary":"s"}`, taken, "", ""),
	aBlock("video without URLs", `{"type":"video","name":"a","url":[]}`, skipped, "line 7 (/content/1/url)", "blocks/video"),
	aBlock("video with a bad URL", `{"type":"video","name":"a","url":"x"}`, taken, "", ""),
	aBlock("video source without type", `{"type":"video","name":"a","url":[{"href":"https://example.com/v.mp4"}]}`, skipped, "line 7 (/content/1/url/0)", "blocks/video"),
	aBlock("duration", `{"type":"video","name":"a","url":"https://example.com/v.mp4","duration":"PT"}`, skipped, "line 7 (/content/1/duration)", "blocks/duration"),
	aBlock("duration in days", `{"type":"audio","name":"a","url":"https://example.com/v.mp3","duration":"P1DT1H"}`, skipped, "line 7 (/content/1/duration)", "blocks/duration"),
	aBlock("width", `{"type":"video","name":"a","url":"https://example.com/v.mp4","width":-1}`, skipped, "line 7 (/content/1/width)", "blocks/video"),
	aBlock("icon", `{"type":"video","name":"a","url":"https://example.com/v.mp4","icon":{"type":"Icon"}}`, skipped, "line 7 (/content/1/icon/type)", "blocks/icon"),
	aBlock("chapter", `{"type":"video","name":"a","url":"https://example.com/v.mp4","chapters":[{"time":"0","title":"a"}]}`, skipped, "line 7 (/content/1/chapters/0/time)", "blocks/chapters"),
	aBlock("caption", `{"type":"video","name":"a","url":"https://example.com/v.mp4","captions":[{"language":"en","url":"https://example.com/c.vtt"}]}`, skipped, "line 7 (/content/1/captions/0)", "blocks/captions"),
	aBlock("audio", `{"type":"audio","name":"a","url":"https://example.com/v.mp3","attributedTo":{"type":"Person","name":"P"},"partOf":"S","width":"w","captions":1}`, taken, "", ""),
	aBlock("audio without a person", `{"type":"audio","name":"a","url":"https://example.com/v.mp3","attributedTo":{}}`, skipped, "line 7 (/content/1/attributedTo)", "blocks/audio"),
}

// Each line is accepted, skipped, or fatal to the file, and the error contains the position.
func TestLines(t *testing.T) {
	for _, c := range lineCases {
		t.Run(c.name, func(t *testing.T) {
			line := []byte(c.line())
			if got := agree(t, line); got != c.want {
				_, _, why := ours(t, line)
				t.Fatalf("%d, want %d: %v", got, c.want, why)
			}
			if _, _, why := ours(t, line); c.want != taken {
				e := formatError(7, line, why)
				if !strings.HasPrefix(e.Position, c.at) || why.rule != c.rule || e.Section == "" {
					t.Errorf("%s, want %s: %v", why.rule, c.rule, e)
				}
			}
		})
	}
}

// The parser and the oracle agree on lines with a byte removed or changed, and on truncated
// lines.
func TestLinesMutated(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var line []byte
	for _, c := range lineCases {
		if c.want == taken && c.old == oneBlock {
			line = append(append(line, c.new...), ',')
		}
	}
	line = []byte(strings.Replace(plainLine, oneBlock, string(line)+oneBlock, 1))
	for i := range line {
		if !testkit.Soaking() && i%8 > 0 {
			continue
		}
		agree(t, append(append([]byte(nil), line[:i]...), line[i+1:]...))
		changed := append([]byte(nil), line...)
		const bytes = "\"\\{}[],:0 xe-\t\xc3"
		changed[i] = bytes[r.IntN(len(bytes))]
		agree(t, changed)
		if r.IntN(10) == 0 {
			agree(t, line[:i])
		}
	}
}

func TestCounts(t *testing.T) {
	p := &parser{limits: new(OpenOptions).resolve(), keep: true}
	line := strings.Replace(plainLine, oneBlock, `{"type":"a"},{"type":"b"},{"type":"heading","level":0,"text":"x"},{"type":"link","url":"javascript:x","text":"x"},`+
		`{"type":"video","name":"v","url":[{"href":"a:b","mediaType":"c"}]}`, 1)
	if !p.parsePage([]byte(line)) || p.counts != (counts{unknown: 2, dropped: 3, clamped: 1}) || len(p.page.Content) != 2 {
		t.Errorf("%+v %v", p.counts, p.fatal)
	}
}
