package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/protocol/scp"
)

// The bounds of what is fetched (SCP 0.1, Resource Exhaustion Attacks, for the
// bytes).
const (
	maxCollection     = 50_000_000_000
	maxCollectionTime = 12 * time.Hour
)

// scpFile is an open collection.
type scpFile struct {
	*scp.Collection
	name  string
	size  int64
	file  *os.File
	spool bool // it is a copy that has to go in the end
	p     *process
	step  *terminal.Step
	read  int64 // bytes, of this step
	total int64 // that it takes
}

// openSCP opens a file, what a URL gives, or standard input for "-". What cannot
// be read twice is copied to a temporary file.
func openSCP(ctx context.Context, p *process, r *remote, name string) (_ *scpFile, err error) {
	f := &scpFile{name: name, p: p}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	remote, coding := strings.Contains(name, "://"), ""
	switch {
	case name == "-":
		err = f.copy(ctx, p.stdin, 0)
	case remote:
		coding, err = f.fetch(ctx, r)
	default:
		err = f.open(ctx)
	}
	if err != nil {
		return nil, err
	}
	if f.Collection, err = scp.Open(f, f.size, nil); err != nil {
		return nil, err
	}
	if is := f.Coding(); remote && coding != is {
		p.log.Warn("the server names another coding than the file has", "url", name, "content_encoding", coding, "is", is)
	}
	return f, nil
}

func (f *scpFile) open(ctx context.Context) error {
	file, err := os.Open(f.name)
	if err != nil {
		return errors.Unwrap(err) // the commands name the file
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		f.file, f.size = file, info.Size()
		return nil
	}
	defer file.Close()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("it is a folder: %w", millrace.ErrInvalid)
	}
	if err != nil {
		return err
	}
	return f.copy(ctx, file, 0)
}

// fetch gets a file as it is sent, still coded, and what the server calls its
// coding.
func (f *scpFile) fetch(ctx context.Context, r *remote) (coding string, err error) {
	address, err := siteURL(f.name)
	if err != nil {
		return "", err
	}
	ctx = fetch.Download(ctx, maxCollection, maxCollectionTime)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	}
	req.Header.Set("Accept", "application/scp, */*;q=0.5")
	req.Header.Set("Accept-Encoding", "zstd, gzip")
	resp, err := fetch.Do(ctx, r.client(f.p, nil).HTTP(), req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if err := fetch.CheckStatus(resp); err != nil {
		return "", err
	}
	coding = strings.ToLower(resp.Header.Get("Content-Encoding"))
	resp.Header = resp.Header.Clone()
	resp.Header.Del("Content-Encoding") // what is in the file tells by its first bytes
	body, err := fetch.Decode(resp)
	if err != nil {
		return "", err
	}
	defer body.Close()
	return strings.Replace(coding, "identity", "", 1), f.copy(ctx, body, resp.ContentLength)
}

// copy spools a file. size is what it is said to be, 0 or less if nobody says.
func (f *scpFile) copy(ctx context.Context, from io.Reader, size int64) (err error) {
	if f.file, err = os.CreateTemp("", "millrace-*.scp"); err != nil {
		return fmt.Errorf("a place to keep it: %w", err)
	}
	// Where an open file can go, it goes at once: a process that is killed
	// leaves none.
	f.spool = os.Remove(f.file.Name()) != nil
	f.begin("fetch", size)
	defer f.end()
	f.size, err = io.Copy(f.file, io.LimitReader(&counted{ctx, from, f}, maxCollection+1))
	return err
}

// counted is a stream that shows how far it has come.
type counted struct {
	ctx  context.Context
	from io.Reader
	f    *scpFile
}

func (c *counted) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.from.Read(b)
	c.f.count(n)
	return n, err
}

// ReadAt reads the file as it is, and shows how far that has come.
func (f *scpFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.file.ReadAt(b, at)
	f.count(n)
	return n, err
}

// watch shows how far a step has come that reads the file some times.
func (f *scpFile) watch(title string, passes int64) { f.begin(title, passes*f.size) }

func (f *scpFile) begin(title string, total int64) {
	f.read, f.total = 0, total
	f.step = f.p.progress(title + " " + f.name)
	f.step.Count("MB")
}

func (f *scpFile) count(n int) {
	if f.read += int64(n); f.step != nil {
		f.step.Show(int(f.read>>20), int(max(f.total, f.read)>>20))
	}
}

func (f *scpFile) end() {
	if f.step != nil {
		f.step.End()
		f.step = nil
	}
}

func (f *scpFile) close() {
	if f.file == nil {
		return
	}
	_ = f.file.Close()
	if f.spool {
		_ = os.Remove(f.file.Name())
	}
}
