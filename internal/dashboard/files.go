package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed static templates
var embedded embed.FS

// file is a style sheet, a script or a picture.
type file struct {
	kind    string // media type
	version string // hash of the bytes, which is part of the file's URL
	bytes   []byte
	gzip    []byte
}

// readFiles reads the files in the folder static. It returns them by name without the extension.
// URLs contain this name, because the site's own server may handle requests for extensions such as
// .css itself.
func readFiles() (map[string]*file, error) {
	entries, err := embedded.ReadDir("static")
	if err != nil {
		return nil, err
	}
	files := map[string]*file{}
	for _, e := range entries {
		f := new(file)
		if f.bytes, err = embedded.ReadFile("static/" + e.Name()); err != nil {
			return nil, err
		}
		ending := path.Ext(e.Name())
		f.kind = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}[ending]
		if f.kind == "" {
			f.kind = mime.TypeByExtension(".txt")
		}
		sum := sha256.Sum256(f.bytes)
		f.version = hex.EncodeToString(sum[:6])
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			return nil, err
		}
		if _, err := z.Write(f.bytes); err != nil {
			return nil, err
		}
		if err := z.Close(); err != nil {
			return nil, err
		}
		f.gzip = b.Bytes()
		files[strings.TrimSuffix(e.Name(), ending)] = f
	}
	return files, nil
}

// file serves a static file. It returns false if the path names no file.
func (d *Dashboard) file(w http.ResponseWriter, r *http.Request) bool {
	name, ok := strings.CutPrefix(r.URL.Path, "/static/")
	f := d.files[name]
	if !ok || f == nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	h, body := w.Header(), f.bytes
	h.Set("Content-Type", f.kind)
	h.Set("Vary", "Accept-Encoding")
	if r.URL.Query().Get("v") == f.version {
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	if acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = f.gzip
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body)
	}
	return true
}

func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		if coding, weight, _ := strings.Cut(part, ";"); strings.TrimSpace(coding) == "gzip" {
			return !strings.HasPrefix(strings.TrimSpace(weight), "q=0") || strings.Contains(weight, "q=0.")
		}
	}
	return false
}

// templates maps the name of each page to its template.
type templates map[string]*template.Template

// readTemplates parses a template per page: templates/NAME.html with the layout and
// the shared parts.
func readTemplates(files map[string]*file, label func(string) string) (templates, error) {
	shared, err := template.New("layout").Funcs(functions(files, label)).ParseFS(embedded, "templates/shared/*.html")
	if err != nil {
		return nil, err
	}
	entries, err := embedded.ReadDir("templates")
	if err != nil {
		return nil, err
	}
	all := templates{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".html")
		if !ok {
			continue
		}
		t, err := shared.Clone()
		if err != nil {
			return nil, err
		}
		if all[name], err = t.ParseFS(embedded, "templates/"+e.Name()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// write renders a page.
func (t templates) write(w io.Writer, page string, f *frame) error {
	p := t[page]
	if p == nil {
		return fmt.Errorf("dashboard: template %q not found", page)
	}
	return p.ExecuteTemplate(w, "layout", f)
}
