// Package powercut tests that the files of a program survive power cuts. It records the system
// calls of a real writer with strace. Then it simulates a disk that loses power after one of these
// calls. Data that no call has made durable is lost, kept, or a mixture of old and new blocks.
// Changes of file names are kept up to an arbitrary change. Then the writer runs again and must
// repair the files.
package powercut

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/testkit"
)

// Writer writes files into a folder.
type Writer struct {
	// Before writes the initial contents of the folder, before the writer first runs. May be nil.
	Before func(t *testing.T, dir string)
	// Write runs the writer: in another process if a trace is recorded. It may run any number of
	// times, even on its own output.
	Write func(t *testing.T, dir string)
	// Ignore matches the names of files that may differ or remain, such as records with times
	// and temporary files. May be nil.
	Ignore *regexp.Regexp
}

// folderVariable is an environment variable of the process whose calls are recorded. Its value is
// the folder.
const folderVariable = "MILLRACE_TEST_POWERCUT"

// done is the text that the recorded process writes to its standard output at the end.
const done = "the writer has returned\n"

// Run simulates n power cuts. After each, the writer runs again, and the files must be the same as
// after an undisturbed run. If the writer had returned before the power cut, they must be the same
// even before the writer runs again. The name of a test that calls Run starts with TestReal.
func Run(t *testing.T, n int, w Writer) {
	t.Helper()
	if dir := os.Getenv(folderVariable); dir != "" {
		if w.Write(t, dir); !t.Failed() {
			fmt.Fprint(os.Stdout, done)
		}
		return
	}
	strace := testkit.Real(t, "strace")
	dir := filepath.Join(t.TempDir(), "folder")
	if w.Before == nil {
		w.Before = func(*testing.T, string) {}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w.Before(t, dir)
	d := newDisk(t, dir)
	events := d.record(t, strace)
	want := w.state(t, dir)
	complete, after := 0, 0
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	for i := range n {
		at := i * len(events) / n
		if i%8 == 7 {
			at = len(events)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		log := d.cut(t, events, at, rng)
		same := maps.Equal(want, w.state(t, dir))
		if same {
			complete++
		}
		if slices.ContainsFunc(events[:at], func(e event) bool { return e.kind == finished }) {
			if after++; !same {
				t.Errorf("cut after call %d: the writer had returned, but its files were lost:\n%s\n%s", at, difference(want, w.state(t, dir)), log)
			}
		}
		w.Write(t, dir)
		if got := w.state(t, dir); !maps.Equal(want, got) {
			t.Errorf("cut after call %d: not repaired:\n%s\n%s", at, difference(want, got), log)
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d calls, %d cuts, %d of them complete at once, %d after the end", len(events), n, complete, after)
	if complete == n {
		t.Error("no cut has any effect")
	}
}

// record runs the test as a process and returns its calls.
func (d *disk) record(t *testing.T, strace string) []event {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^") + "$"
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), strace, "-f", "-y", "-xx", "-s", "100000000", "-e", "signal=none", "-e", "trace="+traced, "-o", trace,
		exe, "-test.run", pattern, "-test.count", "1")
	cmd.Env = append(os.Environ(), folderVariable+"="+d.root)
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte(done)) {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.parse(string(text)); err != nil {
		t.Fatal(err)
	}
	return d.events
}

// state returns the files of a folder by name.
func (w *Writer) state(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	if err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || w.Ignore != nil && w.Ignore.MatchString(name) {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		out[name] = string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// difference names the files that differ.
func difference(want, got map[string]string) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if text, ok := got[name]; !ok {
			fmt.Fprintf(&out, "%s is missing\n", name)
		} else if text != want[name] {
			fmt.Fprintf(&out, "%s differs: %d bytes, want %d\n", name, len(text), len(want[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			fmt.Fprintf(&out, "%s is unexpected\n", name)
		}
	}
	return out.String()
}

// cut writes the state of the disk after a power cut that follows the first at events. It returns a
// description of the lost data.
func (d *disk) cut(t *testing.T, events []event, at int, rng *rand.Rand) (log string) {
	t.Helper()
	events = events[:at]
	names, durable := 0, make(map[int]int) // numbers of events up to which changes are durable: changes of names, and of each file's data
	for i, e := range events {
		switch e.kind {
		case syncAll:
			names = i
			for f := range d.files {
				durable[f] = i
			}
		case syncNames:
			names = i
		case syncFile:
			durable[e.file] = i
		}
	}
	names += rng.IntN(at - names + 1)
	entries := maps.Clone(d.before)
	for _, e := range events[:names] {
		switch e.kind {
		case create:
			entries[e.path] = e.file
		case makeFolder:
			entries[e.path] = folder
		case remove:
			delete(entries, e.path)
		case rename:
			entries[e.to] = entries[e.path]
			delete(entries, e.path)
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "names up to call %d\n", names)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		file := filepath.Join(d.root, name)
		if entries[name] == folder {
			if err := os.MkdirAll(file, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		f := entries[name]
		old := bytes.Clone(d.files[f])
		for _, e := range events[:durable[f]] {
			old = e.apply(f, old)
		}
		full := bytes.Clone(old)
		for _, e := range events[durable[f]:] {
			full = e.apply(f, full)
		}
		data := torn(old, full, rng)
		if !bytes.Equal(data, full) {
			fmt.Fprintf(&text, "%s: %d of %d bytes\n", name, len(data), len(full))
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

// block is the number of bytes that a disk writes atomically.
const block = 4096

// torn mixes the blocks of two states of a file.
func torn(old, full []byte, rng *rand.Rand) []byte {
	switch rng.IntN(3) {
	case 0:
		return full
	case 1:
		return old
	}
	n := len(full)
	if len(old) != n && rng.IntN(2) == 0 {
		n = min(len(old), n) + rng.IntN(max(len(old), n)-min(len(old), n)+1)
	}
	out := make([]byte, n)
	for at := 0; at < n; at += block {
		from := full
		if rng.IntN(2) == 0 {
			from = old
		}
		if at < len(from) {
			copy(out[at:min(at+block, n)], from[at:])
		}
	}
	return out
}

// apply applies an event to the data of a file.
func (e *event) apply(file int, data []byte) []byte {
	if e.file != file {
		return data
	}
	switch e.kind {
	case write:
		if end := e.offset + len(e.data); end > len(data) {
			data = append(data, make([]byte, end-len(data))...)
		}
		copy(data[e.offset:], e.data)
	case truncate:
		data = append(data[:min(e.offset, len(data))], make([]byte, max(0, e.offset-len(data)))...)
	}
	return data
}

// below returns a path relative to the folder, and reports whether the path is in the folder.
func (d *disk) below(name string) (string, bool) {
	if name = path.Clean(name); name == d.root {
		return ".", true
	}
	return strings.CutPrefix(name, d.root+"/")
}
