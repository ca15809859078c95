//go:build unix

package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/pgcluster"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

const base = "https://example.com/"

// as returns a DSN with a different role.
func as(t *testing.T, dsn, role, password string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, password)
	return u.String()
}

func exec(t *testing.T, c *pgcluster.Cluster, database string, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := c.Exec(t.Context(), database, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// refused checks that Open fails with a code and a kind of error, and that the error does not
// contain the password.
func refused(t *testing.T, dsn string, o *store.Options, code string, is error) {
	t.Helper()
	s, err := Open(t.Context(), dsn, o)
	if err == nil {
		s.Close()
	}
	if millrace.ErrorCode(err) != code || !errors.Is(err, is) || strings.Contains(fmt.Sprint(err), "hush") {
		t.Errorf("want %s and %v: %v (%s)", code, is, err, millrace.ErrorCode(err))
	}
}

// pages returns a batch of n pages with the same text.
func pages(n int, text string) (batch []millrace.Change) {
	for i := range n {
		p := &millrace.Page{URL: fmt.Sprint(base, i), Title: text, Known: millrace.FieldTitle}
		batch = append(batch, millrace.Change{Ref: millrace.Ref{URL: p.URL}, Page: p})
	}
	return batch
}

func openSite(t *testing.T, s store.Store) store.Site {
	t.Helper()
	site, err := s.Site(t.Context(), base, base)
	if err != nil {
		t.Fatal(err)
	}
	return site
}

// titles counts the pages of a site by title.
func titles(t *testing.T, site store.Site) map[string]int {
	t.Helper()
	v, err := site.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for p, err := range v.Scan(t.Context(), millrace.Scan{}) {
		if err != nil {
			t.Fatal(err)
		}
		all[p.Title]++
	}
	return all
}

// TestRealRefusals opens databases that cannot be used, and a server that does not run.
func TestRealRefusals(t *testing.T) {
	c := cluster(t)
	readOnly := &store.Options{ReadOnly: true}
	_, empty := create(t, c)
	exec(t, c, "postgres", "CREATE ROLE miller LOGIN PASSWORD 'hush'", "CREATE DATABASE ascii ENCODING SQL_ASCII TEMPLATE template0 LOCALE 'C'")
	refused(t, as(t, empty, "miller", "hush-hush"), nil, "store-credentials", millrace.ErrForbidden)
	refused(t, as(t, empty, "other", "hush"), nil, "store-credentials", millrace.ErrForbidden)
	refused(t, c.URL("nowhere"), nil, "store-database", millrace.ErrNotFound)
	refused(t, c.URL("ascii"), nil, "no-store", millrace.ErrInvalid)
	refused(t, as(t, empty, "miller", "hush"), nil, "store-permission", millrace.ErrForbidden)
	refused(t, empty, readOnly, "not-found", millrace.ErrNotFound)
	refused(t, empty+"&grain=rye", nil, "store-dsn", millrace.ErrInvalid)

	foreign, dsn := create(t, c)
	exec(t, c, foreign, "CREATE TABLE store (id INT)")
	refused(t, dsn, nil, "no-store", millrace.ErrInvalid)
	foreign, dsn = create(t, c)
	exec(t, c, foreign, "CREATE TABLE entry (id INT)")
	refused(t, dsn, nil, "no-store", millrace.ErrInvalid)

	kept, dsn := create(t, c)
	s := openStore(t, dsn, nil)
	site := openSite(t, s)
	if _, err := site.Apply(t.Context(), "one", pages(3, "first")); err != nil {
		t.Fatal(err)
	}
	reader := openSite(t, openStore(t, dsn, readOnly))
	if _, err := reader.Apply(t.Context(), "one", pages(3, "second")); millrace.ErrorCode(err) != "store-read-only" || !errors.Is(err, millrace.ErrForbidden) {
		t.Error(err)
	}
	exec(t, c, kept, "UPDATE store SET version = 1000")
	openStore(t, dsn, nil) // tables of a newer version that this version may still use
	exec(t, c, kept, "UPDATE store SET oldest = 1000")
	refused(t, dsn, nil, "store-newer", millrace.ErrInvalid)
	exec(t, c, kept, "UPDATE store SET version = 1, oldest = 1")
	refused(t, dsn, nil, "store-older", millrace.ErrInvalid)
	exec(t, c, kept, fmt.Sprintf("UPDATE store SET version = %d", migrations[len(migrations)-1].version))

	c.Stop()
	refused(t, dsn, nil, "store-down", millrace.ErrUnavailable)
	if _, err := site.Apply(t.Context(), "one", pages(3, "second")); millrace.ErrorCode(err) != "store-down" || !errors.Is(err, millrace.ErrUnavailable) {
		t.Error(err)
	}
	if err := c.Standby(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused(t, dsn, nil, "store-read-only", millrace.ErrForbidden)
	if got := titles(t, openSite(t, openStore(t, dsn, readOnly))); got["first"] != 3 {
		t.Errorf("pages of a standby: %v", got)
	}
	if _, err := site.Apply(t.Context(), "one", pages(3, "second")); millrace.ErrorCode(err) != "store-read-only" {
		t.Error(err)
	}
}

// TestRealHalf interrupts a batch in the middle: the disk is full, or the server closes the
// connection or stops. No part of the batch may remain, and the same batch succeeds later.
func TestRealHalf(t *testing.T) {
	c := cluster(t)
	name, dsn := create(t, c)
	event := func() {}
	now := time.Now()
	s := openStore(t, dsn, &store.Options{Now: func() time.Time { event(); return now }})
	site := openSite(t, s)
	if _, err := site.Apply(t.Context(), "one", pages(300, "0")); err != nil {
		t.Fatal(err)
	}
	const full = `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN RAISE EXCEPTION ''no space left'' USING ERRCODE = ''disk_full''; END'`
	kill := fmt.Sprintf("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '%s' AND state = 'idle in transaction'", name)
	for i, f := range []struct {
		code          string
		before, after []string
		event         func()
	}{
		{"disk-full", []string{full, "CREATE TRIGGER full_disk BEFORE INSERT ON moment FOR EACH ROW EXECUTE FUNCTION full_disk()"}, []string{"DROP TRIGGER full_disk ON moment"}, nil},
		{"disk-full", []string{"CREATE TRIGGER full_disk BEFORE INSERT ON entry FOR EACH ROW WHEN (NEW.url LIKE '%250') EXECUTE FUNCTION full_disk()"}, []string{"DROP TRIGGER full_disk ON entry"}, nil},
		{"store-down", nil, nil, func() { exec(t, c, "postgres", kill) }},
		{"store-down", nil, nil, c.Kill},
	} {
		title := fmt.Sprint(i + 1)
		exec(t, c, name, f.before...)
		event = func() {
			event = func() {}
			if f.event != nil {
				f.event()
			}
		}
		_, err := site.Apply(t.Context(), "one", pages(300, title))
		if millrace.ErrorCode(err) != f.code || !errors.Is(err, millrace.ErrUnavailable) {
			t.Errorf("%d: %v", i, err)
		}
		if err := c.Exec(t.Context(), "postgres", "SELECT 1"); err != nil {
			if err := c.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := titles(t, site); got[fmt.Sprint(i)] != 300 || len(got) != 1 {
			t.Errorf("%d: %v", i, got)
		}
		exec(t, c, name, f.after...)
		if counts, err := site.Apply(t.Context(), "one", pages(300, title)); err != nil || counts.Updated != 300 {
			t.Errorf("%d again: %+v, %v", i, counts, err)
		}
	}
}

// TestRealMigrations creates and migrates a database by many processes at once. A process of the
// earlier version continues to work.
func TestRealMigrations(t *testing.T) {
	c := cluster(t)
	_, dsn := create(t, c)
	opens := func(known []migration) {
		t.Helper()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				s, err := open(t.Context(), dsn, record.Options(nil), known, nil)
				if err == nil {
					err = s.Close()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	opens(migrations)
	earlier := openSite(t, openStore(t, dsn, nil))
	newest := migrations[len(migrations)-1].version
	next := slices.Concat(migrations, []migration{{newest + 1, newest, "CREATE TABLE added (id BIGINT)"}})
	if _, err := open(t.Context(), dsn, record.Options(&store.Options{ReadOnly: true}), next, nil); millrace.ErrorCode(err) != "store-older" {
		t.Error(err)
	}
	opens(next)
	openStore(t, dsn, nil)
	if _, err := earlier.Apply(t.Context(), "one", pages(2, "x")); err != nil {
		t.Error(err)
	}
	failing := slices.Concat(next, []migration{{newest + 2, newest, "CREATE TABLE half (id BIGINT); SELECT 1/0"}})
	for range 2 {
		if _, err := open(t.Context(), dsn, record.Options(nil), failing, nil); err == nil || strings.Contains(err.Error(), "half") {
			t.Error(err)
		}
	}
	opens(next)
}

// TestRealSites writes to sites through several stores at once. Each site has every page once, and
// its log has no gap.
func TestRealSites(t *testing.T) {
	c := cluster(t)
	_, dsn := create(t, c)
	const sites, writers, batches, size = 3, 4, 5, 70
	var all sync.WaitGroup
	for w := range writers {
		s := openStore(t, dsn, nil)
		for n := range sites {
			all.Go(func() {
				name := fmt.Sprintf("https://%d.example/", n)
				site, err := s.Site(t.Context(), name, name)
				if err != nil {
					t.Error(err)
					return
				}
				for b := range batches {
					var batch []millrace.Change
					for i := range size {
						p := &millrace.Page{URL: fmt.Sprint(name, i), Title: fmt.Sprint(w, b, i), Known: millrace.FieldTitle}
						batch = append(batch, millrace.Change{Ref: millrace.Ref{URL: p.URL}, Page: p})
					}
					if _, err := site.Apply(t.Context(), "one", batch); err != nil {
						t.Error(err)
					}
					e := store.Event{Time: time.Now(), Bot: fmt.Sprint("bot", b), Path: fmt.Sprint("/", w), Endpoint: store.EndpointFetch, Status: 200}
					if err := s.Usage().Record(t.Context(), name, []store.Event{e, e}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	s := openStore(t, dsn, nil)
	for n := range sites {
		name := fmt.Sprintf("https://%d.example/", n)
		site, err := s.Site(t.Context(), name, name)
		if err != nil {
			t.Fatal(err)
		}
		v, err := site.Head(context.Background())
		if err != nil || v.Site().Pages != size || v.Site().Seq != writers*batches*size {
			t.Errorf("%s: %+v, %v", name, v.Site(), err)
		}
		last := uint64(0)
		for e, err := range s.Usage().Events(t.Context(), name, store.EventQuery{}) {
			if last++; err != nil || e.Number != last {
				t.Fatalf("event %d: %+v, %v", last, e, err)
			}
		}
		if last != writers*batches*2 {
			t.Errorf("%d events", last)
		}
	}
}

// TestRealClock opens a store on a server whose clock is ten minutes ahead of the processes. All
// times of the store are the server's.
func TestRealClock(t *testing.T) {
	c := cluster(t)
	name, dsn := create(t, c)
	exec(t, c, name, "CREATE SCHEMA skew",
		"CREATE FUNCTION skew.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$SELECT pg_catalog.clock_timestamp() + interval '10 minutes'$$",
		"ALTER DATABASE "+name+" SET search_path = skew, pg_catalog, public")
	s := openStore(t, dsn, nil)
	server := func(what string, at time.Time) {
		t.Helper()
		if ahead := time.Until(at); (ahead - 10*time.Minute).Abs() > 2*time.Minute {
			t.Errorf("%s is %v ahead", what, ahead)
		}
	}
	now, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server("the clock", now)
	l, err := s.Leases().Acquire(t.Context(), "one", "me", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	server("the end of a lease", l.Expires)
	// By the clock of this process, the lease ends too far in the future, as if a clock had been
	// set back.
	if _, err := s.Leases().Acquire(t.Context(), "one", "another", time.Minute); !errors.Is(err, millrace.ErrConflict) {
		t.Errorf("another holder: %v", err)
	}
	site := openSite(t, s)
	if _, err := site.Fenced(l).Apply(t.Context(), "one", pages(1, "first")); err != nil {
		t.Fatal(err)
	}
	v, err := site.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server("the time of the site", v.Site().Time)
}
