package folder

import (
	"context"
	"io/fs"
	"os"

	"github.com/millrace/millrace/internal/watch"
)

// Watch calls changed whenever something in the folder may have changed: after 300 ms without a
// change, but after at most 2 s. It also calls changed once when it has begun to watch, so
// that no change after an earlier walk is missed. Calls never overlap. Watch returns the error of
// the context.
//
// If the system does not support file watches, or allows no more of them, Watch logs this and walks
// the folder every few seconds instead.
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
