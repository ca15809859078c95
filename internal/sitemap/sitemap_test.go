package sitemap

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

func parseAll(t *testing.T, doc string, o *Options) (entries []Entry, err error) {
	t.Helper()
	return drain(t, strings.NewReader(doc), o)
}

func drain(t *testing.T, r io.Reader, o *Options) (entries []Entry, err error) {
	t.Helper()
	for e, got := range Parse(r, o) {
		if err != nil {
			t.Fatalf("%v was yielded after %v", e, err)
		}
		if err = got; err == nil {
			entries = append(entries, e)
		}
	}
	return entries, err
}

// addresses returns the URLs of entries. A star marks those of lists.
func addresses(entries []Entry) (out []string) {
	for _, e := range entries {
		if e.Sitemap {
			e.URL += "*"
		}
		out = append(out, e.URL)
	}
	return out
}

const prolog = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

const urlset = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`

func TestURLSet(t *testing.T) {
	got, err := parseAll(t, prolog+`<!-- made by hand -->
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" xmlns:xhtml="http://www.w3.org/1999/xhtml">
 <url>
  <loc> https://example.com/a?b=1&amp;c=2
  </loc>
  <lastmod>2024-05-06T07:08:09+02:00</lastmod><changefreq>Daily</changefreq><priority>0.8</priority>
  <image:image><image:loc>https://example.com/a.jpg</image:loc></image:image>
  <xhtml:link rel="alternate" hreflang="de" href="https://example.com/de"/>
 </url>
 <url><loc><![CDATA[https://example.com/b?x=1&y=2]]></loc><priority>7</priority><changefreq>often</changefreq><lastmod>soon</lastmod></url>
 <url><lastmod>2999-01-01</lastmod><loc>/relative</loc><loc>https://example.com/second</loc><priority>NaN</priority></url>
</urlset> what follows is not read <`, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{
		{URL: "https://example.com/a?b=1&c=2", Modified: time.Date(2024, 5, 6, 5, 8, 9, 0, time.UTC), ChangeFreq: "daily", Priority: 0.8, Line: 4},
		{URL: "https://example.com/b?x=1&y=2", Priority: 0.5, Line: 11},
		{URL: "/relative", Modified: time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC), Priority: 0.5, Line: 12},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestIndex(t *testing.T) {
	got, err := parseAll(t, `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap><loc>https://example.com/1.xml</loc><lastmod>2024-05</lastmod></sitemap>
<sitemap><loc>https://example.com/2.xml.gz</loc></sitemap></sitemapindex>`, nil)
	want := []Entry{
		{URL: "https://example.com/1.xml", Sitemap: true, Modified: time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC), Priority: 0.5, Line: 1},
		{URL: "https://example.com/2.xml.gz", Sitemap: true, Priority: 0.5, Line: 2},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
}

// TestExtension checks which elements Element receives, in which order.
func TestExtension(t *testing.T) {
	const space = "https://scp-protocol.org/schemas/sitemap/1.0"
	doc := prolog + `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:scp="` + space + `" xmlns:o="urn:o">
<scp:version> 0.1
</scp:version><o:version>9</o:version>
<scp:delta section="a&amp;b" o:section="no" section="twice" url='https://example.com/?a=1&b=2'><scp:version>inside</scp:version>late</scp:delta>
<url><loc>https://example.com/a</loc><scp:version>no</scp:version></url>
<s:collection xmlns:s="` + space + `" xmlns="urn:x" pages="1"/>
</urlset>`
	var got []Element
	o := &Options{Extension: space}
	o.Element = func(e Element) error {
		got = append(got, e)
		return nil
	}
	entries, err := parseAll(t, doc, o)
	want := []Element{
		{Name: "version", Attr: map[string]string{}, Text: "0.1", Line: 3},
		{Name: "delta", Attr: map[string]string{"section": "a&b", "url": "https://example.com/?a=1&b=2"}, Line: 5},
		{Name: "collection", Attr: map[string]string{"xmlns": "urn:x", "pages": "1"}, Line: 7},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
	if d := cmp.Diff([]string{"https://example.com/a"}, addresses(entries)); d != "" {
		t.Error(d)
	}
	stop := errors.New("enough")
	o.Element = func(Element) error { return stop }
	if entries, err := parseAll(t, doc, o); !errors.Is(err, stop) || len(entries) != 0 {
		t.Errorf("%v %v", entries, err)
	}
	if entries, err := parseAll(t, doc, &Options{Extension: space}); len(entries) != 1 || err != nil {
		t.Errorf("without Element: %v %v", entries, err)
	}
}

// TestForms checks which documents Parse accepts as lists.
func TestForms(t *testing.T) {
	one := `<url><loc>https://example.com/a</loc></url>`
	utf16le := func(s string) string {
		var b strings.Builder
		for _, c := range utf16.Encode([]rune(s)) {
			b.WriteByte(byte(c))
			b.WriteByte(byte(c >> 8))
		}
		return b.String()
	}
	swap := func(s string) string {
		b := []byte(s)
		for i := 0; i+1 < len(b); i += 2 {
			b[i], b[i+1] = b[i+1], b[i]
		}
		return string(b)
	}
	wide := utf16le(`<?xml version="1.0" encoding="UTF-16"?>` + urlset + `<url><loc>https://example.com/ä</loc></url></urlset>`)
	for name, c := range map[string]struct {
		doc  string
		want []string
	}{
		"no namespace":                     {"<urlset>" + one + "</urlset>", []string{"https://example.com/a"}},
		"old namespace":                    {`<urlset xmlns="http://www.google.com/schemas/sitemap/0.84">` + one + "</urlset>", []string{"https://example.com/a"}},
		"misspelled host":                  {`<urlset xmlns="https://sitemap.org/schemas/sitemap/0.9/">` + one + "</urlset>", []string{"https://example.com/a"}},
		"with a prefix":                    {`<s:urlset xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9"><s:url><s:loc>https://example.com/a</s:loc></s:url></s:urlset>`, []string{"https://example.com/a"}},
		"white space first":                {"\n\n " + prolog + urlset + one + "</urlset>", []string{"https://example.com/a"}},
		"mark":                             {"\uFEFF" + prolog + urlset + one + "</urlset>", []string{"https://example.com/a"}},
		"empty":                            {urlset + "</urlset>", nil},
		"empty element":                    {`<urlset/>`, nil},
		"lone ampersands":                  {urlset + "<url><loc>https://example.com/?a=1&b=2&copy=3&amp;d</loc></url></urlset>", []string{"https://example.com/?a=1&b=2&copy=3&d"}},
		"by number":                        {urlset + "<url><loc>https://example.com/&#228;&#x26;</loc></url></urlset>", []string{"https://example.com/ä&"}},
		"doctype":                          {`<!DOCTYPE urlset [ <!ELEMENT url (loc)> ]>` + urlset + one + "</urlset>", []string{"https://example.com/a"}},
		"stylesheet":                       {prolog + `<?xml-stylesheet href="x.xsl"?>` + urlset + one + "</urlset>", []string{"https://example.com/a"}},
		"children mixed":                   {urlset + `<sitemap><loc>https://example.com/1.xml</loc></sitemap>` + one + "</urlset>", []string{"https://example.com/1.xml*", "https://example.com/a"}},
		"Latin 1":                          {`<?xml version="1.0" encoding="ISO-8859-1"?>` + urlset + "<url><loc>https://example.com/\xE4</loc></url></urlset>", []string{"https://example.com/ä"}},
		"windows-1252":                     {`<?xml version='1.0' encoding='Windows-1252'?>` + urlset + "<url><loc>https://example.com/\x80</loc></url></urlset>", []string{"https://example.com/€"}},
		"UTF-8 in capitals":                {`<?xml version="1.0" encoding="Utf-8"?>` + urlset + one + "</urlset>", []string{"https://example.com/a"}},
		"UTF-16":                           {"\xFF\xFE" + wide, []string{"https://example.com/ä"}},
		"UTF-16 big":                       {"\xFE\xFF" + swap(wide), []string{"https://example.com/ä"}},
		"UTF-16 unmarked":                  {wide, []string{"https://example.com/ä"}},
		"UTF-16 big-endian without a mark": {swap(wide), []string{"https://example.com/ä"}},
		"only declared as UTF-16":          {`<?xml version="1.0" encoding="utf-16"?>` + urlset + one + "</urlset>", []string{"https://example.com/a"}},
		"the mark takes precedence over the name": {"\uFEFF" + `<?xml version="1.0" encoding="ISO-8859-1"?>` + urlset + "<url><loc>https://example.com/ä</loc></url></urlset>", []string{"https://example.com/ä"}},
		"extensions": {`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:n="http://www.google.com/schemas/sitemap-news/0.9" xmlns:scp="https://scp-protocol.org/schemas/sitemap/1.0">` +
			`<scp:version>0.1</scp:version><scp:collection url="https://example.com/x.scp"/><scp:url><loc>https://example.com/no</loc></scp:url><url><n:news><n:publication><n:name>N</n:name></n:publication><loc>https://example.com/no</loc></n:news>` +
			`<n:loc>https://example.com/no</n:loc><x:loc>https://example.com/no</x:loc><loc>https://example.com/a</loc><loc xmlns="urn:x">https://example.com/no</loc></url><other>` + one + `</other></urlset>`, []string{"https://example.com/a"}},
		"own namespace":  {`<urlset><u:url xmlns:u="http://www.sitemaps.org/schemas/sitemap/0.9"><u:loc>https://example.com/a</u:loc></u:url><u:url><u:loc>https://example.com/no</u:loc></u:url></urlset>`, []string{"https://example.com/a"}},
		"gzip":           {packed(prolog + urlset + one + "</urlset>"), []string{"https://example.com/a"}},
		"gzip of text":   {packed("https://example.com/a\n"), []string{"https://example.com/a"}},
		"gzip in parts":  {packed(prolog+urlset) + packed(one+"</urlset>"), []string{"https://example.com/a"}},
		"text":           {"https://example.com/a\r\n\n  http://example.com/b?x=1&y=2 \nHTTPS://example.com/c", []string{"https://example.com/a", "http://example.com/b?x=1&y=2", "HTTPS://example.com/c"}},
		"text with mark": {"\uFEFFhttps://example.com/a", []string{"https://example.com/a"}},
		"text, UTF-16":   {"\xFF\xFE" + utf16le("https://example.com/ä\n"), []string{"https://example.com/ä"}},
	} {
		for way, r := range map[string]io.Reader{"whole": strings.NewReader(c.doc), "by bytes": iotest.OneByteReader(strings.NewReader(c.doc))} {
			got, err := drain(t, r, nil)
			if d := cmp.Diff(c.want, addresses(got)); d != "" || err != nil {
				t.Errorf("%s, %s: %v %s", name, way, err, d)
			}
		}
	}
}

func packed(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

func TestTimes(t *testing.T) {
	for in, want := range map[string]string{
		"2024": "2024-01-01T00:00:00Z", "2024-05": "2024-05-01T00:00:00Z", "2024-05-06": "2024-05-06T00:00:00Z",
		"2024-05-06T07:08Z": "2024-05-06T07:08:00Z", "2024-05-06T07:08+02:00": "2024-05-06T05:08:00Z", "2024-05-06T07:08:09Z": "2024-05-06T07:08:09Z",
		"2024-05-06T07:08:09.25-01:00": "2024-05-06T08:08:09.25Z", "2024-05-06T07:08:09+0200": "2024-05-06T05:08:09Z", "2024-05-06 07:08:09": "2024-05-06T07:08:09Z",
		"2024-05-06T07:08:09": "2024-05-06T07:08:09Z", "2024-02-29": "2024-02-29T00:00:00Z", "9999-12-31": "9999-12-31T00:00:00Z",
		"": "", "2023-02-29": "", "2024-13": "", "May 2024": "", "06/05/2024": "", "2024-05-06T25:00Z": "", "1715000000": "", "0001-01-01": "", "2024-05-06T07:08:09Z and more of it than a time has": "",
	} {
		got := parseTime(in)
		if s := got.Format(time.RFC3339Nano); want == "" && !got.IsZero() || want != "" && s != want {
			t.Errorf("%q: %s, want %q", in, s, want)
		}
	}
}

// TestBroken checks the entries before a syntax error, and the error.
func TestBroken(t *testing.T) {
	one := "<url><loc>https://example.com/a</loc></url>\n"
	start := prolog + urlset + "\n" + one
	long := strings.Repeat("x", 9000)
	for name, c := range map[string]struct {
		doc   string
		count int
		want  string
		is    error
	}{
		"nothing":                   {"", 0, "line 1 empty", nil},
		"white space":               {" \n\n", 0, "line 1 empty", nil},
		"a cut":                     {start + "<url><loc>https://exam", 1, "line 4 xml-truncated", nil},
		"a truncated tag":           {start + "<url><lo", 1, "line 4 xml-truncated", nil},
		"truncated before the root": {prolog, 0, "line 2 xml-truncated", nil},
		"an unclosed tag":           {start + "<url><loc>x</url></urlset>", 1, "line 4 xml-syntax", nil},
		"an unknown end tag":        {start + "</urlset2>", 1, "line 4 xml-syntax", nil},
		"an end tag first":          {"</urlset>", 0, "line 1 xml-syntax", nil},
		"a lone bracket":            {start + "< url>", 1, "line 4 xml-syntax", nil},
		"zero bytes":                {start + "<url><loc>https://example.com/\x00</loc></url></urlset>", 1, "line 4 xml-syntax", nil},
		"a zero byte in text":       {"https://example.com/a\nhttps://example.com/\x00\n", 0, "line 1 binary", nil},
		"not UTF-8":                 {start + "<url><loc>\xFF</loc></url></urlset>", 1, "line 4 xml-syntax", nil},
		"unknown set":               {`<?xml version="1.0" encoding="x-none"?>` + urlset, 0, "line 1 charset", nil},
		"version 2":                 {`<?xml version="2.0"?>` + urlset, 0, "line 1 invalid", nil},
		"HTML":                      {"<!DOCTYPE html>\n<html><head><title>Not found</title>", 0, "line 1 html", ErrHTML},
		"HTML without doctype":      {"\n<HTML lang=en><body>Not found", 0, "line 2 html", ErrHTML},
		"old HTML":                  {`<!doctype HTML PUBLIC "-//W3C//DTD HTML 4.01//EN">` + "<p>", 0, "line 1 html", ErrHTML},
		"XHTML":                     {prolog + `<html xmlns="http://www.w3.org/1999/xhtml">`, 0, "line 2 html", ErrHTML},
		"RSS":                       {prolog + `<rss version="2.0"><channel/></rss>`, 0, "line 2 feed", ErrFeed},
		"Atom":                      {`<feed xmlns="http://www.w3.org/2005/Atom"/>`, 0, "line 1 feed", ErrFeed},
		"RSS 1":                     {`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>`, 0, "line 1 feed", ErrFeed},
		"another root":              {"<svg/>", 0, "line 1 xml-root", nil},
		"another namespace":         {`<urlset xmlns="urn:x"/>`, 0, `line 1 xml-namespace`, nil},
		"unbound prefix":            {`<s:urlset/>`, 0, `line 1 xml-namespace`, nil},
		"JSON":                      {`{"pages": []}`, 0, "line 1 unknown-format", nil},
		"words":                     {"Not found\nSorry", 0, "line 1 unknown-format", nil},
		"an image":                  {"\x89PNG\r\n\x1a\n\x00\x00", 0, "line 1 binary", nil},
		"words among URLs":          {"https://example.com/a\n# b\n/c\nhttps://example.com/\xFF\nhttps://example.com/ d\nhttps://", 1, "line 2 bad-url", nil},
		"a long line":               {"https://example.com/a\nhttps://example.com/" + long + "\nhttps://example.com/b", 2, "line 2 url-size", nil},
		"a line of 10 MB":           {"https://example.com/a\nhttps://example.com/" + strings.Repeat("x", 10<<20) + "\nhttps://example.com/b", 2, "line 2 url-size", nil},
		"no URL":                    {start + "<url><lastmod>2024</lastmod></url><url/>" + one + "</urlset>", 2, "line 4 no-url", nil},
		"a long URL":                {start + "<url><loc>https://example.com/" + long + "</loc></url>" + one + "</urlset>", 2, "line 4 url-size", nil},
		"truncated gzip":            {packed(prolog + urlset)[:30], 0, "gzip-truncated", nil},
		"gzip without end":          {packed(start + strings.Repeat(one, 100))[:120], 0, "gzip-truncated", nil},
		"no gzip":                   {"\x1F\x8Bxxxxxxxxxx", 0, "line 1 gzip-broken", nil},
		"gzip twice":                {packed(packed(start)), 0, "line 1 binary", nil},
		"laughs": {`<!DOCTYPE urlset [<!ENTITY a "https://example.com/"><!ENTITY b "&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>` +
			urlset + "<url><loc>&b;</loc></url><url><loc>&c;</loc></url>", 2, "line 1 xml-truncated", nil},
	} {
		got, err := parseAll(t, c.doc, nil)
		var f *millrace.FormatError
		if !errors.As(err, &f) || !errors.Is(err, millrace.ErrInvalid) || errors.Is(err, millrace.ErrTooLarge) || !strings.HasSuffix(f.Position+" "+millrace.ErrorCode(err), c.want) {
			t.Errorf("%s: %v, code %s, want %q", name, err, millrace.ErrorCode(err), c.want)
		}
		if c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v is not %v", name, err, c.is)
		}
		if len(got) != c.count && !strings.HasPrefix(name, "gzip") {
			t.Errorf("%s: %d entries, want %d", name, len(got), c.count)
		}
		if name == "laughs" {
			if d := cmp.Diff([]string{"&b;", "&c;"}, addresses(got)); d != "" {
				t.Errorf("an entity was expanded: %s", d)
			}
		}
	}
}

func TestLimits(t *testing.T) {
	one := "<url><loc>https://example.com/a</loc></url>"
	for name, c := range map[string]struct {
		doc   string
		o     *Options
		count int
		want  string
	}{
		"entries":           {urlset + strings.Repeat(one, 50_001) + "</urlset>", nil, 50_000, "list-count"},
		"lines":             {strings.Repeat("https://example.com/a\n", 6), &Options{MaxEntries: 5}, 5, "list-count"},
		"bytes":             {urlset + strings.Repeat(one+"\n", 100) + "</urlset>", &Options{MaxBytes: int64(len(urlset) + 10*(len(one)+1))}, 10, "list-size"},
		"bytes of text":     {strings.Repeat("https://example.com/a\n", 100), &Options{MaxBytes: 1000}, 45, "list-size"},
		"depth":             {urlset + one + "<url>" + strings.Repeat("<x>", 100), nil, 1, "xml-depth"},
		"a text of 10 MB":   {urlset + one + "<url><loc>" + strings.Repeat("x", 10<<20), nil, 1, "xml-size"},
		"a comment":         {urlset + one + "<!--" + strings.Repeat("x", 2<<20), nil, 1, "xml-size"},
		"an attribute":      {urlset + one + `<x a="` + strings.Repeat("x", 2<<20), nil, 1, "xml-size"},
		"white space first": {strings.Repeat(" ", 2<<20) + urlset, nil, 0, ""},
		"a gzip bomb":       {packed(urlset + strings.Repeat("<x></x>", 2<<20)), nil, 0, "gzip-ratio"},
		"a bomb of text":    {packed(strings.Repeat("\n", 20<<20)), nil, 0, "gzip-ratio"},
	} {
		got, err := parseAll(t, c.doc, c.o)
		if name == "white space first" { // it is parsed as plain text
			if err == nil {
				t.Errorf("%s: no error", name)
			}
			continue
		}
		if !errors.Is(err, millrace.ErrTooLarge) || errors.Is(err, millrace.ErrInvalid) || millrace.ErrorCode(err) != c.want || len(got) != c.count {
			t.Errorf("%s: %d entries, %v, want %d, %q", name, len(got), err, c.count, c.want)
		}
	}
	exact := urlset + one + "</urlset>"
	if got, err := parseAll(t, exact, &Options{MaxBytes: int64(len(exact)), MaxEntries: 1}); len(got) != 1 || err != nil {
		t.Errorf("at its limits: %v %v", got, err)
	}
}

// TestNamespaces parses a list with many prefixes, each of which needs a search.
func TestNamespaces(t *testing.T) {
	var b strings.Builder
	b.WriteString("<urlset")
	for i := range 50_000 {
		fmt.Fprintf(&b, " xmlns:p%d='x'", i)
	}
	b.WriteString(">" + strings.Repeat("<q:a/>", 100_000) + "<url><loc>https://example.com/</loc></url></urlset>")
	if got, err := parseAll(t, b.String(), nil); len(got) != 1 || err != nil {
		t.Errorf("%v %v", got, err)
	}
}

// TestReader checks that an error of the reader is not reported as an error of the document.
func TestReader(t *testing.T) {
	broken := errors.New("the connection broke")
	doc := urlset + "<url><loc>https://example.com/a</loc></url>"
	for name, head := range map[string]string{"XML": doc, "text": "https://example.com/a\n", "nothing": "", "gzip": packed(doc)[:20], "a mark": "\xFF\xFE<\x00"} {
		_, err := drain(t, io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken)), nil)
		if !errors.Is(err, broken) || errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStop(t *testing.T) {
	for _, doc := range []string{urlset + strings.Repeat("<url><loc>https://example.com/a</loc></url>", 10), strings.Repeat("https://example.com/a\n", 10)} {
		n := 0
		for _, err := range Parse(strings.NewReader(doc), nil) {
			if n++; n == 3 || err != nil {
				break
			}
		}
		if n != 3 {
			t.Errorf("stopped after %d", n)
		}
	}
}
