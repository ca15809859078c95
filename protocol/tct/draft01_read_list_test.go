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

	"github.com/millrace/millrace/protocol/protocoltest"
)

// If entries of a list are invalid, each of them is skipped separately, with an error that contains
// its position.
func TestListsThatLie01(t *testing.T) {
	list := `{"version":1,"items":[
{"cUrl":"https://example.com/a","mUrl":"https://example.com/a/llm.json","etag":"sha256-1"},
{"cUrl":"HTTPS://EXAMPLE.com:443/a","mUrl":"https://example.com/b/llm.json","etag":"sha256-2"},
{"cUrl":"https://example.com/c","mUrl":"https://evil.example/llm.json","etag":"sha256-3"},
{"cUrl":"https://example.com/d","mUrl":"http://example.com/d/llm.json","etag":"sha256-3"},
{"cUrl":"javascript:alert(1)","mUrl":"https://example.com/e/llm.json","etag":"x"},
{"mUrl":"https://example.com/e/llm.json","etag":"x"},
{"cUrl":"https://example.com/f","etag":"x"},
{"cUrl":7},
"x",
{"cUrl":"https://user@example.com/g","mUrl":"https://example.com/g/llm.json","etag":"x"},
{"cUrl":"https://example.com/h","mUrl":"https://example.com/h/llm.json"},
{"cUrl":"https://example.com/i","mUrl":"https://example.com/i/llm.json","contentHash":"sha256-9"}
]}`
	puts, skips, marks, err := collect(t, Draft01().NewReader(&http.Client{Transport: answers{"/list": plainBody(list)}}, base01, nil))
	if err != nil || marks != 1 {
		t.Fatal(marks, err)
	}
	var got []string
	for _, p := range puts {
		got = append(got, p.URL+" "+p.Version)
	}
	want := []string{`https://example.com/a "sha256-1"`, "https://example.com/h ", `https://example.com/i "sha256-9"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("puts (-want +got):\n%s", diff)
	}
	if len(skips) != 9 {
		t.Errorf("%d skips", len(skips))
	}
	for i, s := range skips {
		fe, ok := errors.AsType[*millrace.FormatError](s)
		if !ok || fe.Section != "1.7.1" || fe.URL != base01+"list" || !strings.Contains(fe.Position, fmt.Sprintf("/items/%d", i+1)) {
			t.Errorf("skip %d: %v", i, s)
		}
	}
}

// An announced list may have the media type of HTML. If no list is announced, HTML is not
// treated as a list.
func TestListSaysHTML(t *testing.T) {
	list := listHead + `{"cUrl":"https://example.com/a","mUrl":"https://example.com/a/llm.json","etag":"sha256-1"}` + listTail
	client := &http.Client{Transport: protocoltest.Transport(func(r *http.Request) (*http.Response, error) {
		resp, err := answers{"/list": plainBody(list), listName00: plainBody(list)}.RoundTrip(r)
		resp.Header.Set("Content-Type", "text/html")
		return resp, err
	})}
	if puts, _, marks, err := collect(t, Draft01().NewReader(client, base01, nil)); err != nil || len(puts) != 1 || marks != 1 {
		t.Errorf("announced: %d puts, %d marks, %v", len(puts), marks, err)
	}
	if puts, _, marks, err := collect(t, Draft00().NewReader(client, base01, nil)); !errors.Is(err, millrace.ErrNotFound) || len(puts)+marks > 0 {
		t.Errorf("not announced: %d puts, %d marks, %v", len(puts), marks, err)
	}
}

// If any part of a list is broken, even its end, nothing of the list is applied.
func TestBrokenLists01(t *testing.T) {
	good := bytes.NewBufferString(listHead)
	for i := range 20_000 { // more than is spooled in memory
		if i > 0 {
			good.WriteByte(',')
		}
		fmt.Fprintf(good, `{"cUrl":"https://example.com/%d","mUrl":"https://example.com/%d/llm.json","etag":"sha256-%d"}`, i, i, i)
	}
	t.Setenv("TMPDIR", t.TempDir())
	for _, c := range []struct{ name, end string }{
		{"cut", ""}, {"closed badly", "}"}, {"data after it", "]} x"}, {"other version", `],"x":1,"version":2}`},
	} {
		puts, skips, marks, err := collect(t, Draft01().NewReader(&http.Client{Transport: answers{"/list": plainBody(good.String() + c.end)}}, base01, nil))
		if err == nil || len(puts)+len(skips)+marks > 0 {
			t.Errorf("%s: %d puts, %d skips, %d marks, %v", c.name, len(puts), len(skips), marks, err)
		}
	}
	puts, _, marks, err := collect(t, Draft01().NewReader(&http.Client{Transport: answers{"/list": plainBody(good.String() + listTail)}}, base01, nil))
	if err != nil || len(puts) != 20_000 || marks != 1 {
		t.Errorf("complete: %d puts, %d marks, %v", len(puts), marks, err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestBadCursorAndEndpoint01(t *testing.T) {
	client := &http.Client{Transport: answers{"/list": plainBody(listHead + listTail)}}
	for _, bad := range []millrace.Cursor{
		"x", "{}", `{"root":"https://other.example/","found":"2026-01-01T00:00:00Z","lists":[{"url":"https://other.example/l"}]}`,
	} {
		for _, err := range Draft01().NewReader(client, base01, nil).Changes(t.Context(), bad) {
			if !errors.Is(err, millrace.ErrConflict) {
				t.Errorf("cursor %s: %v", bad, err)
			}
		}
	}
	for _, bad := range []string{"", "example.com", "ftp://example.com/", "https://", "https://user:pass@example.com/"} {
		src := Draft01().NewReader(client, bad, nil)
		if _, _, _, err := collect(t, src); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("endpoint %q: %v", bad, err)
		}
		if _, err := src.Page(t.Context(), millrace.Ref{URL: base01}); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("endpoint %q: %v", bad, err)
		}
	}
}

func TestTooManyLists(t *testing.T) {
	var links []string
	for i := range maxLists + 1 {
		links = append(links, fmt.Sprintf(`</%d>; rel=index; type=application/json`, i))
	}
	transport := protocoltest.Transport(func(r *http.Request) (*http.Response, error) {
		h := http.Header{"Link": {strings.Join(links, ", ")}}
		return &http.Response{StatusCode: http.StatusOK, Header: h, Body: http.NoBody, Request: r}, nil
	})
	if _, _, _, err := collect(t, Draft01().NewReader(&http.Client{Transport: transport}, base01, nil)); !errors.Is(err, millrace.ErrTooLarge) {
		t.Error(err)
	}
}
