package s3

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// double is a server with one bucket. It supports the part of S3 that a Store needs.
type double struct {
	*httptest.Server

	mu       sync.Mutex
	objects  map[string]stored
	requests []string                                                 // method and key
	hook     func(w http.ResponseWriter, r *http.Request) (done bool) // called before each request; may be nil
	after    func(r *http.Request) (lost bool)                        // called after each change; if it returns true, the response is lost
	ignores  bool                                                     // the server ignores If-None-Match
}

type stored struct {
	data     []byte
	modified time.Time
}

func newDouble(t *testing.T) *double {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "the-key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "the-secret")
	d := &double{objects: make(map[string]stored)}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

// url returns the URL of a prefix.
func (d *double) url(prefix string) string {
	return "s3://bucket/" + prefix + "?endpoint=" + url.QueryEscape(d.URL)
}

// refuse writes an S3 error.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>error of the test</Message></Error>", code)
}

// set sets the hook, and clears the list of requests.
func (d *double) set(hook func(w http.ResponseWriter, r *http.Request) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hook, d.requests = hook, nil
}

// seen returns the requests since the last call of set or seen.
func (d *double) seen() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.requests
	d.requests = nil
	return all
}

// keys returns the names of the objects.
func (d *double) keys() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.objects))
}

// change changes the objects.
func (d *double) change(f func(objects map[string]stored)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d.objects)
}

func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	key := strings.TrimPrefix(r.URL.Path, "/bucket/")
	d.mu.Lock()
	d.requests = append(d.requests, r.Method+" "+key)
	hook := d.hook
	d.mu.Unlock()
	if hook != nil && hook(w, r) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	o, exists := d.objects[key]
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest, "IncompleteBody")
	case r.Method == http.MethodPut && exists && r.Header.Get("If-None-Match") == "*" && !d.ignores:
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Method == http.MethodPut:
		d.objects[key] = stored{body, time.Now()}
		if d.after != nil && d.after(r) {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("ETag", `"x"`)
	case r.Method == http.MethodPost: // deletion of several objects
		var list struct{ Object []struct{ Key string } }
		_ = xml.Unmarshal(body, &list)
		for _, o := range list.Object {
			delete(d.objects, o.Key)
		}
		fmt.Fprint(w, "<DeleteResult></DeleteResult>")
	case r.URL.Query().Get("list-type") == "2":
		d.list(w, r.URL.Query())
	case !exists:
		refuse(w, http.StatusNotFound, "NoSuchKey")
	default:
		w.Header().Set("ETag", `"x"`)
		http.ServeContent(w, r, "", o.modified, strings.NewReader(string(o.data)))
	}
}

// list writes at most two objects, and a token for the next ones.
func (d *double) list(w http.ResponseWriter, q url.Values) {
	type contents struct {
		Key          string
		Size         int
		LastModified time.Time
		ETag         string
	}
	type result struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string
		Contents              []contents
	}
	var out result
	for _, key := range slices.Sorted(maps.Keys(d.objects)) {
		if !strings.HasPrefix(key, q.Get("prefix")) || key <= q.Get("continuation-token") {
			continue
		}
		if len(out.Contents) == 2 {
			out.IsTruncated, out.NextContinuationToken = true, out.Contents[1].Key
			break
		}
		out.Contents = append(out.Contents, contents{key, len(d.objects[key].data), d.objects[key].modified.UTC(), `"x"`})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(out)
}

// opened opens a store in the double, with a cache in a folder.
func (d *double) opened(t *testing.T, prefix, folder string) *Store {
	t.Helper()
	s, err := Open(t.Context(), d.url(prefix), "owner", folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// fresh opens a store in the double, with an empty cache.
func (d *double) fresh(t *testing.T, prefix string) *Store {
	t.Helper()
	return d.opened(t, prefix, filepath.Join(t.TempDir(), "cache"))
}

func put(t *testing.T, s *Store, ctx context.Context, name, content string) { //nolint:revive // t first, as in all helpers
	t.Helper()
	if err := s.Put(ctx, name, strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}

// get returns the bytes of an artifact.
func get(t *testing.T, s *Store, name string) (string, error) {
	t.Helper()
	r, err := s.Open(t.Context(), name, 0, -1)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return string(b), err
}
