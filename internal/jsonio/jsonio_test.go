package jsonio

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

type item struct {
	CURL string `json:"cUrl"`
	MURL string `json:"mUrl"`
	ETag string `json:"etag"`
}

// refused fails unless err is of the kind, and its code or position contains each of want.
func refused(t *testing.T, name string, err, kind error, want ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", name)
		return
	}
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v is not %q", name, err, kind)
	}
	if f, ok := errors.AsType[*millrace.FormatError](err); ok != errors.Is(kind, millrace.ErrInvalid) || ok && f.Position == "" {
		t.Errorf("%s: %#v", name, err)
	}
	at := ""
	if f, ok := errors.AsType[*millrace.FormatError](err); ok {
		at = f.Position
	} else if e, ok := errors.AsType[*overLimit](err); ok {
		at = e.at
	}
	for _, w := range want {
		if millrace.ErrorCode(err) != w && !strings.Contains(at, w) {
			t.Errorf("%s: %v has neither the code nor the position %q", name, err, w)
		}
	}
}

func TestDecode(t *testing.T) {
	var got struct {
		Version int       `json:"version"`
		When    time.Time `json:"when"`
		Data    Raw       `json:"data"`
		Item    *item     `json:"item"`
		Tags    []string  `json:"tags"`
	}
	const doc = ` {"version":1,"Version":2,"unknown":{"a":[null]},"when":"2025-01-15T10:00:00Z",
		"data": {"@type" : "Article", "n":1.0} ,"item":{"etag":"\u00e9"},"tags":null}` + "\n"
	if err := Decode(iotest.OneByteReader(strings.NewReader(doc)), nil, &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != 1 || string(got.Data) != `{"@type" : "Article", "n":1.0}` || got.Item.ETag != "é" || got.When.Year() != 2025 {
		t.Errorf("got %+v", got)
	}
}

// broken lists invalid documents, which every function rejects.
var broken = []struct {
	name, doc string
	want      []string
}{
	{"empty", "", []string{"line 1, byte 0", "json-truncated"}},
	{"blank", " \n ", []string{"json-truncated"}},
	{"cut", `{"items":[{"etag":"x"`, []string{"line 1, byte 21", "json-truncated"}},
	{"cut in a string", "{\"items\":[\n\"x", []string{"line 2, byte", "json-truncated"}},
	{"json-bom", "\ufeff{}", []string{"line 1, byte 0", "json-bom"}},
	{"duplicate name", "{\"a\":1,\n\"items\":[{\"x\":1, \"x\":2}]}", []string{"line 2, byte", "/items/0/x", "json-duplicate"}},
	{"duplicate name by escape", `{"a":1,"\u0061":2}`, []string{"json-duplicate"}},
	{"bad UTF-8", "{\"a\":\"\xff\"}", []string{"line 1, byte 6", "(/a)", "json-syntax"}},
	{"bad UTF-8 in a name", "{\"a\xff\":1}", []string{"json-syntax"}},
	{"lone surrogate", `{"a":"\ud800"}`, []string{"(/a)", "json-syntax"}},
	{"leading zero", `{"a":01}`, []string{"byte 6"}},
	{"trailing comma", `{"items":[1,]}`, []string{"byte 1", "/items"}},
	{"comment", "// no\n{}", []string{"line 1, byte 0"}},
	{"two values", "{}\n{}", []string{"line 2, byte 3"}},
	{"stray bracket", "{}\n]", []string{"line 2, byte 3"}},
	{"single quotes", "{'a':1}", []string{"byte 1"}},
	{"name is a number", "{1:1}", []string{"byte 1"}},
	{"wrong bracket", `{"items":[}`, []string{"byte 10"}},
	{"NaN", `{"a":NaN}`, []string{"byte 5"}},
	{"control in a string", "{\"a\":\"\x01\"}", []string{"byte 6"}},
}

// walk reads a list with a Reader.
func walk(r *Reader) (items []item, version int, err error) {
	for name, err := range r.Members() {
		if err != nil {
			return items, version, err
		}
		switch name {
		case "version":
			if err := r.Decode(&version); err != nil {
				return items, version, err
			}
		case "items":
			for _, err := range r.Elements() {
				if err != nil {
					return items, version, err
				}
				var it item
				if err := r.Decode(&it); err != nil {
					return items, version, err
				}
				items = append(items, it)
			}
		}
	}
	return items, version, nil
}

// skipAll iterates over the members without reading them.
func skipAll(r *Reader) error {
	for _, err := range r.Members() {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestBroken(t *testing.T) {
	for _, c := range broken {
		var v any
		refused(t, c.name+", Unmarshal", Unmarshal([]byte(c.doc), nil, &v), millrace.ErrInvalid, c.want...)
		refused(t, c.name+", Decode", Decode(strings.NewReader(c.doc), nil, &v), millrace.ErrInvalid, c.want...)
		r := NewReader(strings.NewReader(c.doc), nil)
		refused(t, c.name+", Reader.Decode", r.Decode(&v), millrace.ErrInvalid, c.want...)
		r = NewReader(strings.NewReader(c.doc), nil)
		_, err := r.Raw()
		refused(t, c.name+", Raw", err, millrace.ErrInvalid, c.want...)
		if again := r.Skip(); !errors.Is(again, err) {
			t.Errorf("%s: then %v, want the first error again", c.name, again)
		}
		refused(t, c.name+", Skip", NewReader(strings.NewReader(c.doc), nil).Skip(), millrace.ErrInvalid, c.want...)
		refused(t, c.name+", Members", skipAll(NewReader(iotest.OneByteReader(strings.NewReader(c.doc)), nil)), millrace.ErrInvalid, c.want...)
	}
}

func TestWrongType(t *testing.T) {
	type document struct {
		Version int       `json:"version"`
		Small   uint8     `json:"small"`
		When    time.Time `json:"when"`
		Items   []item    `json:"items"`
	}
	for _, c := range []struct {
		doc  string
		want []string
	}{
		{`[]`, []string{"line 1, byte 0", "json-type"}},
		{"{\n\"version\":\"1\"}", []string{"line 2, byte 12 (/version)", "json-type"}},
		{`{"version":1.5}`, []string{"(/version)", "json-type"}},
		{`{"small":300}`, []string{"(/small)", "json-type"}},
		{`{"when":"yesterday"}`, []string{"(/when)", "json-type"}},
		{"{\"items\":[{},\n\n {\"etag\":[]}]}", []string{"line 3, byte", "(/items/1/etag)", "json-type"}},
	} {
		var d document
		refused(t, c.doc, Unmarshal([]byte(c.doc), nil, &d), millrace.ErrInvalid, c.want...)
		refused(t, c.doc, NewReader(strings.NewReader(c.doc), nil).Decode(&d), millrace.ErrInvalid, c.want...)
	}
}

func TestWalk(t *testing.T) {
	want := []item{{"a", "b", "c"}, {"d", "e", "f"}}
	for _, doc := range []string{
		`{"version":1,"profile":"tct-1","items":[{"cUrl":"a","mUrl":"b","etag":"c"},{"cUrl":"d","mUrl":"e","etag":"f"}]}`,
		`{ "items" : [ {"etag":"c","mUrl":"b","cUrl":"a","x":[[1]]}, {"cUrl":"d","mUrl":"e","etag":"f"} ] , "x": {"y":[{}]}, "version" : 1 }` + "\n",
	} {
		got, version, err := walk(NewReader(strings.NewReader(doc), nil))
		if err != nil || version != 1 || !cmp.Equal(got, want) {
			t.Errorf("%s: %v, %d, %v", doc, got, version, err)
		}
	}
}

func TestWalkPlaces(t *testing.T) {
	for _, c := range []struct {
		name, doc string
		want      []string
	}{
		{"not an object", " []", []string{"line 1, byte 1", "json-type"}},
		{"not an array", "{\"version\":1,\n \"items\": {}}", []string{"line 2, byte 24 (/items)", "json-type"}},
		{"third item", "{\"items\":[{},{},\n{\"etag\":1}]}", []string{"line 2, byte 25 (/items/2/etag)", "json-type"}},
		{"broken third item", "{\"items\":[{},{},\n{\"etag\":tru}]}", []string{"line 2, byte", "(/items/2/etag)"}},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.doc), iotest.OneByteReader(strings.NewReader(c.doc))} {
			_, _, err := walk(NewReader(r, nil))
			refused(t, c.name, err, millrace.ErrInvalid, c.want...)
		}
	}
}

// A walk continues after a value of another type, and after one read in part.
func TestWalkContinues(t *testing.T) {
	const doc = `{"a":[1,"two",[3,[4]],4],"b":{"c":[1,2,3],"d":1},"e":{"f":1},"g":5}`
	r := NewReader(strings.NewReader(doc), nil)
	var log []string
	for name, err := range r.Members() {
		if err != nil {
			t.Fatal(err)
		}
		switch name {
		case "a":
			for i, err := range r.Elements() {
				if err != nil {
					t.Fatal(err)
				}
				if i == 2 { // stops inside a nested loop
					for range r.Elements() {
						break
					}
					continue
				}
				var n int
				err := r.Decode(&n)
				log = append(log, fmt.Sprint("a", i, n, err != nil))
			}
		case "b":
			for name := range r.Members() {
				if name == "c" {
					for i := range r.Elements() {
						if i == 1 {
							break
						}
					}
					break
				}
			}
		case "e":
			for _, err := range r.Elements() {
				log = append(log, fmt.Sprint("e ", err))
			}
		case "g":
			raw, err := r.Raw()
			log = append(log, fmt.Sprint("g", string(raw), err))
			if err := r.Skip(); err == nil {
				t.Error("a value was consumed twice")
			}
		}
	}
	want := []string{"a0 1 false", "a1 0 true", "a3 4 false", "e line 1, byte 53 (/e)", "g5<nil>"}
	for i := range log {
		log[i], _, _ = strings.Cut(strings.Replace(log[i], "e at ", "e ", 1), ":")
	}
	if d := cmp.Diff(want, log); d != "" {
		t.Error(d)
	}
}

func TestLimits(t *testing.T) {
	var v any
	long := `{"items":[{"etag":"` + strings.Repeat("x", 200) + `"}]}`
	deep := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	many := "{"
	for i := range maxMembers + 1 {
		many += fmt.Sprintf(`"%d":0,`, i)
	}
	many += `"x":0}`
	walkDoc := func(doc string, l *Limits) error {
		_, _, err := walk(NewReader(strings.NewReader(doc), l))
		return err
	}
	for _, c := range []struct {
		name string
		err  error
		want []string
	}{
		{"size, Decode", Decode(strings.NewReader(long), &Limits{Size: 100}, &v), []string{"json-size"}},
		{"size, Unmarshal", Unmarshal([]byte(long), &Limits{Size: 100}, &v), []string{"json-size"}},
		{"size, walk", walkDoc(long, &Limits{Size: 100}), []string{"(/items/0)", "json-size"}},
		{"size, white space", walkDoc(`{}`+strings.Repeat(" ", 100), &Limits{Size: 100}), []string{"json-size"}},
		{"value", walkDoc(long, &Limits{Value: 100}), []string{"byte 10 (/items/0)", "json-value"}},
		{"endless value", NewReader(io.MultiReader(strings.NewReader(`"`), endless('x')), nil).Decode(&v), []string{"json-value"}},
		{"endless skipped value", NewReader(io.MultiReader(strings.NewReader(`["`), endless('x')), nil).Skip(), []string{"json-value"}},
		{"endless white space", NewReader(endless(' '), nil).Decode(&v), []string{"json-value"}},
		{"depth, Unmarshal", Unmarshal([]byte(deep(65)), nil, &v), []string{"byte 64", "json-depth"}},
		{"depth, Reader", NewReader(strings.NewReader(deep(65)), nil).Decode(&v), []string{"json-depth"}},
		{"depth, Skip", NewReader(strings.NewReader(deep(65)), nil).Skip(), []string{"json-depth"}},
		{"endless depth", NewReader(endless('['), nil).Skip(), []string{"json-depth"}},
		{"depth inside", walkDoc(`{"items":[`+deep(3)+`]}`, &Limits{Depth: 4}), []string{"(/items/0)", "json-depth"}},
		{"depth of the walk", walkDoc(`{"items":[]}`, &Limits{Depth: 1}), []string{"json-depth"}},
		{"count", walkDoc(`{"items":[{},{},{}]}`, &Limits{Count: 2}), []string{"(/items/2)", "json-count"}},
		{"members", walkDoc(many, nil), []string{"json-members"}},
		{"members, skipped", walkDoc(`{"a":`+many+`}`, nil), []string{"json-members"}},
		{"name", walkDoc(`{"`+strings.Repeat("x", maxName+1)+`":1}`, nil), []string{"json-name"}},
		{"name, skipped", walkDoc(`{"a":{"`+strings.Repeat("x", maxName+1)+`":1}}`, nil), []string{"json-name"}},
	} {
		refused(t, c.name, c.err, millrace.ErrTooLarge, c.want...)
	}
	for name, err := range map[string]error{
		"size":                      Decode(strings.NewReader(long), &Limits{Size: int64(len(long))}, &v),
		"walk":                      walkDoc(long, &Limits{Size: int64(len(long)), Value: 211, Depth: 3, Count: 1}),
		"depth":                     Unmarshal([]byte(deep(64)), nil, new(any)),
		"skip":                      NewReader(strings.NewReader(deep(64)), nil).Skip(),
		"one value of many members": NewReader(strings.NewReader(many), nil).Decode(new(any)),
		"name with white space":     walkDoc(`{"a":{`+strings.Repeat(" ", maxName+1)+`"x":1}}`, nil),
	} {
		if err != nil {
			t.Errorf("%s, just within the limit: %v", name, err)
		}
	}
}

// endless repeats one byte forever.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestSourceError(t *testing.T) {
	cause := errors.New("the connection broke")
	var v any
	for name, err := range map[string]error{
		"Decode": Decode(io.MultiReader(strings.NewReader(`{"a":`), iotest.ErrReader(cause)), nil, &v),
		"Reader": NewReader(io.MultiReader(strings.NewReader(`{"a":`), iotest.ErrReader(cause)), nil).Decode(&v),
		"Skip":   NewReader(io.MultiReader(strings.NewReader(`{"a":`), iotest.ErrReader(cause)), nil).Skip(),
		"after":  NewReader(io.MultiReader(strings.NewReader(`{}`), iotest.ErrReader(cause)), nil).Skip(),
		"unexpected EOF of the connection": NewReader(io.MultiReader(strings.NewReader(`{"a":`),
			iotest.ErrReader(fmt.Errorf("%w: %w", cause, io.ErrUnexpectedEOF))), nil).Skip(),
	} {
		if !errors.Is(err, cause) || errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// list returns a reader of an M-Sitemap with n items, the items first, which is generated
// while read.
func list(n int) io.Reader {
	r, w := io.Pipe()
	go func() {
		fmt.Fprint(w, `{"items":[`)
		for i := range n {
			if i > 0 {
				fmt.Fprint(w, ",\n")
			}
			if _, err := fmt.Fprintf(w, `{"cUrl":"https://example.com/%d/","mUrl":"https://example.com/%d/llm.json","etag":"sha256-%064d"}`, i, i, i); err != nil {
				return
			}
		}
		fmt.Fprint(w, `],"profile":"tct-1","version":1}`)
		w.Close()
	}()
	return r
}

func TestFlatMemory(t *testing.T) {
	const n = 100_000 // 16 MB
	for _, way := range []string{"walk", "skip"} {
		r := NewReader(list(n), nil)
		var high uint64
		watch := func() {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			high = max(high, m.HeapAlloc)
		}
		watch()
		start := high
		count := 0
		for name, err := range r.Members() {
			if err != nil {
				t.Fatal(err)
			}
			if name != "items" || way == "skip" {
				continue
			}
			for i, err := range r.Elements() {
				if err != nil {
					t.Fatal(err)
				}
				var it item
				if err := r.Decode(&it); err != nil {
					t.Fatal(err)
				}
				count++
				if i%20_000 == 0 {
					watch()
				}
			}
		}
		watch()
		if way == "walk" && count != n {
			t.Errorf("%d items, want %d", count, n)
		}
		if high > start+1<<20 {
			t.Errorf("%s: the heap grew by %d bytes", way, high-start)
		}
	}
}

func TestPointer(t *testing.T) {
	const doc = `{"a" : [1, {"b/c":"xy"}], "a":2}`
	for before, want := range map[string]string{
		"{": "", "1": "/a/0", `{"b`: "/a/1", `"xy`: "/a/1/b~1c", "y": "/a/1/b~1c", "2": "/a", "never": "/a",
	} {
		at := strings.Index(doc, before)
		if at < 0 {
			at = len(doc) - 1
		}
		if got := Pointer([]byte(doc), at); got != want {
			t.Errorf("before %s: %q, want %q", before, got, want)
		}
	}
}
