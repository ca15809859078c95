package scp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
)

var aTime = time.Date(2026, 11, 21, 8, 54, 18, 0, time.UTC)

const plainMetadata = `{"collection":{"id":"blog-1","section":"blog","type":"delta","generated":"2026-11-21T00:00:00Z","since":"2026-11-20T00:00:00Z","version":"0.1"}}`

// metadataCase replaces a text of a valid first line. at and code are the position and the
// code of the expected error, "" for none. If apart, the schema accepts the line.
type metadataCase struct {
	old, new, at, code string
	apart              bool
}

func (c *metadataCase) line() string { return strings.Replace(plainMetadata, c.old, c.new, 1) }

var metadataCases = []metadataCase{
	{"", "", "", "", false},
	{`"delta"`, `"snapshot"`, "", "", false},
	{`"0.1"`, `"0.7","more":{"a":[]}`, "", "", false},
	{`"0.1"`, `"00.1"`, "", "", false},
	{`{"collection"`, `{"a":1,"collection"`, "", "", false},
	{`"id":"blog-1"`, `"id":"a_B-9"`, "", "", false},
	{`"0.1"`, `"0.1","checksum":"sha256:` + strings.ToUpper(strings.Repeat("ab", 32)) + `"`, "", "", false},
	{`"since":"2026-11-20T00:00:00Z",`, ``, "/collection/since", "scp/metadata/since", false},
	{`"id":"blog-1",`, ``, "/collection/id", "scp/metadata/id", false},
	{`"section":"blog",`, ``, "/collection/section", "scp/metadata/section", false},
	{`"type":"delta",`, ``, "/collection/type", "scp/metadata/type", false},
	{`"generated":"2026-11-21T00:00:00Z",`, ``, "/collection/generated", "scp/metadata/generated", false},
	{`,"version":"0.1"`, ``, "/collection/version", "scp/metadata/version", false},
	{`"blog-1"`, `"blog 1"`, "/collection/id", "scp/metadata/id", false},
	{`"blog-1"`, `"blog\n"`, "/collection/id", "scp/metadata/id", false},
	{`"blog-1"`, `""`, "/collection/id", "scp/metadata/id", false},
	{`"blog-1"`, `null`, "/collection/id", "scp/metadata/id", false},
	{`"blog"`, `"blög"`, "/collection/section", "scp/metadata/section", false},
	{`"delta"`, `"full"`, "/collection/type", "scp/metadata/type", false},
	{`"2026-11-21T00:00:00Z"`, `"2026-11-21 00:00:00Z"`, "/collection/generated", "scp/metadata/generated", false},
	{`"2026-11-20T00:00:00Z"`, `"yesterday"`, "/collection/since", "scp/metadata/since", false},
	{`"0.1"`, `"1.0"`, "/collection/version", "scp/metadata/version", true},
	{`"0.1"`, `"10.0"`, "/collection/version", "scp/metadata/version", true},
	{`"0.1"`, `"0.1\n"`, "/collection/version", "scp/metadata/version", false},
	{`"0.1"`, `"0.1.2"`, "/collection/version", "scp/metadata/version", false},
	{`"0.1"`, `0.1`, "/collection/version", "scp/metadata/version", false},
	{`"0.1"`, `"0.1","checksum":"sha256:abc"`, "/collection/checksum", "scp/checksum/form", false},
	{`"0.1"`, `"0.1","checksum":""`, "/collection/checksum", "scp/checksum/form", false},
	{`"0.1"`, `"0.1","checksum":null`, "/collection/checksum", "scp/checksum/form", false},
	{`"0.1"`, `"0.1","id":"a"`, "/collection/id", "scp/metadata/id", true},
	{`}}`, `},"collection":{}}`, "/collection", "scp/format/first-line", true},
	{`}}`, `}`, "", "scp/format/first-line", false},
	{`}}`, `}}}`, "", "scp/format/first-line", false},
	{plainMetadata, `{"id":"blog-1"}`, "/collection", "scp/format/first-line", false},
	{plainMetadata, `{"collection":[]}`, "/collection", "scp/format/first-line", false},
	{plainMetadata, `[]`, "", "scp/format/first-line", false},
	{plainMetadata, plainLine, "/collection", "scp/format/first-line", false},
	{plainMetadata, "\ufeff" + plainMetadata, "", "scp/format/json-lines", false},
}

