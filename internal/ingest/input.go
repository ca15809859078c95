package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
)

// UnknownBase is the base URL for a page without an address. Its name never resolves (RFC 6761,
// section 6.4).
const UnknownBase = "http://page.invalid/"

// Input is a page that a user has named.
type Input struct {
	Data        []byte
	URL         string // URL of the page; below [UnknownBase] if the URL is unknown
	ContentType string // value of Content-Type; "" = unknown

	name string
}

// ReadPage reads a page from a URL, from a file, or from stdin if name is "-". address is the URL of
// the page in the file. If address is empty, the page gets a URL below [UnknownBase], in which
// index.html stands for its folder. If the page is larger than [MaxPage], the error is ErrTooLarge.
func ReadPage(ctx context.Context, client *http.Client, name, address string, stdin io.Reader) (*Input, error) {
	p := &Input{URL: address, name: name}
	var err error
	if strings.Contains(name, "://") {
		p.Data, p.URL, p.ContentType, err = Document(ctx, client, name)
		return p, err
	}
	if address == "" {
		p.URL = placeholder(name)
	}
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("page: %w; a URL starts with http:// or https://", err)
		}
		if err != nil {
			return nil, fmt.Errorf("page: %w", err)
		}
		defer func() { _ = f.Close() }() // opened only for reading
		in = f
	}
	if p.Data, err = io.ReadAll(io.LimitReader(in, MaxPage+1)); err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	if len(p.Data) > MaxPage {
		return nil, fmt.Errorf("page %s: %w: more than %d bytes", name, millrace.ErrTooLarge, MaxPage)
	}
	return p, nil
}

// placeholder returns the URL of a file without an address.
func placeholder(name string) string {
	path := "/" + filepath.Base(name)
	if path == "/index.html" || path == "/index.htm" {
		if dir, err := filepath.Abs(filepath.Dir(name)); err == nil {
			path = "/" + filepath.Base(dir) + "/"
		}
	}
	u, err := canon.URL(canon.Absolute(UnknownBase, path))
	if err != nil {
		return UnknownBase
	}
	return u
}

// Extract extracts the page.
func (p *Input) Extract(ctx context.Context, rules *extract.Rules) (*extract.Result, error) {
	res, err := extract.HTML(ctx, p.Data, p.URL, &extract.Options{ContentType: p.ContentType, Rules: rules})
	return res, p.Err(err)
}

// Err replaces a URL below [UnknownBase] in an error with the name that the user gave to the page. It
// returns nil for nil.
func (p *Input) Err(err error) error {
	if err == nil || !strings.HasPrefix(p.URL, UnknownBase) {
		return err
	}
	return &inputError{"page " + p.name + ": " + strings.ReplaceAll(err.Error(), "extract "+p.URL+": ", ""), err}
}

// inputError replaces the text of an error.
type inputError struct {
	text string
	err  error
}

func (e *inputError) Error() string { return e.text }
func (e *inputError) Unwrap() error { return e.err }
