package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/internal/pgcluster"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/all"
)

// leases measures the rate at which workers lease and end turns in a database, without pulls.
func (b *bench) leases(ctx context.Context, hosts int) (err error) {
	if err := os.Chmod(b.dir, 0o711); err != nil { //nolint:gosec // the server runs as another user
		return err
	}
	c, err := pgcluster.New(ctx, b.dir, "shared_buffers=512MB", "max_wal_size=4GB")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	dsn, err := c.Create(ctx, "fleet")
	if err != nil {
		return err
	}
	st, err := all.Open(ctx, dsn+"&pool_max_conns=32", nil)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	began := time.Now()
	_, _, err = st.Fleet().Put(ctx, func(yield func(store.FleetSite, error) bool) {
		for i := range hosts {
			if !yield(store.FleetSite{URL: fmt.Sprintf("https://h%d.example/", i)}, nil) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	put := time.Since(began)
	if err := c.Exec(ctx, "fleet", "VACUUM ANALYZE"); err != nil {
		return err
	}
	folders, err := filepath.Glob(filepath.Join(b.dir, "pg*", "data", "base"))
	if err != nil || len(folders) != 1 {
		return fmt.Errorf("%d servers: %w", len(folders), err)
	}
	size, err := folderSize(folders[0])
	if err != nil {
		return err
	}
	before, err := b.leaseTimes()
	if err != nil {
		return err
	}
	turns, took, err := leaseAll(ctx, st, 16, 20*time.Second)
	if err != nil {
		return err
	}
	after, err := b.leaseTimes()
	if err != nil {
		return err
	}
	client, server := after[0]-before[0], after[1]-before[1]
	each := (client + server).Seconds() / float64(turns)
	rate := 2 / each
	b.add(row{
		what:  fmt.Sprintf("turns leased and ended, each end in a separate transaction, by 16 workers over PostgreSQL 15 with %d hosts (added in %.0f s, %d bytes each on disk)", hosts, put.Seconds(), size/int64(hosts)),
		limit: "2800 a second (10 M sites hourly)",
		ours: fmt.Sprintf("%.0f a second of two cores: %.2f ms of processor time each, %.2f of it the server's; %.0f a second by the clock",
			rate, each*1000, server.Seconds()*1000/float64(turns), float64(turns)/took.Seconds()),
		ratio: fmt.Sprintf("%.2f", rate/2800), reach: "at least 1", good: rate >= 2800,
	})
	if dsn, err = c.Create(ctx, "crowded"); err != nil {
		return err
	}
	return b.crowdedLeases(ctx, dsn, hosts)
}

// crowdedLeases measures leasing and ending turns of a host with many sites.
func (b *bench) crowdedLeases(ctx context.Context, dsn string, sites int) error {
	const host = "crowded.example"
	st, err := all.Open(ctx, dsn, nil)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	_, _, err = st.Fleet().Put(ctx, func(yield func(store.FleetSite, error) bool) {
		for i := range sites {
			if !yield(store.FleetSite{URL: fmt.Sprintf("https://%s/%d/", host, i)}, nil) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	const turns = 200
	began := time.Now()
	for range turns {
		leased, _, err := st.Fleet().Lease(ctx, "one", 1, time.Minute, nil)
		if err != nil || len(leased) != 1 || leased[0].Site.Host != host {
			return fmt.Errorf("turns %v: %w", leased, err)
		}
		if err := st.Fleet().Done(ctx, leased[0].Lease, leased[0].Site.URL, store.TurnResult{Due: began.Add(time.Hour), OK: true, Requests: 1}); err != nil {
			return err
		}
	}
	each := time.Since(began) / turns
	b.add(row{
		what:  fmt.Sprintf("one turn at a time, leased and ended, of a host with %d sites that are all due", sites),
		limit: "100 ms", ours: fmt.Sprintf("%.1f ms", each.Seconds()*1000), ratio: fmt.Sprintf("%.2f", each.Seconds()*10), reach: "at most 1", good: each <= 100*time.Millisecond,
	})
	return nil
}

// leaseTimes returns the processor time of this process, and of the child processes of the
// PostgreSQL server in b.dir.
func (b *bench) leaseTimes() (times [2]time.Duration, err error) {
	files, err := filepath.Glob(filepath.Join(b.dir, "pg*", "data", "postmaster.pid"))
	if err != nil || len(files) != 1 {
		return times, fmt.Errorf("%d servers: %w", len(files), err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return times, err
	}
	parent, _, _ := strings.Cut(string(text), "\n")
	children, err := os.ReadFile(filepath.Join("/proc", parent, "task", parent, "children"))
	if err != nil {
		return times, err
	}
	if times[0], err = processorOf(0); err != nil {
		return times, err
	}
	for _, child := range strings.Fields(string(children)) {
		pid, err := strconv.Atoi(child)
		if err != nil {
			return times, err
		}
		spent, err := processorOf(pid)
		if err != nil {
			return times, err
		}
		times[1] += spent
	}
	return times, nil
}

// leaseAll leases and ends turns for the given time, and returns their number.
func leaseAll(ctx context.Context, st store.Store, workers int, length time.Duration) (turns int64, took time.Duration, err error) {
	const batch = 64
	state := make([]byte, 250)
	var done atomic.Int64
	var all sync.WaitGroup
	errs := make(chan error, workers)
	began := time.Now()
	for w := range workers {
		all.Go(func() {
			errs <- func() error {
				for time.Since(began) < length {
					leased, _, err := st.Fleet().Lease(ctx, fmt.Sprint("worker ", w), batch, time.Minute, nil)
					if err != nil {
						return err
					}
					for _, t := range leased {
						r := store.TurnResult{Due: time.Now().Add(time.Hour), OK: true, Name: t.Site.URL, State: state, Requests: 1, Received: 730, Delay: 250 * time.Millisecond}
						if err := st.Fleet().Done(ctx, t.Lease, t.Site.URL, r); err != nil {
							return err
						}
						done.Add(1)
					}
				}
				return nil
			}()
		})
	}
	all.Wait()
	took = time.Since(began)
	close(errs)
	for e := range errs {
		err = errors.Join(err, e)
	}
	return done.Load(), took, err
}
