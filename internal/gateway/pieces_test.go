package gateway

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/millrace/millrace/internal/proxy"
)

// Pages of any size arrive unchanged, one after the other over one connection.
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

// A page sent in pieces of any size arrives unchanged. Each piece is passed on at once.
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
	}), proxy.Options{}, setup{}, new(ServerOptions))
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
					t.Errorf("%d bytes in pieces of %d: %v", size, flush, err)
				}
				if flush < size {
					next <- true // the piece has arrived before the next one is sent
				}
			}
			if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
				t.Errorf("%d bytes in pieces of %d: %d more, %v", size, flush, len(rest), err)
			}
			_ = resp.Body.Close()
		}
	}
}
