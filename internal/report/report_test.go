package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/internal/savings"
)

// The first lines show what was saved, what cost more, and what part was lists.
func TestServedText(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	total := analytics.Saved{
		Requests: 9, Pages: 2, Answered: 8, NotModified: 2, NotModifiedRate: new(0.25), Lists: 3_000_000,
		Bytes: savings.NewFigure(3_100_000, 200_000, savings.Measured), Tokens: savings.NewFigure(1000, 51_000, savings.Estimate),
		KWh: savings.NewFigure(0.0003, 0.0001, savings.Estimate), ZeroFetch: analytics.ZeroFetch{Pages: 70, Bytes: 5_000_000},
	}
	r := &Served{Site: "site", Savings: &analytics.Savings{
		From: day.AddDate(0, 0, -29), Total: total, Bots: []analytics.BotSaved{{Bot: "GPTBot", Saved: total}}, Days: []analytics.DateSaved{{Day: day, Saved: total}},
	}}
	const want = "site: 9 requests of 1 machine since 2026-10-24, the first on 2026-11-22\n" +
		"  cost 2.9 MB and 200.0 mWh more, saved about 50.0 thousand tokens against the same pages as HTML, measured\n" +
		"  3.1 MB went out for 2 pages, 3.0 MB of it lists; 2 of 8 answers were a 304 (25 %)\n" +
		"  beside that, lists named 70 pages that were not asked for that day: at most so many requests were needless, 5.0 MB as HTML, an estimate\n"
	var out bytes.Buffer
	if r.text(&out); !strings.HasPrefix(out.String(), want) {
		t.Error(out.String())
	}
	r.Total = analytics.Saved{Requests: 3, Pages: 2, Carried: 5, Lists: 10, Bytes: savings.NewFigure(100, 9100, savings.Estimate)}
	out.Reset()
	if r.text(&out); !strings.Contains(out.String(), "  saved 9.0 kB, about 0 tokens and 0.00 mWh against the same pages as HTML, an estimate\n"+
		"  100 bytes went out for 2 pages and 5 in collections, 10 bytes of it lists and collections; 0 of 0 answers were a 304\n") {
		t.Error(out.String())
	}
	r.Total.Bytes, r.Total.Tokens, r.Total.KWh = savings.NewFigure(9, 0, savings.Measured), savings.NewFigure(5, 0, savings.Estimate), savings.NewFigure(1, 0, savings.Estimate)
	out.Reset()
	if r.text(&out); !strings.Contains(out.String(), "  cost 9 bytes, about 5 tokens and 1.0 kWh more against the same pages as HTML, measured\n") {
		t.Error(out.String())
	}
}

// Sums in JSON and CSV have no floating-point noise, and lose no digit of a count.
func TestReportNumbers(t *testing.T) {
	t.Parallel()
	v := &savings.Saved{
		Bytes: savings.NewFigure(12_345_678_901_234, 0.5, ""), Tokens: savings.NewFigure(1e6+0.25, 0, ""),
		KWh: savings.NewFigure(0.1, 7e-8, "").Add(savings.NewFigure(0.2, 0.4, "")),
	}
	r := &Report{Sites: []*Pulled{{Protocols: []*PulledBy{{Saved: v}}}}}
	var b strings.Builder
	if err := r.CSV(&b); err != nil {
		t.Fatal(err)
	}
	const want = ",12345678901234,0.5,-12345678901200,,1000000.25,0,-1000000.25,0.3,0.40000007,0.10000007,"
	if !strings.Contains(b.String(), want) {
		t.Errorf("%s, want %s", b.String(), want)
	}
	if kwh, err := json.Marshal(v.KWh); err != nil || !strings.Contains(string(kwh), `:0.3,"instead_of":0.40000007,"saved":0.10000007,`) {
		t.Errorf("%s, %v", kwh, err)
	}
}
