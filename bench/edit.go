package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	stores "github.com/millrace/millrace/store/all"
)

// editLimits are what one edit may cost a site with so many pages.
var editLimits = []struct {
	pages     int
	processor time.Duration
	written   int64 // bytes
}{
	{1_000, 100 * time.Millisecond, 1 << 20},
	{10_000, 150 * time.Millisecond, 1 << 20},
	{100_000, 300 * time.Millisecond, 2 << 20},
	{1_000_000, time.Second, 3 << 20},
}

// edits measures what one edited page costs a server: its processor time and
// what it writes until lists and documents have the edit, and how long that is.
func (b *bench) edits(ctx context.Context, large bool) error {
	for _, l := range editLimits {
		if l.pages > 100_000 && !large {
			break
		}
		spent, written, lag, after, err := b.edit(ctx, l.pages)
		if err != nil {
			return err
		}
		site := fmt.Sprintf("one edit of %d pages: ", l.pages)
		b.add(row{
			what: site + "processor time until it is visible", limit: l.processor.String(), ours: spent.Round(time.Millisecond).String(),
			ratio: fmt.Sprintf("%.2f", spent.Seconds()/l.processor.Seconds()), reach: "at most 1", good: spent <= l.processor,
		})
		b.add(row{
			what: site + "written until it is visible", limit: megabytes(l.written), ours: megabytes(written),
			ratio: fmt.Sprintf("%.2f", float64(written)/float64(l.written)), reach: "at most 1", good: written <= l.written,
		})
		b.add(row{what: site + "commit to visible, and processor time of deferred work", ours: fmt.Sprintf("%.2f s, %s", lag.Seconds(), after.Round(time.Millisecond))})
	}
	return nil
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/(1<<20)) }

// edit gives the medians over some edits. after is what the server works once the edit is visible.
func (b *bench) edit(ctx context.Context, pages int) (spent time.Duration, written int64, lag, after time.Duration, err error) {
	file, err := b.fill(ctx, pages)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	s, err := b.startServer(ctx, file)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	defer s.stop()
	st, err := stores.Open(ctx, file, nil)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	defer func() { _ = st.Close() }()
	site, err := st.Site(ctx, benchSite, benchSite)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	const rounds = 5
	var spents, writtens, lags, afters []float64
	for round := range rounds + 1 { // the first is not counted: what is made once is made
		if _, err := quiet(ctx, s.pid); err != nil {
			return 0, 0, 0, 0, err
		}
		i := (round*7919 + pages/3) % pages
		url := fmt.Sprintf("%sp/%d/", benchSite, i)
		page := synthetic(i, url)
		said := fmt.Sprintf("This is edit %d of the bench.", round)
		page.Blocks = append(page.Blocks, millrace.Block{Type: millrace.TextBlock, Text: said})
		before, err := processorOf(s.pid)
		if err != nil {
			return 0, 0, 0, 0, err
		}
		wrote, err := bytesWritten(s.pid)
		if err != nil {
			return 0, 0, 0, 0, err
		}
		began := time.Now()
		if _, err := site.Apply(ctx, "bench", []millrace.Change{{Kind: millrace.Put, Ref: millrace.Ref{URL: url}, Page: page}}); err != nil {
			return 0, 0, 0, 0, err
		}
		if err := visible(ctx, fmt.Sprintf("%sp/%d/llm.json", s.url, i), said); err != nil {
			return 0, 0, 0, 0, err
		}
		took := time.Since(began)
		now, err := processorOf(s.pid)
		if err != nil {
			return 0, 0, 0, 0, err
		}
		wroteNow, err := bytesWritten(s.pid)
		if err != nil {
			return 0, 0, 0, 0, err
		}
		end, err := quiet(ctx, s.pid)
		if err != nil {
			return 0, 0, 0, 0, err
		}
		if round == 0 {
			continue
		}
		spents, writtens = append(spents, float64(now-before)), append(writtens, float64(wroteNow-wrote))
		lags, afters = append(lags, float64(took)), append(afters, float64(end-now))
	}
	return time.Duration(median(spents)), int64(median(writtens)), time.Duration(median(lags)), time.Duration(median(afters)), nil
}

// visible waits until a document has a text.
func visible(ctx context.Context, url, text string) error {
	for ctx.Err() == nil {
		_, body, err := fetch(ctx, url)
		if err != nil {
			return err
		}
		if bytes.Contains(body, []byte(text)) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return ctx.Err()
}

// bytesWritten gives what a process has written to files and sockets.
func bytesWritten(pid int) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if n, ok := strings.CutPrefix(line, "wchar: "); ok {
			return strconv.ParseInt(strings.TrimSpace(n), 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/%d/io has no wchar", pid)
}
