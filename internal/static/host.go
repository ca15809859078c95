package static

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
)

// Host is an [http.RoundTripper] that simulates the static host of a build. It responds only to
// requests for that host.
type Host struct {
	Name  string // name of the host, such as "netlify"
	Title string // name for people, such as "Netlify"
	// Upload is a sentence that explains how to upload the folder.
	Upload string
	build  *Build
	kind   *kind
	files  map[string]*line // lines of the record by name, if OpenHost has read it
}

// Host returns the host of a finished build. Use it before Close.
func (b *Build) Host() *Host {
	return &Host{Name: b.kind.name, Title: b.kind.title, Upload: b.kind.upload, build: b, kind: b.kind}
}

// OpenHost returns a host for the folder of a finished build. It sends every field of the
// documents, whatever host the folder was built for. It responds to requests for all hosts, because
// collections may belong to another host. It returns [millrace.ErrInvalid] for other folders. Call
// Close when done.
func OpenHost(dir string) (*Host, error) {
	b := &Build{dir: dir, names: make(map[key]nameEntry), kind: kindOf("caddy")}
	h := &Host{build: b, kind: b.kind, files: make(map[string]*line)}
	if err := h.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("folder %s: %w", dir, err), b.Close())
	}
	return h, nil
}

// load reads the record of the last build.
func (h *Host) load() (err error) {
	b := h.build
	if b.root, err = os.OpenRoot(b.dir); err != nil {
		return err
	}
	f, err := b.root.Open(recordName)
	if errors.Is(err, fs.ErrNotExist) {
		return millrace.Coded("foreign-folder", fmt.Errorf("%w: it has no record of a build; run millrace build into it, or give another folder or the file of a store", millrace.ErrInvalid))
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return compressedLines(f, func(l *line) (err error) {
		switch {
		case l.Format != 0:
			b.base, err = url.Parse(l.Base)
			if err == nil && b.base.Host == "" {
				err = fmt.Errorf("%w: the record has no base URL; build the folder again", millrace.ErrInvalid)
			}
			b.prefix = strings.TrimRight(b.base.EscapedPath(), "/")
		case l.Name == "":
			b.lists = append(b.lists, l.Header)
		default:
			b.take(l.Name, 1)
			h.files[l.Name] = l
		}
		return err
	})
}

// Close closes a host that [OpenHost] returned.
func (h *Host) Close() error { return h.build.Close() }

// Base returns the URL that the folder corresponds to.
func (h *Host) Base() string { return h.build.base.String() }

// File returns the path of the file for a URL of the host, even if the file does not exist. If a
// URL cannot have a file, it returns the folder.
func (h *Host) File(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return h.build.dir
	}
	p := strings.TrimPrefix(u.EscapedPath(), h.build.prefix)
	name, err := fileOf(p)
	if l, _ := h.find(p); l != nil {
		name = l.Name
	} else if err != nil {
		name = ""
	}
	return filepath.Join(h.build.dir, filepath.FromSlash(name))
}

// RoundTrip implements [http.RoundTripper]. For other hosts it returns
// [millrace.ErrNotFound].
func (h *Host) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	if h.files == nil && r.URL.Host != h.build.base.Host {
		return nil, fmt.Errorf("%w: host %s is not simulated", millrace.ErrNotFound, r.URL.Host)
	}
	w := &reply{header: make(http.Header)}
	h.ServeHTTP(w, r)
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet && w.status == http.StatusOK {
		w.header.Set("Content-Length", strconv.Itoa(w.body.Len())) // ServeContent omits it for coded files
	}
	resp := &http.Response{
		Status: fmt.Sprint(w.status, " ", http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.header, Request: r,
		Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()),
	}
	if r.URL.Scheme == "https" {
		resp.TLS = new(tls.ConnectionState)
	}
	return resp, nil
}

// maxReply is the maximum size of a body in bytes. The checks read less.
const maxReply = 65 << 20

