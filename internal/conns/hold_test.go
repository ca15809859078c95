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
	room   int
}

var errFull = errors.New("full")

func (w *written) Write(b []byte) (int, error) {
	n := min(len(b), w.room)
	w.room -= n
	w.writes = append(w.writes, string(b[:n]))
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

// Buffered bytes are sent before the next write or at Release. Without Hold, nothing is
// buffered.
func TestHold(t *testing.T) {
	w := &written{room: 1 << 20}
	c := &Conn{Conn: w, l: new(limited)}
	write := func(s string) {
		t.Helper()
		if n, err := c.Write([]byte(s)); n != len(s) || err != nil {
			t.Errorf("write %.10q: %d, %v", s, n, err)
		}
	}
	release := func() {
		t.Helper()
		if err := c.Release(); err != nil {
			t.Error(err)
		}
	}
	check := func(what string, want ...string) {
		t.Helper()
		if d := cmp.Diff(want, w.writes); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
		w.writes = nil
	}
	write("a")
	check("nothing is held", "a")
	c.Hold()
	write("b")
	check("held")
	write("c")
	check("the next one takes it along", "b", "c")
	write("d")
	release()
	check("released", "d")
	release()
	check("there is nothing to release")
	large := string(bytes.Repeat([]byte("e"), MostHeld+1))
	c.Hold()
	write(large)
	write(large[1:])
	check("large ones go at once", large)
	release()
	check("just small enough", large[1:])
	write("f")
	check("held no more", "f")

	for room, want := range []int{0, 0, 0, 1, 2} { // want: bytes of "ij" that fit after "gh"
		w.room, w.writes = room, nil
		c.Hold()
		write("gh")
		if n, err := c.Write([]byte("ij")); n != want || room < 4 && !errors.Is(err, errFull) {
			t.Errorf("with room for %d: %d, %v", room, n, err)
		}
		release()
	}
	w.room = 0
	c.Hold()
	write("k")
	if err := c.Release(); !errors.Is(err, errFull) {
		t.Errorf("what is held and does not go: %v", err)
	}
}

// collecting is a server that sends half of each write and buffers the rest.
type collecting struct {
	*httptest.ResponseRecorder
	c *Conn
}

func (w *collecting) Write(b []byte) (int, error) {
	_, err := w.c.Write(b[:len(b)/2])
	w.Body.Write(b[len(b)/2:])
	return len(b), err
}

// A complete body is sent in one write.
func TestWholeBody(t *testing.T) {
	body := bytes.Repeat([]byte("b"), MostHeld)
	half := string(body[len(body)/2:])
	for size, want := range map[string][]string{"": {half}, "4095": {half}, "4096": nil} {
		conn := &written{room: 1 << 20}
		c := &Conn{Conn: conn, l: new(limited)}
		to := &collecting{httptest.NewRecorder(), c}
		if size != "" {
			to.Header().Set("Content-Length", size)
		}
		if n, err := Write(Context(t.Context(), c), to, body); n != len(body) || err != nil {
			t.Errorf("%s: %d, %v", size, n, err)
		}
		if d := cmp.Diff(want, conn.writes); d != "" {
			t.Errorf("Content-Length %q (-want +got):\n%s", size, d)
		}
		if _, err := c.Write(to.Body.Bytes()); err != nil || len(conn.writes) != 2 || c.buffered != nil { // sent at the end of the request
			t.Errorf("Content-Length %q: %d writes, %v", size, len(conn.writes), err)
		}
	}
}
