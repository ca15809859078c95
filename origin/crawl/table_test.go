package crawl

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"
)

func TestInterval(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, c := range []struct{ age, want time.Duration }{
		{0, time.Hour}, {time.Hour, time.Hour}, {50 * time.Hour, 5 * time.Hour}, {1000 * time.Hour, 24 * time.Hour},
	} {
		var e entry
		e.checked(now, false, c.age)
		if got := time.Duration(e.interval) * time.Minute; got != c.want {
			t.Errorf("a page with the age %s is requested after %s, want %s", c.age, got, c.want)
		}
	}
	var e entry
	e.checked(now, true, 0)
	for range 20 {
		e.checked(now, true, 0)
	}
	if e.interval != 5 {
		t.Errorf("a page that always changes is requested after %d minutes", e.interval)
	}
	for range 40 {
		e.checked(now, false, 0)
	}
	if e.interval != 24*60 {
		t.Errorf("a page that never changes is requested after %d minutes", e.interval)
	}
}

func TestDue(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	e := entry{}
	if !e.due(now) {
		t.Error("a page that this process has not requested is not due")
	}
	e.checked(now, false, 0)
	if e.due(now.Add(59 * time.Minute)) {
		t.Error("a page is due before its time")
	}
	if !e.due(now.Add(time.Hour)) {
		t.Error("a page is not due at its time")
	}
	// The clock is set back by a year: the page is due an hour from now.
	then := now.AddDate(-1, 0, 0)
	if e.due(then) {
		t.Error("a clock that is set back makes a page due")
	}
	if !e.due(then.Add(time.Hour)) {
		t.Error("a clock that is set back delays a page")
	}
}

func TestEntrySize(t *testing.T) {
	if n := unsafe.Sizeof(entry{}); n != 24 {
		t.Errorf("an entry takes %d bytes", n)
	}
}

func TestQueue(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	var q queue
	const n = 5*block + 17
	next, popped := 0, 0
	pop := func() {
		t.Helper()
		got, ok, err := q.pop()
		if err != nil || !ok {
			t.Fatalf("task %d: %v, %v", popped, ok, err)
		}
		want := task{url: fmt.Sprintf("https://a.example/%d", popped), from: fmt.Sprintf("https://a.example/%d", popped/3), depth: popped % 7, list: popped % 2, state: pending}
		if got != want {
			t.Fatalf("task %d: %+v, want %+v", popped, got, want)
		}
		popped++
	}
	for next < n {
		err := q.push(task{url: fmt.Sprintf("https://a.example/%d", next), from: fmt.Sprintf("https://a.example/%d", next/3), depth: next % 7, list: next % 2, state: pending})
		if err != nil {
			t.Fatal(err)
		}
		if next++; next%5 == 0 {
			pop()
		}
	}
	if inMemory := len(q.head) + len(q.tail); inMemory > 2*block {
		t.Errorf("%d tasks are in memory", inMemory)
	}
	for popped < next {
		pop()
	}
	if _, ok, err := q.pop(); ok || err != nil {
		t.Errorf("an empty queue returns %v, %v", ok, err)
	}
	if err := q.push(task{url: "https://a.example/again"}); err != nil {
		t.Fatal(err)
	}
	if again, ok, err := q.pop(); err != nil || !ok || again.url != "https://a.example/again" {
		t.Errorf("%+v, %v, %v", again, ok, err)
	}
	q.close()
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files remain: %v, %v", left, err)
	}
}

func TestQueueWithoutDisk(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "nowhere"))
	var q queue
	defer q.close()
	var err error
	for i := 0; err == nil && i < 4*block; i++ {
		err = q.push(task{url: "https://a.example/"})
	}
	if err == nil {
		t.Fatal("a temporary file was created in a folder that does not exist")
	}
	if _, e := os.Stat(os.TempDir()); e == nil {
		t.Error("the folder exists")
	}
}
