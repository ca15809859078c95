package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/scp"
)

const (
	scpFirst = `{"collection":{"id":"blog-1","section":"blog","type":"snapshot","generated":"2026-11-21T08:54:18Z","version":"0.1"}}`
	scpPage  = `{"url":"https://example.com/blog/%s","title":"T","description":"D","modified":"2025-01-15T10:00:00Z","language":"en","content":[{"type":"heading","level":2,"text":"H"},{"type":"list","ordered":false,"items":["a<b"]}]}`
)

// scpText returns a collection with the given lines and its checksum.
func scpText(lines ...string) string {
	text := strings.Join(append([]string{scpFirst}, lines...), "\n") + "\n"
	sum := sha256.Sum256([]byte(text))
	return strings.Replace(text, `"0.1"}`, `"0.1","checksum":"sha256:`+hex.EncodeToString(sum[:])+`"}`, 1)
}

func scpPages(names ...string) (lines []string) {
	for _, n := range names {
		lines = append(lines, fmt.Sprintf(scpPage, n))
	}
	return lines
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func scpFileOf(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	write(t, file, content)
	return file
}

func TestSCPVerify(t *testing.T) {
	t.Parallel()
	good := scpFileOf(t, "a.scp.gz", zipped(t, scpText(scpPages("a", "b")...)))
	code, out, errs := command(t, nil, "scp", "verify", good)
	if code != 0 || errs != "" || out != good+": good: snapshot of blog, 2 pages, checksum holds\n" {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	code, out, _ = command(t, nil, "scp", "verify", "--json", good)
	var one scp.FileReport
	if err := json.Unmarshal([]byte(out), &one); err != nil || code != 0 {
		t.Fatal(code, err, out)
	}
	if diff := cmp.Diff(scp.FileReport{File: good, ID: "blog-1", Section: "blog", Type: "snapshot", Pages: 2, Checksum: "cut"}, one); diff != "" {
		t.Error(diff)
	}
	none := filepath.Join(t.TempDir(), "none")
	for _, verb := range []string{"verify", "inspect", "cat"} {
		if code, out, errs := command(t, nil, "scp", verb, none); code != 1 || strings.Count(out+errs, none) != 1 {
			t.Errorf("%s: exit %d: %s%s", verb, code, out, errs)
		}
	}
	bad := scpFileOf(t, "b.scp", scpText(`{"url":`))
	code, out, errs = command(t, nil, "scp", "verify", "--json", good, bad, none)
	var several []map[string]any
	if err := json.Unmarshal([]byte(out), &several); err != nil || code != 1 || errs != "" || len(several) != 3 {
		t.Fatal(code, err, out, errs)
	}
	for i, want := range []string{"", "scp/format/json-lines", "file-not-found"} {
		code, _ := several[i]["code"].(string)
		if got, ok := several[i]["error"].(string); !ok || code != want || (want == "") != (got == "") || len(several[i]) < 8 {
			t.Errorf("%v, want %q", several[i], want)
		}
	}
}

// scp reports errors in a file with line and field.
func TestSCPBadFiles(t *testing.T) {
	t.Parallel()
	a, b := fmt.Sprintf(scpPage, "a"), fmt.Sprintf(scpPage, "b")
	good := scpText(a, b)
	block := `{"type":"text","text":"x"}`
	many := strings.Replace(a, `"content":[`, `"content":[`+strings.Repeat(block+",", 1000), 1)
	for _, c := range []struct{ name, text, code, at string }{
		{"cut gzip", zipped(t, good)[:150], "scp/format/compression", ""},
		{"wrong checksum", strings.Replace(good, `"T"`, `"U"`, 1), "scp/checksum/matches", "line 1 (/collection/checksum)"},
		{"metadata twice", scpText(a, scpFirst), "scp/format/pages", "line 3"},
		{"no JSON", scpText(a, b, "{]"), "scp/format/json-lines", "line 4"},
		{"missing field", scpText(a, strings.Replace(b, `"language":"en",`, "", 1)), "scp/page/required", "line 3 (/language)"},
		{"another version", strings.Replace(good, `"0.1"`, `"2.0"`, 1), "scp/metadata/version", "line 1 (/collection/version)"},
		{"bomb", zipped(t, scpText(a, strings.Repeat(" ", 3<<20)+b)), "scp/limits/ratio", ""},
		{"deep", scpText(strings.Replace(a, `"content"`, `"more":`+strings.Repeat("[", 99)+strings.Repeat("]", 99)+`,"content"`, 1)), "scp/reader/refused", "line 2 (/more/0"},
		{"byte order mark", "\ufeff" + good, "scp/format/json-lines", ""},
		{"blank line", scpText(a, "", b), "scp/format/json-lines", "line 3"},
		{"garbage at the end", zipped(t, good) + "garbage of some length", "scp/format/compression", ""},
		{"empty", "", "scp/format/first-line", "line 1"},
		{"1001 blocks", scpText(many), "scp/limits/blocks", "line 2 (/content/1000)"},
		{"script", scpText(strings.Replace(a, "https://example.com", "javascript:alert", 1)), "scp/page/url", "line 2 (/url)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			exit, out, errs := command(t, nil, "scp", "verify", "--json", scpFileOf(t, "a.scp", c.text))
			var v scp.FileReport
			err := json.Unmarshal([]byte(out), &v)
			for _, page := range v.Refused {
				v.Code, v.Error = page.Code, page.Reason
			}
			if err != nil || exit != 1 || v.Code != c.code || !strings.Contains(v.Error, c.at) {
				t.Errorf("exit %d, %v, want %s at %q: %s%s", exit, err, c.code, c.at, out, errs)
			}
		})
	}
	// CR before LF is white space.
	if code, out, _ := command(t, nil, "scp", "verify", scpFileOf(t, "a.scp", scpText(a+"\r", b+"\r"))); code != 0 {
		t.Errorf("CRLF: %s", out)
	}
}

func TestSCPInspect(t *testing.T) {
	t.Parallel()
	text := scpText(scpPages("a", "b", "b")...)
	file := scpFileOf(t, "a.scp", text)
	code, out, errs := command(t, nil, "scp", "inspect", file)
	for _, want := range []string{
		"id           blog-1\n", "generated    2026-11-21T08:54:18Z\n", fmt.Sprintf("%d bytes, %d decoded, ratio 1.00\n", len(text), len(text)),
		"checksum     holds\n", "pages        3, 0 skipped, 1 ", "      3 /blog\n", "      3 heading\n                   3 list\n",
	} {
		if !strings.Contains(out, want) || code != 0 || errs != "" {
			t.Errorf("exit %d, %q is missing in\n%s%s", code, want, out, errs)
		}
	}
	_, out, _ = command(t, nil, "scp", "inspect", "--json", file)
	var r scp.Inspection
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Pages != 3 || r.Duplicates != 1 || r.Blocks["list"] != 3 || r.Checksum != "cut" || len(r.Claimed) != 71 {
		t.Errorf("%v: %s", err, out)
	}
	// inspect shows a rejected file up to the error.
	code, out, _ = command(t, nil, "scp", "inspect", scpFileOf(t, "b.scp", strings.Replace(text, `"T"`, `"U"`, 1)))
	if code != 1 || !strings.Contains(out, "pages        3,") || !strings.Contains(out, "line 1") {
		t.Errorf("exit %d: %s", code, out)
	}
	// The JSON report covers every file.
	for _, name := range []string{scpFileOf(t, "c.scp", "\x28\xb5\x2f\xfd"), filepath.Join(t.TempDir(), "none")} {
		r = scp.Inspection{}
		code, out, _ = command(t, nil, "scp", "inspect", "--json", name)
		if err := json.Unmarshal([]byte(out), &r); err != nil || code != 1 || r.File != name || r.Code == "" || r.Sections == nil {
			t.Errorf("exit %d, %v: %s", code, err, out)
		}
	}
}

func TestSCPCat(t *testing.T) {
	t.Parallel()
	in := strings.NewReader(zipped(t, scpText(append(scpPages("a"), strings.Replace(scpPage, "https", "ftp", 1), scpPages("b")[0])...)))
	var out, errs buffer
	if code := run(t.Context(), []string{"scp", "cat", "-"}, environment(nil), in, &out, &errs); code != 0 || !strings.Contains(errs.String(), "line 3 (/url)") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	var p millrace.Page
	if err := json.Unmarshal([]byte(lines[0]), &p); err != nil || len(lines) != 2 || p.URL != "https://example.com/blog/a" ||
		len(p.Blocks) != 2 || p.Blocks[1].Items[0].Text != "a<b" || !strings.Contains(lines[0], "a<b") {
		t.Errorf("%v: %s", err, out.String())
	}
	// cat prints no part of a rejected file.
	bad := strings.Replace(scpText(scpPages("a", "b")...), `"T"`, `"U"`, 1)
	if exit, code, out := failure(t, nil, "scp", "cat", scpFileOf(t, "a.scp", bad)); exit != 1 || code != "scp/checksum/matches" || !strings.Contains(out, "line 1") {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
}

func TestSCPRemote(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	coded := zipped(t, scpText(scpPages("a")...))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a.scp.gz":
			w.Header().Set("Content-Encoding", "gzip")
		case "/silent.scp.gz": // without a Content-Encoding
		case "/short.scp.gz":
			w.Header().Set("Content-Length", strconv.Itoa(len(coded)+10))
		default:
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(coded))
	}))
	defer s.Close()
	for _, c := range []struct {
		args []string
		exit int
		code string
		warn bool // the server names another coding
	}{
		{[]string{"/a.scp.gz", "--allow-private"}, 0, "", false},
		{[]string{"/silent.scp.gz", "--allow-private"}, 0, "", true},
		{[]string{"/short.scp.gz", "--allow-private"}, 1, "connection-closed", false},
		{[]string{"/none", "--allow-private"}, 1, "http-404", false},
		{[]string{"/a.scp.gz"}, 1, "address-loopback", false},
	} {
		exit, out, errs := command(t, nil, append([]string{"scp", "verify", "--json", s.URL + c.args[0]}, c.args[1:]...)...)
		var v scp.FileReport
		if err := json.Unmarshal([]byte(out), &v); err != nil || exit != c.exit || v.Code != c.code || strings.Contains(errs, " content_encoding=") != c.warn {
			t.Errorf("%v: exit %d, %v: %s%s", c.args, exit, err, out, errs)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("remaining files: %v %v", left, err)
	}
}
