package terminal

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
)

const hostile = "a\x1b[2J\x07\u009b31m\u202e\u2066\U000e0041\x7f水\r\n\tz"

func TestWriter(t *testing.T) {
	t.Parallel()
	const want = `a\u001b[2J\u0007\u009b31m\u202e\u2066\udb40\udc41\u007f水` + "\r\n\tz"
	for size := 1; size <= len(hostile); size++ { // characters are divided
		var out bytes.Buffer
		w := New(&out, func(string) (string, bool) { return "", false })
		for b := []byte(hostile); len(b) > 0; {
			n, err := w.Write(b[:min(size, len(b))])
			if err != nil {
				t.Fatal(err)
			}
			b = b[n:]
		}
		if out.String() != want {
			t.Fatalf("in writes of %d bytes: %q", size, out.String())
		}
	}
	var out bytes.Buffer
	w := New(&out, func(string) (string, bool) { return "", false })
	_, _ = io.WriteString(w, "a\rb\xff\n")
	if out.String() != "a\\u000db\ufffd\n" {
		t.Errorf("%q", out.String())
	}
}

// The values in JSON stay the same.
func TestWriterJSON(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var got string
	err := json.NewEncoder(New(&out, func(string) (string, bool) { return "", false })).Encode(hostile)
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &got)
	}
	if err != nil || got != hostile {
		t.Errorf("%q, %v", got, err)
	}
}

func TestBold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		terminal bool
		off      string
		want     string
	}{
		{true, "", "x\x1b[1mb\\u001b[0m\x1b[0m"},
		{true, "1", `xb\u001b[0m`},
		{false, "", `xb\u001b[0m`},
	} {
		var out bytes.Buffer
		w := &Writer{to: &out, lookup: func(string) (string, bool) { return c.off, c.off != "" }, Terminal: c.terminal}
		err := w.Text(func(t *Text) {
			_, _ = io.WriteString(t, "x")
			t.Bold("b\x1b[0m")
			t.Bold("")
		})
		if err != nil || out.String() != c.want {
			t.Errorf("%q, want %q, %v", out.String(), c.want, err)
		}
	}
}
