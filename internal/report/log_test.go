package report

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/accesslog"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/store"
)

const (
	gpt    = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"
	google = "Googlebot/2.1"
	person = "Mozilla/5.0 (X11; Linux x86_64) Firefox/130.0"
)

// logLine returns a line of the combined format with a duration.
func logLine(day int, from, target string, status, size int, agent string) string {
	return fmt.Sprintf("%s - - [%02d/Nov/2026:10:00:00 +0000] \"GET %s HTTP/1.1\" %d %d \"-\" \"%s\" 0.250\n", from, day, target, status, size, agent)
}

// readLog reports on a log.
func readLog(t *testing.T, o *LogOptions, log string) (*logReport, *Report) {
	t.Helper()
	ranges := filepath.Join(t.TempDir(), "ranges")
	if err := os.WriteFile(ranges, []byte("192.0.2.0/24\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if o.Bots, err = bots.New(&bots.Options{Ranges: []bots.RangeFile{{Name: "GPTBot", File: ranges}}}); err != nil {
		t.Fatal(err)
	}
	o.Coefficients = savings.Default()
	r, s := newLogReport(o), new(accesslog.Scanner)
	if err := s.Scan(t.Context(), "a.log", strings.NewReader(log), r.add); err != nil {
		t.Fatal(err)
	}
	out, err := r.report(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r, out
}

func TestLog(t *testing.T) {
	t.Parallel()
	_, r := readLog(t, &LogOptions{Files: []string{"a.log"}}, ""+
		logLine(1, "192.0.2.1", "/a?x=1", 200, 1000, gpt)+
		logLine(2, "192.0.2.1", "/a?x=2", 200, 1000, gpt)+ // another URL
		logLine(3, "192.0.2.1", "/a?x=1", 200, 1000, gpt)+ // unchanged
		logLine(3, "192.0.2.1", "/a?x=1", 304, 0, gpt)+
		logLine(4, "192.0.2.1", "/a?x=1", 200, 1001, gpt)+ // changed
		logLine(5, "192.0.2.1", "/robots.txt", 200, 70, gpt)+
		logLine(5, "192.0.2.1", "/i.png", 200, 5000, gpt)+
		logLine(5, "192.0.2.1", "/i.png", 200, 5000, gpt)+ // unchanged, not a page
		logLine(5, "192.0.2.1", "/none", 404, 10, gpt)+
		logLine(6, "198.51.100.1", "/a?x=1", 200, 1001, gpt)+ // from another machine
		logLine(2, "198.51.100.1", "/a?x=1", 200, 1001, google)+
		logLine(2, "198.51.100.1", "/b", 200, 7, "strangebot/1")+
		logLine(2, "198.51.100.1", "/a?x=1", 200, 30000, person)+"nonsense\n")
	s := r.Served[0]
	l := s.Log
	if l.Lines != 14 || l.Unknown != 1 || l.Others != 1 || l.AllBytes != 46090 || !l.Timed || len(l.Machines) != 4 {
		t.Fatalf("%+v", l)
	}
	m := l.Machines[0]
	if m.Bot != "GPTBot" || m.Identity != store.Verified || m.Purpose != bots.Training || m.First.Day() != 1 || m.Last.Day() != 5 || m.Ranges != "" {
		t.Errorf("%+v", m)
	}
	want := Traffic{Requests: 9, Pages: 4, NotModified: 1, Unchanged: 2, Sent: 7, Bytes: 14081, UnchangedBytes: 6000, PageBytes: 4001, UnchangedPageBytes: 1000, Seconds: 2.25}
	if m.Traffic != want {
		t.Errorf("\n got %+v\nwant %+v", m.Traffic, want)
	}
	forged, claimed := l.Machines[1], l.Machines[2]
	if forged.Identity != store.Forged || claimed.Bot != "Googlebot" || claimed.Identity != store.Unverified || claimed.Ranges == "" {
		t.Errorf("%+v, %+v", forged, claimed)
	}
	if p := l.TopPages; len(p) != 2 || p[0].Name != "/a" || p[0].Requests != 7 || p[0].Unchanged != 1 || l.TopOther[0].Name != "strangebot/1" {
		t.Errorf("%+v, %+v", p, l.TopOther)
	}
	if len(s.Days) != 6 || s.Total.Requests != 12 || s.Total.NotModified != 1 || s.Total.Bytes.Spent != 6090 {
		t.Errorf("%+v", s.Total)
	}
	var text bytes.Buffer
	r.Text(&text)
	for _, want := range []string{"GPTBot, openai     verified  trains models", "forged", "claimed", "5.8 bytes", "a.log:14: nonsense", "3.0 s"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q:\n%s", want, &text)
		}
	}
}

// Requests of the operator's millrace are skipped. Requests of other millrace clients are listed
// under its name. The text names only the coefficients of its own figures.
func TestLogOfMillrace(t *testing.T) {
	t.Parallel()
	const agent = "millrace/v1.0 (+https://millrace.example)"
	own := netip.MustParseAddr("203.0.113.9")
	var log strings.Builder
	for _, from := range []string{"127.0.0.1", "::1", "10.1.2.3", "203.0.113.9"} {
		log.WriteString(logLine(1, from, "/a", 200, 1000, agent))
	}
	log.WriteString(logLine(1, "198.51.100.1", "/a", 200, 1000, agent) + logLine(1, "10.1.2.3", "/a", 200, 1000, google))
	_, r := readLog(t, &LogOptions{Local: map[netip.Addr]bool{own: true}}, log.String())
	l := r.Served[0].Log
	if l.Own != 4 || l.AllBytes != 2000 || len(l.Machines) != 2 || l.Machines[1].Bot != "millrace" || len(l.TopOther) != 0 {
		t.Errorf("%+v", l)
	}
	var text bytes.Buffer
	r.Text(&text)
	for word, want := range map[string]bool{
		"skipped: 4 requests of millrace itself": true, "page requests": true, "bytes-per-token": true,
		"kwh": false, "html-per-text": false, "html-compression": false,
	} {
		if strings.Contains(text.String(), word) != want {
			t.Errorf("%q is %v:\n%s", word, !want, &text)
		}
	}
	if _, r = readLog(t, &LogOptions{}, logLine(1, "198.51.100.1", "/robots.txt", 200, 9, google)); len(r.Coefficients) != 2 {
		t.Errorf("%+v", r.Coefficients)
	}
	text.Reset()
	if r.Text(&text); strings.Contains(text.String(), "estimates use") {
		t.Errorf("coefficients without a figure:\n%s", &text)
	}
}

// Only requests to one site, from a given day on, are counted.
func TestLogOfSite(t *testing.T) {
	t.Parallel()
	at := func(host string) string { return host + " " + logLine(2, "192.0.2.1", "/a", 200, 1000, gpt) }
	_, r := readLog(t, &LogOptions{Site: "https://example.com/", Since: time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)},
		at("www.example.com:443")+at("example.org")+at("Example.com")+logLine(1, "192.0.2.1", "/a", 200, 1, gpt)+logLine(2, "192.0.2.1", "/a", 200, 1, gpt))
	if l := r.Served[0].Log; l.Total.Requests != 3 || l.Skipped != 2 || r.Served[0].Site != "https://example.com/" {
		t.Errorf("%+v", l)
	}
}

