package main

import (
	"encoding/csv"
	"encoding/json"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/report"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/store"
)

const gptBot = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)"

// eventsIn returns the events in a store, with the hashes of search queries if present.
func eventsIn(t *testing.T, file string) (out []store.Event) {
	t.Helper()
	st := openStore(t, file, false)
	names, err := ingest.SiteNames(t.Context(), st)
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	for e, err := range st.Usage().Events(t.Context(), names[0], store.EventQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// After serve ends, the report contains the requests of machines, and none of people.
func TestRecorded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "store.db")
	s := serve(t, copySite(t, "handbook"), "--store", file, "--events-hash-queries")
	_, _, html := get(t, s.url+"docs/", "User-Agent", gptBot)
	_, h, page := get(t, s.url+"docs/llm.json", "User-Agent", gptBot)
	if page == "" || html == "" {
		t.Fatal("page not found")
	}
	status, _, _ := get(t, s.url+"docs/llm.json", "User-Agent", gptBot, "If-None-Match", h.Get("ETag"))
	if status != 304 {
		t.Fatal(status)
	}
	get(t, s.url+"llm-pages.json", "User-Agent", gptBot)
	eventually(t, "the site is indexed", func() bool {
		status, _, _ := get(t, s.url+"openfeeder?q=index")
		return status == 200
	})
	get(t, s.url+"openfeeder?q=private+matters", "User-Agent", "ClaudeBot/1.0")
	get(t, s.url+"gone/", "User-Agent", "ClaudeBot/1.0")
	get(t, s.url+"docs/", "User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	if code := s.stop(); code != 0 {
		t.Fatalf("exit %d: %s", code, s.out)
	}

	events := eventsIn(t, file)
	if len(events) != 6 {
		t.Fatalf("%d events: %+v", len(events), events)
	}
	for i, e := range events {
		if e.HTML != 0 && e.HTML < int64(len(html))/2 || e.Took <= 0 || time.Since(e.Time) > time.Hour {
			t.Errorf("%+v", e)
		}
		if sized := i < 3; sized != (e.HTML > 0) || sized != (e.Path == "/docs/") {
			t.Errorf("%+v", e)
		}
		if e.Endpoint == store.EndpointSearch && (!strings.HasPrefix(e.Query, "#") || e.Query == "#") {
			t.Errorf("query not hashed: %q", e.Query)
		}
	}

	r := savedReport(t, file)
	if len(r.Served) != 1 || len(r.Sites) != 0 || len(r.Served[0].Rows) < 3 {
		t.Fatalf("%+v", r)
	}
	v := r.Served[0]
	i := slices.IndexFunc(v.Protocols, func(p analytics.ProtocolSaved) bool { return p.Protocol == "tct-01" })
	if i < 0 || v.Pages.HTML.From != savings.FromHTML || v.Pages.Count == 0 {
		t.Fatalf("%+v", v.Savings)
	}
	tct := v.Protocols[i]
	if tct.Pages != 2 || tct.Measured != 2 || tct.NotModified != 1 || tct.Requests != 3 || tct.Tokens.Saved <= 0 ||
		tct.Bytes.Instead != math.Round(2*float64(events[0].HTML)/savings.Default().HTMLCompression) || tct.Bytes.Spent != float64(events[1].Bytes+events[3].Bytes) {
		t.Errorf("%+v", tct)
	}
	if len(v.Bots) != 2 || v.Bots[0].Bot != "GPTBot" || v.Bots[0].Family != "openai" || v.Total.Requests != 6 {
		t.Errorf("%+v", v.Bots)
	}
	if again := savedReport(t, file, "--since", "2999-01-01"); len(again.Served) != 0 {
		t.Errorf("%+v", again.Served)
	}

	code, out, errs := command(t, nil, "report", "--store", file, "--csv")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if code != 0 || err != nil || len(rows) != len(v.Rows)+1 || rows[1][0] != "served" || rows[1][2] != v.Rows[0].Day.Format(time.DateOnly) {
		t.Errorf("exit %d, %v:\n%s%s", code, err, out, errs)
	}
	code, out, errs = command(t, nil, "report", "--store", file)
	if code != 0 || !strings.Contains(out, ": 6 requests of 2 machines since "+v.From.Format(time.DateOnly)+", the first on "+v.Days[0].Day.Format(time.DateOnly)+"\n") || !strings.Contains(out, "GPTBot, openai") || !strings.Contains(out, "doi:10.1111") {
		t.Errorf("exit %d:\n%s%s", code, out, errs)
	}
	if _, out, _ := command(t, nil, "report", "--store", file, "--since", "2999-01-01"); !strings.Contains(out, "2999-01-01\n") {
		t.Errorf("report of future days:\n%s", out)
	}
}

