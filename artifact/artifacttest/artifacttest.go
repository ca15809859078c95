// Package artifacttest tests implementations of package artifact. Every implementation must pass
// [Run], and durable implementations must also pass [Crash].
package artifacttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
)

// Run runs the suite. open returns an empty store, and closes the store at the end of the test.
func Run(t *testing.T, open func(t testing.TB) artifact.Store) {
	for _, c := range []struct {
		name string
		run  func(f *fixture)
	}{
		{"Bytes", (*fixture).bytes},
		{"Names", (*fixture).names},
		{"Again", (*fixture).again},
		{"Touch", (*fixture).touch},
		{"Readers", (*fixture).readers},
		{"Whole", (*fixture).atomicPut},
		{"Ranges", (*fixture).ranges},
		{"Absent", (*fixture).absent},
		{"List", (*fixture).lists},
		{"Batch", (*fixture).batch},
		{"Canceled", (*fixture).canceled},
		{"PutsOfOneName", (*fixture).putsOfOneName},
		{"AllAtOnce", (*fixture).allAtOnce},
		{"PutsAndDeletes", (*fixture).putsAndDeletes},
		{"Random", (*fixture).random},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(&fixture{t, open(t)})
		})
	}
}

// fixture is a store with helpers that fail the test.
type fixture struct {
	*testing.T
	artifact.Store
}

func (f *fixture) put(name, content string) {
	f.Helper()
	if err := f.Put(f.Context(), name, strings.NewReader(content)); err != nil {
		f.Fatal(err)
	}
}

