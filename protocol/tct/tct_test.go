package tct

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/jsonio"
)

func TestExtendedMembers(t *testing.T) {
	const core = `"canonical_url":"https://e.com/","title":"T","content":"C","hash":""`
	for _, c := range []struct{ member, want string }{
		{`"published":"2026-01-02T03:04:05.678+02:00"`, "2026-01-02T01:04:05Z"},
		{`"published":"2026-01-02"`, "2026-01-02T00:00:00Z"},
		{`"published":"0001-01-01T00:00:00Z"`, ""},
		{`"published":"9999-12-31T23:59:59-14:00"`, ""},
		{`"published":"yesterday"`, ""},
	} {
		d, _, err := draft01.Decode([]byte("{" + core + "," + c.member + "}"))
		if err != nil || d.Published != c.want {
			t.Errorf("%s is read as %q, want %q (%v)", c.member, d.Published, c.want, err)
		}
	}
	for _, c := range []struct {
		data string
		want []string
	}{
		{`{"b":1.0,"a":[]}`, []string{`{"a":[],"b":1}`}},
		{`[{"x":1},5,"s",null,[{}],{"y":{}}]`, []string{`{"x":1}`, `{"y":{}}`}},
		{`"x"`, nil},
		{`[]`, nil},
	} {
		d, _, err := draft01.Decode([]byte("{" + core + `,"structured_data":` + c.data + "}"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, raw := range d.StructuredData {
			got = append(got, string(raw))
		}
		if !cmp.Equal(got, c.want) {
			t.Errorf("%s is read as %q, want %q", c.data, got, c.want)
		}
	}
	for _, bad := range []string{`{},{}`, `{}]],[[{}`, `{"a":1,"a":2}`, `{"a":01}`, `{"a":1e400}`, ``, `null`, `{"a":"\ud800"}`} {
		if c := canonicalObject([]byte(bad)); c != nil {
			t.Errorf("%q is read as %q", bad, c)
		}
	}
}

func TestWalk(t *testing.T) {
	const doc = `{"items":[{"cUrl":"a","modified":5,"x":[]},{"cUrl":"b","modified":"2026-01-02"},{"cUrl":7}],"version":1.0}`
	var got []listItem
	top, err := walk(jsonio.NewReader(strings.NewReader(doc), nil), func(i int, it *listItem, err error) bool {
		if (err != nil) != (i == 2) {
			t.Errorf("item %d: %v", i, err)
		}
		got = append(got, *it)
		return true
	})
	if string(top.Version) != "1.0" || !top.Items || err != nil {
		t.Errorf("%+v: %v", top, err)
	}
	if diff := cmp.Diff([]listItem{{CURL: "a"}, {CURL: "b", Modified: "2026-01-02"}, {}}, got); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

func TestItemVersion(t *testing.T) {
	for _, c := range []struct {
		it   listItem
		want string
	}{
		{listItem{ETag: "sha256-a"}, `"sha256-a"`},
		{listItem{ContentHash: "sha256-b"}, `"sha256-b"`},
		{listItem{ETag: "sha256-a", ContentHash: "sha256-b"}, `"sha256-a"`},
		{listItem{}, ""},
		{listItem{ETag: "a\"\r\nX: y"}, ""},
		{listItem{ETag: "a b"}, ""},
	} {
		if got := c.it.Version(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.it, got, c.want)
		}
	}
}

func TestCompare(t *testing.T) {
	urls := []string{"https://e.com/a", "http://e.com/a", "https://e.com/a/", "https://e.com/a?x", "https://e.com/b", "https://f.com/a"}
	want := []likeness{sameURL, nearURL, nearURL, otherURL, otherURL, otherURL}
	var got []likeness
	for _, u := range urls {
		got = append(got, compareURLs(urls[0], u))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Any input is rejected with a known error, or is a page that does not change when it is
// carried again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"canonical_url":"https://e.com/","title":"T","content":"C","hash":"","structured_data":[{"b":1.0}],"published":"2026-01-02"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, _, err := draft01.Decode(body)
		if err != nil {
			if _, ok := errors.AsType[*millrace.FormatError](err); !ok && !errors.Is(err, millrace.ErrTooLarge) {
				t.Fatal(err)
			}
			return
		}
		once := draft01.Document(millrace.Site{}, draft01.Page(d))
		if once == nil || strings.TrimSpace(once.Title) == "" {
			return // its URL is invalid
		}
		if diff := cmp.Diff(once, draft01.Document(millrace.Site{}, draft01.Page(once))); diff != "" {
			t.Fatalf("%q (-once +twice):\n%s", body, diff)
		}
	})
}
