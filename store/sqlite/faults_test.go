package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/sqlstore"
)

func changesOf(rng *rand.Rand, group string, n, size int) (batch []millrace.Change) {
	for i := range n {
		p := prose(rng, fmt.Sprintf("%s/%03d", group, i), size)
		batch = append(batch, millrace.Change{Ref: millrace.Ref{URL: p.URL, Version: p.Version}, Page: p})
	}
	return batch
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	altered := func(name string, statements ...string) string {
		path := filepath.Join(dir, name)
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, s := range statements {
			if _, err := db.Exec(s); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	killed := func(name string, statements ...string) string { // leaves the last writes only in the write-ahead log
		from, to := filepath.Join(dir, name+"-running"), filepath.Join(dir, name)
		db, err := sql.Open("sqlite", from)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, s := range append([]string{"PRAGMA journal_mode = WAL"}, statements...) {
			if _, err := db.Exec(s); err != nil {
				t.Fatal(err)
			}
		}
		for _, end := range []string{"", "-wal"} {
			data, err := os.ReadFile(from + end)
			if err != nil {
				t.Fatal(err)
			}
			file(name+end, string(data))
		}
		return to
	}
	for _, c := range []struct {
		name, path string
		sentinel   error
		text       string
	}{
		{"empty path", "", millrace.ErrInvalid, "no-path"},
		{"folder", dir, millrace.ErrInvalid, "is-folder"},
		{"no folder", filepath.Join(dir, "none", "x.db"), millrace.ErrInvalid, "no-folder"},
		{"short text", file("short", "hello"), millrace.ErrInvalid, "no-store"},
		{"long text", file("long", strings.Repeat("hello ", 5000)), millrace.ErrInvalid, "no-store"},
		{"head of SQLite only", file("head", "SQLite format 3\x00"+strings.Repeat("x", 5000)), millrace.ErrInvalid, "no-store"},
		{"newer", altered("newer", fmt.Sprintf("PRAGMA application_id = %d", applicationID), "PRAGMA user_version = 99"), millrace.ErrInvalid, "store-newer"},
		{"older", altered("older", fmt.Sprintf("PRAGMA application_id = %d", applicationID), "PRAGMA user_version = 6"), millrace.ErrInvalid, "store-older"},
		{"older without a table", altered("bare", fmt.Sprintf("PRAGMA application_id = %d", applicationID)), millrace.ErrInvalid, "store-older"},
		{"no-store", altered("else", "CREATE TABLE page (x)"), millrace.ErrInvalid, "no-store"},
		{"newer, of a process that was killed", killed("newer-killed", fmt.Sprintf("PRAGMA application_id = %d", applicationID), "PRAGMA user_version = 99", "CREATE TABLE page (x)"), millrace.ErrInvalid, "store-newer"},
		{"no-store, of a process that was killed", killed("else-killed", "CREATE TABLE page (x)"), millrace.ErrInvalid, "no-store"},
		{"device", "/dev/null", millrace.ErrInvalid, "no-file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, _ := os.ReadFile(c.path)
			log, _ := os.ReadFile(c.path + "-wal")
			s, err := Open(t.Context(), c.path, nil)
			if err == nil {
				s.Close()
				t.Fatal("the store opened")
			}
			if !errors.Is(err, c.sentinel) || millrace.ErrorCode(err) != c.text {
				t.Errorf("%v: code %q, want %q", err, millrace.ErrorCode(err), c.text)
			}
			if after, _ := os.ReadFile(c.path); !bytes.Equal(after, before) {
				t.Error("the file was changed")
			}
			if after, _ := os.ReadFile(c.path + "-wal"); !bytes.Equal(after, log) {
				t.Error("the write-ahead log was changed")
			}
		})
	}
}

func TestOddPath(t *testing.T) {
	for _, name := range []string{"a b", "q?mode=memory", "h#x", "p%41", "ü", "'\"", "semi;colon&amp"} {
		path := filepath.Join(t.TempDir(), name)
		benchSite(t, path).store.Close()
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestSites(t *testing.T) {
	site := benchSite(t, filepath.Join(t.TempDir(), "x.db"))
	if _, err := site.store.Site(t.Context(), "empty", benchBase); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"another", "bench"} {
		s, err := site.store.Site(t.Context(), name, benchBase)
		if err == nil {
			_, err = s.Apply(t.Context(), "x", []millrace.Change{{Kind: millrace.Put, Ref: millrace.Ref{URL: "/"}, Page: &millrace.Page{
				Title: "Home", Known: millrace.FieldTitle,
			}}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for name, err := range site.store.Sites(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if strings.Join(names, " ") != "another bench" {
		t.Errorf("%q", names)
	}
}

// TestFullDisk limits the number of pages of the file.
func TestFullDisk(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "full.db")
	s, err := openFile(ctx, path, settings{maxPages: 400})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	site, err := s.Site(ctx, "bench", benchBase)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var applied [][]millrace.Change
	var failed []millrace.Change
	for i := 0; failed == nil; i++ {
		batch := changesOf(rng, fmt.Sprint("g", i), 20, 4000)
		batch = append(batch, millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: millrace.Cursor(fmt.Sprint(i))}})
		switch _, err := site.Apply(ctx, "bench", batch); {
		case err == nil:
			applied = append(applied, batch)
		case !errors.Is(err, millrace.ErrUnavailable) || millrace.ErrorCode(err) != "disk-full":
			t.Fatalf("batch %d: %v", i, err)
		default:
			failed = batch
		}
		if i > 1000 {
			t.Fatal("the disk did not fill up")
		}
	}
	if len(applied) < 3 {
		t.Fatalf("only %d batches fit, which is too few for this test", len(applied))
	}
	intact := func() {
		t.Helper()
		var check string
		if err := s.db.read.row(ctx, "PRAGMA integrity_check", nil, &check); err != nil || check != "ok" {
			t.Fatalf("integrity: %s, %v", check, err)
		}
		v, err := site.Head(ctx)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, batch := range applied {
			for _, c := range batch {
				if c.Page == nil {
					continue
				}
				n++
				p, err := v.Page(ctx, c.Ref)
				if err != nil || p.Text() != c.Page.Text() {
					t.Fatalf("%s: %v", c.URL, err)
				}
			}
		}
		if v.Site().Pages != n {
			t.Errorf("%d pages, want %d", v.Site().Pages, n)
		}
		if c, err := site.Cursor(ctx, "bench"); err != nil || c != millrace.Cursor(fmt.Sprint(len(applied)-1)) {
			t.Errorf("cursor %q, %v", c, err)
		}
	}
	intact()
	// Changes that need no space still succeed. The failed batch fails again with the same
	// error.
	if counts, err := site.Apply(ctx, "bench", applied[0]); err == nil && counts.Unchanged != 20 {
		t.Errorf("the same batch again: %+v", counts)
	}
	if _, err := site.Apply(ctx, "bench", failed); !errors.Is(err, millrace.ErrUnavailable) {
		t.Errorf("again: %v", err)
	}
	// The first batch has moved the cursor back. Apply the last batch again to restore it.
	if _, err := site.Apply(ctx, "bench", applied[len(applied)-1]); err != nil {
		t.Error(err)
	}
	intact()
	if err := s.db.writer.do(ctx, func(t *tx) error {
		return t.Rows("PRAGMA max_page_count(100000)", nil, func(sqlstore.Scanner) error { return nil })
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := site.Apply(ctx, "bench", failed); err != nil {
		t.Fatalf("with free space: %v", err)
	}
	applied = append(applied, failed)
	intact()
}

func TestLocked(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "x.db")
	site := benchSite(t, path)
	second, err := openFile(ctx, path, settings{wait: 30 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	blocked, err := second.Site(ctx, "bench", benchBase)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	err = site.store.db.writer.do(ctx, func(*tx) error { // another writer holds the lock
		if _, err := blocked.Apply(ctx, "bench", changesOf(rng, "a", 1, 100)); !errors.Is(err, millrace.ErrUnavailable) || millrace.ErrorCode(err) != "store-busy" {
			t.Errorf("apply: %v", err)
		}
		if _, err := blocked.Head(ctx); err != nil {
			t.Errorf("head: %v", err)
		}
		third, err := openFile(ctx, path, settings{wait: 30 * time.Millisecond})
		if err != nil {
			t.Errorf("open: %v", err)
			return nil
		}
		return third.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	// Two stores on one file write alternately and see each other's pages.
	for i := range 10 {
		s := []store.Site{site, blocked}[i%2]
		if _, err := s.Apply(ctx, "bench", changesOf(rng, fmt.Sprint("g", i), 3, 100)); err != nil {
			t.Fatal(err)
		}
		v, err := []store.Site{site, blocked}[(i+1)%2].Head(ctx)
		if err != nil || v.Site().Pages != 3*(i+1) || v.Site().Seq != uint64(3*(i+1)) {
			t.Errorf("after batch %d: %+v, %v", i, v.Site(), err)
		}
	}
}

// TestDamage overwrites parts of a store. Every read then returns an error or the right
// result.
func TestDamage(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	good := filepath.Join(dir, "good.db")
	site := benchSite(t, good)
	if _, err := site.Apply(ctx, "bench", changesOf(rand.New(rand.NewPCG(1, 1)), "a", 100, 2000)); err != nil {
		t.Fatal(err)
	}
	refreshed(t, benchPublication(t, site))
	if err := site.store.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(2, 3))
	seen := 0
	for i := range 40 {
		bad := bytes.Clone(data)
		if i%4 == 0 {
			bad = bad[:4096*(1+rng.IntN(len(bad)/4096-1))]
		} else {
			at := 4096 * rng.IntN(len(bad)/4096)
			for j := range 4096 {
				bad[at+j] = byte(rng.Uint32())
			}
		}
		path := filepath.Join(dir, fmt.Sprintf("bad%d.db", i))
		if err := os.WriteFile(path, bad, 0o666); err != nil {
			t.Fatal(err)
		}
		err := func() error {
			s, err := Open(ctx, path, nil)
			if err != nil {
				return err
			}
			defer s.Close()
			site, err := s.Site(ctx, "bench", benchBase)
			if err != nil {
				return err
			}
			pub, err := site.Publication(ctx, benchConfig)
			if err != nil {
				return err
			}
			v, err := pub.Head(ctx)
			if err != nil {
				return err
			}
			for p, err := range v.Scan(ctx, millrace.Scan{WithBlocks: true}) {
				if err != nil {
					return err
				}
				if _, err := v.Tag(ctx, "hash-01", p.URL); err != nil && !errors.Is(err, millrace.ErrNotFound) {
					return err
				}
			}
			if _, err = site.Apply(ctx, "bench", changesOf(rand.New(rand.NewPCG(9, 9)), "b", 20, 2000)); err != nil {
				return err
			}
			_, err = pub.Refresh(ctx, store.Lease{}, 0, nil)
			return err
		}()
		if err == nil {
			continue
		}
		seen++
		if errors.Is(err, millrace.ErrUnavailable) || millrace.ErrorCode(err) == "store-damaged" && !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("damage %d: %v", i, err)
		}
	}
	if seen < 10 {
		t.Errorf("only %d of 40 damaged stores gave an error", seen)
	}
}

// TestPlans checks that no statement reads a whole table or sorts.
func TestPlans(t *testing.T) {
	ctx := t.Context()
	site := benchSite(t, filepath.Join(t.TempDir(), "x.db"))
	rng := rand.New(rand.NewPCG(1, 1))
	for range 3 {
		batch := changesOf(rng, "a", 30, 500)
		batch = append(batch, millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: batch[3].URL}})
		batch = append(batch, millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: millrace.Cursor(fmt.Sprint(rng.Uint32()))}})
		if _, err := site.Apply(ctx, "bench", batch); err != nil {
			t.Fatal(err)
		}
	}
	pub := benchPublication(t, site)
	old := refreshed(t, pub)
	if _, err := site.Apply(ctx, "bench", changesOf(rng, "b", 3, 500)); err != nil {
		t.Fatal(err)
	}
	if _, err := pub.Publish(ctx, store.Lease{}, 0, old.Site().Seq, nil); err != nil {
		t.Fatal(err)
	}
	for o := range 3 {
		for range old.Scan(ctx, millrace.Scan{Order: millrace.Order(o), WithBlocks: true}) {
		}
	}
	for range old.Tags(ctx, "hash-01", "") {
	}
	for _, since := range []millrace.Cursor{"", old.Site().At(0)} {
		for range old.Changes(ctx, since) {
		}
	}
	for range site.KnownRefs(ctx, "bench") {
	}
	for range site.store.Manifests(ctx) {
	}
	_, _ = old.Tag(ctx, "hash-01", "/a")
	_, _ = old.SeqAt(ctx, time.Now())
	_, _, _ = pub.Published(ctx)
	_, _ = site.HTMLSizes(ctx, []string{"/a"})
	_, _, _ = site.MeanHTMLSize(ctx)
	if err := site.Compact(ctx, 0, 0); err != nil {
		t.Fatal(err)
	}
	fork, err := site.Publication(ctx, store.Config{Base: benchBase, Visibility: millrace.Visibility{Exclude: []string{"/a/"}}, Taggers: benchConfig.Taggers})
	if err != nil {
		t.Fatal(err)
	}
	refreshed(t, fork)
	if err := site.store.db.writer.do(ctx, func(t *tx) error { return t.Exec("UPDATE publication SET opened = 0 WHERE id > 0") }); err != nil {
		t.Fatal(err)
	}
	if err := site.Compact(ctx, 0, 0); err != nil {
		t.Fatal(err)
	}
	fleetTurns(t, site.store.Fleet())
	statements := make(map[string]bool)
	for q := range site.store.db.writer.stmts {
		statements[q] = true
	}
	site.store.db.read.stmts.Range(func(q, _ any) bool {
		statements[q.(string)] = true
		return true
	})
	n := 0
	for q := range statements {
		if verb, _, _ := strings.Cut(q, " "); verb == "BEGIN" || verb == "COMMIT" || verb == "ROLLBACK" || verb == "PRAGMA" {
			continue
		}
		n++
		checkPlan(t, site.store, q)
	}
	if n < 40 {
		t.Errorf("only %d statements were looked at", n)
	}
}

// fleetTurns calls the methods of a fleet that workers call in each turn.
func fleetTurns(t *testing.T, fleet store.Fleet) {
	t.Helper()
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := fleet.Put(ctx, func(yield func(store.FleetSite, error) bool) {
		_ = yield(store.FleetSite{URL: "https://one.example/"}, nil) && yield(store.FleetSite{URL: "https://two.example/"}, nil)
	})
	must(nil, err)
	turns, _, err := fleet.Lease(ctx, "worker", 2, time.Minute, nil)
	if err != nil || len(turns) != 2 {
		t.Fatal(turns, err)
	}
	turn, err := fleet.SetAddress(ctx, turns[0], "192.0.2.1", 0)
	must(turn, err)
	must(fleet.Renew(ctx, time.Minute, turn.Lease, turns[1].Lease))
	must(nil, fleet.Done(ctx, turn.Lease, turn.Site.URL, store.TurnResult{Until: time.Now().Add(time.Hour)}))
	must(nil, fleet.Hint(ctx, turns[1].Site.URL))
	_, _, err = fleet.Lease(ctx, "worker", 1, time.Minute, []string{turn.Site.URL})
	must(nil, err)
}

// harmless matches the scans in a query plan that do not read a table, or one that has a single row.
var harmless = regexp.MustCompile("CONSTANT ROW|VALUES CLAUSE|VIRTUAL TABLE|subquery|SCAN most|SCAN fleet$")

var parameter = regexp.MustCompile(`\?(\d*)`)

// checkPlan fails the test if a statement reads a whole table, or sorts.
func checkPlan(t *testing.T, s *Store, q string) {
	t.Helper()
	n := 0
	for _, p := range parameter.FindAllStringSubmatch(q, -1) {
		at, err := strconv.Atoi(p[1])
		if err != nil { // without a number, it follows the highest one before
			at = n + 1
		}
		n = max(n, at)
	}
	rows, err := s.db.read.db.Query("EXPLAIN QUERY PLAN "+q, make([]any, n)...)
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(detail, "SCAN") && !harmless.MatchString(detail) ||
			strings.Contains(detail, "TEMP B-TREE") && !strings.Contains(q, "GROUP BY section") && !strings.Contains(q, "FROM usage_top") && !strings.Contains(q, "JOIN usage_sum") {
			t.Errorf("%s\n%s", detail, q)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}
