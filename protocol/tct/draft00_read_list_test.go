package tct

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// If entries of a list are invalid, each of them is skipped separately, with an error that contains
// its position.
func TestListsThatLie00(t *testing.T) {
	list := `{"version":1,"items":[
{"cUrl":"https://example.com/a","mUrl":"https://example.com/a/llm/","contentHash":"sha256-1"},
{"cUrl":"HTTPS://EXAMPLE.com:443/a","mUrl":"https://example.com/b/llm/","contentHash":"sha256-2"},
{"cUrl":"https://example.com/c","mUrl":"https://evil.example/llm/","contentHash":"sha256-3"},
{"cUrl":"https://example.com/d","mUrl":"http://example.com/d/llm/","contentHash":"sha256-3"},
{"cUrl":"javascript:alert(1)","mUrl":"https://example.com/e/llm/","etag":"x"},
{"mUrl":"https://example.com/e/llm/","etag":"x"},
{"cUrl":"https://example.com/f","etag":"x"},
{"cUrl":7},
"x",
{"cUrl":"https://user@example.com/g","mUrl":"https://example.com/g/llm/","etag":"x"},
{"cUrl":"https://example.com/h","mUrl":"https://example.com/h/llm/"},
{"cUrl":"https://example.com/i","mUrl":"https://example.com/i/llm/","etag":"sha256-8","contentHash":"sha256-9"}
]}`
	puts, skips, marks, err := collect(t, Draft00().NewReader(&http.Client{Transport: answers{listName00: plainBody(list)}}, base00, nil))
	if err != nil || marks != 1 {
		t.Fatal(marks, err)
	}
	var got []string
	for _, p := range puts {
		got = append(got, p.URL+" "+p.Version)
	}
	want := []string{`https://example.com/a "sha256-1"`, "https://example.com/h ", `https://example.com/i "sha256-8"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("puts (-want +got):\n%s", diff)
	}
	if len(skips) != 9 {
		t.Errorf("%d skips", len(skips))
	}
	for i, s := range skips {
		fe, ok := errors.AsType[*millrace.FormatError](s)
		if !ok || fe.Section != "6.1" || fe.URL != base00+listName00[1:] || !strings.Contains(fe.Position, fmt.Sprintf("/items/%d", i+1)) {
			t.Errorf("skip %d: %v", i, s)
		}
	}
}

// If any part of a list is broken, even its end, nothing of the list is applied.
func TestBrokenLists00(t *testing.T) {
	good := bytes.NewBufferString(listHead)
	for i := range 20_000 { // more than is spooled in memory
		if i > 0 {
			good.WriteByte(',')
		}
		fmt.Fprintf(good, `{"cUrl":"https://example.com/%d","mUrl":"https://example.com/%d/llm/","contentHash":"sha256-%d"}`, i, i, i)
	}
	t.Setenv("TMPDIR", t.TempDir())
	for _, c := range []struct{ name, end string }{
		{"cut", ""}, {"closed badly", "}"}, {"data after it", "]} x"}, {"other version", `],"x":1,"version":2}`},
	} {
		puts, skips, marks, err := collect(t, Draft00().NewReader(&http.Client{Transport: answers{listName00: plainBody(good.String() + c.end)}}, base00, nil))
		if err == nil || len(puts)+len(skips)+marks > 0 {
			t.Errorf("%s: %d puts, %d skips, %d marks, %v", c.name, len(puts), len(skips), marks, err)
		}
	}
	puts, _, marks, err := collect(t, Draft00().NewReader(&http.Client{Transport: answers{listName00: plainBody(good.String() + listTail)}}, base00, nil))
	if err != nil || len(puts) != 20_000 || marks != 1 {
		t.Errorf("complete: %d puts, %d marks, %v", len(puts), marks, err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestBadCursorAndEndpoint00(t *testing.T) {
	client := &http.Client{Transport: answers{listName00: plainBody(listHead + listTail)}}
	for _, bad := range []millrace.Cursor{
		"x", "{}", `{"root":"https://other.example/","found":"2026-01-01T00:00:00Z","lists":[{"url":"https://other.example/l"}]}`,
	} {
		for _, err := range Draft00().NewReader(client, base00, nil).Changes(t.Context(), bad) {
			if !errors.Is(err, millrace.ErrConflict) {
				t.Errorf("cursor %s: %v", bad, err)
			}
		}
	}
	for _, bad := range []string{"", "example.com", "ftp://example.com/", "https://", "https://user:pass@example.com/"} {
		src := Draft00().NewReader(client, bad, nil)
		if _, _, _, err := collect(t, src); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("endpoint %q: %v", bad, err)
		}
		if _, err := src.Page(t.Context(), millrace.Ref{URL: base00}); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("endpoint %q: %v", bad, err)
		}
	}
}
