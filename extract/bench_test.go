package extract

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/net/html"

	"github.com/millrace/millrace/internal/testkit"
)

func benchPages(b *testing.B) (pages [][]byte) {
	if dir := os.Getenv("MILLRACE_TEST_DATA"); dir != "" {
		for i, p := range goldPages(b, dir) {
			if i%9 == 0 {
				pages = append(pages, gunzip(b, filepath.Join(dir, "wcxb", "html", p.ID+".html.gz")))
			}
		}
		return pages
	}
	names, _ := filepath.Glob(filepath.Join(testkit.Data(b, "MILLRACE_TEST_PGDOC"), "s*.html"))
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		pages = append(pages, data)
	}
	return pages
}

// BenchmarkHTML measures the extraction of one page, and BenchmarkParse the parsing alone.
func BenchmarkHTML(b *testing.B) {
	pages := benchPages(b)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := HTML(b.Context(), pages[i%len(pages)], "https://example.com/a", nil); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkParse(b *testing.B) {
	pages := benchPages(b)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := html.ParseWithOptions(bytes.NewReader(pages[i%len(pages)]), html.ParseOptionEnableScripting(false)); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