func TestMetadata(t *testing.T) {
	for _, c := range metadataCases {
		file := c.line() + "\n" + plainLine
		got, err := Open(strings.NewReader(file), int64(len(file)), nil)
		f, _ := errors.AsType[*millrace.FormatError](err)
		switch {
		case c.code == "" && err != nil:
			t.Errorf("%s: %v", c.line(), err)
		case c.code == "":
			if m := got.Metadata(); m.ID == "" || m.Generated.IsZero() || m.Checksum != strings.ToLower(m.Checksum) {
				t.Errorf("%s: %+v", c.line(), m)
			}
		case f == nil || !strings.HasPrefix(f.Position, "line 1") || !strings.Contains(f.Position, c.at) || millrace.ErrorCode(err) != c.code:
			t.Errorf("%s: %s %v, want %s", c.line(), millrace.ErrorCode(err), err, c.code)
		}
	}
}

// withSum returns the lines of a file with a checksum, computed by the given rule.
func withSum(rule string, lines ...string) string {
	file := strings.Join(lines, "\n")
	member := func(value string) string { return strings.Replace(file, `"0.1"`, `"0.1"`+value, 1) }
	_, rest, _ := strings.Cut(file, "\n")
	of := map[string]string{
		"cut": file, "empty": member(`,"checksum":""`), "zeros": member(`,"checksum":"sha256:` + noSum + `"`), "pages-only": rest, "bad": "else",
	}[rule]
	sum := sha256.Sum256([]byte(of))
	return member(`,"checksum":"sha256:` + hex.EncodeToString(sum[:]) + `"`)
}

func verify(t *testing.T, file string, o *OpenOptions) (CheckResult, error) {
	t.Helper()
	c, err := Open(strings.NewReader(file), int64(len(file)), o)
	if err != nil {
		return CheckResult{}, err
	}
	return c.Verify(t.Context())
}