// Pages of the site are fetched, and compared with their documents in the coding of the log.
func TestLogMeasure(t *testing.T) {
	t.Parallel()
	html := "<html><head><title>T</title></head><body><main><h1>T</h1>" + strings.Repeat("<p class='a b c d e f g h'>Some words about the weather of today.</p>", 50) + "</main></body></html>"
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(html))
	}))
	defer site.Close()
	for _, coded := range []bool{false, true} {
		size := len(html)
		if coded {
			size = zipped([]byte(html))
		}
		line := logLine(1, "192.0.2.1", "/a", 200, size, gpt)
		reader, r := readLog(t, &LogOptions{Site: site.URL}, line+line+logLine(1, "192.0.2.1", "/gone", 200, 50, gpt))
		if err := reader.measure(t.Context(), site.Client(), r); err != nil {
			t.Fatal(err)
		}
		d := r.Served[0].Log.Documents
		s := d.Sample
		if d.From != savings.FromSample || s.Pages != 1 || s.Failed != 1 || s.HTML != int64(len(html)) || s.Document <= 0 || s.Document >= s.HTML {
			t.Fatalf("%+v, %+v", d, s)
		}
		document := s.Document
		if coded {
			document = s.DocumentGzip
		}
		if ratio, want := d.Bytes.Spent/d.Bytes.Instead, float64(document)/float64(size); ratio < want*0.99 || ratio > want*1.01 {
			t.Errorf("%v of the bytes, want %v: %+v", ratio, want, d)
		}
		if d.Conditional.Spent >= d.Bytes.Spent || int64(d.Tokens.Instead)*4/int64(2*len(html)) != 1 {
			t.Errorf("%+v", d)
		}
	}
	reader, r := readLog(t, &LogOptions{Site: site.URL}, logLine(1, "192.0.2.1", "/gone", 200, 50, gpt))
	if err := reader.measure(t.Context(), site.Client(), r); err == nil {
		t.Error("no page was measured, but there is no error")
	}
}

