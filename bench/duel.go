package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// work is the work that a side does in one turn.
type work struct {
	units  float64       // number of requests, pages or megabytes
	passed time.Duration // wall clock
	spent  time.Duration // processor time, user and system, of the working process
}

// side is one of the two programs that a duel compares. Each call runs one turn.
type side func(ctx context.Context) (work, error)

// figures are medians of a side's turns.
type figures struct {
	Rate float64 // units per second
	Each float64 // seconds of processor time per unit
}

// score is the result of a duel. The ratios are medians of the ratios of adjacent turns, which
// other load slows down equally. If a ratio is above 1, millrace is better.
type score struct {
	Peer, Ours figures
	Rate, Cost float64 // ratios by wall clock, and by processor time
}

// duel runs the peer and millrace in alternating turns. The side that starts alternates, too.
func duel(ctx context.Context, turns int, peer, ours side) (s score, err error) {
	var rates, costs [2][]float64
	for i := range turns {
		for k := range 2 {
			at := (i + k) % 2
			w, err := [2]side{peer, ours}[at](ctx)
			if err == nil && (w.units == 0 || w.passed == 0 || w.spent == 0) {
				err = errors.New("a turn did no work")
			}
			if err != nil {
				return s, err
			}
			rates[at] = append(rates[at], w.units/w.passed.Seconds())
			costs[at] = append(costs[at], w.spent.Seconds()/w.units)
		}
	}
	var rate, cost []float64
	for i := range turns {
		rate, cost = append(rate, rates[1][i]/rates[0][i]), append(cost, costs[0][i]/costs[1][i])
	}
	return score{
		Peer: figures{median(rates[0]), median(costs[0])}, Ours: figures{median(rates[1]), median(costs[1])},
		Rate: median(rate), Cost: median(cost),
	}, nil
}

// row returns a line of the table. It compares processor time; a reach of 0 sets no
// target.
func (s *score) row(what, unit, peer string, reach float64) row {
	r := row{
		what: what, limit: s.Peer.string(unit) + " (" + peer + ")", ours: s.Ours.string(unit),
		ratio: fmt.Sprintf("%.2f (rate %.2f)", s.Cost, s.Rate), good: s.Cost >= reach,
	}
	if reach > 0 {
		r.reach = fmt.Sprint(reach)
	}
	return r
}

func (f figures) string(unit string) string {
	return fmt.Sprintf("%.4g %s/s, %s each", f.Rate, unit, short(time.Duration(f.Each*1e9)))
}

// short rounds a duration to three significant digits.
func short(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d.Abs()/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// during measures this process while do runs; units is the number of units that do processes.
func during(units float64, do func() error) (work, error) {
	began, before := time.Now(), processorTime()
	err := do()
	return work{units, time.Since(began), time.Duration((processorTime() - before) * 1e9)}, err
}

// doing returns a side that calls do in each turn. do makes the server work and returns the number
// of units.
func (s *server) doing(do func() (float64, error)) side {
	return func(context.Context) (w work, err error) {
		before, err := processorOf(s.pid)
		if err != nil {
			return w, err
		}
		began := time.Now()
		if w.units, err = do(); err != nil {
			return w, err
		}
		w.passed = time.Since(began)
		after, err := processorOf(s.pid)
		w.spent = after - before
		return w, err
	}
}

// ended runs a command until it exits and returns its work, with units unset.
func ended(c *exec.Cmd) (work, error) {
	began := time.Now()
	err := c.Run()
	w := work{passed: time.Since(began)}
	if c.ProcessState != nil {
		w.spent = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	return w, err
}

// maxMemory returns the peak resident memory in MB of a command that has exited.
func maxMemory(c *exec.Cmd) float64 {
	usage, _ := c.ProcessState.SysUsage().(*syscall.Rusage)
	return float64(usage.Maxrss) / 1024
}

// processorOf returns the processor time of a process; pid 0 is this process.
func processorOf(pid int) (time.Duration, error) {
	var t unix.Timespec
	const all = 2 // CPUCLOCK_SCHED of the kernel: all threads of a process, to the nanosecond
	if err := unix.ClockGettime(int32(^pid<<3|all), &t); err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// quiet waits until a process has been nearly idle for two seconds, but at most 20 minutes, and
// returns its processor time. A snapshot of 1,000,000 pages takes minutes.
func quiet(ctx context.Context, pid int) (time.Duration, error) {
	last := time.Duration(-1)
	for range 600 {
		now, err := processorOf(pid)
		if err != nil {
			return 0, err
		}
		if last >= 0 && now-last <= 100*time.Millisecond {
			return now, nil
		}
		last = now
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
	return last, nil
}

// against compares a server with a bare net/http server that always writes the same bytes: the
// first server's response for the middle path.
func (b *bench) against(ctx context.Context, s *server, what string, paths []string, header http.Header, status int, reach float64) error {
	q, sample, err := b.warm(ctx, s, paths, header, status)
	if err != nil {
		return err
	}
	bare, err := startPeer(ctx, peerTask{Answer: &sample})
	if err != nil {
		return err
	}
	defer bare.stop()
	if _, err := quiet(ctx, s.pid); err != nil {
		return err
	}
	found, err := duel(ctx, b.turns, q.of(bare), q.of(s))
	if err != nil {
		return err
	}
	if status == http.StatusOK {
		what += fmt.Sprintf(", %d bytes", len(sample.Body))
	}
	b.add(found.row(what+", wrk -t1 -c16", "requests", "bare net/http", reach))
	return nil
}
