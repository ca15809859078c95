package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/bench/feeder"
)

const feederListeners = 1000

// feederEvents measures many clients of the event stream while pages change.
func (b *bench) feederEvents(ctx context.Context, file string, memory int) error {
	s, err := b.startFeeder(ctx, feeder.Task{File: file, Base: benchSite, Memory: memory})
	if err != nil {
		return err
	}
	defer s.stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var up, done sync.WaitGroup
	heard := make([]*listener, feederListeners)
	for i := range heard {
		l := new(listener)
		heard[i] = l
		up.Add(1)
		done.Go(func() { l.err = l.listen(ctx, s.url, up.Done) })
	}
	up.Wait()
	idle, err := residentMB(s.pid)
	if err != nil {
		return err
	}
	var changes []feeder.Change
	if err := s.do("change", &changes); err != nil {
		return err
	}
	time.AfterFunc(10*time.Second, cancel) // ends the listeners that still wait
	done.Wait()
	var published, written time.Duration
	missing := 0
	for _, l := range heard {
		if l.err != nil && ctx.Err() == nil {
			return fmt.Errorf("listener: %w", l.err)
		}
		for i, at := range l.at {
			if at == 0 {
				missing++
				continue
			}
			published = max(published, time.Duration(at-changes[i].Published))
			written = max(written, time.Duration(at-changes[i].Written))
		}
	}
	peak, err := statusMB(s.pid, "VmHWM:")
	if err != nil {
		return err
	}
	if missing > 0 {
		return fmt.Errorf("%d of %d events are missing", missing, feederListeners*feeder.Changes)
	}
	what := fmt.Sprintf("%d listeners, %d changes a second for %.0f s: ",
		feederListeners, time.Second/feeder.Every, (feeder.Changes * feeder.Every).Seconds())
	if memory > 0 {
		what = fmt.Sprintf("with GOMEMLIMIT=%dMiB, ", memory) + what
	}
	b.add(row{
		what: what + "slowest delivery, from the publication of its edition", limit: "1 s",
		ours: fmt.Sprintf("%.2f s", published.Seconds()), ratio: fmt.Sprintf("%.2f", published.Seconds()),
		reach: "at most 1", good: published <= time.Second,
	})
	b.add(row{what: what + "the same, from the time when the page was written", ours: fmt.Sprintf("%.2f s", written.Seconds())})
	b.add(row{
		what: what + fmt.Sprintf("peak resident memory of the server (%.0f MB before the first change)", idle), limit: "100 MB",
		ours: fmt.Sprintf("%.0f MB", peak), ratio: fmt.Sprintf("%.2f", peak/100), reach: "below 1", good: peak < 100,
	})
	return nil
}

// listener is one client, with the arrival time of each change, in nanoseconds.
type listener struct {
	at  [feeder.Changes]int64
	err error
}

// listen receives events until every change has arrived. It calls ready once: when the stream is
// ready, or when listen returns.
func (l *listener) listen(ctx context.Context, base string, ready func()) error {
	up := sync.OnceFunc(ready)
	defer up()
	addr := strings.TrimSuffix(strings.TrimPrefix(base, "http://"), "/")
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := fmt.Fprintf(c, "GET /openfeeder/events HTTP/1.1\r\nHost: %s\r\n\r\n", addr); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 16<<10), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	lines := bufio.NewReaderSize(resp.Body, 16<<10)
	for heard := 0; heard < feeder.Changes; {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return errors.New("stream ended early")
		}
		if err != nil {
			return err
		}
		if bytes.HasPrefix(line, []byte("event: ready")) {
			up()
		}
		if bytes.HasPrefix(line, []byte("event: error")) {
			why, _ := lines.ReadString('\n')
			return errors.New(why)
		}
		_, rest, ok := bytes.Cut(line, []byte(`"title":"Change `))
		if !ok {
			continue
		}
		number, _, _ := bytes.Cut(rest, []byte("."))
		i, err := strconv.Atoi(string(number))
		if err != nil || i >= feeder.Changes || l.at[i] != 0 {
			return fmt.Errorf("unexpected or duplicate event: %s", line)
		}
		l.at[i] = time.Now().UnixNano()
		heard++
	}
	return nil
}
