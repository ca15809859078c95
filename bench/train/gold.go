package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// page is a page of a gold set.
type page struct {
	ID, Kind, URL, Title, Author, Published string
	Text                                    string
	With, Without                           []string

	set  string
	fold int
	html []byte
	gold map[string]int // multiset to compare: words for wcxb, shingles for aeb
}

// sets are the gold sets, in the order of reports.
var sets = []string{"wcxb", "aeb", "traf"}

// readPages reads the pages of the three sets. The pages of a domain have the same fold.
func readPages(data string) ([]*page, error) {
	var pages []*page
	for _, set := range sets {
		text, err := gunzip(filepath.Join(data, set, "pages.jsonl.gz"))
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(strings.NewReader(string(text)))
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			p := &page{set: set}
			if err := json.Unmarshal(lines.Bytes(), p); err != nil {
				return nil, fmt.Errorf("%s: %w", set, err)
			}
			if p.html, err = gunzip(filepath.Join(data, set, "html", p.ID+".html.gz")); err != nil {
				return nil, err
			}
			// some URLs in traf begin with an extra x
			p.URL = strings.TrimSpace(strings.TrimPrefix(p.URL, "x"))
			p.fold = foldOf(p.URL, p.ID)
			if p.URL == "" {
				p.URL = "https://example.com/"
			}
			switch set {
			case "wcxb":
				p.gold = shingles(strings.ToLower(p.Text), 1)
			case "aeb":
				p.gold = shingles(p.Text, 4)
			}
			pages = append(pages, p)
		}
	}
	return pages, nil
}

// foldOf returns the fold of a page by its registrable domain.
func foldOf(address, id string) int {
	key := id
	if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
		key = u.Hostname()
		if d, err := publicsuffix.EffectiveTLDPlusOne(key); err == nil {
			key = d
		}
	}
	h := uint32(2166136261)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	h ^= h >> 15
	return int(h*2654435761>>8) % folds
}

func gunzip(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return io.ReadAll(z)
}

var wordPattern = regexp.MustCompile(`[\p{L}\p{N}_]+`)

// shingles counts the sequences of n words of a text, or the whole text if it is shorter.
func shingles(text string, n int) map[string]int {
	words := wordPattern.FindAllString(text, -1)
	m := map[string]int{}
	if len(words) > 0 && len(words) < n {
		m[strings.Join(words, " ")]++
	}
	for i := 0; i+n <= len(words); i++ {
		m[strings.Join(words[i:i+n], " ")]++
	}
	return m
}

// f1 returns the precision, recall and F1 of got compared with gold.
func f1(gold, got map[string]int) (precision, recall, f float64) {
	common, want, have := 0, 0, 0
	for w, n := range gold {
		common += min(n, got[w])
		want += n
	}
	for _, n := range got {
		have += n
	}
	if want+have == 0 {
		return 1, 1, 1
	}
	if common == 0 {
		return 0, 0, 0
	}
	return float64(common) / float64(have), float64(common) / float64(want), 2 * float64(common) / float64(want+have)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
