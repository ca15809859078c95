package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/store"
)

// told gives the words of an error for a line that names the site and the way
// already: what was being done to what is not repeated.
func told(err error, root string, ways ...string) string {
	text := err.Error()
	if file, ok := errors.AsType[*fs.PathError](err); ok && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)) {
		return fmt.Sprintf("the disk is full (%v): nothing was changed; make room for what is temporary, or name another folder in TMPDIR, and try again", file)
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

// fail enters the error that a pull ends with.
func (r *pullReport) fail(err error) {
	names := make([]string, len(r.Ways))
	for i, w := range r.Ways {
		names[i] = w.Protocol
	}
	r.Error, r.Code = told(err, r.Site, names...), millrace.ErrorCode(err)
}

// given reports whether others than a crawl have given the pages of a site that
// is about to be crawled without having been asked to be.
func (s *sitePull) given(ctx context.Context, site store.Site, from string) (bool, error) {
	if s.c.Via == webCrawl {
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
