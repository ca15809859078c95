package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// written is a connection that notes what is written to it, until it is full.
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

// What is held goes out before what comes next, or when it is released, and
// nothing is held otherwise.
func TestHold(t *testing.T) {
	w := &written{room: 1 << 20}
	c := &counted{Conn: w, l: new(limited)}
	write := func(s string) {
		t.Helper()
		if n, err := c.Write([]byte(s)); n != len(s) || err != nil {
			t.Errorf("write %.10q: %d, %v", s, n, err)
		}
	}
	release := func() {
		t.Helper()
		if err := c.release(); err != nil {
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
	c.hold()
	write("b")
	check("held")
	write("c")
	check("the next one takes it along", "b", "c")
	write("d")
	release()
	check("released", "d")
	release()
	check("there is nothing to release")
	large := string(bytes.Repeat([]byte("e"), mostHeld+1))
	c.hold()
	write(large)
	write(large[1:])
	check("large ones go at once", large)
	release()
	check("just small enough", large[1:])
	write("f")
	check("held no more", "f")

	for room, want := range []int{0, 0, 0, 1, 2} { // of "gh" and "ij"
		w.room, w.writes = room, nil
		c.hold()
		write("gh")
		if n, err := c.Write([]byte("ij")); n != want || room < 4 && !errors.Is(err, errFull) {
			t.Errorf("with room for %d: %d, %v", room, n, err)
		}
		release()
	}
	w.room = 0
	c.hold()
	write("k")
	if err := c.release(); !errors.Is(err, errFull) {
		t.Errorf("what is held and does not go: %v", err)
	}
}

// collecting is a server that sends half of what is written, and collects the rest.
type collecting struct {
	*httptest.ResponseRecorder
	c *counted
}

func (w *collecting) Write(b []byte) (int, error) {
	_, err := w.c.Write(b[:len(b)/2])
	w.Body.Write(b[len(b)/2:])
	return len(b), err
}

// A body that is whole goes out at once.
func TestWholeBody(t *testing.T) {
	body := bytes.Repeat([]byte("b"), mostHeld)
	half := string(body[len(body)/2:])
	for size, want := range map[string][]string{"": {half}, "4095": {half}, "4096": nil} {
		conn := &written{room: 1 << 20}
		c := &counted{Conn: conn, l: new(limited)}
		to := &collecting{httptest.NewRecorder(), c}
		if size != "" {
			to.Header().Set("Content-Length", size)
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		w := &response{ResponseWriter: to, r: r.WithContext(withConn(r.Context(), c))}
		if n, err := w.Write(body); n != len(body) || err != nil {
			t.Errorf("%s: %d, %v", size, n, err)
		}
		if d := cmp.Diff(want, conn.writes); d != "" {
			t.Errorf("Content-Length %q (-want +got):\n%s", size, d)
		}
		if _, err := c.Write(to.Body.Bytes()); err != nil || len(conn.writes) != 2 || c.held != nil { // when the request ends
			t.Errorf("Content-Length %q: %d writes, %v", size, len(conn.writes), err)
		}
	}
}

// Pages of any size come as they are, one after the other over one connection.
func TestWholeBodies(t *testing.T) {
	files := site()
	var sizes []int
	for n := 1000; n < 9000; n += 97 {
		sizes = append(sizes, n)
		files.MapFS[fmt.Sprintf("%d.html", n)] = &fstest.MapFile{Data: bytes.Repeat([]byte("x"), n), ModTime: past}
	}
	g := setup{files: files}.gateway(t)
	address, _ := serve(t, g)
	client := plainClient(t)
	for _, n := range sizes {
		for range 2 {
			resp, err := client.Get(fmt.Sprintf("http://%s/%d.html", address, n))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || len(body) != n || resp.ContentLength != int64(n) {
				t.Errorf("%d bytes: %d, %d, %v", n, len(body), resp.ContentLength, err)
			}
		}
	}
}

// A page in pieces of any size comes as it was sent, and each piece at once,
// whatever else is to come.
func TestProxyPieces(t *testing.T) {
	noise := make([]byte, 300<<10)
	random := rand.NewChaCha8([32]byte{7})
	_, _ = random.Read(noise)
	next := make(chan bool)
	b := inFront(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var size, flush int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d/%d", &size, &flush); err != nil {
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		for piece := range slices.Chunk(noise[:size], max(flush, 1)) {
			_, _ = w.Write(piece)
			if flush < size {
				_ = http.NewResponseController(w).Flush()
				<-next
			}
		}
	}), ProxyOptions{}, setup{}, new(ServerOptions))
	client := plainClient(t)
	for _, size := range []int{1, 2047, 2048, 2049, 4095, 4096, 4097, 5000, 6144, 8191, 8192, 8193, 100_000, 131_072, 300_000} {
		for _, flush := range []int{size, (size + 2) / 3} {
			resp, err := client.Get(fmt.Sprintf("%s/%d/%d", b.url, size, flush))
			if err != nil {
				t.Fatal(err)
			}
			for piece := range slices.Chunk(noise[:size], flush) {
				got := make([]byte, len(piece))
				if _, err := io.ReadFull(resp.Body, got); err != nil || !bytes.Equal(got, piece) {
					t.Errorf("%d bytes by %d: %v", size, flush, err)
				}
				if flush < size {
					next <- true // it is all there although nothing else comes
				}
			}
			if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
				t.Errorf("%d bytes by %d: %d more, %v", size, flush, len(rest), err)
			}
			_ = resp.Body.Close()
		}
	}
}
