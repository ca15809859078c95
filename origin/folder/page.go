package folder

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/tree"
)

// Page reads the page of one file, given its URL in the stream. If the file has just changed, the
// page has no version. If the page contains no modification time, Modified is the modification time
// of the file, as a hint, and Known does not contain FieldModified. A duplicate is an alias that
// contains only its URL.
//
// If the file is not HTML or has no content, Page returns [millrace.ErrInvalid]; if the file is not
// readable, [millrace.ErrForbidden]; and for other errors of the file system,
// [millrace.ErrUnavailable]. It may also return [millrace.ErrUnmodified], [millrace.ErrNotFound] or
// [millrace.ErrTooLarge].
func (f *Folder) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	p, err := f.page(ctx, have)
	if err != nil {
		return nil, fmt.Errorf("page %s: %w", have.URL, err)
	}
	return p, nil
}

func (f *Folder) page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	t := f.present.Load()
	file, ok := f.source(t, have.URL)
	if !ok {
		return nil, fmt.Errorf("%w: no page has this URL", millrace.ErrNotFound)
	}
	if have.Version != "" {
		info, err := t.root.Stat(file)
		if err != nil {
			return nil, tree.PathError(err)
		}
		if t.version(info, f.now()) == have.Version {
			return nil, millrace.ErrUnmodified
		}
	}
	data, state, err := f.read(t, file)
	if err != nil {
		return nil, err
	}
	res, err := extract.HTML(ctx, data, have.URL, &extract.Options{Base: t.base, MaxBytes: int(f.max), Rules: f.rules})
	if err != nil {
		return nil, err
	}
	id, duplicate := t.nameOf(file, have.URL, res.Canonical)
	if res.Refresh != "" && len(res.Page.Blocks) <= 1 && !duplicate { // the page acts as a redirect
		if to, other := t.nameOf(file, have.URL, res.Refresh); other {
			id, duplicate = to, true
		}
	}
	if duplicate {
		return &millrace.Page{URL: id, Version: state.version}, nil
	}
	p := res.Page
	if len(p.Blocks) == 0 && p.Title == "" && p.Description == "" && !p.Access.NoIndex {
		return nil, fmt.Errorf("%w: no content: %w", millrace.ErrInvalid, res.Reason)
	}
	p.URL, p.Version = id, state.version
	p.HTMLSize.Bytes = int64(len(data))                                       // the transferred size is unknown
	if !p.Known.Has(millrace.FieldModified) && state.modified.Year() > 1980 { // reproducible builds set fixed, old times
		p.Modified = state.modified.UTC().Truncate(time.Second)
	}
	return p, nil
}

// source returns the file for a URL in the stream.
func (f *Folder) source(t *snapshot, u string) (string, bool) {
	names, slash, ok := segments(u)
	if !ok {
		return "", false
	}
	own := "/"
	for i, n := range names {
		own += tree.Escape(n)
		if last := i == len(names)-1; !last || slash {
			own += "/"
			if strings.HasPrefix(n, "_") {
				return "", false
			}
		} else if !isHTML(n) || n == "index.html" || fileReason(n) != nil {
			return "", false
		}
	}
	if own != u {
		return "", false
	}
	file := path.Join(names...)
	if slash {
		file = t.index(file)
	} else if underscored(file) {
		if l := f.linked.Load(); l == nil || l.From[file] == "" {
			return "", false
		}
	}
	return file, file != ""
}

// fileState is the state of a file when it was read.
type fileState struct {
	version  string
	modified time.Time
}

// read reads a file that may be a page.
func (f *Folder) read(t *snapshot, file string) ([]byte, fileState, error) {
	if f.open != nil {
		f.open(file)
	}
	data, before, after, err := tree.Read(t.root, file, f.max)
	if err != nil {
		return nil, fileState{}, err
	}
	s := fileState{t.version(before, f.now()), before.ModTime()}
	if t.version(after, f.now()) != s.version {
		s.version = "" // the file changed while it was read
	}
	return data, s, nil
}

// Original returns the HTML of a page, and the options for its extraction, without rules. Its
// errors are those of Page.
func (f *Folder) Original(_ context.Context, ref millrace.Ref) ([]byte, *extract.Options, error) {
	t := f.present.Load()
	file, ok := f.source(t, ref.URL)
	if !ok {
		return nil, nil, fmt.Errorf("original of %s: %w: no page has this URL", ref.URL, millrace.ErrNotFound)
	}
	data, _, err := f.read(t, file)
	if err != nil {
		return nil, nil, fmt.Errorf("original of %s: %w", ref.URL, err)
	}
	return data, &extract.Options{Base: t.base, MaxBytes: int(f.max)}, nil
}
