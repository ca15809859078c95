package daemon

import (
	"runtime"
	"testing"
)

func TestThreads(t *testing.T) {
	for _, c := range []struct {
		load        string
		normal, now int
		want        int
	}{
		{"0.10 0.00 0.00 1/100 7\n", 2, 2, 2},
		{"7.99 9.00 9.00 9/100 7\n", 2, 2, 2},
		{"8.00 0.00 0.00 9/100 7\n", 2, 2, moreThreads},
		{"4.00 20.00 20.00 9/100 7\n", 2, moreThreads, moreThreads},
		{"3.99 20.00 20.00 9/100 7\n", 2, moreThreads, 2},
		{"8.00 0.00 0.00 9/100 7\n", 4, 4, 4},
		{"", 2, moreThreads, 2},
		{"a lot", 2, moreThreads, 2},
	} {
		if got := threads(c.load, c.normal, c.now); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// Threads must return at once if the number of threads is configured or limited.
func TestThreadsLimited(t *testing.T) {
	Threads(t.Context(), func(name string) (string, bool) { return "", name == "GOMAXPROCS" })
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 1))
	Threads(t.Context(), func(string) (string, bool) { return "", false })
}
