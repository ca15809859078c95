package static

import (
	"fmt"
	"maps"
	"slices"

	"github.com/millrace/millrace"
)

// Verify reads the files of a folder that a build wrote, and compares them with its record. It
// returns the number of files. It calls damaged for each file that is missing or has changed. The
// next build writes these files again.
func Verify(dir string, damaged func(name string, err error)) (files int, err error) {
	h, err := OpenHost(dir)
	if err != nil {
		return 0, err
	}
	for _, name := range slices.Sorted(maps.Keys(h.files)) {
		sum, err := h.build.sumOf(name)
		if err == nil && sum != h.files[name].Sum {
			err = fmt.Errorf("%w: the file has changed since a build wrote it", millrace.ErrInvalid)
		}
		if err != nil {
			damaged(name, err)
		}
	}
	return len(h.files), h.Close()
}