func TestChecksum(t *testing.T) {
	for _, rule := range []string{"cut", "empty", "zeros", "pages-only", "bad"} {
		file := withSum(rule, plainMetadata, plainLine, plainLine, "")
		for coding, coded := range map[string]string{"": file, "gzip": string(zipped([]byte(file))), "zstd": string(packed([]byte(file)))} {
			v, err := verify(t, coded, nil)
			if v.Checksum != rule || v.Pages != 2 || v.Bytes != int64(len(file)) || (err != nil) != (rule == "bad") {
				t.Errorf("%s %s: %+v, %v", coding, rule, v, err)
			}
			if c, err := Open(strings.NewReader(coded), int64(len(coded)), nil); err != nil || c.Coding() != coding {
				t.Errorf("%q: %v", coding, err)
			}
		}
	}
	// The hash excludes white space around the member, which may also be the first one.
	spaced := strings.Replace(withSum("cut", plainMetadata, plainLine), `,"checksum":"`, `, "checksum" : "`, 1)
	if v, err := verify(t, spaced, nil); err != nil || v.Checksum != "cut" {
		t.Errorf("%+v, %v", v, err)
	}
	file := plainMetadata + "\n" + plainLine
	sum := sha256.Sum256([]byte(file))
	first := strings.Replace(file, `{"id"`, `{"checksum":"sha256:`+strings.ToUpper(hex.EncodeToString(sum[:]))+`","id"`, 1)
	if v, err := verify(t, first, nil); err != nil || v.Checksum != "cut" {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := verify(t, file, nil); err != nil || v.Checksum != "none" {
		t.Errorf("%+v, %v", v, err)
	}
}

// Invalid files are refused, with the line and the reason.
func TestBadFiles(t *testing.T) {
	lines := func(l ...string) string { return strings.Join(append([]string{plainMetadata}, l...), "\n") }
	good := lines(plainLine, "")
	deep := strings.Replace(plainLine, `{"@type":"Article"}`, `{"a":`+strings.Repeat("[", 1000), 1)
	bomb := plainMetadata + "\n" + strings.Repeat(" ", 4<<20) + plainLine
	wide, err := zstd.NewWriter(nil, zstd.WithWindowSize(64<<20))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, file, at, code string
		o                    *OpenOptions
	}{
		{"empty", "", "line 1", "scp/format/first-line", nil},
		{"empty gzip", string(zipped(nil)), "line 1", "scp/format/first-line", nil},
		{"HTML", "<!DOCTYPE html>\n", "line 1", "scp/format/first-line", nil},
		{"no JSON", lines(plainLine, plainLine, "{", plainLine), "line 4", "scp/format/json-lines", nil},
		{"missing field", lines(strings.Replace(plainLine, `"title":"T",`, "", 1)), "line 2 (/title)", "scp/page/required", nil},
		{"second metadata", lines(plainLine, plainMetadata), "line 3", "scp/format/pages", nil},
		{"blank line", lines(plainLine, "", plainLine), "line 3", "scp/format/json-lines", nil},
		{"blank line at the end", lines(plainLine, "", ""), "line 3", "scp/format/json-lines", nil},
		{"line of spaces", lines(plainLine, " \t\r", plainLine), "line 3", "scp/format/json-lines", nil},
		{"trailing garbage", lines(plainLine, "garbage"), "line 3", "scp/format/json-lines", nil},
		{"NUL bytes", lines(plainLine, "\x00\x00"), "line 3", "scp/format/json-lines", nil},
		{"deep", lines(deep), "line 2 (/schema/a", "scp/reader/refused", nil},
		{"bomb, zstd", string(packed([]byte(bomb))), "line 2", "scp/limits/ratio", nil},
		{"bomb, gzip", string(zipped([]byte(bomb))), "line 2", "scp/limits/ratio", nil},
		{"long line", lines(plainLine, plainLine+strings.Repeat(" ", 1000)), "line 3", "scp/limits/page", &OpenOptions{MaxLine: len(plainLine) + 999}},
		{"long metadata", strings.Repeat(" ", maxMetadata) + good, "line 1", "scp/limits/page", nil},
		{"long file", good, "", "scp/limits/file", &OpenOptions{MaxFile: int64(len(good)) - 1}},
		{"long when decoded", string(packed([]byte(good))), "line", "scp/reader/refused", &OpenOptions{MaxBytes: int64(len(good)) - 1}},
		{"slow", lines(strings.Replace(plainLine, `{"@type":"Article"}`, `{"a":[`+strings.Repeat("1,", 5000)+"1]}", 1)), "line 2 (/schema/a", "scp/reader/refused", &OpenOptions{
			Now: func() func() time.Time {
				now := aTime
				return func() time.Time { now = now.Add(20 * time.Second); return now }
			}(),
		}},
		{"zstd garbage", string(packed([]byte(good))) + "garbage", "line", "scp/format/compression", nil},
		{"gzip garbage", string(zipped([]byte(good))) + "garbage of some length", "line", "scp/format/compression", nil},
		{"a window of 64 MiB", string(wide.EncodeAll(bytes.Repeat([]byte(good), 40_000), nil)), "line 1", "scp/format/compression", nil},
		{"zstd magic alone", "\x28\xb5\x2f\xfd", "line 1", "scp/format/compression", nil},
		{"gzip magic alone", "\x1f\x8b", "line 1", "scp/format/compression", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := verify(t, c.file, c.o)
			f, _ := errors.AsType[*millrace.FormatError](err)
			if f == nil || !strings.HasPrefix(f.Position, c.at) || millrace.ErrorCode(err) != c.code || f.Protocol != Name || f.Section == "" {
				t.Errorf("%s %v, want %s", millrace.ErrorCode(err), err, c.code)
			}
		})
	}
}

