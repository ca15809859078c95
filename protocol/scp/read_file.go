package scp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// File is an open collection file.
type File struct {
	*Collection
	Size int64 // size of the file in bytes

	name   string
	file   *os.File
	copied bool // whether the file is temporary
	o      *FileOptions
	step   string
	read   int64 // number of bytes read in the current step
	total  int64 // number of bytes that the step reads
}

// FileOptions are the options of [OpenFile].
type FileOptions struct {
	Stdin  io.Reader    // input for the name "-"
	Client *http.Client // client that fetches URLs
	Logger *slog.Logger // If nil, nothing is logged.
	// Progress receives the number of bytes that a step has read, and the number that it reads in
	// total. An empty step ends the previous one. If nil, progress is not reported.
	Progress func(step string, read, total int64)
}

// OpenFile opens a collection: a file, a URL, or the standard input for "-". Input that cannot be
// read twice is copied to a temporary file, up to the maximum size of a collection (SCP 0.1,
// Resource Exhaustion Attacks).
func OpenFile(ctx context.Context, name string, o *FileOptions) (_ *File, err error) {
	f := &File{name: name, o: o}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	isURL, coding := strings.Contains(name, "://"), ""
	switch {
	case name == "-":
		err = f.copy(ctx, o.Stdin, 0)
	case isURL:
		coding, err = f.fetch(ctx, name)
	default:
		err = f.open(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	if f.Collection, err = Open(f, f.Size, nil); err != nil {
		return nil, err
	}
	if is := f.Coding(); isURL && coding != is && o.Logger != nil {
		o.Logger.Warn("Content-Encoding differs from the coding of the file", "url", name, "content_encoding", coding, "coding", is)
	}
	return f, nil
}

func (f *File) open(ctx context.Context, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return errors.Unwrap(err) // the caller names the file
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		f.file, f.Size = file, info.Size()
		return nil
	}
	defer file.Close()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("is a directory: %w", millrace.ErrInvalid)
	}
	if err != nil {
		return err
	}
	return f.copy(ctx, file, 0)
}

// fetch downloads a file without removing its coding, and returns the content coding that the
// server declares.
func (f *File) fetch(ctx context.Context, address string) (coding string, err error) {
	ctx = fetch.Download(ctx, maxFile, longest)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	}
	req.Header.Set("Accept", "application/scp, */*;q=0.5")
	req.Header.Set("Accept-Encoding", "zstd, gzip")
	resp, err := fetch.Do(ctx, f.o.Client, req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if err := fetch.CheckStatus(resp); err != nil {
		return "", err
	}
	coding = namedCoding(resp)
	body, err := asSent(resp)
	if err != nil {
		return "", err
	}
	defer body.Close()
	return coding, f.copy(ctx, body, resp.ContentLength)
}

// copy copies a stream to a temporary file. size is 0 or less if the size is unknown.
func (f *File) copy(ctx context.Context, from io.Reader, size int64) (err error) {
	if f.file, err = temporary(); err != nil {
		return err
	}
	f.copied = true
	f.Step("fetch", 1)
	f.total = size
	f.Size, err = io.Copy(f.file, io.LimitReader(&counted{ctx, from, f}, maxFile+1))
	return err
}

// counted is a stream that reports its progress.
type counted struct {
	ctx  context.Context
	from io.Reader
	f    *File
}

func (c *counted) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.from.Read(b)
	c.f.count(n)
	return n, err
}

// ReadAt reads the file unchanged, and reports progress.
func (f *File) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.file.ReadAt(b, at)
	f.count(n)
	return n, err
}

// Step starts a step that reads the file in the given number of passes. If title is empty, Step
// only ends the previous step.
func (f *File) Step(title string, passes int64) {
	if title != "" {
		title += " " + f.name
	}
	f.step, f.read, f.total = title, 0, passes*f.Size
	f.count(0)
}

func (f *File) count(n int) {
	if f.read += int64(n); f.o.Progress != nil {
		f.o.Progress(f.step, f.read, max(f.total, f.read))
	}
}

// Close closes the file, and removes it if it is temporary.
func (f *File) Close() error {
	f.Step("", 0)
	if f.copied {
		discard(f.file)
		return nil
	}
	return f.file.Close()
}
