package markdown

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/tree"
)

// Page reads the page of one file, given its URL in the stream, which is the name of the file. If
// the file has just changed, the page has no version. If the front matter contains no modification
// time, Modified is the modification time of the file, as a hint, and Known does not contain
// FieldModified.
//
// If the file does not exist or is not published, Page returns [millrace.ErrNotFound]. If the front
// matter is invalid or the file is not UTF-8, Page returns [millrace.ErrInvalid] with line and
// column; if the file is not readable, [millrace.ErrForbidden]; and for other errors of the file
// system, [millrace.ErrUnavailable]. It may also return [millrace.ErrUnmodified] or
// [millrace.ErrTooLarge].
func (f *Folder) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	p, err := f.page(ctx, have)
	if err != nil {
		return nil, fmt.Errorf("page %s: %w", have.URL, err)
	}
	return p, nil
}

func (f *Folder) page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	s, err := f.state(ctx)
	if err != nil {
		return nil, err
	}
	file, err := s.file(have.URL)
	if err != nil {
		return nil, err
	}
	if winner := s.index.lost[file]; winner != "" {
		return nil, unpublished{"same-url", "another file has the same URL: " + winner}
	}
	version := func(info fs.FileInfo) string { return tree.Version(s.index.rules, info, s.now()) }
	if have.Version != "" {
		info, err := s.root.Stat(file)
		if err != nil {
			return nil, tree.PathError(err)
		}
		if version(info) == have.Version {
			return nil, millrace.ErrUnmodified
		}
	}
	if s.open != nil {
		s.open(file)
	}
	data, before, after, err := tree.Read(s.root, file, s.max)
	if err != nil {
		return nil, err
	}
	h, err := named(file)(parseHead(data))
	if err != nil {
		return nil, err
	}
	sp, _, err := s.spotOf(file, &h, s.now())
	if err != nil {
		return nil, err
	}
	if err := encoded(file, data); err != nil {
		return nil, err
	}
	p := &millrace.Page{URL: sp.url}
	if p.Version = version(before); p.Version != version(after) {
		p.Version = "" // the file changed while it was read
	}
	l, err := s.linker(file, sp.url)
	if err != nil {
		return nil, err
	}
	text := lineEnds(data[h.body:])
	blocks, lost, err := s.blocks(ctx, text, l, h.matter)
	if err != nil {
		return nil, err
	}
	if p.Blocks = blocks; lost > 0 {
		f.lost.Add(int64(lost))
		f.log.Debug("omitted sentences with values that only the generator knows", "url", have.URL, "count", lost)
	}
	s.fields(p, sp, &h)
	title(p, sp, h.matter, file)
	if modified := before.ModTime(); !p.Known.Has(millrace.FieldModified) && modified.Year() > 1980 { // reproducible builds set fixed, old times
		p.Modified = modified.UTC().Truncate(time.Second)
	}
	return p, nil
}

// encoded returns an error with the position of the first bytes that are not UTF-8, or nil.
func encoded(file string, data []byte) error {
	reason := "not UTF-8"
	at := -1
	for i := 0; i < len(data); {
		c := data[i]
		if c == 0 {
			at, reason = i, "contains a NUL: binary, or UTF-16"
			break
		}
		if c < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			at = i
			break
		}
		i += n
	}
	if at < 0 {
		return nil
	}
	line := bytes.Count(data[:at], []byte("\n"))
	column := at - bytes.LastIndexByte(data[:at], '\n')
	return &millrace.FormatError{Position: fmt.Sprintf("%s:%d:%d", file, line+1, column), Reason: reason}
}

// lineEnds replaces every line end with a line feed.
func lineEnds(text []byte) []byte {
	if bytes.IndexByte(text, '\r') < 0 {
		return text
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
}
