package analytics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/store"
)

var (
	about = cmpopts.EquateApprox(1e-9, 0)
	// plain are coefficients that make results easy to calculate.
	plain = savings.Coefficients{KWhPerGB: 1, BytesPerToken: 10, HTMLPerText: 20, HTMLCompression: 4}
	// hundred is a site of 100 pages; each page transfers 10 kB of HTML.
	hundred = Pages{Count: 100, HTML: savings.HTML{Received: 10_000, Bytes: 40_000, Documents: 100, From: savings.FromHTML}}
)

// answers is a number of equal events of one bot.
type answers struct {
	n int
	e store.Event
}

// byDay records events and returns their savings.
func byDay(t *testing.T, pages Pages, all ...answers) []DaySaved {
	t.Helper()
	m := &memory{}
	for _, a := range all {
		for range a.n {
			if a.e.Time.IsZero() {
				a.e.Time = noon
			}
			if a.e.Bot == "" {
				a.e.Bot = "GPTBot"
			}
			if isFullPage(&a.e) {
				a.e.Results = 1
			}
			if err := m.Record(t.Context(), "site", []store.Event{a.e}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var out []DaySaved
	for d, err := range ByDay(m.Sums(t.Context(), "site", store.SumQuery{Per: store.Day}), pages, plain) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

func fetched(status int, bytes, html, received int64) store.Event {
	return store.Event{Protocol: "tct-01", Endpoint: store.EndpointFetch, Path: "/a", Status: status, Bytes: bytes, Size: 3 * bytes, HTML: html, Received: received}
}

func index(protocol string, status int, bytes, results int64) store.Event {
	return store.Event{Protocol: protocol, Endpoint: store.EndpointIndex, Path: "/list", Status: status, Bytes: bytes, Size: 10 * bytes, Results: results}
}

// One day of a bot that uses a list: two polls of the list, and twenty requests for pages,
// five of which get a 304.
func TestSavedByList(t *testing.T) {
	got := byDay(t, hundred,
		answers{1, index("tct-01", 200, 5_000, 100)},
		answers{1, index("tct-01", 304, 0, 100)},
		answers{15, fetched(200, 1_000, 50_000, 12_000)},
		answers{5, fetched(304, 0, 50_000, 12_000)},
		answers{2, fetched(404, 100, 0, 0)},
	)
	want := []DaySaved{{
		Day: noon.Truncate(24 * time.Hour), Bot: "GPTBot", Protocol: "tct-01",
		Saved: Saved{
			Requests: 24, Pages: 20, Measured: 20, Answered: 22, NotModified: 6, NotModifiedRate: new(6.0 / 22),
			Lists:     5_000,
			Bytes:     savings.NewFigure(15_000+5_000+200, 20*12_000, savings.Measured),
			Tokens:    savings.NewFigure(15*3_000/10, 20*50_000/10, savings.Estimate),
			KWh:       savings.NewFigure(20_200e-9, 240_000e-9, savings.Estimate),
			ZeroFetch: ZeroFetch{80, 800_000, 80 * 40_000 / 10, 800_000e-9, savings.Estimate},
		},
	}}
	if d := cmp.Diff(want, got, about); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// The transferred size is known only for some pages.
func TestSavedMixed(t *testing.T) {
	got := byDay(t, hundred, answers{3, fetched(200, 1_000, 50_000, 12_000)}, answers{2, fetched(200, 1_000, 50_000, 0)})
	want := savings.NewFigure(5_000, 3*12_000+2*50_000/4, savings.Estimate)
	if len(got) != 1 || got[0].Bytes != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Reported savings never exceed what a machine would have fetched as HTML.
func TestNeverOverstated(t *testing.T) {
	head := fetched(200, 0, 0, 0)
	part := fetched(206, 10, 0, 0)
	gone := fetched(404, 10, 0, 0)
	html := store.Event{Protocol: "html", Endpoint: store.EndpointFetch, Path: "/a", Status: 200, Bytes: 9_000, Size: 30_000, HTML: 40_000, Received: 10_000}
	html304 := html
	html304.Status, html304.Bytes, html304.Size = 304, 0, 0
	file := store.Event{Protocol: "html", Endpoint: store.EndpointFile, Path: "/a.png", Status: 200, Bytes: 1e6, Size: 1e6}
	for _, tt := range []struct {
		name    string
		pages   Pages
		answers []answers
		bytes   savings.Figure // of the last protocol
		carried int64
		zero    int64
	}{
		{"nothing but HEAD, parts and errors", hundred, []answers{{9, head}, {3, part}, {2, gone}}, savings.NewFigure(50, 0, savings.Measured), 0, 0},
		{"lists, all day long", hundred, []answers{{48, index("tct-01", 200, 5_000, 100)}}, savings.NewFigure(240_000, 0, savings.Measured), 0, 100},
		{"feeds that name few pages", hundred, []answers{{48, index("web", 200, 200, 10)}}, savings.NewFigure(9_600, 0, savings.Measured), 0, 100},
		{"one feed", hundred, []answers{{1, index("web", 200, 200, 10)}}, savings.NewFigure(200, 0, savings.Measured), 0, 10},
		{"a list of a larger site", Pages{Count: 7, HTML: hundred.HTML}, []answers{{1, index("tct-01", 200, 500, 100)}}, savings.NewFigure(500, 0, savings.Measured), 0, 7},
		{"more pages than the list has", hundred, []answers{{150, fetched(200, 10, 1, 1)}, {1, index("tct-01", 200, 0, 100)}}, savings.NewFigure(1500, 150, savings.Measured), 0, 0},
		{"pages that were also fetched as HTML", hundred, []answers{{60, html}, {1, index("tct-01", 200, 500, 100)}}, savings.NewFigure(500, 0, savings.Measured), 0, 40},
		{"collections, all day long", hundred, []answers{{24, index("scp", 200, 30_000, 100)}}, savings.NewFigure(720_000, 1_000_000, savings.Estimate), 100, 0},
		{"unchanged collections", hundred, []answers{{24, index("scp", 304, 0, 100)}}, savings.NewFigure(0, 0, savings.Measured), 0, 100},
		{"one collection of several", hundred, []answers{{1, index("scp", 200, 30_000, 30)}, {1, index("scp", 304, 0, 70)}}, savings.NewFigure(30_000, 300_000, savings.Estimate), 30, 70},
		{"the sitemap that leads to collections", hundred, []answers{{24, index("scp", 200, 2_000, 100)}}, savings.NewFigure(48_000, 0, savings.Measured), 0, 100},
		{"a collection, and its sitemap all day long", hundred, []answers{{24, index("scp", 200, 2_500, 100)}, {1, index("scp", 200, 8_000, 100)}}, savings.NewFigure(68_000, 270_000, savings.Estimate), 27, 73},
		{"feeds with summaries", hundred, []answers{{2, index("web", 200, 5_000, 50)}}, savings.NewFigure(10_000, 0, savings.Measured), 0, 100},
		{"a list with summaries", hundred, []answers{{2, index("arc", 200, 100_000, 100)}}, savings.NewFigure(200_000, 0, savings.Measured), 0, 100},
		{"the same through another protocol", hundred, []answers{{1, index("arc", 200, 1_000, 100)}, {1, index("scp", 200, 100_000, 60)}}, savings.NewFigure(100_000, 600_000, savings.Estimate), 60, 0},
		{"the lists of another protocol, too", hundred, []answers{{1, index("arc", 200, 1_000, 100)}, {1, index("tct-01", 200, 1_000, 100)}}, savings.NewFigure(1_000, 0, savings.Measured), 0, 0},
		{"a site without pages", Pages{}, []answers{{1, index("scp", 200, 30_000, 30)}}, savings.NewFigure(30_000, 0, savings.Measured), 0, 0},
		{"a site map", hundred, []answers{{1, index("site", 200, 30_000, 100)}}, savings.NewFigure(30_000, 0, savings.Measured), 0, 0},
		{"HTML", hundred, []answers{{10, html}, {5, file}}, savings.NewFigure(90_000, 90_000, savings.Measured), 0, 0},
		{"unchanged HTML", hundred, []answers{{10, html304}}, savings.NewFigure(0, 100_000, savings.Measured), 0, 0},
		{"a folder of HTML: its size on the wire is unknown", hundred, []answers{{10, fetched(200, 1_000, 40_000, 0)}}, savings.NewFigure(10_000, 100_000, savings.Estimate), 0, 0},
		{"some pages of unknown HTML size", hundred, []answers{{9, fetched(200, 1_000, 80_000, 20_000)}, {1, fetched(200, 1_000, 0, 0)}}, savings.NewFigure(10_000, 190_000, savings.Estimate), 0, 0},
		{"a site of Markdown", Pages{Count: 10, HTML: savings.Mean(plain, savings.HTML{}, false, 1_000)}, []answers{{4, fetched(200, 1_000, 0, 0)}}, savings.NewFigure(4_000, 20_000, savings.Estimate), 0, 0},
		{"pages of unknown size", Pages{Count: 10}, []answers{{4, fetched(200, 1_000, 0, 0)}}, savings.NewFigure(4_000, 0, savings.Estimate), 0, 0},
	} {
		days := byDay(t, tt.pages, tt.answers...)
		got := days[len(days)-1]
		if got.Bytes != tt.bytes || got.Carried != tt.carried || got.ZeroFetch.Pages != tt.zero {
			t.Errorf("%s: %+v, %d in collections, %d not fetched; want %+v, %d, %d", tt.name, got.Bytes, got.Carried, got.ZeroFetch.Pages, tt.bytes, tt.carried, tt.zero)
		}
		if got.Tokens.Instead < 0 || got.KWh.Basis != savings.Estimate || got.ZeroFetch.Basis != savings.Estimate {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

// The sums by bot, by protocol and by day equal the total.
func TestSum(t *testing.T) {
	m := &memory{}
	for i := range 600 {
		e := fetched([]int{200, 304, 404}[i%3], 1_000, 40_000, 10_000)
		e.Time = noon.Add(time.Duration(i%10) * 24 * time.Hour)
		e.Bot, e.Protocol = fmt.Sprint("Bot", i%7), []string{"tct-01", "web", "html", "openfeeder"}[i%4]
		e.Family = []string{"", "owner"}[i%2]
		if isFullPage(&e) {
			e.Results = 1
		}
		if err := m.Record(t.Context(), "site", []store.Event{e}); err != nil {
			t.Fatal(err)
		}
	}
	to := noon.Add(5 * 24 * time.Hour).Truncate(24 * time.Hour)
	var each Saved
	rows := 0
	got, err := Sum(t.Context(), m, "site", noon.Truncate(24*time.Hour), to, hundred, plain, func(d DaySaved) { rows++; each.Add(&d.Saved) })
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Days) != 5 || len(got.Bots) != 7 || len(got.Protocols) != 4 || got.Total.Requests != 300 || rows != 70 {
		t.Fatalf("%d days, %d bots, %d protocols, %d rows, %+v", len(got.Days), len(got.Bots), len(got.Protocols), rows, got.Total)
	}
	for _, b := range got.Bots {
		if b.Family != "owner" {
			t.Errorf("%+v", b)
		}
	}
	byBot, byProtocol, byDay := none(), none(), none()
	for _, b := range got.Bots {
		byBot.Add(&b.Saved)
	}
	for _, p := range got.Protocols {
		byProtocol.Add(&p.Saved)
	}
	for _, d := range got.Days {
		byDay.Add(&d.Saved)
	}
	for name, sum := range map[string]Saved{"bots": byBot, "protocols": byProtocol, "days": byDay} {
		if d := cmp.Diff(got.Total, sum, about); d != "" {
			t.Errorf("%s (-total +sum):\n%s", name, d)
		}
	}
	if got.Total.Bytes.Saved <= 0 || got.Total.Bytes.Basis != savings.Measured {
		t.Errorf("%+v", got.Total)
	}
	empty, err := Sum(t.Context(), &memory{}, "site", time.Time{}, time.Time{}, Pages{}, plain, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(empty)
	if err != nil || strings.Contains(string(out), "null") || strings.Contains(string(out), "rate") {
		t.Errorf("%s, %v", out, err)
	}
}

func TestSumFails(t *testing.T) {
	_, err := Sum(t.Context(), &broken{}, "site", time.Time{}, time.Time{}, Pages{}, plain, nil)
	if !errors.Is(err, millrace.ErrUnavailable) {
		t.Error(err)
	}
}

// broken is a store that fails while it is read.
type broken struct{ memory }

func (*broken) Sums(context.Context, string, store.SumQuery) iter.Seq2[store.Sum, error] {
	return func(yield func(store.Sum, error) bool) {
		_ = yield(store.Sum{Bot: "GPTBot"}, nil) && yield(store.Sum{}, millrace.ErrUnavailable)
	}
}
