package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// goldPage is a page of wcxb with its expected content.
type goldPage struct {
	ID, Kind, URL, Title, Author string
	Published                    string // a day, such as 2025-06-04
	Text                         string
	With, Without                []string // snippets that the text must have, and must not have
	file                         string
}

func readPages(data string) ([]goldPage, error) {
	f, err := openGzip(filepath.Join(data, "wcxb", "pages.jsonl.gz"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var pages []goldPage
	for d := json.NewDecoder(bufio.NewReader(f)); ; {
		var p goldPage
		if err := d.Decode(&p); err == io.EOF {
			return pages, nil
		} else if err != nil {
			return nil, fmt.Errorf("gold pages: %w", err)
		}
		if p.URL == "" {
			p.URL = "https://example.com/"
		}
		p.file = filepath.Join(data, "wcxb", "html", p.ID+".html.gz")
		pages = append(pages, p)
	}
}

// html returns the HTML of a page.
func (p *goldPage) html() ([]byte, error) {
	f, err := openGzip(p.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

type gzipFile struct {
	*gzip.Reader
	file *os.File
}

func (g gzipFile) Close() error { return g.file.Close() }

func openGzip(name string) (io.ReadCloser, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return gzipFile{z, f}, nil
}

// wordPattern is \w+ with Unicode: letters, numbers and underscores of every script.
var wordPattern = regexp.MustCompile(`[\p{L}\p{N}_]+`)

// count adds the words of a text, in lower case, to a multiset.
func count(m map[string]int, text string) {
	for _, w := range wordPattern.FindAllString(strings.ToLower(text), -1) {
		m[w]++
	}
}

// compare returns the number of words that two multisets share, and the sizes of both.
func compare(gold, got map[string]int) (common, want, have int) {
	for w, n := range gold {
		common += min(n, got[w])
		want += n
	}
	for _, n := range got {
		have += n
	}
	return common, want, have
}

// f1 is the harmonic mean of precision and recall of words. If the gold text is empty,
// it is 1 for an empty text and 0 otherwise.
func f1(gold, got string) float64 {
	g, h := map[string]int{}, map[string]int{}
	count(g, gold)
	count(h, got)
	common, want, have := compare(g, h)
	if want+have == 0 {
		return 1
	}
	return 2 * float64(common) / float64(want+have)
}

// oneLine collapses white space.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// typewriter replaces typographic quotes and dashes with ASCII.
var typewriter = strings.NewReplacer("‘", "'", "’", "'", "“", `"`, "”", `"`, "–", "-", "—", "-", "‑", "-", "…", "...", "\u00ad", "", "\u200b", "")

// fold makes lines comparable: it collapses white space and replaces typographic quotes
// and dashes, because the gold's snippets and fields use ASCII, and the pages do not.
func fold(s string) string { return oneLine(typewriter.Replace(s)) }

// letters returns the letters and digits of a text in lower case, without markup and
// punctuation.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}
