package index

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

// A file of another format, one that is not a database, and a truncated one are rebuilt.
func TestRebuilt(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"another format": func(path string) error {
			db, err := sql.Open("sqlite", path)
			if err != nil {
				return err
			}
			_, err = db.ExecContext(t.Context(), "PRAGMA user_version = 1")
			return errors.Join(err, db.Close())
		},
		"no database": func(path string) error {
			return os.WriteFile(path, []byte("not a database, but longer than the header of one"), 0o600)
		},
		"cut short": func(path string) error { return os.Truncate(path, 5000) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.puts("/a", "/b")
			f.update()
			made := f.state().made
			if err := f.index.Close(); err != nil {
				t.Fatal(err)
			}
			if err := spoil(f.index.path); err != nil {
				t.Fatal(err)
			}
			f.index = f.openIndex()
			f.update()
			want(f, "found", len(f.search(f.head(), "text")), 2)
			if f.state().made == made {
				t.Error("the file was not rebuilt")
			}
		})
	}
}

// If the file of an open index is damaged, an update rebuilds it.
func TestDamagedMeanwhile(t *testing.T) {
	f := newFixture(t)
	for i := range 40 {
		f.apply(put(prose(fmt.Sprintf("/p%03d", i), i, 1000)))
	}
	f.update()
	if _, err := f.index.writer.exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	made := f.state().made
	damage(t, f.index.path)
	reopened := f.openIndex()
	defer reopened.Close()
	v := f.head()
	for range 2 {
		_, _ = reopened.Search(t.Context(), v, millrace.Query{Text: "heading text1"})
		if err := reopened.Update(t.Context(), v, nil); err != nil {
			t.Fatal(err)
		}
	}
	found, err := reopened.Search(t.Context(), v, millrace.Query{Text: "text1"})
	if err != nil || len(found.Hits) != 1 {
		t.Errorf("after the damage: %+v, %v", found, err)
	}
	var now state
	if err := reopened.read(t.Context(), func(c *conn) (err error) { now, err = c.state(); return err }); err != nil || now.made == made {
		t.Errorf("the file was not rebuilt: %v", err)
	}
}

// If the file of an open index is deleted, searches continue with the open file. When a search
// needs another connection, an update rebuilds the file. Updates retry until that succeeds.
func TestDeletedMeanwhile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be deleted")
	}
	f := newFixture(t)
	f.index.idle = make(chan *conn, 2) // even with one processor
	f.puts("/a", "/b")
	f.update()
	v, made := f.head(), f.state().made
	want(f, "found", len(f.search(v, "text")), 2)
	dir := filepath.Dir(f.index.path)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	search := func() error {
		_, err := f.index.Search(t.Context(), v, millrace.Query{Text: "text"})
		return err
	}
	update := func() error { return f.index.Update(t.Context(), v, nil) }
	if err := errors.Join(search(), update()); err != nil {
		t.Errorf("from the deleted file: %v", err)
	}
	inUse(f.index, func() {
		if err := search(); !errors.Is(err, millrace.ErrUnavailable) || millrace.ErrorCode(err) != "index-damaged" {
			t.Errorf("with another connection: %v", err)
		}
	})
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file at the path of the folder
		t.Fatal(err)
	}
	for range 2 {
		if err := errors.Join(update(), search()); err == nil {
			t.Error("the file was created without its folder")
		}
	}
	if err := errors.Join(os.Remove(dir), update()); err != nil {
		t.Fatal(err)
	}
	want(f, "found again", len(f.search(v, "text")), 2)
	if f.state().made == made {
		t.Error("the file was not rebuilt")
	}
	if _, err := os.Stat(f.index.path); err != nil {
		t.Error(err)
	}
}

// A file that is temporarily inaccessible, even to the update that reopens it, is not deleted
// afterwards.
func TestInaccessibleFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be renamed")
	}
	f := newFixture(t)
	f.index.idle = make(chan *conn, 2) // even with one processor
	f.puts("/a", "/b")
	f.update()
	v, made, path := f.head(), f.state().made, f.index.path
	want(f, "found", len(f.search(v, "text")), 2)
	if err := errors.Join(os.Rename(path, path+".away"), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	inUse(f.index, func() {
		if _, err := f.index.Search(t.Context(), v, millrace.Query{Text: "text"}); millrace.ErrorCode(err) != "index-damaged" {
			t.Errorf("with another connection: %v", err)
		}
	})
	for range 2 {
		if err := f.index.Update(t.Context(), v, nil); err == nil {
			t.Error("a folder was opened")
		}
	}
	if err := errors.Join(os.Remove(path), os.Rename(path+".away", path)); err != nil {
		t.Fatal(err)
	}
	f.update()
	want(f, "found again", len(f.search(v, "text")), 2)
	if f.state().made != made {
		t.Error("a good file was deleted")
	}
}

// If one of two processes rebuilds a file, the other one opens the new file and does not
// delete it.
func TestReplacedMeanwhile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be deleted")
	}
	f := newFixture(t)
	f.index.idle = make(chan *conn, 2) // even with one processor
	f.puts("/a", "/b")
	f.update()
	v := f.head()
	other, err := Open(t.Context(), f.index.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	want(f, "found", len(f.search(v, "text")), 2)
	if err := other.rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := other.Update(t.Context(), v, nil); err != nil {
		t.Fatal(err)
	}
	inUse(f.index, func() {
		if _, err := f.index.Search(t.Context(), v, millrace.Query{Text: "text"}); millrace.ErrorCode(err) != "index-damaged" {
			t.Errorf("a search in the other file: %v", err)
		}
	})
	f.update()
	want(f, "found again", len(f.search(v, "text")), 2)
	if f.state().made != other.file {
		t.Error("each process has its own file")
	}
}

// inUse runs do while the idle connection is in use.
func inUse(x *Index, do func()) {
	c := <-x.idle
	do()
	x.idle <- c
}

// damage overwrites everything except the pages with the schema and the state.
func damage(t *testing.T, path string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(6 * 4096); at < info.Size(); at += 4096 {
		if _, err := file.WriteAt(make([]byte, 4096), at); err != nil {
			t.Fatal(err)
		}
	}
}

// If the file is not writable, the index is in a temporary folder, which Close removes.
func TestTemporary(t *testing.T) {
	f := newFixture(t)
	f.puts("/a")
	dir := filepath.Join(t.TempDir(), "folder")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file at the path of the folder
		t.Fatal(err)
	}
	x, err := Open(t.Context(), filepath.Join(dir, "x.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Update(t.Context(), f.head(), nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(x.path); err != nil {
		t.Error(err)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(x.temp); err == nil {
		t.Error("the temporary folder remains")
	}
}

// Tidy deletes the indexes that were unused for a week, and no other file.
func TestTidy(t *testing.T) {
	f := newFixture(t)
	dir := filepath.Dir(f.index.path)
	for name, age := range map[string]time.Duration{
		"old.db": unused + time.Hour, "young.db": unused - time.Hour, "old.txt": unused + time.Hour,
		"open.db": unused + time.Hour, "open.db-shm": unused + time.Hour, filepath.Base(f.index.path): unused + time.Hour,
	} {
		path, at := filepath.Join(dir, name), time.Now().Add(-age)
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
		if err == nil {
			err = errors.Join(file.Close(), os.Chtimes(path, at, at))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.index.Tidy(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"old.db": false, "young.db": true, "old.txt": true, "open.db": true, filepath.Base(f.index.path): true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
