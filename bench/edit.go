package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// editLimits are the limits of the cost of one edit, by number of pages.
var editLimits = []struct {
	pages     int
	processor time.Duration
	written   int64 // bytes
	lag       time.Duration
}{
	{1_000, 100 * time.Millisecond, 1 << 20, 1500 * time.Millisecond},
	{10_000, 150 * time.Millisecond, 1 << 20, 1500 * time.Millisecond},
	{100_000, 300 * time.Millisecond, 2 << 20, 1500 * time.Millisecond},
	{1_000_000, time.Second, 3 << 20, 3 * time.Second},
}

// edits measures the cost of one edit until it is visible, the work that is deferred until after
// that, and the delays until edits, one a second, are visible.
func (b *bench) edits(ctx context.Context, large bool) error {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30)) // lists are held in memory
	for _, l := range editLimits {
		if l.pages > 100_000 && !large {
			break
		}
		e, err := b.startEditing(ctx, l.pages)
		if err != nil {
			return err
		}
		cost, err := e.edit(ctx)
		if err != nil {
			e.close()
			return err
		}
		site := fmt.Sprintf("one edit of %d pages: ", l.pages)
		b.add(row{
			what: site + "processor time until it is visible", limit: l.processor.String(), ours: short(cost.spent).String(),
			ratio: fmt.Sprintf("%.2f", cost.spent.Seconds()/l.processor.Seconds()), reach: "at most 1", good: cost.spent <= l.processor,
		})
		b.add(row{
			what: site + "bytes written until it is visible", limit: megabytes(l.written),
			ours:  fmt.Sprintf("%s (page documents and lists %s, store and index %s)", megabytes(cost.written), megabytes(cost.artifacts), megabytes(cost.written-cost.artifacts)),
			ratio: fmt.Sprintf("%.2f", float64(cost.written)/float64(l.written)), reach: "at most 1", good: cost.written <= l.written,
		})
		lags, err := e.everySecond(ctx, seriesEdits, 100*time.Millisecond)
		e.close()
		if err != nil {
			return err
		}
		b.add(row{
			what: fmt.Sprintf("commit to visible in every protocol, %d edits, one a second, of %d pages: p99", lags.edits, l.pages), limit: l.lag.String(),
			ours:  fmt.Sprintf("%s (p50 %s; most often the last: %s)", short(lags.at(0.99)), short(lags.at(0.5)), lags.last()),
			ratio: fmt.Sprintf("%.2f", lags.at(0.99).Seconds()/l.lag.Seconds()), reach: "at most 1", good: lags.at(0.99) <= l.lag,
		})
		share, err := b.deferred(ctx, l.pages, cost.spent)
		if err != nil {
			return err
		}
		b.add(row{
			what:  fmt.Sprintf("deferred work, share of a processor over %s with an edit a minute, of %d pages", deferring, l.pages),
			limit: "10 %", ours: fmt.Sprintf("%.1f %% (after a single edit, until it is idle: %s, %s)", 100*share, short(cost.deferred), megabytes(cost.deferredWritten)),
			ratio: fmt.Sprintf("%.2f", share/0.1), reach: "at most 1", good: share <= 0.1,
		})
	}
	return b.publications(ctx, 10_000)
}

func megabytes(n int64) string { return fmt.Sprintf("%.2f MB", float64(n)/(1<<20)) }

// editing is a site that is edited, and its server.
type editing struct {
	*server
	file  string
	pages int
	count int // number of edits so far
	db    store.Store
	site  store.Site
}

// startEditing starts a server with additional flags for a site of the given number of pages, and
// opens the server's store for edits.
func (b *bench) startEditing(ctx context.Context, pages int, flags ...string) (e *editing, err error) {
	e = &editing{pages: pages}
	if e.file, err = b.fill(ctx, pages); err != nil {
		return nil, err
	}
	if e.server, err = b.startServer(ctx, e.file, append(flags, "--rehost")...); err != nil {
		return nil, err
	}
	if e.db, err = stores.Open(ctx, e.file, nil); err == nil {
		e.site, err = e.db.Site(ctx, benchSite, benchSite)
	}
	if err != nil {
		e.close()
	}
	return e, err
}

