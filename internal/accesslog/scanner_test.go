package accesslog

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

const good = `192.0.2.7 - - [10/Oct/2026:13:55:36 -0700] "GET /a HTTP/1.1" 200 1 "-" "GPTBot"`

func zip(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func counts(s *Scanner) string {
	return fmt.Sprintf("%d lines, %d requests, %d long, %d unknown", s.Lines, s.Requests, s.Long, s.Unknown)
}

func scan(t *testing.T, text string) (*Scanner, error) {
	t.Helper()
	s := new(Scanner)
	n := int64(0)
	err := s.Scan(t.Context(), "a.log", strings.NewReader(text), func(l *Line) {
		if n++; string(l.Target) != "/a" {
			t.Errorf("%s", show(l))
		}
	})
	if n != s.Requests || s.Lines != s.Requests+s.Long+s.Unknown {
		t.Errorf("%d calls: %s", n, counts(s))
	}
	return s, err
}

// Lines with arbitrary bytes or of any length are counted as skipped, and the other lines are
// read.
func TestScan(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 3000)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range noise {
		noise[i] = byte(rng.IntN(256))
	}
	long := good[:len(good)-1] + strings.Repeat("x", maxLine-len(good)-1) + `"` // one byte below the limit
	text := good + "\n\n" + long + "\nno\x1b[31m log\n" + strings.Replace(long, "xx", "xxx", 1) + "\n" + strings.Repeat("y", 5<<20) + "\r\n" + good
	s, err := scan(t, text)
	if err != nil || s.Requests != 3 || s.Long != 2 || s.Unknown != 1 || s.Lines != 6 {
		t.Errorf("%s %v", counts(s), err)
	}
	if e := s.Examples; len(e) != 1 || e[0].File != "a.log" || e[0].Line != 4 || strings.ContainsRune(e[0].Text, '\x1b') {
		t.Errorf("%+v", e)
	}
	if s, err = scan(t, good+"\n"+string(noise)+"\n"+good); err != nil || s.Requests != 2 || len(s.Examples) != maxExamples {
		t.Errorf("%s %v", counts(s), err)
	}
}

// Compressed logs are recognized by their content, even if several were concatenated.
func TestScanGzip(t *testing.T) {
	t.Parallel()
	s, err := scan(t, zip(t, good+"\n"+good)+zip(t, "\n"+good+"\n"))
	if err != nil || s.Requests != 3 {
		t.Errorf("%s %v", counts(s), err)
	}
	whole := zip(t, strings.Repeat(good+"\n", 10000))
	if s, err = scan(t, whole[:len(whole)-20]); !errors.Is(err, io.ErrUnexpectedEOF) || s.Requests == 0 {
		t.Errorf("a truncated log: %s %v", counts(s), err)
	}
	if _, err = scan(t, "\x1f\x8bno gzip"); err == nil {
		t.Error("no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := new(Scanner).Scan(ctx, "", strings.NewReader(strings.Repeat(good+"\n", 10000)), func(*Line) {}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
