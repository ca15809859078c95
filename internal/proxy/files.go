package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/basepath"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/reply"
	filetree "github.com/millrace/millrace/internal/tree"
)

// Files are a site's own pages and files, such as a folder.
type Files interface {
	fs.FS
	// Lookup returns the file for a path, percent-encoded and relative to the base, or a redirect.
	// It returns ErrNotFound if there is no file.
	Lookup(urlPath string) (file, redirect string, err error)
	// Peek returns the state of a file by its name. Use it only for comparison, because it follows
	// symbolic links to files that must not be served.
	Peek(name string) (fs.FileInfo, error)
}

// NewFiles returns a handler that serves files with ranges, conditions and redirects, and the
// site's /404.html for missing paths. base is the base URL of the site, for redirects. log may be
// nil.
func NewFiles(files Files, base string, log *slog.Logger) (http.Handler, error) {
	prefix, err := basepath.Of(base)
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &static{files, prefix, log}, nil
}

type static struct {
	files  Files
	prefix string
	log    *slog.Logger
}

// ServeHTTP serves a file.
func (s *static) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if reply.OnlyReads(w, r) {
		return
	}
	file, redirect, err := s.files.Lookup(r.URL.EscapedPath())
	switch {
	case errors.Is(err, millrace.ErrNotFound):
		s.missing(w, r)
		return
	case err == nil && redirect != "":
		if r.URL.RawQuery != "" {
			redirect += "?" + r.URL.RawQuery
		}
		// A redirect to a path with two leading slashes would lead to another host.
		reply.Redirect(w, r, s.prefix+"/"+strings.TrimLeft(redirect, "/"))
		return
	case err == nil:
		err = s.serve(w, r, file, http.StatusOK)
	}
	if errors.Is(err, fs.ErrNotExist) {
		s.missing(w, r)
	} else if err != nil && r.Context().Err() == nil {
		s.log.Error("could not serve file", "path", r.URL.Path, "err", err)
		reply.Error(w, r, millrace.Status(err), nil)
	}
}

// missing serves the site's 404 page.
func (s *static) missing(w http.ResponseWriter, r *http.Request) {
	if path.Ext(r.URL.Path) != ".json" {
		if s.serve(w, r, "404.html", http.StatusNotFound) == nil {
			return
		}
	}
	reply.NotFound(w, r)
}

// serve serves one file. After an error, no response has begun.
func (s *static) serve(w http.ResponseWriter, r *http.Request, name string, status int) error {
	f, err := s.files.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // the file was only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	content, ok := f.(io.ReadSeeker)
	if !ok || !info.Mode().IsRegular() {
		return fmt.Errorf("%s: %w: not a regular file", name, millrace.ErrNotFound)
	}
	h := w.Header()
	if isPage(name) {
		head := make([]byte, typeLength)
		n, err := io.ReadFull(content, head)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return err
		}
		if _, err := content.Seek(0, io.SeekStart); err != nil {
			return err
		}
		h.Set("Content-Type", htmlType(head[:n]))
		h.Set("Cache-Control", "no-cache")
	}
	if status != http.StatusOK {
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			_, _ = io.Copy(w, content) // the client may have disconnected
		}
		return nil
	}
	tag := `"` + strconv.FormatInt(info.Size(), 36) + "-" + strconv.FormatInt(info.ModTime().UnixNano(), 36) + `"`
	if time.Since(info.ModTime()) < 2*time.Second {
		tag = "W/" + tag // weak, because the file may change again with the same time of modification
	}
	h.Set("Etag", tag)
	modified := info.ModTime()
	if modified.After(time.Now()) {
		modified = time.Time{} // RFC 9110, section 8.8.2.1: never later than Date
	}
	http.ServeContent(w, r, name, modified, content)
	return nil
}

// maxPrepared is the size in bytes of the largest page in the response cache.
const maxPrepared = 4 << 20