func (e *editing) close() {
	e.stop()
	if e.db != nil {
		_ = e.db.Close()
	}
}

// number returns the number of the page that an edit changes. The pages are spread over the site.
func (e *editing) number(edit int) int { return (edit*7919 + e.pages/3) % e.pages }

// next returns a page that was not edited before, its edited form and the new text.
func (e *editing) next() (page int, edited *millrace.Page, sentence string) {
	e.count++
	page = e.number(e.count)
	edited = synthetic(page, fmt.Sprintf("%sp/%d/", benchSite, page))
	sentence = fmt.Sprintf("This is edit %d of the bench.", e.count)
	edited.Title += fmt.Sprintf(", edit %d", e.count)
	edited.Blocks = append(edited.Blocks, millrace.Block{Type: millrace.TextBlock, Text: sentence})
	return page, edited, sentence
}

// commit writes an edited page. It retries while the store is busy.
func (e *editing) commit(ctx context.Context, page *millrace.Page) error {
	for {
		_, err := e.site.Apply(ctx, "bench", []millrace.Change{{Kind: millrace.Put, Ref: millrace.Ref{URL: page.URL}, Page: page}})
		if err == nil || millrace.ErrorCode(err) != "store-busy" {
			return err
		}
	}
}

// editCost is the cost of an edit, until it is visible and afterwards.
type editCost struct {
	spent, deferred          time.Duration
	written, deferredWritten int64
	artifacts                int64 // bytes of artifacts, part of written
}

// edit returns the median cost of several edits.
func (e *editing) edit(ctx context.Context) (cost editCost, err error) {
	const rounds = 5
	var values [5][]float64
	for round := range rounds + 1 { // the first edit is not counted, because it creates data that later edits reuse
		if _, err := quiet(ctx, e.pid); err != nil {
			return cost, err
		}
		page, edited, sentence := e.next()
		var at [3]editCost // before, when visible, when all work is done
		if at[0], err = e.state(); err != nil {
			return cost, err
		}
		if err := e.commit(ctx, edited); err != nil {
			return cost, err
		}
		if err := visible(ctx, fmt.Sprintf("%sp/%d/llm.json", e.url, page), sentence, 10*time.Millisecond); err != nil {
			return cost, err
		}
		if at[1], err = e.state(); err != nil {
			return cost, err
		}
		if _, err := quiet(ctx, e.pid); err != nil {
			return cost, err
		}
		if at[2], err = e.state(); err != nil {
			return cost, err
		}
		if round == 0 {
			continue
		}
		for i, v := range []float64{
			float64(at[1].spent - at[0].spent), float64(at[2].spent - at[1].spent), float64(at[1].written - at[0].written),
			float64(at[2].written - at[1].written), float64(at[1].artifacts - at[0].artifacts),
		} {
			values[i] = append(values[i], v)
		}
	}
	return editCost{
		time.Duration(median(values[0])), time.Duration(median(values[1])), int64(median(values[2])), int64(median(values[3])), int64(median(values[4])),
	}, nil
}

// state returns the server's processor time and bytes written so far, and the current size of its
// artifacts.
func (e *editing) state() (c editCost, err error) {
	if c.spent, err = processorOf(e.pid); err != nil {
		return c, err
	}
	if c.written, err = bytesWritten(e.pid); err != nil {
		return c, err
	}
	c.artifacts, err = folderSize(e.file + "-files")
	return c, err
}

// folderSize returns the size of all files below a folder, in bytes.
func folderSize(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the file was deleted in the meantime
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	})
	return n, err
}

// visible polls a document until it contains a text. It sends the ETag, so that the server writes
// little. The pause is every, or a tenth of the time since the start if that is longer, so that
// polling does not overload a slow server.
// Deferred work starts as soon as the document is visible, so bytes that are written in the last
// pause count as part of the edit.
func visible(ctx context.Context, url, text string, every time.Duration) error {
	d := watched{url: url}
	for began := time.Now(); ctx.Err() == nil; {
		if changed, err := d.ask(ctx); err != nil {
			return err
		} else if changed && strings.Contains(d.body, text) {
			return nil
		}
		time.Sleep(max(every, time.Since(began)/10))
	}
	return ctx.Err()
}

// bytesWritten returns the bytes that a process has written to files and sockets.
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

