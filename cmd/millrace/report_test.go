package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/report"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/store"
)

// savedReport runs `millrace report --json`.
func savedReport(t *testing.T, file string, args ...string) (r report.Report) {
	t.Helper()
	code, out, errs := command(t, nil, append([]string{"report", "--store", file, "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil {
		t.Fatalf("exit %d, %v:\n%s%s", code, err, out, errs)
	}
	return r
}

// The reported savings equal the cost of the same pages as HTML, measured
// independently, minus what the pull received.
func TestSavedAgainstHTML(t *testing.T) {
	t.Parallel()
	s := serve(t, copySite(t, "handbook"))
	file := filepath.Join(t.TempDir(), "mirror.db")
	crawled := pull(t, s.url, file, "--via", "crawl")
	pages := storedPages(t, file, s.url, s.url)
	var plain, coded int64
	for url := range pages {
		_, _, body := get(t, url, "Accept-Encoding", "identity")
		plain += int64(len(body))
		_, _, body = get(t, url, "Accept-Encoding", "zstd, br, gzip")
		coded += int64(len(body))
	}
	n := int64(len(pages))
	html := crawled.Savings.HTML
	header := html.Received - float64(coded)/float64(n)
	if html.From != savings.FromHTML || html.Documents != n || html.Bytes != float64(plain)/float64(n) || header < 200 || header > 1500 {
		t.Fatalf("%d pages of %d bytes, coded %d: %+v", n, plain, coded, *html)
	}
	if c := crawled.Savings; c.Pages != n || c.Fetched != n || c.Skipped != 0 || c.Bytes.Saved >= 0 || c.Bytes.Basis != savings.Measured {
		t.Errorf("a first crawl saves nothing: %+v", c)
	}
	again := pull(t, s.url, file, "--via", "crawl")
	if c := again.Savings; c.Pages != n || c.Unmodified != n || c.Skipped != 0 || c.Bytes.Saved <= 0 || c.NotModified < n {
		t.Errorf("a second crawl: %+v", c)
	}

	first := pull(t, s.url, file)
	f := first.Savings
	if f.Pages == 0 || f.Fetched == 0 || f.Bytes.Basis != savings.Measured || *f.HTML != *html {
		t.Fatalf("%+v", f)
	}
	if want := int64(float64(f.Pages)*html.Received+0.5) - first.BytesReceived; first.BytesSaved != want || f.Bytes.Spent != float64(first.BytesReceived) {
		t.Errorf("saved %d bytes, want %d: %+v", first.BytesSaved, want, f)
	}
	if want := int64(f.Tokens.Saved); first.TokensSaved != want || want <= 0 {
		t.Errorf("saved %d tokens, want %d", first.TokensSaved, want)
	}
	second := pull(t, s.url, file).Savings
	if second.Requests.Spent != 1 || second.Skipped != second.Pages || second.Pages == 0 || *second.SkipRate != 1 || *second.NotModifiedRate != 1 {
		t.Errorf("a pull without changes: %+v", second)
	}

	r := savedReport(t, file)
	if len(r.Sites) != 1 || r.Since == nil || time.Since(*r.Since) > time.Hour {
		t.Fatalf("%+v", r)
	}
	site := r.Sites[0]
	if site.Site != s.url || site.Pulls != 4 || site.Failed != 0 || len(site.Protocols) != 2 {
		t.Fatalf("%+v", site)
	}
	for i, want := range []struct {
		name string
		sum  []*savings.Saved
	}{{"crawl", []*savings.Saved{crawled.Savings, again.Savings}}, {"tct-01", []*savings.Saved{f, second}}} {
		got := site.Protocols[i]
		sum := want.sum[0]
		sum.Add(want.sum[1])
		sum.HTML = got.Saved.HTML
		nearly := cmp.Comparer(func(x, y float64) bool { return x-y <= 1 && y-x <= 1 }) // each value is rounded
		if d := cmp.Diff(sum, got.Saved, nearly); d != "" || got.Protocol != want.name || got.Pulls != 2 {
			t.Errorf("%s, %d pulls (-pulls +report):\n%s", got.Protocol, got.Pulls, d)
		}
	}
	code, out, errs := command(t, nil, "report", "--store", file)
	if !strings.Contains(out, "(50 %); 1 of 1 ") {
		t.Errorf("the rates of two pulls:\n%s", out)
	}
	if code != 0 || !strings.Contains(out, "TCT 01: 2 pulls") || !strings.Contains(out, "of HTML, measured\n") || !strings.Contains(out, "doi:10.1111/jiec.12630") {
		t.Errorf("exit %d:\n%s%s", code, out, errs)
	}
}

// Savings are counted in the same way for every protocol.
func TestSavedByEveryProtocol(t *testing.T) {
	t.Parallel()
	s := serve(t, copySite(t, "handbook"), "--also", "tct-03")
	every, err := protocols("")
	if err != nil {
		t.Fatal(err)
	}
	for _, proto := range every {
		file := filepath.Join(t.TempDir(), proto.Name+".db")
		first, second := pull(t, s.url, file, "--via", proto.Name), pull(t, s.url, file, "--via", proto.Name)
		if f := first.Savings; f.Fetched != int64(first.Added) || f.Skipped != 0 || f.HTML.From != savings.FromText || f.Bytes.Basis != savings.Estimate {
			t.Errorf("%s: the first pull: %+v", proto.Name, f)
		}
		if s := second.Savings; s.Skipped != int64(first.Added) || s.Fetched != 0 || s.Bytes.Saved <= 0 || s.Requests.Saved <= 0 || s.Tokens.Saved <= 0 || s.KWh.Saved <= 0 {
			t.Errorf("%s: the second pull: %+v", proto.Name, s)
		}
		if r := savedReport(t, file); r.Sites[0].Protocols[0].Protocol != proto.Name || r.Total.Pages != int64(2*first.Added) {
			t.Errorf("%s: %+v", proto.Name, r.Total)
		}
	}
}

// A failed pull counts its cost. An unreachable site costs nothing.
func TestFailedPullCounts(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "mirror.db")
	if r, code := tryPull(t, srv.URL, file, "--via", "tct-01"); code != exitFailure || r.BytesSaved > 0 {
		t.Fatalf("exit %d: %+v", code, r)
	}
	srv.Close()
	if code, _, _ := command(t, nil, "pull", srv.URL, "--store", file, "--allow-private", "--via", "tct-01"); code != exitFailure {
		t.Fatal(code)
	}
	site := savedReport(t, file).Sites[0]
	if site.Pulls != 1 || site.Failed != 1 || site.Total.Pages != 0 || site.Total.Bytes.Saved >= 0 || site.Protocols[0].Protocol != "tct-01" {
		t.Errorf("%+v, %+v", site, site.Total)
	}
}

func TestReportCommand(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mirror.db")
	if exit, code, out := failure(t, nil, "report", "--store", file); exit != exitFailure || code != "not-found" {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
	ctx := t.Context()
	st := openStore(t, file, false)
	const base = "https://example.com/"
	site, err := st.Site(ctx, base, base)
	if err != nil {
		t.Fatal(err)
	}
	if r := savedReport(t, file); len(r.Sites) != 0 || r.Since != nil || r.Total != nil {
		t.Errorf("%+v", r)
	}
	// A mirror from a version without cost statistics has only the texts of its pages.
	batch := []millrace.Change{}
	for _, name := range []string{"a", "b"} {
		batch = append(batch, millrace.Change{Ref: millrace.Ref{URL: base + name}, Page: &millrace.Page{
			URL: base + name, Title: name, Known: millrace.FieldTitle | millrace.FieldContent, Detail: millrace.DetailText,
			Blocks: millrace.TextBlocks(strings.Repeat("x", 999)),
		}})
	}
	if _, err := site.Apply(ctx, "x", batch); err != nil {
		t.Fatal(err)
	}
	if err := st.Costs().Add(ctx, base, "scp", store.Traffic{Pulls: 1, Pages: 2, Requests: 1, Received: 500}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	got := savedReport(t, file, "--html-per-text", "20", "--html-compression", "4", "--bytes-per-token", "2", "--kwh-per-gb", "1").Total
	if got.Bytes.Instead != 10_000 || got.Tokens.Instead != 20_000 || got.KWh.Instead != 1e-5 || got.Bytes.Saved != 9_500 || got.HTML.From != savings.FromText {
		t.Errorf("%+v", got)
	}
	if d := cmp.Diff(savings.List(savings.Default()), savedReport(t, file).Coefficients); d != "" {
		t.Errorf("the flags' defaults (-want +got):\n%s", d)
	}
	for _, wrong := range []string{"--kwh-per-gb=-1", "--bytes-per-token=0", "--html-per-text=NaN", "--html-compression=x"} {
		name, _, _ := strings.Cut(wrong, "=")
		for _, args := range [][]string{{"report", "--store", file}, {"pull", "http://127.0.0.1:1/", "--store", file}} {
			if exit, code, out := failure(t, nil, append(args, wrong)...); exit != exitUsage || code != "usage/"+name[2:] {
				t.Errorf("%s %s: exit %d %s: %s", args[0], wrong, exit, code, out)
			}
		}
	}
}

// If a pull costs more than HTML, the text says so in words and shows no negative
// saving. The JSON keeps signed numbers.
func TestCostText(t *testing.T) {
	t.Parallel()
	pull := store.Traffic{Pulls: 1, Pages: 10, Fetched: 10, Text: 100, Requests: 25, Received: 24_000, HTML: 20, HTMLReceived: 20_000, HTMLBytes: 20_000}
	s := savings.Of(pull, pull, savings.Default())
	saved, _ := s.Text()
	if s.Bytes.Saved >= 0 || strings.Contains(saved, "-") || !strings.HasPrefix(saved, "cost 14.0 kB, ") {
		t.Errorf("%v: %s", s.Bytes, saved)
	}
}

// report works on a read-only store.
func TestReportReadOnly(t *testing.T) {
	t.Parallel()
	s, file := serve(t, copySite(t, "jekyll")), filepath.Join(t.TempDir(), "m.db")
	pull(t, s.url, file)
	st, err := (&process{log: slog.New(slog.DiscardHandler)}).openToRead(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	ro := openStore(t, file, true)
	r, err := report.Of(t.Context(), ro, &report.Options{Since: time.Now().Add(-time.Hour), Coefficients: savings.Default(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil || len(r.Sites) != 1 || r.Sites[0].Pulls != 1 {
		t.Errorf("%+v %v", r, err)
	}
}

// An impossible listen address is a usage error.
func TestListenAddress(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"foo", "127.0.0.1:99999", "a:b:c"} {
		_, err := listen(t.Context(), "--listen", address)
		if _, usage := errors.AsType[usageError](err); !usage {
			t.Errorf("%s: %v", address, err)
		}
	}
}