// With --events 0, serve records nothing. Wrong flags are errors.
func TestNotRecorded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "store.db")
	s := serve(t, copySite(t, "handbook"), "--store", file, "--events", "0")
	get(t, s.url, "User-Agent", gptBot)
	if code := s.stop(); code != 0 {
		t.Fatal(code)
	}
	if e := eventsIn(t, file); len(e) != 0 {
		t.Errorf("%+v", e)
	}
	// The flag, the environment and the file cause the same error, in config and in serve.
	yaml, other := filepath.Join(t.TempDir(), "millrace.yaml"), filepath.Join(t.TempDir(), "other.yaml")
	write(t, yaml, "events: 0s\nevents-hash-queries: true\n")
	write(t, other, "events: 0\nevents-to: plausible=https://a.example/?domain=a.example\n")
	for _, c := range []struct {
		code string
		args []string
	}{
		{"usage/events", []string{"serve", ".", "--events", "-1h"}},
		{"usage/events", []string{"serve", ".", "--events", "5s"}},
		{"usage/events", []string{"serve", ".", "--events", "30d"}},
		{"usage/store", []string{"report"}},
		{"usage/since", []string{"report", "--store", file, "--since", "yesterday"}},
		{"usage/csv", []string{"report", "--store", file, "--csv"}},
		{"usage/events-hash-queries", []string{"serve", ".", "--events", "0", "--events-hash-queries"}},
		{"usage/events-hash-queries", []string{"serve", ".", "--config", yaml}},
		{"usage/events-hash-queries", []string{"config", "--config", yaml}},
		{"usage/events-to", []string{"config", "--config", other}},
	} {
		if exit, code, out := failure(t, nil, c.args...); exit != exitUsage || code != c.code {
			t.Errorf("%v: exit %d %s, want %s: %s", c.args, exit, code, c.code, out)
		}
	}
	exit, code, out := failure(t, map[string]string{"HOME": t.TempDir()}, "report", "https://example.com")
	if exit != exitFailure || code != "not-found" {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
}

// report finds the store that serve chose for the source.
func TestReportOnSource(t *testing.T) {
	t.Parallel()
	dir, env := copySite(t, "handbook"), map[string]string{"HOME": t.TempDir()}
	if exit, code, out := failure(t, env, "report", dir); exit != exitFailure || code != "not-found" {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
	file, err := (&keyStore{Source: dir}).file(&process{lookup: environment(env), log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, dir, "--store", file)
	get(t, s.url, "User-Agent", gptBot)
	s.stop()
	code, out, errs := command(t, env, "report", dir, "--json")
	var r report.Report
	if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil || len(r.Served) != 1 || r.Store != file {
		t.Errorf("exit %d, %v:\n%s%s", code, err, out, errs)
	}
}

// serve records events before and after a reload.
func TestRecordedReload(t *testing.T) {
	t.Parallel()
	file, config := filepath.Join(t.TempDir(), "store.db"), filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, config, "events: 700h\n")
	s := serve(t, copySite(t, "handbook"), "--store", file, "--config", config)
	for _, keep := range []string{"800h", "800h", "0s"} {
		get(t, s.url+"llms.txt", "User-Agent", gptBot)
		s.reload(t, config, "events: "+keep+"\n")
	}
	get(t, s.url+"llms.txt", "User-Agent", gptBot)
	s.stop()
	if events := eventsIn(t, file); len(events) != 3 {
		t.Errorf("%d events: %+v", len(events), events)
	}
}
