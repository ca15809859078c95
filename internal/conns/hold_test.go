package conns

import (
	"bytes"
	"errors"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// written is a connection that records writes until it is full.
type written struct {
	net.Conn
	writes []string
	space  int
}

var errFull = errors.New("full")

func (w *written) Write(b []byte) (int, error) {
	n := min(len(b), w.space)
	w.space -= n
	w.writes = append(w.writes, string(b[:n]))
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

// Buffered bytes are sent with the next write.
func TestHold(t *testing.T) {
	w := &written{space: 1 << 20}
	c := &conn{Conn: w, l: new(limited)}
	write := func(hold bool, s string, want ...string) {
		t.Helper()
		c.holding, w.writes = hold, nil
		if n, err := c.Write([]byte(s)); n != len(s) || err != nil {
			t.Errorf("write %.10q: %d, %v", s, n, err)
		}
		if d := cmp.Diff(want, w.writes); d != "" {
			t.Errorf("write %.10q (-want +got):\n%s", s, d)
		}
	}
	large := string(bytes.Repeat([]byte("e"), bufferSize+1))
	write(false, "a", "a")
	write(true, "b")
	write(true, "c", "b", "c")
	write(true, large, large)
	write(true, large[1:])
	write(false, "d", large[1:], "d")
	write(false, "e", "e")

	for space, want := range []int{0, 0, 0, 1, 2} { // want: bytes of "ij" that fit after "gh"
		w.space = space
		write(true, "gh")
		if n, err := c.Write([]byte("ij")); n != want || space < 4 && !errors.Is(err, errFull) {
			t.Errorf("with space for %d: %d, %v", space, n, err)
		}
	}
}

// collecting is a server that sends half of each write and buffers the rest.
type collecting struct {
	*httptest.ResponseRecorder
	c *conn
}

func (w *collecting) Write(b []byte) (int, error) {
	_, err := w.c.Write(b[:len(b)/2])
	w.Body.Write(b[len(b)/2:])
	return len(b), err
}

// A complete body is sent in one write.
func TestWholeBody(t *testing.T) {
	body := bytes.Repeat([]byte("b"), bufferSize)
	half := string(body[len(body)/2:])
	for size, want := range map[string][]string{"": {half}, "4095": {half}, "4096": nil} {
		w := &written{space: 1 << 20}
		c := &conn{Conn: w, l: new(limited)}
		to := &collecting{httptest.NewRecorder(), c}
		if size != "" {
			to.Header().Set("Content-Length", size)
		}
		if n, err := Write(Context(t.Context(), c), to, body); n != len(body) || err != nil {
			t.Errorf("%s: %d, %v", size, n, err)
		}
		if d := cmp.Diff(want, w.writes); d != "" {
			t.Errorf("Content-Length %q (-want +got):\n%s", size, d)
		}
		if _, err := c.Write(to.Body.Bytes()); err != nil || len(w.writes) != 2 || c.buffered != nil { // sent at the end of the request
			t.Errorf("Content-Length %q: %d writes, %v", size, len(w.writes), err)
		}
	}
}
