package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/testkit"
)

// child runs a pull in a process, started by a shell script. In the script, $0 is the
// command, $1 the mirror, and the rest are the command's arguments. It returns the peak
// memory of the process in bytes.
func child(t *testing.T, script, mirror string, args ...string) (got pulled, peak int64) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "sh", append([]string{"-c", script, exe, mirror, "pull", "--store", mirror, "--allow-private", "--json"}, args...)...)
	c.Env = []string{"MILLRACE_TEST_COMMAND=1", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for running := true; running; {
		peak = max(peak, highWater(c.Process.Pid))
		select {
		case <-ended:
			running = false
		case <-time.After(2 * time.Millisecond):
		}
	}
	if strings.Contains(errs.String(), "unshare:") || strings.Contains(errs.String(), "mount:") {
		t.Skip("cannot mount a file system: " + errs.String())
	}
	got.code, got.stderr = c.ProcessState.ExitCode(), errs.String()
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &got.report); err != nil {
			t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
		}
		got.render(t)
	}
	return got, peak
}

// highWater returns the peak memory of a running process in bytes. The figure from Wait would
// include the peak of the parent before the fork.
func highWater(pid int) (n int64) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	_, _ = fmt.Sscan(rest, &n)
	return n << 10
}

// Scripts for child: plain; with a limit on file length in blocks of 512 bytes; with
// the mirror or the temporary files on a separate disk of a size in kB.
const (
	plainly = `shift; exec "$0" "$@"`
	limited = `shift; ulimit -f %d; exec "$0" "$@"`
	onDisk  = `m=$1; shift; d=$(dirname "$m")
exec unshare -rm sh -c 'd=$1; m=$2; shift 2; cp "$m" "$d.db" && mount -t tmpfs -o size=%dk none "$d" && cp "$d.db" "$m" || exit 99
"$0" "$@"; code=$?; rm -f "$d.db"*; cp "$m" "$d.db"; [ ! -e "$m-wal" ] || cp "$m-wal" "$d.db-wal"; exit $code' "$0" "$d" "$m" "$@"`
	onTemp = `shift
exec unshare -rm sh -c 'mount -t tmpfs -o size=%dk none "$TMPDIR" || exit 99; exec "$0" "$@"' "$0" "$@"`
)

// growing is a TCT draft-01 site with a growing number of pages of 8 KB each.
type growing struct {
	*httptest.Server
	pages, padding atomic.Int64 // white space after each item of the list
}

