package report

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// figures matches a number with its unit.
var figures = regexp.MustCompile(`[0-9][0-9.-]*( (?:%|MB|kB|bytes|mWh|kWh|thousand|tokens|requests|machine|pages|responses))?`)

// The first lines show the savings, the extra costs, and the share of lists.
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
	check := func(want string) {
		t.Helper()
		var out bytes.Buffer
		r.text(&out)
		head, _, _ := strings.Cut(out.String(), "by protocol")
		if got := strings.Join(figures.FindAllString(head, -1), "; "); got != want {
			t.Errorf("figures %s, want %s:\n%s", got, want, head)
		}
	}
	check("9 requests; 1 machine; 2026-10-24; 2026-11-22; 2.9 MB; 200.0 mWh; 50.0 thousand; 3.1 MB; 2 pages; 3.0 MB; 2; 8 responses; 304; 25 %; 70 pages; 5.0 MB")
	r.Total = analytics.Saved{Requests: 3, Pages: 2, Carried: 5, Lists: 10, Bytes: savings.NewFigure(100, 9100, savings.Estimate)}
	check("3 requests; 1 machine; 2026-10-24; 2026-11-22; 9.0 kB; 0 tokens; 0.00 mWh; 100 bytes; 2 pages; 5; 10 bytes; 0; 0 responses; 304")
	r.Total.Bytes, r.Total.Tokens, r.Total.KWh = savings.NewFigure(9, 0, savings.Measured), savings.NewFigure(5, 0, savings.Estimate), savings.NewFigure(1, 0, savings.Estimate)
	check("3 requests; 1 machine; 2026-10-24; 2026-11-22; 9 bytes; 5 tokens; 1.0 kWh; 9 bytes; 2 pages; 5; 10 bytes; 0; 0 responses; 304")
}

// Sums in JSON and CSV have no rounding errors of floating-point numbers, and counts keep all of
// their digits.
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

// A report on sites that were never pulled describes neither savings nor machines.
func TestTextWithoutPulls(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	_, _, err := st.Fleet().Put(t.Context(), func(yield func(store.FleetSite, error) bool) { yield(store.FleetSite{URL: "https://a.example/"}, nil) })
	if err != nil {
		t.Fatal(err)
	}
	day := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	r, err := Of(t.Context(), st, &Options{Store: "x.db", Since: day, Coefficients: savings.Default()})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if r.Text(&out); !strings.Contains(out.String(), "x.db") || strings.Contains(out.String(), day.Format(time.DateOnly)) || strings.Contains(out.String(), r.Coefficients[0].Name) {
		t.Errorf("%s", out.Bytes())
	}
}