// deferring is the duration of a measurement of deferred work, by the server's clock. speed is the
// speed of that clock relative to real time. On two processors, shares up to a fifth are measurable.
const (
	deferring = 10 * time.Minute
	speed     = 10
)

// clocked returns a bench whose servers have a fast clock.
func (b *bench) clocked(ctx context.Context) (*bench, error) {
	binary, err := b.buildClocked(ctx)
	if err != nil {
		return nil, err
	}
	fast := *b
	fast.binary, fast.env = binary, []string{speedName + "=" + strconv.Itoa(speed)}
	return &fast, nil
}

// deferred returns the share of a processor that a server uses for deferred work if a page is edited
// every minute. The parameter visible is the processor time of an edit until it is visible.
func (b *bench) deferred(ctx context.Context, pages int, visible time.Duration) (share float64, err error) {
	fast, err := b.clocked(ctx)
	if err != nil {
		return 0, err
	}
	e, err := fast.startEditing(ctx, pages)
	if err != nil {
		return 0, err
	}
	defer e.close()
	e.count = 1000 // start with pages that have no edit yet
	spent, err := e.everyMinute(ctx, e.server)
	return (spent.Seconds() - visible.Seconds()*float64(deferring/time.Minute)) / deferring.Seconds(), err
}

// everyMinute edits a page every minute, by the servers' clock, and returns the processor time that
// the servers use.
func (e *editing) everyMinute(ctx context.Context, servers ...*server) (spent time.Duration, err error) {
	for _, s := range servers {
		before, err := quiet(ctx, s.pid)
		if err != nil {
			return 0, err
		}
		spent -= before
	}
	began := time.Now()
	for edits := range int(deferring / time.Minute) {
		time.Sleep(time.Until(began.Add(time.Duration(edits) * time.Minute / speed)))
		_, edited, _ := e.next()
		if err := e.commit(ctx, edited); err != nil {
			return 0, err
		}
	}
	time.Sleep(time.Until(began.Add(deferring / speed)))
	for _, s := range servers {
		after, err := processorOf(s.pid)
		if err != nil {
			return 0, err
		}
		spent += after
	}
	return spent, nil
}

// publications compares the processor time that edits cause in one server with the time they cause in
// two servers that use the same store but have different publications.
func (b *bench) publications(ctx context.Context, pages int) error {
	fast, err := b.clocked(ctx)
	if err != nil {
		return err
	}
	e, err := fast.startEditing(ctx, pages)
	if err != nil {
		return err
	}
	defer e.close()
	one, err := e.everyMinute(ctx, e.server)
	if err != nil {
		return err
	}
	second, err := fast.startServer(ctx, e.file, "--rehost", "--exclude", "/drafts")
	if err != nil {
		return err
	}
	defer second.stop()
	both, err := e.everyMinute(ctx, e.server, second)
	if err != nil {
		return err
	}
	b.add(row{
		what:  fmt.Sprintf("%s with an edit a minute of %d pages, two publications over one store: processor time", deferring, pages),
		limit: short(one).String() + " (one publication)", ours: short(both).String(),
		ratio: fmt.Sprintf("%.2f", both.Seconds()/one.Seconds()), reach: "at most 2.1", good: both.Seconds() <= 2.1*one.Seconds(),
	})
	return nil
}

// watched is a document that is polled.
type watched struct {
	url  string
	tag  string
	body string
	at   time.Time // when the header of the last changed response arrived
}

// ask reports whether the document changed since the last request.
func (d *watched) ask(ctx context.Context) (changed bool, err error) {
	header := http.Header{"Accept-Encoding": {"gzip"}}
	if d.tag != "" {
		header.Set("If-None-Match", d.tag)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return false, err
	}
	req.Header = header
	resp, err := plainClient.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNotModified:
		return false, nil
	case http.StatusOK:
		d.at = time.Now()
	default:
		return false, fmt.Errorf("%s: %s", d.url, resp.Status)
	}
	r := response{Header: resp.Header}
	if r.Body, err = io.ReadAll(resp.Body); err != nil {
		return false, err
	}
	plain, err := r.decoded()
	d.tag, d.body = resp.Header.Get("Etag"), string(plain)
	return true, err
}
