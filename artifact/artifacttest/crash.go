package artifacttest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/internal/testkit"
)

// OpenFunc opens the store at a location, such as a folder.
type OpenFunc func(location string) (artifact.Store, error)

// childArgument starts the arguments of the processes that [Crash] kills.
const childArgument = "artifacttest-child"

// Child is for the TestMain of a durable engine. In a process that [Crash] started, Child does the
// work of that process and does not return. In other processes, it returns at once.
func Child(open OpenFunc) {
	if len(os.Args) != 4 || os.Args[1] != childArgument {
		return
	}
	s, err := open(os.Args[2])
	for step := 1; err == nil; step++ {
		if err = crashStep(context.Background(), s, os.Args[3], step); err == nil {
			fmt.Println(step)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// crashStep is a step of a process: it puts an artifact and deletes an older one.
func crashStep(ctx context.Context, s artifact.Store, round string, step int) error {
	// Small reads result in many writes, so that a kill can hit between two writes.
	r := io.MultiReader()
	for content := range slices.Chunk([]byte(crashContent(round, step)), 1000) {
		r = io.MultiReader(r, strings.NewReader(string(content)))
	}
	if err := s.Put(ctx, crashName(round, step), r); err != nil {
		return err
	}
	if step > 2 && step%2 == 0 {
		return s.Delete(ctx, crashName(round, step-2))
	}
	return nil
}

func crashName(round string, step int) string {
	return fmt.Sprintf("round/%s/%d/%d", round, step%3, step)
}

func crashContent(round string, step int) string {
	return strings.Repeat(fmt.Sprintf("%s, step %d\n", round, step), 1+step*step*13%4000)
}

// Crash repeatedly starts and kills processes of the test binary, which put and delete artifacts in
// the store at one location. After each kill, it checks that the store contains every change that
// the process reported, and that the last artifact is complete or absent.
func Crash(t *testing.T, location string, open OpenFunc) {
	rng := rand.New(rand.NewPCG(21, 2))
	model := map[string]string{}
	steps := 0
	for n := range testkit.Size(4, 15, 200) {
		round := strconv.Itoa(n)
		last := crashOnce(t, location, round, 1+rng.IntN(25), time.Duration(rng.IntN(5000))*time.Microsecond)
		steps += last
		s, err := open(location)
		if err != nil {
			t.Fatal(err)
		}
		for step := 1; step <= last; step++ {
			model[crashName(round, step)] = crashContent(round, step)
			if step > 2 && step%2 == 0 {
				delete(model, crashName(round, step-2))
			}
		}
		f := &fixture{t, s}
		// The step after the last reported one may be complete, incomplete or not begun.
		next := crashName(round, last+1)
		if _, err := s.Stat(t.Context(), next); err == nil {
			model[next] = crashContent(round, last+1)
			if old := crashName(round, last-1); last%2 == 1 && last > 1 {
				if _, err := s.Stat(t.Context(), old); err != nil {
					delete(model, old)
				}
			}
		}
		f.wantList("", slices.Sorted(maps.Keys(model))...)
		for name, content := range model {
			f.want(name, content)
		}
		if c, ok := s.(io.Closer); ok {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		if t.Failed() {
			t.Fatalf("after round %d, killed after step %d", n, last)
		}
	}
	t.Logf("%d steps, %d artifacts left", steps, len(model))
}

// crashOnce starts a process, kills it some time after it reports a step, and
// returns the last step that it reported.
func crashOnce(t *testing.T, location, round string, step int, after time.Duration) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], childArgument, location, round) //nolint:gosec // this test binary
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if last, err = strconv.Atoi(lines.Text()); err != nil {
			t.Errorf("a process reports %q", lines.Text())
		}
		if last == step {
			time.AfterFunc(after, cancel)
		}
	}
	if err := errors.Join(lines.Err(), cmd.Wait()); last < step || stderr.Len() > 0 {
		t.Fatalf("the process failed after step %d: %v, %s", last, err, stderr.String())
	}
	return last
}
