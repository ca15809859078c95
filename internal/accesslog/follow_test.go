package accesslog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

const followed = "https://example.com/blog/"

// followTest follows a log in a folder.
type followTest struct {
	*testing.T
	file  string
	st    *memory.Store
	usage store.Usage
	f     *Follower
	clock time.Time
}

func newFollowTest(t *testing.T) *followTest {
	t.Helper()
	x := &followTest{T: t, file: filepath.Join(t.TempDir(), "access.log"), st: memory.New(nil), clock: time.Now().UTC().Truncate(time.Second)}
	if _, err := x.st.Site(t.Context(), followed, followed); err != nil {
		t.Fatal(err)
	}
	x.usage = x.st
	return x
}

// start starts a new process.
func (x *followTest) start() {
	x.Helper()
	table, err := bots.New(nil)
	if err != nil {
		x.Fatal(err)
	}
	x.f, err = NewFollower(&FollowOptions{
		File: x.file, Site: followed, Base: followed, Bots: table, State: x.st.State(), Usage: x.usage, Recorder: analytics.New(x.usage, followed, nil),
		Document: func(_ context.Context, path string) (string, bool) {
			page, ok := strings.CutSuffix(path, "/llm.json")
			return strings.TrimPrefix(page, "/blog"), ok || path == "/blog/llms.txt"
		},
	})
	if err != nil {
		x.Fatal(err)
	}
	if err := x.f.start(x.Context()); err != nil {
		x.Fatal(err)
	}
	x.Cleanup(x.f.close)
	x.look()
}

func (x *followTest) look() {
	x.Helper()
	if err := x.f.readNew(x.Context()); err != nil {
		x.Fatal(err)
	}
}

// line returns a line for a path below the site.
func (x *followTest) line(path string) string {
	return fmt.Sprintf("192.0.2.1 - - [%s] \"GET /blog%s HTTP/1.1\" 200 100 \"-\" \"GPTBot/1.2\"\n", x.clock.Format("02/Jan/2006:15:04:05 -0700"), path)
}

// write appends lines to a file.
func (x *followTest) write(file string, lines ...string) {
	x.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(strings.Join(lines, ""))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		x.Fatal(err)
	}
}

// want compares the recorded paths, in order.
func (x *followTest) want(paths ...string) {
	x.Helper()
	var got []string
	for e, err := range x.usage.Events(x.Context(), followed, store.EventQuery{}) {
		if err != nil {
			x.Fatal(err)
		}
		got = append(got, e.Path)
	}
	if !slices.Equal(got, paths) {
		x.Errorf("got %v, want %v", got, paths)
	}
}

// Reading begins at the end of the log, and only whole lines count.
func TestFollow(t *testing.T) {
	t.Parallel()
	x := newFollowTest(t)
	x.write(x.file, x.line("/old"), x.line("/cut")[:40])
	x.start()
	x.write(x.file, x.line("/cut")[40:], x.line("/a"), x.line("/b")[:50])
	x.look()
	x.want("/a")
	x.write(x.file, x.line("/b")[50:], "noise \xff\n", strings.Repeat("y", 3<<20)+"\n", x.line("/c"))
	x.look()
	x.look()
	x.want("/a", "/b", "/c")
	for i := range 3000 { // more than a block
		x.write(x.file, x.line(fmt.Sprint("/many", i)))
	}
	x.look()
	n := 0
	for range x.usage.Events(t.Context(), followed, store.EventQuery{}) {
		n++
	}
	if n != 3003 || x.f.unknown != 1 {
		t.Errorf("%d events, %d unknown", n, x.f.unknown)
	}
}

// Lines of other sites, of people and of millrace itself are skipped.
func TestFollowSkips(t *testing.T) {
	t.Parallel()
	x := newFollowTest(t)
	x.write(x.file, "")
	x.start()
	host := "www.example.com:443 "
	x.write(x.file, "example.org "+x.line("/no"), strings.Replace(x.line("/no"), "/blog", "/shop", 1), strings.Replace(x.line("/no"), "GPTBot", "Firefox", 1),
		strings.NewReplacer("192.0.2.1", "127.0.0.1", "GPTBot/1.2", "millrace/1.0 (+https://millrace.example)").Replace(x.line("/no")),
		host+x.line("/a?b=c"), strings.Replace(x.line(""), "/blog", "/robots.txt", 1), x.line("/%7Eb"))
	x.look()
	x.want("/a", "/robots.txt", "/~b")
	for e := range x.usage.Events(t.Context(), followed, store.EventQuery{Limit: 1}) {
		if e.Bot != "GPTBot" || e.Family != "openai" || e.Protocol != "html" || e.Endpoint != store.EndpointFetch || e.Status != 200 || e.Bytes != 100 || e.Results != 1 || !e.Time.Equal(x.clock) {
			t.Errorf("%+v", e)
		}
	}
}

