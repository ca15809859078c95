package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/store"
)

// errorText returns the text of an error without the names of the site and the ways, because the
// report already contains them. If the disk is full or too many files are open, the text says what
// to do.
func errorText(err error, root string, ways ...string) string {
	text := err.Error()
	if file, ok := errors.AsType[*fs.PathError](err); ok && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)) {
		return fmt.Sprintf("the disk is full (%v): nothing was changed; free space for temporary files, or set TMPDIR to another folder, and try again", file)
	}
	if errors.Is(err, syscall.EMFILE) {
		return text + "; this process has as many files and connections open as the system allows: raise the limit with ulimit -n, or pull fewer sites at once"
	}
	for again := true; again; {
		again = false
		for _, way := range ways {
			for _, prefix := range []string{way + " " + root + ": ", way + ": "} {
				if rest, ok := strings.CutPrefix(text, prefix); ok {
					text, again = rest, true
				}
			}
		}
	}
	return text
}

// hasProtocolPages reports whether the site has pages from a source other than a crawl, and the
// user has not requested a crawl.
func (s *sitePull) hasProtocolPages(ctx context.Context, site store.Site, from string) (bool, error) {
	if s.o.Via == Crawl {
		return false, nil
	}
	if is, err := ingest.IsPrimary(ctx, site, from); is || err != nil {
		return false, err
	}
	v, err := site.Head(ctx)
	if err != nil {
		return false, err
	}
	return v.Site().Pages > 0, nil
}
