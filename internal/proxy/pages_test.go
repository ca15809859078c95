package proxy

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

// slowWriter is a response writer that takes a fixed time for each write.
type slowWriter struct {
	header http.Header
	each   time.Duration
	got    []int
	until  []time.Time
}

func (w *slowWriter) Header() http.Header { return w.header }
func (w *slowWriter) WriteHeader(int)     {}
func (w *slowWriter) Write(b []byte) (int, error) {
	w.got = append(w.got, len(b))
	time.Sleep(w.each)
	return len(b), nil
}

func (w *slowWriter) SetWriteDeadline(until time.Time) error {
	w.until = append(w.until, until)
	return nil
}

// A slow client gets the whole response in small pieces, each with its own time limit.
func TestProxySlowReader(t *testing.T) {
	w := &slowWriter{header: make(http.Header), each: 4 * time.Millisecond}
	synctest.Test(t, func(t *testing.T) {
		to := newDeadlineWriter(w, &http.Request{ProtoMajor: 2}, 64*time.Millisecond)
		b := make([]byte, 40<<10)
		for range 2 {
			if n, err := to.Write(b); n != len(b) || err != nil {
				t.Fatal(n, err)
			}
		}
	})
	if d := cmp.Diff([]int{40 << 10, 16 << 10, 16 << 10, 8 << 10}, w.got); d != "" {
		t.Errorf("pieces:\n%s", d)
	}
	given := slices.DeleteFunc(w.until, time.Time.IsZero)
	if len(given) != 4 {
		t.Errorf("%d deadlines for 4 pieces", len(given))
	}
}

// The inserted script has the same JSON value. Nothing in it ends the element early, in any
// character set.
func TestScript(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"a": "</script><!-- & é 𝄞 \u2028"}`, `{"a":"</script><!-- & é 𝄞 ` + "\u2028" + `"}`},
		{`{}`, `{}`},
		{`[1]`, ""},
		{`"x"`, ""},
		{``, ""},
		{`{"a":`, ""},
	} {
		got := script(json.RawMessage(c.in))
		if c.want == "" {
			if got != "" {
				t.Errorf("%s: %s", c.in, got)
			}
			continue
		}
		if strings.IndexFunc(got, func(r rune) bool { return r >= 0x7f }) >= 0 {
			t.Errorf("%s: not ASCII: %s", c.in, got)
		}
		z := html.NewTokenizer(strings.NewReader(got))
		z.Next()
		if tok := z.Token(); tok.Data != "script" || len(tok.Attr) != 1 || tok.Attr[0].Val != "application/ld+json" {
			t.Fatalf("%s: the element is %v", c.in, tok)
		}
		z.Next()
		var have, want any
		if err := json.Unmarshal(z.Raw(), &have); err != nil {
			t.Fatalf("%s: %v in %s", c.in, err, got)
		}
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		h, _ := json.Marshal(have)
		w, _ := json.Marshal(want)
		if string(h) != string(w) {
			t.Errorf("%s: parsed as %s, want %s", c.in, h, w)
		}
		z.Next()
		if tok := z.Token(); tok.Type != html.EndTagToken || tok.Data != "script" {
			t.Errorf("%s: %v follows the text", c.in, tok)
		}
	}
}

// An HTTP/1.0 client gets the links only in the header.
func TestPlainClient(t *testing.T) {
	lw := &linked{plain: true, find: func() *additions {
		return &additions{fields: []string{"<x>"}, vary: []string{"Accept"}, elements: []byte("<link/>"), mark: "~1"}
	}}
	if a := lw.load(); a.mark != "" || a.elements != nil || len(a.fields) != 1 || len(a.vary) != 1 {
		t.Errorf("%+v", a)
	}
}