// A log that was renamed is read to its end, and then its successor, even after a restart.
func TestFollowRotation(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		x := newFollowTest(t)
		x.write(x.file, x.line("/old"))
		x.start()
		x.write(x.file, x.line("/1"))
		x.look()
		x.write(x.file, x.line("/2"))
		if err := os.Rename(x.file, x.file+".1"); err != nil {
			t.Fatal(err)
		}
		x.write(x.file+".1", x.line("/3"))
		if restart {
			x.write(x.file, x.line("/4"))
			x.start()
		} else {
			x.look() // the log is missing
			x.write(x.file, x.line("/4"))
			x.look()
			x.write(x.file+".1", x.line("/late"))
		}
		x.look()
		x.look()
		x.look()
		want := []string{"/1", "/2", "/3", "/late", "/4"}
		if restart {
			want = []string{"/1", "/2", "/3", "/4"}
		}
		x.want(want...)
	}
}

// A log that was copied and truncated is read from its beginning, even if it has grown beyond the
// old size.
func TestFollowTruncation(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		for _, lines := range []int{1, 100} {
			x := newFollowTest(t)
			x.write(x.file, x.line("/old"))
			x.start()
			x.write(x.file, x.line("/1"), x.line("/2"))
			x.look()
			want := []string{"/1", "/2"}
			if err := os.Truncate(x.file, 0); err != nil {
				t.Fatal(err)
			}
			x.clock = x.clock.Add(time.Second)
			for i := range lines {
				x.write(x.file, x.line(fmt.Sprint("/new", i)))
				want = append(want, fmt.Sprint("/new", i))
			}
			if restart {
				x.start()
			}
			x.look()
			x.look()
			x.want(want...)
		}
	}
}

// A process that was killed between any two of its writes counts every line once.
func TestFollowKilled(t *testing.T) {
	t.Parallel()
	for _, stored := range []bool{false, true} {
		x := newFollowTest(t)
		x.write(x.file, "")
		x.start()
		x.write(x.file, x.line("/a"), x.line("/a"))
		x.look()
		x.write(x.file, x.line("/b"), x.line("/b"), x.line("/c"))
		if stored { // the events are stored, and the position is not
			x.f.o.State = broken{x.f.o.State}
			if err := x.f.read(t.Context()); err == nil {
				t.Fatal("no error")
			}
		}
		x.start()
		x.write(x.file, x.line("/a"), x.line("/b"))
		x.look()
		x.want("/a", "/a", "/b", "/b", "/c", "/a", "/b")
	}
}

// broken is a state that cannot be written.
type broken struct{ store.State }

func (broken) Swap(context.Context, string, string, []byte, []byte) error {
	return errors.New("broken")
}

// If the store fails, no event is lost, and none is recorded twice.
func TestFollowStoreFails(t *testing.T) {
	t.Parallel()
	x := newFollowTest(t)
	x.write(x.file, "")
	x.start()
	works := x.f.o.State
	x.f.o.State = broken{works}
	x.write(x.file, x.line("/a"))
	for range 2 {
		if err := x.f.readNew(t.Context()); err == nil {
			t.Fatal("no error")
		}
	}
	x.f.o.State = works
	x.write(x.file, x.line("/b"))
	x.look()
	x.want("/a", "/b")
}

// Requests that the gateway has also recorded are counted once.
func TestFollowRecorded(t *testing.T) {
	t.Parallel()
	x := newFollowTest(t)
	x.write(x.file, "")
	x.start()
	own := store.Event{Time: x.clock.Add(-time.Second), Bot: "GPTBot", Protocol: "web", Endpoint: store.EndpointFetch, Path: "/a", Status: 200, Bytes: 40}
	x.f.Record(own)                                                                      // Markdown at the address of the page
	x.write(x.file, x.line("/a"), strings.Replace(x.line("/a"), "200 100", "200 40", 1)) // HTML, Markdown
	x.look()
	x.want("/a", "/a") // a request of millrace itself, and the HTML
	document := own
	document.Protocol, document.Path = "tct-01", "/b"
	x.f.Record(document) // the event names the page, and the line the document
	x.write(x.file, x.line("/b/llm.json"), x.line("/b"), x.line("/llms.txt"))
	x.look()
	x.want("/a", "/a", "/b", "/b")
	late := own
	late.Time, late.Path = x.clock.Add(-time.Minute), "/c"
	x.f.Record(late)
	x.write(x.file, x.line("/c"))
	x.look()
	x.want("/a", "/a", "/b", "/b", "/c", "/c")
	for i := range 3 * maxRecorded {
		x.f.seen.add(&store.Event{Path: fmt.Sprint(i)})
	}
	if len(x.f.seen.now)+len(x.f.seen.old) > 2*maxRecorded {
		t.Error("too many events are stored")
	}
}

// A log that appears later is read from its beginning, and an unreadable log is an error.
func TestFollowMissing(t *testing.T) {
	t.Parallel()
	x := newFollowTest(t)
	x.start()
	x.write(x.file, x.line("/a"))
	x.look()
	x.look()
	x.want("/a")
	if _, err := NewFollower(&FollowOptions{File: t.TempDir()}); err == nil {
		t.Error("following a folder returned no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	x.f.o.Every = time.Millisecond
	x.f.close()
	done := make(chan struct{})
	go func() { x.f.Run(ctx); close(done) }()
	x.write(x.file, x.line("/b"))
	for n := 0; n < 2; time.Sleep(time.Millisecond) {
		n = 0
		for range x.usage.Events(t.Context(), followed, store.EventQuery{}) {
			n++
		}
	}
	cancel()
	<-done
	x.want("/a", "/b")
}
