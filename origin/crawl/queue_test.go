package crawl

import (
	"os"
	"runtime"
	"testing"
)

// A process that is killed leaves no file of its queue.
func TestQueueFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no unlinked files")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	q := &queue{tail: []task{{url: "https://mill.example/"}}}
	defer q.close()
	if err := q.spill(); err != nil || q.file == nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
