package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/millrace/millrace"
	stores "github.com/millrace/millrace/store/all"
)

const benchSite = "http://bench.example/"

// words are the words of a text that compresses about as well as prose.
var words = strings.Fields(`the gate of a mill opens slowly and water runs along the leat until it meets the wheel whose
buckets fill one after another while the miller listens for the stones because a dry stone sounds different from one that
has grain between it and its fellow a good spring day gives eight hours of grinding before the pond is low`)

// fill returns the file name of this run's store of n pages, whose M-URLs are about 4 kB. If the
// store does not exist, fill creates it.
func (b *bench) fill(ctx context.Context, n int) (string, error) {
	file := filepath.Join(b.dir, fmt.Sprintf("pages-%d.db", n))
	return file, fillStore(ctx, file, n)
}

// fillStore writes n pages to a store, unless the store already contains them.
func fillStore(ctx context.Context, dsn string, n int) error {
	st, err := stores.Open(ctx, dsn, nil)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	site, err := st.Site(ctx, benchSite, benchSite)
	if err != nil {
		return err
	}
	v, err := site.Head(ctx)
	if err == nil && v.Site().Pages == n {
		return nil
	}
	var batch []millrace.Change
	for i := range n {
		url := fmt.Sprintf("%sp/%d/", benchSite, i)
		batch = append(batch, millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: url}, Page: synthetic(i, url)})
		if len(batch) == 500 || i == n-1 {
			if _, err := site.Apply(ctx, "bench", batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return nil
}

func synthetic(i int, url string) *millrace.Page {
	p := &millrace.Page{
		URL: url, Title: fmt.Sprintf("Page %d of the bench", i), Language: "en", Author: "A. Miller",
		Description: "A page for requests.", Published: time.Unix(1_700_000_000+int64(i), 0).UTC(),
		Known: millrace.AllFields &^ millrace.FieldModified, Detail: millrace.DetailBlocks,
	}
	seed := uint32(i)*2654435761 + 1
	for size := 0; size < 3500; { // the M-URL is about 4 kB
		var w strings.Builder
		for range 60 {
			seed = seed*1664525 + 1013904223
			w.WriteString(words[seed>>16%uint32(len(words))])
			w.WriteByte(' ')
		}
		text := strings.TrimSpace(w.String()) + "."
		p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.TextBlock, Text: text})
		size += len(text)
	}
	return p
}

// server is a running process: `millrace serve` or a peer.
type server struct {
	url   string
	pid   int
	ready time.Duration // time from the start of `millrace serve` to its first edition
	spent time.Duration // processor time until then
	stop  func()
}

var readyLine = regexp.MustCompile(`^ready (http://\S+/)$`)

// startServer starts `millrace serve` for a source and waits until it is ready. The server runs
// until stop is called.
func (b *bench) startServer(ctx context.Context, source string, args ...string) (*server, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := exec.CommandContext(ctx, "nice", append([]string{"-n", b.nice, b.binary, "serve", source, "--listen", "127.0.0.1:0", "--quiet"}, args...)...)
	c.Env = append([]string{"HOME=" + b.dir, "PATH=/usr/bin:/bin"}, b.env...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	stderr, err := c.StderrPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	began := time.Now()
	if err := c.Start(); err != nil {
		cancel()
		return nil, err
	}
	s := &server{pid: c.Process.Pid, stop: func() { cancel(); _ = c.Wait() }}
	lines := bufio.NewScanner(stderr)
	var output []string
	for lines.Scan() {
		output = append(output, lines.Text())
		if m := readyLine.FindStringSubmatch(lines.Text()); m != nil {
			s.url, s.ready = m[1], time.Since(began)
			if s.spent, err = processorOf(s.pid); err != nil {
				s.stop()
				return nil, err
			}
			go func() { _, _ = io.Copy(io.Discard, stderr) }()
			return s, nil
		}
	}
	s.stop()
	return nil, fmt.Errorf("serve %s: %s", source, strings.Join(output, "\n"))
}

// fetch requests a URL without a content coding.
func fetch(ctx context.Context, url string) (http.Header, []byte, error) {
	return get(ctx, plainClient, url, identity)
}

var identity = http.Header{"Accept-Encoding": {"identity"}}

// get requests a URL with header fields. It fails unless the status is 200, or 304 if header has
// If-None-Match. It does not decode the body.
func get(ctx context.Context, client *http.Client, url string, header http.Header) (http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, nil, err
	}
	req.Header = header.Clone()
	resp, err := client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	want := http.StatusOK
	if header.Get("If-None-Match") != "" {
		want = http.StatusNotModified
	}
	if err == nil && resp.StatusCode != want {
		err = fmt.Errorf("%s: %s, not %d", url, resp.Status, want)
	}
	return resp.Header, body, err
}

var plainClient = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16}}
