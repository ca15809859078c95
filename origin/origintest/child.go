package origintest

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/mirror"
)

// child is a process that runs over a site and may be killed. It is the test
// binary again: what it has to do stands in its arguments.
type child struct{ place, base, path string }

const (
	childArg = "origintest-child"
	stepLine = "origintest step" // what it prints for each page
)

func parseChild(args []string) (child, bool) {
	if len(args) != 4 || args[0] != childArg {
		return child{}, false
	}
	return child{args[1], args[2], args[3]}, true
}

// run runs once over the site. At each step it says so and waits for a byte,
// as long as its input is open.
func (c child) run(t *testing.T, o Origin) {
	p, err := openStore(t.Context(), c.path, c.base)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.store.Close() }()
	if p.src, err = o.Open(t, c.place, p.held); err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	_, err = mirror.Sync(t.Context(), from, p.src, p.site, &mirror.Options{Batch: 3, Progress: func(mirror.Progress) {
		fmt.Println(stepLine)
		_, _ = os.Stdin.Read(b[:]) // at its end it goes on by itself
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// kill starts a process over the site and kills it at its step of a number: at
// once, or, when it may go on by itself, some time later. It reports whether
// it was still running.
func (f *fixture) kill(path string, step int, later time.Duration) bool {
	f.Helper()
	name := "^" + strings.ReplaceAll(f.Name()[:strings.LastIndexByte(f.Name(), '/')], "/", "$/^") + "$"
	cmd := exec.CommandContext(f.Context(), os.Args[0], "-test.run="+name, childArg, f.site.Place(), f.site.Base(), path)
	in, err := cmd.StdinPipe()
	f.must(err)
	out, err := cmd.StdoutPipe()
	f.must(err)
	cmd.Stderr = cmd.Stdout
	f.must(cmd.Start())
	watch := time.AfterFunc(6*patience, func() { _ = cmd.Process.Kill() })
	var said strings.Builder
	lines := bufio.NewScanner(out)
	for seen := 0; lines.Scan(); {
		if lines.Text() != stepLine {
			said.WriteString(lines.Text() + "\n")
			continue
		}
		switch seen++; {
		case seen < step:
			_, _ = io.WriteString(in, ".") // it may have ended
		case seen == step && later == 0:
			_ = cmd.Process.Kill()
		case seen == step:
			_ = in.Close()
			watch.Reset(later)
		}
	}
	watch.Stop()
	err = cmd.Wait()
	if said.Len() > 0 && err != nil && cmd.ProcessState.Exited() {
		f.Fatalf("the process ends by itself, %v:\n%s", err, said.String())
	}
	return !cmd.ProcessState.Exited()
}

func runKilled(f *fixture) {
	rounds := testkit.Size(2, 2, 6)
	rng := rand.New(rand.NewPCG(11, 4))
	path := f.place()
	for _, c := range []struct {
		when  string
		steps int // that a run has at least
	}{{"from the start", size - 1}, {"over changes", 3}} {
		if c.when == "over changes" {
			f.alter()
		}
		killed := 0
		for round := range rounds {
			var later time.Duration
			if round%2 == 1 {
				later = time.Duration(1 + rng.Int64N(int64(15*time.Millisecond)))
			}
			if f.kill(path, 1+rng.IntN(c.steps), later) {
				killed++
			}
			_, pages := f.look(path)
			f.invented(pages, "after a run that was killed")
		}
		f.sync(path)
		f.check(path, "after runs "+c.when+" that were killed")
		if killed == 0 {
			f.Errorf("none of %d processes %s was killed", rounds, c.when)
		}
	}
}