// want checks the content and the size of an artifact.
func (f *fixture) want(name, content string) {
	f.Helper()
	r, err := f.Open(f.Context(), name, 0, -1)
	if err != nil {
		f.Fatal(err)
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil || string(got) != content {
		f.Fatalf("%s has %d bytes %.40q (%v), want %d bytes %.40q", name, len(got), got, err, len(content), content)
	}
	if info := f.stat(name); info.Name != name || info.Size != int64(len(content)) {
		f.Fatalf("stat %s: %+v, want %d bytes", name, info, len(content))
	}
}

func (f *fixture) stat(name string) artifact.Info {
	f.Helper()
	info, err := f.Stat(f.Context(), name)
	if err != nil {
		f.Fatal(err)
	}
	return info
}

// wantAbsent checks that an artifact does not exist.
func (f *fixture) wantAbsent(name string) {
	f.Helper()
	if r, err := f.Open(f.Context(), name, 0, -1); !errors.Is(err, millrace.ErrNotFound) || r != nil {
		f.Errorf("open %s: %v, want ErrNotFound", name, err)
	}
	if _, err := f.Stat(f.Context(), name); !errors.Is(err, millrace.ErrNotFound) {
		f.Errorf("stat %s: %v, want ErrNotFound", name, err)
	}
}

// wantList checks the names that List yields, and that Stat returns the same sizes and times as
// List.
func (f *fixture) wantList(prefix string, names ...string) {
	f.Helper()
	var got []string
	for info, err := range f.List(f.Context(), prefix) {
		if err != nil {
			f.Fatal(err)
		}
		if s := f.stat(info.Name); s.Size != info.Size || !s.Modified.Equal(info.Modified) {
			f.Errorf("list has %+v, stat %+v", info, s)
		}
		got = append(got, info.Name)
	}
	if diff := cmp.Diff(names, got); diff != "" {
		f.Errorf("list %q (-want +got):\n%s", prefix, diff)
	}
}

func (f *fixture) bytes() {
	before := time.Now().Add(-time.Hour)
	f.wantList("")
	large := strings.Repeat("0123456789abcde\n", 200_000)
	for name, content := range map[string]string{"empty": "", "zero": "\x00", "large": large} {
		f.put(name, content)
		f.want(name, content)
		if m := f.stat(name).Modified; m.Before(before) || m.After(time.Now().Add(time.Hour)) || m.Location() != time.UTC {
			f.Errorf("%s was modified at %v", name, m)
		}
	}
	f.wantList("", "empty", "large", "zero")
	// Check that the caller may reuse its buffer without changing the artifact.
	b := []byte("first")
	if err := f.Put(f.Context(), "buffer", bytes.NewReader(b)); err != nil {
		f.Fatal(err)
	}
	copy(b, "other")
	f.want("buffer", "first")
}

func (f *fixture) names() {
	long := strings.Repeat("x", artifact.MaxName)
	good := []string{"0", "a", "a/b", "a/b/c", "a.b/c_d-e", "con", "x..y", long, long[:100] + "/" + long[:99]}
	for i, name := range good {
		f.put(name, fmt.Sprint(i))
	}
	for i, name := range good {
		f.want(name, fmt.Sprint(i))
	}
	for _, name := range []string{
		"", ".", "..", "/", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", ".a", "a.", "a./b", "-a", "a-", "_a", "a_", "a_/b",
		"A", "ä", "a b", "a\nb", "a\x00b", "a\n", `a\b`, "a:b", "a+b", "\xff", long + "x",
	} {
		r, err := f.Open(f.Context(), name, 0, -1)
		_, statErr := f.Stat(f.Context(), name)
		for _, err := range []error{err, statErr, f.Put(f.Context(), name, strings.NewReader("x")), f.Delete(f.Context(), name)} {
			if !errors.Is(err, millrace.ErrInvalid) || millrace.ErrorCode(err) != "artifact-name" || r != nil {
				f.Errorf("name %q: %v", name, err)
			}
		}
	}
}

func (f *fixture) again() {
	f.put("a", "first")
	failing := iotest.ErrReader(errors.New("put reads although the name exists"))
	if err := f.Put(f.Context(), "a", failing); err != nil {
		f.Error(err)
	}
	f.put("a", "second, and longer")
	f.want("a", "first")
	f.wantList("", "a")
	if err := f.Delete(f.Context(), "a"); err != nil {
		f.Error(err)
	}
	f.put("a", "third")
	f.want("a", "third")
}

// touch renews artifacts until their modification time changes, because the store may round times
// to seconds.
func (f *fixture) touch() {
	ctx, cancel := context.WithTimeout(f.Context(), 10*time.Second)
	defer cancel()
	for name, renew := range map[string]func(name string) error{
		"a":   func(name string) error { return artifact.Touch(ctx, f, name) },
		"b/c": func(name string) error { return f.Put(ctx, name, strings.NewReader("other")) },
	} {
		f.put(name, "content")
		for before := f.stat(name).Modified; !f.stat(name).Modified.After(before); {
			if err := renew(name); err != nil {
				f.Fatal(err)
			}
		}
		f.want(name, "content")
	}
	if err := artifact.Touch(f.Context(), f, "absent"); !errors.Is(err, millrace.ErrNotFound) {
		f.Errorf("touch: %v, want ErrNotFound", err)
	}
	f.wantAbsent("absent")
}

func (f *fixture) readers() {
	content := strings.Repeat("x", 100_000)
	cause := errors.New("cause")
	for _, n := range []int{0, 1, len(content)} {
		r := io.MultiReader(strings.NewReader(content[:n]), iotest.ErrReader(cause))
		if err := f.Put(f.Context(), "a/b", r); !errors.Is(err, cause) {
			f.Errorf("put with a reader that fails after %d bytes: %v", n, err)
		}
		f.wantAbsent("a/b")
	}
	f.wantList("")
	for name, r := range map[string]io.Reader{
		"bytewise": iotest.OneByteReader(strings.NewReader(content)),
		"with-eof": iotest.DataErrReader(strings.NewReader(content)),
	} {
		if err := f.Put(f.Context(), name, r); err != nil {
			f.Error(err)
		}
		f.want(name, content)
	}
	err := f.Put(f.Context(), "a/b", iotest.ErrReader(fmt.Errorf("wrapped: %w", io.EOF)))
	if err == nil {
		f.Error("Put accepts a wrapped io.EOF as the end of an artifact")
	}
	f.wantAbsent("a/b")
}

// atomicPut checks that an artifact appears only when its Put ends, and that it has the bytes of
// the Put that ended first.
func (f *fixture) atomicPut() {
	slow, w := io.Pipe()
	done := make(chan error)
	go func() { done <- f.Put(f.Context(), "a/slow", slow) }()
	if _, err := w.Write([]byte("the first part")); err != nil {
		f.Fatal(err)
	}
	f.wantAbsent("a/slow")
	f.wantList("")
	f.put("a/slow", "quick")
	_, err := w.Write([]byte(", and the second"))
	if err = errors.Join(err, w.Close(), <-done); err != nil {
		f.Fatal(err)
	}
	f.want("a/slow", "quick")
	f.wantList("", "a/slow")
}

func (f *fixture) ranges() {
	content := "0123456789"
	f.put("a", content)
	f.put("empty", "")
	for _, offset := range []int64{0, 1, 9, 10, 11, math.MaxInt64} {
		for _, length := range []int64{-1, 0, 1, 5, 10, 11, math.MaxInt64} {
			from := min(offset, 10)
			to := int64(10)
			if length >= 0 && length < to-from {
				to = from + length
			}
			for name, want := range map[string]string{"a": content[from:to], "empty": ""} {
				r, err := f.Open(f.Context(), name, offset, length)
				if err != nil {
					f.Fatal(err)
				}
				got, err := io.ReadAll(iotest.HalfReader(r))
				if err = errors.Join(err, r.Close()); err != nil || string(got) != want {
					f.Errorf("%s at %d, length %d: %q, %v, want %q", name, offset, length, got, err, want)
				}
			}
		}
	}
	for _, r := range [][2]int64{{-1, 1}, {0, -2}, {-1, -1}, {math.MinInt64, 0}, {0, math.MinInt64}} {
		for _, name := range []string{"a", "absent"} {
			_, err := f.Open(f.Context(), name, r[0], r[1])
			if !errors.Is(err, millrace.ErrInvalid) || millrace.ErrorCode(err) != "artifact-range" {
				f.Errorf("range %v of %s: %v", r, name, err)
			}
		}
	}
}

func (f *fixture) absent() {
	f.put("a/b", "x")
	for _, name := range []string{"a", "b", "a/b/c", "a/c", "c/d"} {
		f.wantAbsent(name)
		if err := f.Delete(f.Context(), name); err != nil {
			f.Errorf("delete %s: %v", name, err)
		}
	}
	f.want("a/b", "x")
	for range 2 {
		if err := f.Delete(f.Context(), "a/b"); err != nil {
			f.Error(err)
		}
		f.wantAbsent("a/b")
	}
	f.wantList("")
}

func (f *fixture) lists() {
	names := []string{"0", "a", "a-b", "a-b/c", "a.b", "a/b", "a/b-c", "a/b/c", "a/c", "a0", "a_b", "ab", "b/a"}
	for i := range names {
		f.put(names[(i*5)%len(names)], "x")
	}
	f.wantList("", names...)
	f.wantList("a", names[1:12]...)
	f.wantList("a/", "a/b", "a/b-c", "a/b/c", "a/c")
	f.wantList("a/b", "a/b", "a/b-c", "a/b/c")
	f.wantList("a/b/", "a/b/c")
	f.wantList("a/b/c", "a/b/c")
	f.wantList("a_", "a_b")
	for _, prefix := range []string{"a/b/c/", "/", "a//", "..", "../", "./a", "a_/", "A", "c", "_", "_unfinished/", "*", "\x00", "\xff"} {
		f.wantList(prefix)
	}
	for _, err := range f.List(f.Context(), "") {
		if err != nil {
			f.Error(err)
		}
		break
	}
	last := ""
	for info, err := range f.List(f.Context(), "") { // the loop deletes artifacts
		if err != nil || info.Name <= last {
			f.Fatalf("list has %+v after %s (%v)", info, last, err)
		}
		last = info.Name
		for _, name := range names[1:12] {
			if err := f.Delete(f.Context(), name); err != nil {
				f.Error(err)
			}
		}
	}
	if last != "b/a" {
		f.Errorf("list ends with %s, want b/a", last)
	}
	f.wantList("", "0", "b/a")
}

func (f *fixture) canceled() {
	for _, name := range []string{"a", "b", "c/d"} {
		f.put(name, "x")
	}
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	// Cancel during a Put and during a listing.
	first := func(p []byte) (int, error) { cancel(); return len(p), nil }
	if err := f.Put(ctx, "new", readFunc(first)); !errors.Is(err, context.Canceled) {
		f.Errorf("put: %v", err)
	}
	f.wantAbsent("new")
	ctx, cancel = context.WithCancel(f.Context())
	defer cancel()
	yielded := 0
	var last error
	for _, err := range f.List(ctx, "") {
		cancel()
		yielded++
		last = err
	}
	if yielded != 2 || !errors.Is(last, context.Canceled) {
		f.Errorf("list: %d yields, the last with %v", yielded, last)
	}
	_, openErr := f.Open(ctx, "a", 0, -1)
	_, statErr := f.Stat(ctx, "a")
	for i, err := range []error{openErr, statErr, f.Put(ctx, "a", strings.NewReader("x")), f.Put(ctx, "new", strings.NewReader("x")), f.Delete(ctx, "a")} {
		if !errors.Is(err, context.Canceled) {
			f.Errorf("call %d: %v, want context.Canceled", i, err)
		}
	}
	f.wantList("", "a", "b", "c/d")
	for _, err := range f.List(ctx, "absent") {
		if !errors.Is(err, context.Canceled) {
			f.Errorf("list: %v, want context.Canceled", err)
		}
		return
	}
	f.Error("list with a canceled context yields nothing")
}

type readFunc func(p []byte) (int, error)

func (r readFunc) Read(p []byte) (int, error) { return r(p) }