func newGrowing(t *testing.T) *growing {
	t.Helper()
	g := &growing{}
	mux := http.NewServeMux()
	g.Server = httptest.NewServer(mux)
	t.Cleanup(g.Close)
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", `</list>; rel="index"; type="application/json"`)
	})
	mux.HandleFunc("/list", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var items []string
		for i := range g.pages.Load() {
			items = append(items, fmt.Sprintf(`{"cUrl":"%[1]s/%[2]d/","mUrl":"%[1]s/%[2]d/llm.json","etag":"sha256-%[2]d"}`, g.URL, i)+
				strings.Repeat(" ", int(g.padding.Load())))
		}
		fmt.Fprintf(w, `{"version":1,"items":[%s]}`, strings.Join(items, ","))
	})
	mux.HandleFunc("/{n}/llm.json", func(w http.ResponseWriter, r *http.Request) {
		n := r.PathValue("n")
		seed, _ := strconv.ParseUint(n, 10, 32)
		rng, words := rand.New(rand.NewPCG(seed, 1)), ""
		for range 800 {
			words += strconv.FormatUint(rng.Uint64(), 36) + " "
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"sha256-`+n+`"`)
		w.Header().Set("Link", "<"+g.URL+"/"+n+`/>; rel="canonical"`)
		fmt.Fprintf(w, `{"profile":"tct-1","canonical_url":"%s/%s/","title":"Page %[2]s","content":"%[3]s","hash":"sha256-%[2]s"}`, g.URL, n, words)
	})
	return g
}

// A full disk ends a pull with a one-line error. The mirror keeps all it had, and the
// next pull fetches the rest.
func TestPullFullDisk(t *testing.T) { fullDisk(t, "limited file size") }

func TestRealPullFullDisk(t *testing.T) {
	testkit.Real(t, "unshare", "mount")
	fullDisk(t, "a separate disk", "a separate disk for temporary files")
}

func fullDisk(t *testing.T, names ...string) {
	t.Helper()
	g := newGrowing(t)
	g.pages.Store(10)
	good := filepath.Join(t.TempDir(), "mirror.db")
	pull(t, g.URL, good)
	root := g.URL + "/"
	before := texts(t, good, root)
	info, err := os.Stat(good)
	if err != nil || len(before) != 10 {
		t.Fatalf("%d pages, %v", len(before), err)
	}
	size := int(info.Size() >> 10)
	for _, tt := range []struct {
		name, script string
		padding      int64
		code         string
	}{
		{"limited file size", fmt.Sprintf(limited, 2*size+200), 0, "disk-error"},
		{"a separate disk", fmt.Sprintf(onDisk, size+400), 0, "disk-full"},
		{"a separate disk for temporary files", fmt.Sprintf(onTemp, 64), 16 << 10, "disk-full"},
	} {
		if !slices.Contains(names, tt.name) {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "disk")
			file := filepath.Join(dir, "mirror.db")
			b, err := os.ReadFile(good)
			if err == nil {
				err = os.Mkdir(dir, 0o700)
			}
			if err == nil {
				err = os.WriteFile(file, b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			g.pages.Store(150)
			g.padding.Store(tt.padding)
			got, _ := child(t, tt.script, file, g.URL, "--via", "tct-01")
			lines, codes := got.trouble()
			if got.code != exitFailure || len(lines) != 1 || codes[0] != tt.code || len(lines[0]) > 350 {
				t.Errorf("exit %d: %q\n%s%s", got.code, lines, got.text, got.stderr)
			}
			if _, err := os.Stat(dir + ".db"); err == nil { // the mirror fits on the disk
				file = dir + ".db"
			}
			after := texts(t, file, root)
			for u, text := range before {
				if after[u] != text {
					t.Errorf("%s was %d bytes and is %d", u, len(text), len(after[u]))
				}
			}
			if len(after) > 149 {
				t.Error("the disk was not full")
			}
			if r := pull(t, g.URL, file); r.Added+len(after) != 150 {
				t.Errorf("the next pull, after %d pages: %+v", len(after), r)
			}
		})
	}
}

// A pull uses little memory, whatever the server sends.
func TestPullMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("testing.Short: child processes, and memory without -race")
	}
	fine := always(200, http.Header{"Content-Type": {"text/html; charset=utf-8"}}, "")
	for name, h := range map[string]http.Handler{
		"bomb in a bomb": bomb("gzip, gzip")(fine),
		"zstd bomb":      bomb("zstd")(fine),
		"long header":    always(200, http.Header{"X-Long": {strings.Repeat("x", 1<<20)}}, ""),
		"without end": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, strings.Repeat("<div>", 10_000))
			}
		}),
	} {
		srv := httptest.NewServer(h)
		most := int64(100 << 20)
		if name == "without end" { // a page may have 50 MiB
			most = 250 << 20
		}
		for _, via := range []string{webCrawl, "tct-00"} {
			began := time.Now()
			got, peak := child(t, plainly, filepath.Join(t.TempDir(), "m.db"), append(by(via), srv.URL, "--ignore-policy")...)
			if took := time.Since(began); got.code != exitFailure || peak < 5<<20 || peak > most || took > time.Minute {
				t.Errorf("%s by %s: exit %d, %d MB, %s: %s", name, via, got.code, peak>>20, took, got.text)
			} else {
				t.Logf("%s by %s: %d MB, %s: %s", name, via, peak>>20, took, got.report.Error)
			}
		}
		srv.Close()
	}
}
