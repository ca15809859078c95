package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/report"
	"github.com/millrace/millrace/internal/savings"
)

const sampleLog = "../../testdata/logs/access.log"

// logReport runs `millrace report --json` over access logs.
func logReport(t *testing.T, stdin string, args ...string) *report.Log {
	t.Helper()
	var out, errs buffer
	args = append([]string{"report", "--json"}, args...)
	code := run(t.Context(), args, environment(map[string]string{"HOME": t.TempDir()}), strings.NewReader(stdin), &out, &errs)
	var r report.Report
	if err := json.Unmarshal([]byte(out.String()), &r); code != exitGood || err != nil {
		t.Fatalf("exit %d, %v:\n%s%s", code, err, out.String(), errs.String())
	}
	checkReport(t, args, out.String())
	return r.Served[0].Log
}

// Logs are read from files, compressed files and standard input.
func TestReportLogs(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(sampleLog)
	if err != nil {
		t.Fatal(err)
	}
	var coded bytes.Buffer
	w := gzip.NewWriter(&coded)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "access.log.1.gz")
	write(t, file, coded.String())
	one := logReport(t, "", sampleLog)
	if one.Lines != 14 || one.Total.Requests != 12 || one.Others != 2 || one.Total.Unchanged != 4 || one.Total.NotModified != 1 || !one.Timed {
		t.Errorf("%+v", one)
	}
	if all := logReport(t, string(b), sampleLog, file, "-"); all.Lines != 3*one.Lines || len(all.Files) != 3 {
		t.Errorf("%+v", all)
	}
	if l := logReport(t, "", sampleLog, "--since", "2026-11-03"); l.Skipped != 8 {
		t.Errorf("%+v", l)
	}
	if code, out, _ := command(t, nil, "report", sampleLog, "--csv"); code != exitGood || !strings.Contains(out, "served,"+sampleLog+",2026-11-01,GPTBot,openai,html,") {
		t.Errorf("%d %s", code, out)
	}
	write(t, file, coded.String()[:coded.Len()-30])
	if l := logReport(t, "", file, sampleLog); len(l.Damaged) != 1 || l.Total.Requests < 12 {
		t.Errorf("a truncated log: %+v", l)
	}
}

// Pages of the site are measured.
func TestReportLogSite(t *testing.T) {
	t.Parallel()
	s := serve(t, copySite(t, "handbook"))
	line := `192.0.2.1 - - [01/Nov/2026:08:00:07 +0000] "GET / HTTP/1.1" 200 9000 "-" "GPTBot/1.2"` + "\n"
	l := logReport(t, line, "-", "--site", s.url, "--allow-private")
	if d := l.Documents; d.From != savings.FromSample || d.Sample.Pages != 1 || d.Sample.HTML < 1000 || d.Sample.Document >= d.Sample.HTML {
		t.Errorf("%+v", d)
	}
}

func TestReportLogErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	noise := filepath.Join(dir, "noise")
	write(t, noise, "\x00\xff\nno log\n")
	empty := filepath.Join(dir, "empty")
	write(t, empty, "")
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{"line 1 of " + noise, exitFailure, []string{noise}},
		{"the logs are empty", exitFailure, []string{empty}},
		{"no such file", exitFailure, []string{filepath.Join(dir, "none.log")}},
		{"no such file", exitFailure, []string{filepath.Join(dir, "none"), empty}},
		{"is a directory", exitFailure, []string{dir, empty}},
		{"--store", exitUsage, []string{sampleLog, "--store", noise}},
		{"--site", exitUsage, []string{dir, "--site", "https://example.com/"}},
		{"--since", exitUsage, []string{sampleLog, "--since", "yesterday"}},
	} {
		if code, _, errs := command(t, nil, append([]string{"report"}, c.args...)...); code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit %d, %s, want %q", c.args, code, errs, c.want)
		}
	}
}
