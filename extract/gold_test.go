package extract

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
)

func gunzip(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

var word = regexp.MustCompile(`[\p{L}\p{N}_]+`)

func words(s string) map[string]int {
	m := map[string]int{}
	for _, w := range word.FindAllString(strings.ToLower(s), -1) {
		m[w]++
	}
	return m
}

// f1 returns the F1 score of two multisets of words. If the gold text is empty, the score is 1 for
// an empty text and 0 otherwise.
func f1(gold, got string) float64 {
	g, h := words(gold), words(got)
	total, common := 0, 0
	for w, n := range g {
		common += min(n, h[w])
		total += n
	}
	all := 0
	for _, n := range h {
		all += n
	}
	switch {
	case total == 0 && all == 0:
		return 1
	case common == 0:
		return 0
	}
	p, r := float64(common)/float64(all), float64(common)/float64(total)
	return 2 * p * r / (p + r)
}

type goldPage struct {
	ID, Kind, URL, Title, Author, Published, Text string
	With, Without                                 []string
}

func goldPages(t testing.TB, dir string) []goldPage {
	var pages []goldPage
	s := bufio.NewScanner(bytes.NewReader(gunzip(t, filepath.Join(dir, "wcxb", "pages.jsonl.gz"))))
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var p goldPage
		if err := json.Unmarshal(s.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		pages = append(pages, p)
	}
	if len(pages) == 0 {
		t.Fatal("no gold pages")
	}
	return pages
}

// floors are slightly below the scores that the extractor reaches on all pages. With testing.Short,
// only one page in shortOf is tested, and scores may be lower by sampleSlack.
var floors = map[string]float64{
	"all": .878, "article": .954, "documentation": .936, "forum": .80, "service": .857, "product": .697, "listing": .744, "collection": .708,
}

const (
	shortOf     = 8
	sampleSlack = .06
)

func TestGold(t *testing.T) {
	dir := testkit.Data(t, "MILLRACE_TEST_DATA")
	type scores struct {
		f1                                                 float64
		n, with, withN, without, withoutN, title, titleN   int
		author, authorN, date, dateN, invented, inventedOf int
	}
	byKind := map[string]*scores{}
	var lines []string
	pages, slack := goldPages(t, dir), 0.
	if testing.Short() {
		pages, slack = sampleOf(pages), sampleSlack
	}
	for _, p := range pages {
		data := gunzip(t, filepath.Join(dir, "wcxb", "html", p.ID+".html.gz"))
		res, err := HTML(t.Context(), data, cmp.Or(p.URL, "https://example.com/"), nil)
		if err != nil {
			t.Errorf("%s: %v", p.ID, err)
			continue
		}
		checkSelectors(t, res)
		if d := res.Page.Published; !d.IsZero() && !writes(string(data)+p.URL, d) {
			t.Errorf("%s: published %v from %s is not in the document", p.ID, d, res.Sources["published"])
		}
		text := res.Page.Text()
		score := f1(p.Text, text)
		lines = append(lines, fmt.Sprintf("%s %-13s %.3f gold %6d got %6d %-14s root %s %s", p.ID, p.Kind, score, len(p.Text), len(text), res.Page.Kind, res.Root, p.URL))
		folded := strings.Join(strings.Fields(text), " ")
		for _, kind := range []string{p.Kind, "all"} {
			y := byKind[kind]
			if y == nil {
				y = &scores{}
				byKind[kind] = y
			}
			y.n++
			y.f1 += score
			for _, s := range p.With {
				y.withN++
				if strings.Contains(folded, strings.Join(strings.Fields(s), " ")) {
					y.with++
				}
			}
			for _, s := range p.Without {
				y.withoutN++
				if !strings.Contains(folded, strings.Join(strings.Fields(s), " ")) {
					y.without++
				}
			}
			if kind != "all" && (p.Kind == "article" || p.Kind == "documentation") {
				lines = append(lines, fmt.Sprintf("META %s %v %v %v title %q got %q %s | author %q got %q %s | date %q got %s %s", p.ID, letters(p.Title) == letters(res.Page.Title), letters(p.Author) == letters(res.Page.Author), p.Published == "" && res.Page.Published.IsZero() || res.Page.Published.Format("2006-01-02") == p.Published, p.Title, res.Page.Title, res.Sources["title"], p.Author, res.Page.Author, res.Sources["author"], p.Published, res.Page.Published.Format("2006-01-02"), res.Sources["published"]))
			}
			if p.Title != "" {
				y.titleN++
				if letters(p.Title) == letters(res.Page.Title) {
					y.title++
				}
			}
			if p.Author != "" {
				y.authorN++
				if letters(p.Author) == letters(res.Page.Author) {
					y.author++
				}
			}
			switch got := res.Page.Published; {
			case p.Published != "":
				y.dateN++
				if got.Format("2006-01-02") == p.Published {
					y.date++
				}
			default:
				y.inventedOf++
				if !got.IsZero() {
					y.invented++
				}
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		y := byKind[kind]
		mean := y.f1 / float64(y.n)
		t.Logf("%-13s n %3d F1 %.4f with %.3f without %.3f title %d/%d author %d/%d date %d/%d given without %d/%d", kind, y.n, mean,
			share(y.with, y.withN), share(y.without, y.withoutN), y.title, y.titleN, y.author, y.authorN, y.date, y.dateN, y.invented, y.inventedOf)
		if mean < floors[kind]-slack {
			t.Errorf("%s: mean word F1 is %.4f, the floor is %.3f", kind, mean, floors[kind]-slack)
		}
	}
	// The fields of articles and documentation have floors like the scores above.
	a, d := byKind["article"], byKind["documentation"]
	for _, f := range []struct {
		name  string
		n, of int
		floor float64
	}{
		{"title", a.title + d.title, a.titleN + d.titleN, .87},
		{"author", a.author + d.author, a.authorN + d.authorN, .775},
		{"date", a.date + d.date, a.dateN + d.dateN, .80},
		// The check above verifies that reported dates occur in the documents.
		{"no invented date", a.inventedOf + d.inventedOf - a.invented - d.invented, a.inventedOf + d.inventedOf, .95},
	} {
		if got := share(f.n, f.of); got < f.floor-slack {
			t.Errorf("%s: %.3f, the floor is %.3f", f.name, got, f.floor-slack)
		}
	}
	if name := os.Getenv("MILLRACE_TEST_LIST"); name != "" {
		if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// sampleOf returns every shortOf-th page of each kind.
func sampleOf(pages []goldPage) []goldPage {
	seen := map[string]int{}
	var some []goldPage
	for _, p := range pages {
		if seen[p.Kind]%shortOf == 0 {
			some = append(some, p)
		}
		seen[p.Kind]++
	}
	return some
}

// writes reports whether a document contains a day in some form: the day in UTC, or an adjacent day
// because of another time zone.
func writes(doc string, d time.Time) bool {
	for _, form := range []string{"2006-01-02", "2006-1-2", "2006/01/02", "2006/1/2", "20060102", "1/2/2006", "01/02/2006", "2/1/2006", "02/01/2006", "02.01.2006", "2.1.2006", "2006年1月2日", "2006年01月02日"} {
		for days := -1; days <= 1; days++ {
			if strings.Contains(doc, d.AddDate(0, 0, days).Format(form)) {
				return true
			}
		}
	}
	// The month may be a name in any language.
	year := strconv.Itoa(d.Year())
	day := regexp.MustCompile(fmt.Sprintf(`(?i)\b0?%[1]d(?:st|nd|rd|th)?[ -]\pL+[ -]%[2]s\b|\b\pL+[ -]0?%[1]d(?:st|nd|rd|th)?[ -]%[2]s\b|\b%[2]s/\pL+/%02[1]d\b`, d.Day(), year))
	clean := strings.NewReplacer("<!-- -->", "", "&nbsp;", " ", ",", "", ".", "")
	for at := 0; ; {
		i := strings.Index(doc[at:], year)
		if i < 0 {
			return false
		}
		near := doc[max(at+i-80, 0):min(at+i+20, len(doc))]
		if day.MatchString(strings.Join(strings.Fields(clean.Replace(near)), " ")) {
			return true
		}
		at += i + len(year)
	}
}

func share(a, b int) float64 { return float64(a) / float64(max(b, 1)) }

// TestManual compares the PostgreSQL manual with the bodies of its pages without navigation. No
// word of the text may be lost, and no word of the navigation may remain.
func TestManual(t *testing.T) {
	dir := testkit.Data(t, "MILLRACE_TEST_PGDOC")
	names, err := filepath.Glob(filepath.Join(dir, "*.html"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no pages in %s: %v", dir, err)
	}
	if testing.Short() {
		var some []string
		for i := 0; i < len(names); i += 24 {
			some = append(some, names[i])
		}
		names = some
	}
	total, lost, leaked, bad := 0, 0, 0, 0
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := html.Parse(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		var b []byte
		var walk func(*html.Node)
		walk = func(n *html.Node) {
			switch {
			case n.Type == html.TextNode:
				b = append(b, n.Data...)
			case hasClass(n, "navheader", "navfooter") || n.Data == "head":
				return
			case n.Type == html.ElementNode && (!isInline(n.DataAtom) || n.Data == "br"):
				b = append(b, ' ')
			}
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				walk(c)
			}
			if n.Type == html.ElementNode && !isInline(n.DataAtom) {
				b = append(b, ' ')
			}
		}
		walk(doc)
		res, err := HTML(t.Context(), data, "https://example.com/"+filepath.Base(name), nil)
		if err != nil {
			t.Fatal(err)
		}
		want, got := words(string(b)), map[string]int{}
		countWords(got, res.Page.Blocks)
		title := ""
		if strings.HasPrefix(res.Sources["title"], "h") {
			title = res.Page.Title
		}
		for w, n := range words(title) {
			got[w] += n
		}
		pageLost, pageLeaked := 0, 0
		var which []string
		for w, n := range want {
			total += n
			if d := n - got[w]; d > 0 {
				pageLost += d
				which = append(which, "-"+w)
			}
		}
		for w, n := range got {
			if d := n - want[w]; d > 0 {
				pageLeaked += d
				which = append(which, "+"+w)
			}
		}
		if lost, leaked = lost+pageLost, leaked+pageLeaked; pageLost+pageLeaked > 0 {
			if bad++; bad <= 20 {
				t.Logf("%s: lost %d, leaked %d, root %s %s %v", filepath.Base(name), pageLost, pageLeaked, res.Root, which[:min(len(which), 8)], res.Dropped)
			}
		}
		if res.Page.Kind != millrace.Documentation {
			t.Errorf("%s: kind %q", name, res.Page.Kind)
		}
	}
	t.Logf("%d pages, %d words: lost %d, leaked %d on %d pages", len(names), total, lost, leaked, bad)
	if lost*1000 > total || leaked > 0 {
		t.Errorf("lost %d words of %d, leaked %d", lost, total, leaked)
	}
}

// countWords counts the words of all texts in blocks.
func countWords(m map[string]int, blocks []millrace.Block) {
	add := func(texts ...string) {
		for _, s := range texts {
			for w, n := range words(s) {
				m[w] += n
			}
		}
	}
	for _, b := range blocks {
		add(b.Text, b.Caption, b.Title, b.Cite)
		for _, it := range b.Items {
			add(it.Term, it.Text)
			countWords(m, it.Blocks)
		}
		for _, r := range b.Rows {
			for _, c := range r {
				add(c.Text)
			}
		}
		countWords(m, b.Blocks)
	}
}
