package export

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/chunk"
	"github.com/millrace/millrace/policy"
)

// readBack reads the rows of a file.
func readBack[T any](t *testing.T, name string) []T {
	t.Helper()
	rows, err := parquet.ReadFile[T](name)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestParquet(t *testing.T) {
	for name, sites := range map[string][]Site{"mill": mill(), "hostile": hostileSite(t)} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			c, err := Parquet(t.Context(), dir, sites, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := files(t, dir)
			if c.Bytes != int64(len(got[pagesName])+len(got[chunksName])) || len(got) != 2 {
				t.Errorf("%+v of %d files", c, len(got))
			}
			pages, chunks := readBack[pageRow](t, filepath.Join(dir, pagesName)), readBack[chunkRow](t, filepath.Join(dir, chunksName))
			if len(pages) != c.Pages || len(chunks) != c.Chunks {
				t.Fatalf("%d pages, %d chunks: %+v", len(pages), len(chunks), c)
			}
			var wantPages []pageRow
			var wantChunks []chunkRow
			for i := range sites {
				all := ""
				if len(sites[i].Terms) > 0 {
					if all, err = plain(policy.Statements(sites[i].Terms)); err != nil {
						t.Fatal(err)
					}
				}
				base := sites[i].View.Site().Base
				for p, err := range sites[i].View.Scan(t.Context(), millrace.Scan{WithBlocks: true}) {
					if err != nil {
						t.Fatal(err)
					}
					row, err := pageOf(base, p, policy.Merge(sites[i].Terms), all)
					if err != nil {
						t.Fatal(err)
					}
					wantPages = append(wantPages, *row)
					for n, q := range chunk.Passages(p) {
						if q.Text != "" {
							wantChunks = append(wantChunks, chunkRow{URL: p.URL, Position: int32(n), ID: q.ID, Headings: q.Headings, Text: valid(q.Text)})
						}
					}
				}
			}
			empty := cmp.FilterValues(func(a, b []string) bool { return len(a) == 0 && len(b) == 0 }, cmp.Ignore())
			if d := cmp.Diff(wantPages, pages, empty); d != "" {
				t.Errorf("%.3000s", d)
			}
			for i, r := range chunks {
				chunks[i] = chunkRow{URL: r.URL, Position: r.Position, ID: r.ID, Headings: r.Headings, Text: r.Text}
			}
			if d := cmp.Diff(wantChunks, chunks, empty); d != "" {
				t.Errorf("%.3000s", d)
			}
			// The bytes do not depend on the time or on the order of maps.
			if _, err := Parquet(t.Context(), dir, sites, nil); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(got, files(t, dir)); d != "" {
				t.Error("the second export has different bytes")
			}
		})
	}
}

// The schema of the tables must not change by accident.
func TestParquetSchema(t *testing.T) {
	dir := t.TempDir()
	if _, err := Parquet(t.Context(), dir, mill(), nil); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		pagesName: "site url title description summary author published modified language section tags kind detail revision unconfirmed schema extra text markdown " +
			"license attribution link_back notice ai_input ai_train search terms",
		chunksName: "site url chunk position type title headings text language modified revision license attribution ai_input ai_train search",
	} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, _ := f.Stat()
		p, err := parquet.OpenFile(f, info.Size())
		if err != nil {
			t.Fatal(err)
		}
		var fields []string
		for _, f := range p.Schema().Fields() {
			fields = append(fields, f.Name())
		}
		if got := strings.Join(fields, " "); got != want {
			t.Errorf("%s: %s", name, got)
		}
		for _, g := range p.Metadata().RowGroups {
			for _, c := range g.Columns {
				if c.MetaData.Codec.String() != "ZSTD" {
					t.Errorf("%s is %s", c.MetaData.PathInSchema, c.MetaData.Codec)
				}
			}
		}
	}
	rows := readBack[chunkRow](t, filepath.Join(dir, chunksName))
	if i := slices.IndexFunc(rows, func(r chunkRow) bool { return r.Text == "one\ntwo" || strings.Contains(r.Text, "two") }); i < 0 ||
		!slices.Equal(rows[i].Headings, []string{"Wheel"}) || *rows[i].AITrain || !*rows[i].AIInput || rows[i].Search != nil || !rows[i].Attribution {
		t.Errorf("%+v", rows)
	}
}

// A row group ends when it reaches its size, and all groups are read.
func TestParquetGroups(t *testing.T) {
	dir := t.TempDir()
	sites := []Site{large(2_000, 10_000)} // 20 MB, twice: as text and as Markdown
	if _, err := Parquet(t.Context(), dir, sites, nil); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, pagesName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, _ := f.Stat()
	p, err := parquet.OpenFile(f, info.Size())
	if err != nil || len(p.RowGroups()) < 3 || p.NumRows() != 2_000 {
		t.Fatalf("%d groups, %d rows: %v", len(p.RowGroups()), p.NumRows(), err)
	}
	for _, g := range p.Metadata().RowGroups {
		for _, c := range g.Columns {
			low, high := string(c.MetaData.Statistics.MinValue), string(c.MetaData.Statistics.MaxValue)
			switch c.MetaData.PathInSchema[0] {
			case "url":
				if !strings.HasPrefix(low, "https://large.example/part-") || low >= high {
					t.Errorf("URLs from %q to %q", low, high)
				}
			case "text":
				if low != "" || high != "" {
					t.Errorf("bounds of long texts: %d and %d bytes", len(low), len(high))
				}
			}
		}
	}
	rows := readBack[pageRow](t, filepath.Join(dir, pagesName))
	if last := rows[1_999]; last.Title != "Page 1999" || !strings.HasPrefix(last.Text, "1999 The wheel") || len(last.Text) < 10_000 {
		t.Errorf("%.200v", last)
	}
}

// A failed export leaves the existing files unchanged.
func TestParquetFails(t *testing.T) {
	dir := t.TempDir()
	if _, err := Parquet(t.Context(), dir, mill(), nil); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	stop := errors.New("stop")
	func() {
		defer func() {
			if r := recover(); r != nil && !errors.Is(r.(error), stop) {
				panic(r)
			}
		}()
		_, _ = Parquet(t.Context(), dir, []Site{large(1000, 1000)}, &Options{Progress: func(done int) {
			if done == 500 {
				panic(stop)
			}
		}})
	}()
	after := files(t, dir)
	for name := range after {
		if strings.Contains(name, ".new-") {
			t.Errorf("%s remains", name)
		}
	}
	if d := cmp.Diff(before, after); d != "" {
		t.Error("the existing file was removed")
	}
}