// reply is a response in memory.
type reply struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (w *reply) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *reply) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write implements [http.ResponseWriter]. If the body would exceed maxReply, it returns
// ErrTooLarge.
func (w *reply) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.body.Len()+len(p) > maxReply {
		return 0, millrace.ErrTooLarge
	}
	return w.body.Write(p)
}

// ServeHTTP responds to a request regardless of its host.
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b := h.build
	p, ok := strings.CutPrefix(r.URL.EscapedPath(), b.prefix)
	if !ok {
		http.NotFound(w, r)
		return
	}
	l, err := h.find(p)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	case l == nil && b.folder(p):
		http.Redirect(w, r, b.prefix+p+"/", http.StatusMovedPermanently)
		return
	case l == nil:
		http.NotFound(w, r)
		return
	}
	f, err := b.root.Open(l.Name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer f.Close()
	h.serve(w, r, l, f)
}

func (h *Host) serve(w http.ResponseWriter, r *http.Request, l *line, f *os.File) {
	info, err := f.Stat()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	head := w.Header()
	head.Set(contentType, h.kind.typeOf(l.Name))
	head.Set("Etag", `"`+strconv.FormatInt(info.Size(), 16)+"-"+strconv.FormatInt(info.ModTime().UnixNano(), 16)+`"`)
	if h.kind.fields != nil {
		for _, f := range h.kind.fields(h.build, l) {
			head.Set(f.Name, f.Value)
		}
	}
	said := make(map[string]bool)
	for _, rule := range h.build.rules {
		if rule.matches(r.URL.EscapedPath()) {
			for _, f := range rule.fieldsFor(r.URL.EscapedPath(), h.kind.splats) {
				if said[f.Name] {
					head.Set(f.Name, head.Get(f.Name)+", "+f.Value)
				} else {
					head.Set(f.Name, f.Value)
				}
				said[f.Name] = true
			}
		}
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if h.kind.strict && r.Header.Get("If-None-Match") != "" {
		since := r.Header.Get("If-Modified-Since")
		if t, err := http.ParseTime(since); since != "" && (err != nil || t.Unix() != info.ModTime().Unix()) {
			r = r.Clone(r.Context())
			r.Header.Del("If-None-Match")
			r.Header.Del("If-Modified-Since")
		}
	}
	if h.kind.dates && l.Set > 0 {
		w = dated{w, info.ModTime()}
	}
	http.ServeContent(w, r, l.Name, info.ModTime(), f)
}

// dated adds Last-Modified to 304 responses.
type dated struct {
	http.ResponseWriter
	modified time.Time
}

// WriteHeader implements [http.ResponseWriter].
func (w dated) WriteHeader(status int) {
	if status == http.StatusNotModified {
		w.Header().Set("Last-Modified", w.modified.UTC().Format(http.TimeFormat))
	}
	w.ResponseWriter.WriteHeader(status)
}

// find returns the record of the file for a path, or nil if there is no file.
func (h *Host) find(p string) (*line, error) {
	b := h.build
	name, err := fileOf(p)
	if err != nil {
		return nil, nil //nolint:nilerr // no file has the name
	}
	if b.blocked(name) == errFile && h.kind.aside {
		name = b.separateName(name)
	}
	at, ok := b.names[keyOf(fold(name))]
	if !ok || !at.file || at.at == 0 || at.exact != keyOf(name) {
		return nil, nil
	}
	if h.files != nil {
		return h.files[name], nil
	}
	var found *line
	stop := errors.New("found")
	err = linesFrom(io.NewSectionReader(b.record, at.at, b.at-at.at), func(l *line) error {
		if l.Name == "" {
			return nil // the common header of the file
		}
		found = l
		return stop
	})
	if err != nil && !errors.Is(err, stop) {
		return nil, err
	}
	return found, nil
}

// folder reports whether a path is a folder with an index.html.
func (b *Build) folder(p string) bool {
	name, err := fileOf(p + "/")
	if err != nil {
		return false
	}
	at, ok := b.names[keyOf(fold(name))]
	return ok && at.file && at.at > 0
}