// page serves an HTML file with its links from the response cache. For any other file it
// returns false and sends no response.
func (s *static) page(w http.ResponseWriter, r *http.Request, q *access.Request, server *edition.Server, adds *additions) (bool, error) {
	at := r.URL.EscapedPath()
	if file := preferred(at); file != "" {
		if info, err := s.files.Peek(file); err == nil {
			if done, err := server.CachedPage(w, r, q, "/"+file, adds.mark, filetree.Version(adds.sum, info, time.Now())); done {
				return true, err
			}
		}
	}
	file, redirect, err := s.files.Lookup(at)
	if err != nil || redirect != "" || !isPage(file) {
		return false, nil //nolint:nilerr // the file server reports the error
	}
	info, err := fs.Stat(s.files, file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPrepared {
		return false, nil //nolint:nilerr // the file server reports the error
	}
	state := filetree.Version(adds.sum, info, time.Now())
	return true, server.Page(w, r, q, "/"+file, adds.mark, state, func() (*millrace.Document, error) {
		html, modified, err := s.read(file)
		if err != nil {
			return nil, err
		}
		sum := canon.SHA256Hex(html)
		h := http.Header{"Content-Type": {htmlType(html[:min(len(html), typeLength)])}, "Cache-Control": {"no-cache"}, "Link": adds.fields, "Vary": adds.vary}
		if !modified.After(time.Now()) { // RFC 9110, section 8.8.2.1: never later than Date
			h.Set("Last-Modified", modified.UTC().Format(http.TimeFormat))
		}
		return &millrace.Document{Path: "/" + file, ETag: sum[:32] + adds.mark, Header: h, Write: func(_ context.Context, w io.Writer) error {
			html, _, err := s.read(file)
			if err != nil {
				return err
			}
			if canon.SHA256Hex(html) != sum {
				return fmt.Errorf("%s: %w", file, edition.ErrChanged)
			}
			in := &injector{w: w, insert: adds.elements}
			if _, err := in.Write(html); err != nil {
				return err
			}
			return in.Close()
		}}, nil
	})
}

// preferred returns the file that, if it exists, Lookup returns for a path, or "" if the result
// also depends on other files.
func preferred(urlPath string) string {
	name := strings.TrimPrefix(urlPath, "/")
	switch base := path.Base(name); {
	case strings.Contains(urlPath, "%"): // the file's name differs from the path
	case strings.HasSuffix(urlPath, "/"):
		return name + "index.html"
	case isPage(base) && base != "index.html" && base != "index.htm":
		return name
	}
	return ""
}

// read returns the bytes of a page and its time of modification.
func (s *static) read(file string) (html []byte, modified time.Time, err error) {
	f, err := s.files.Open(file)
	if err != nil {
		return nil, modified, err
	}
	defer func() { _ = f.Close() }() // the file was only read
	info, err := f.Stat()
	if err == nil {
		modified = info.ModTime()
		html, err = io.ReadAll(io.LimitReader(f, maxPrepared+1))
	}
	if err == nil && len(html) > maxPrepared {
		err = fmt.Errorf("%s: %w", file, edition.ErrChanged)
	}
	return html, modified, err
}

// isPage reports whether a file is HTML by its name.
func isPage(name string) bool {
	kind := strings.ToLower(path.Ext(name))
	return kind == ".html" || kind == ".htm"
}

// typeLength is the number of bytes of a page that htmlType reads.
const typeLength = 1024

// htmlType returns the media type of a page from its first bytes. It adds a character set only if
// the page does not declare one.
func htmlType(head []byte) string {
	if n := len(head); n == typeLength {
		head = head[:n-utf8.UTFMax] // the end may be in the middle of a character
		for len(head) > 0 && !utf8.RuneStart(head[len(head)-1]) {
			head = head[:len(head)-1]
		}
		if len(head) > 0 && head[len(head)-1] >= utf8.RuneSelf {
			head = head[:len(head)-1]
		}
	}
	declared := bytes.Contains(bytes.ToLower(head), []byte("charset")) || bytes.Contains(head, []byte("encoding="))
	if declared || !utf8.Valid(head) || bytes.IndexByte(head, 0) >= 0 {
		return "text/html"
	}
	return "text/html; charset=utf-8"
}