// Too many days are merged into months, then into years, with the same sums.
func TestLogManyDays(t *testing.T) {
	t.Parallel()
	r := newLogReport(&LogOptions{})
	start := time.Date(1995, 1, 1, 0, 0, 0, 0, time.UTC)
	m := &Machine{Bot: "GPTBot"}
	n := int64(0)
	for d := range 105 * 365 {
		for _, endpoint := range []store.Endpoint{store.EndpointFetch, store.EndpointFile} {
			n++
			r.sum(m, &store.Event{Time: start.AddDate(0, 0, d), Endpoint: endpoint, Protocol: "html", Status: 200, Bytes: 1})
		}
	}
	if len(r.sums) > maxSums || len(r.coarser) != 2 {
		t.Errorf("%d sums, %d steps left", len(r.sums), len(r.coarser))
	}
	var events, size int64
	last := time.Time{}
	for s := range r.ordered() {
		events, size = events+s.Events, size+s.Bytes
		if s.Start.Before(last) || s.Start.Day() != 1 {
			t.Fatalf("%v after %v", s.Start, last)
		}
		last = s.Start
	}
	if events != n || size != n {
		t.Errorf("%d events of %d bytes, want %d", events, size, n)
	}
}

// The most frequent names are kept, however many other names there are.
func TestTop(t *testing.T) {
	t.Parallel()
	l := top[TopPage]{most: 64, count: func(p *TopPage) int64 { return p.Requests }}
	for i := range 10_000 {
		l.at(fmt.Sprint(i)).Requests++
		if i%4 == 0 {
			l.at("often").Requests++
		}
	}
	if names := l.names(1); len(l.of) > 64 || names[0] != "often" || l.of["often"].Requests+l.lost < 2500 || l.of["often"].Requests > 2500 {
		t.Errorf("%d names, %v, %d, maximum error %d", len(l.of), names, l.of[names[0]].Requests, l.lost)
	}
	var r repeats
	if r.again(1<<40, 5) || !r.again(1<<40, 5) || r.again(1<<40, 6) || r.again(1<<41, 6) || !r.again(1<<40, 6) {
		t.Error("repeats")
	}
	for i := range uint64(repeatWays) {
		r.again((i+2)<<44, 1)
	}
	if r.again(1<<40, 6) {
		t.Error("the oldest request is still stored")
	}
}

// A missing file is reported. If no file has a request, Logs fails.
func TestLogs(t *testing.T) {
	t.Parallel()
	table, err := bots.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	o := &LogOptions{Files: []string{filepath.Join(t.TempDir(), "absent"), "-"}, Bots: table, Coefficients: savings.Default()}
	o.Stdin = strings.NewReader(`192.0.2.1 - - [10/Jan/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 100 "-" "GPTBot/1.2"` + "\n")
	r, err := Logs(t.Context(), o)
	if err != nil || len(r.Served) != 1 || r.Served[0].Log.Total.Requests != 1 || len(r.Served[0].Log.Damaged) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	o.Stdin = strings.NewReader("")
	if _, err := Logs(t.Context(), o); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	o.Files, o.Stdin = []string{"-"}, strings.NewReader("words\n")
	if _, err := Logs(t.Context(), o); millrace.ErrorCode(err) != "no-requests" || !strings.Contains(err.Error(), "line 1 of -: words") {
		t.Error(err)
	}
}