// Valid files are accepted.
func TestGoodFiles(t *testing.T) {
	first, second := plainMetadata+"\n"+plainLine+"\n", plainLine
	bad := strings.Replace(plainLine, "https://example.com/a", "javascript:alert(1)", 1)
	skippable := "\x5a\x2a\x4d\x18\x03\x00\x00\x00abc"
	for _, c := range []struct {
		name, file string
		want       CheckResult
	}{
		{"no pages", plainMetadata, CheckResult{}},
		{"no final line end", first + second, CheckResult{Pages: 2}},
		{"CRLF", strings.ReplaceAll(first+second+"\n", "\n", "\r\n"), CheckResult{Pages: 2}},
		{"duplicate", first + second + "\n" + second, CheckResult{Pages: 3}},
		{"gzip of two members", string(zipped([]byte(first))) + string(zipped([]byte(second))), CheckResult{Pages: 2}},
		{"zstd of two frames", skippable + string(packed([]byte(first))) + skippable + string(packed([]byte(second))) + skippable, CheckResult{Pages: 2}},
		{"gzip of no name but its own", string(zipped([]byte(first))), CheckResult{Pages: 1}},
		{"a page in its own", first + bad + "\n" + second, CheckResult{Pages: 2, Skipped: 1}},
		{"a small bomb", string(packed([]byte(first + strings.Repeat(" ", 1<<19) + second))), CheckResult{Pages: 2}},
	} {
		v, err := verify(t, c.file, nil)
		c.want.Checksum, c.want.Bytes = "none", v.Bytes
		if err != nil || v != c.want {
			t.Errorf("%s: %+v, %v", c.name, v, err)
		}
	}
	// The error names the skipped page, and the other pages are yielded.
	file := first + bad + "\n" + second
	c, err := Open(strings.NewReader(file), int64(len(file)), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for p, err := range c.Pages(t.Context()) {
		s, skip := errors.AsType[*millrace.SkipError](err)
		switch {
		case skip:
			f, _ := errors.AsType[*millrace.FormatError](err)
			got = append(got, s.URL, f.Position)
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, p.URL, p.Version)
		}
	}
	want := []string{"https://example.com/a", "2025-01-15T10:00:00Z", "javascript:alert(1)", "line 3 (/url)", "https://example.com/a", "2025-01-15T10:00:00Z"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// A truncated file is an error. A flipped bit is an error, or does not change the content.
func TestTruncated(t *testing.T) {
	if testing.Short() {
		t.Skip("testing.Short: thousands of files")
	}
	pages := prose(testkit.Size(0, 8, 40))
	file := snapshot(pages)
	for name, coded := range map[string][]byte{"zstd": packed(file), "gzip": zipped(file)} {
		for i := range coded {
			if i > 100 && i < len(coded)-100 && i%37 != 0 {
				continue
			}
			if v, err := verify(t, string(coded[:i]), nil); err == nil {
				t.Fatalf("%s of %d of %d bytes: %+v", name, i, len(coded), v)
			}
		}
		for i := 0; i < len(coded); i += 1 + len(coded)/300 {
			changed := bytes.Clone(coded)
			changed[i] ^= 1 << (i % 8)
			if v, err := verify(t, string(changed), nil); err == nil && (v.Checksum != "cut" || v.Pages != 40) {
				t.Fatalf("%s with another bit in byte %d: %+v", name, i, v)
			}
		}
	}
	for i := range file[:len(file)-1] {
		if i%101 == 0 || i > len(file)-300 && i%7 == 0 {
			if v, err := verify(t, string(file[:i]), nil); err == nil {
				t.Fatalf("%d of %d bytes: %+v", i, len(file), v)
			}
		}
	}
}

// faulty is a reader that fails after some bytes.
type faulty struct {
	io.ReaderAt
	after int64
}

var errDisk = errors.New("the disk is broken")

func (f faulty) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.after {
		return 0, errDisk
	}
	return f.ReaderAt.ReadAt(p, off)
}

// Errors of the reader or the context are not reported as errors of the file.
func TestErrors(t *testing.T) {
	file := snapshot(prose(2000))
	for name, coded := range map[string][]byte{"": file, "zstd": packed(file), "gzip": zipped(file)} {
		r := faulty{bytes.NewReader(coded), int64(len(coded)) / 2}
		if c, err := Open(r, int64(len(coded)), nil); err == nil {
			_, err = c.Verify(t.Context())
			if !errors.Is(err, errDisk) || errors.Is(err, millrace.ErrInvalid) {
				t.Errorf("%q: %v", name, err)
			}
		} else {
			t.Errorf("%q: %v", name, err)
		}
		c, err := Open(bytes.NewReader(coded), int64(len(coded)), nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		for _, err = range c.Pages(ctx) {
			if n++; n == 2 {
				cancel()
			}
		}
		if cancel(); !errors.Is(err, context.Canceled) || n > 1000 {
			t.Errorf("%q: %d pages, %v", name, n, err)
		}
		for range c.Pages(t.Context()) {
			break // stopping early must not panic
		}
	}
	if _, err := Open(faulty{bytes.NewReader(file), 0}, int64(len(file)), nil); !errors.Is(err, errDisk) {
		t.Error(err)
	}
}

// A line at the limit is read; a longer line is refused.
func TestLongLine(t *testing.T) {
	testkit.Soak(t) // a page of 100 MB
	w := pageOf(testSite, aPage(millrace.Block{Type: millrace.TextBlock, Text: strings.Repeat("a", maxLine-200)}))
	for _, over := range []bool{false, true} {
		line := appendPage(nil, w)
		pad := maxLine + 1 - len(line)
		if over {
			pad++
		}
		file := fmt.Sprintf("%s\n%s%s\n", plainMetadata, strings.Repeat(" ", pad), line[:len(line)-1])
		v, err := verify(t, file, nil)
		if (err != nil) != over || !over && v.Pages != 1 {
			t.Errorf("over %v: %+v, %v", over, v, err)
		}
	}
}
