package folder

import (
	"context"
	"io/fs"
	"os"

	"github.com/millrace/millrace/internal/watch"
)

// Watch calls changed whenever something in the folder may have changed, once
// things have been quiet for 300 ms, or after 2 s; and once at the start, when
// it has begun to watch, so that nothing is missed between a walk before and
// the watch. It never calls twice at once, and returns the context's error.
//
// Where the system has no watches (left), it says so in the log and walks the
// folder every few seconds instead.
func (f *Folder) Watch(ctx context.Context, changed func()) error {
	w := watch.Folder{
		Dir: f.dir,
		Root: func(ctx context.Context) (*os.Root, fs.FileInfo, error) {
			t, err := f.refresh(ctx)
			if err != nil {
				return nil, nil, err
			}
			return t.root, t.info, nil
		},
		Walk:   watch.Walk(f.walker),
		Sum:    watch.Sum(f),
		Logger: f.log,
	}
	return w.Watch(ctx, changed)
}
