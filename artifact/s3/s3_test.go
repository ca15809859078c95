package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/artifact/artifacttest"
)

func TestStore(t *testing.T) {
	d := newDouble(t)
	var n atomic.Int32
	artifacttest.Run(t, func(t testing.TB) artifact.Store {
		s, err := Open(t.Context(), d.url(fmt.Sprint("store-", n.Add(1))), "owner", filepath.Join(t.TempDir(), "cache"), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	})
}

// TestRequests checks that a batch needs one request, however many artifacts it changes.
func TestRequests(t *testing.T) {
	d := newDouble(t)
	s := d.fresh(t, "p")
	other := d.fresh(t, "p")
	want := func(what string, requests ...string) {
		t.Helper()
		if got := d.seen(); !slices.Equal(got, requests) {
			t.Errorf("%s: %q, want %q", what, got, requests)
		}
	}
	d.seen()
	edition := func(i int) {
		t.Helper()
		if err := s.Batch(t.Context(), func(ctx context.Context) error {
			for n := range 100 {
				put(t, s, ctx, fmt.Sprintf("chunk/%d/%d", i, n), strings.Repeat("x", 5000))
				if _, err := s.Stat(ctx, fmt.Sprintf("chunk/%d/%d", i, n)); err != nil {
					t.Error(err)
				}
				if i > 0 {
					if err := artifact.Touch(ctx, s, fmt.Sprintf("chunk/%d/%d", i-1, n)); err != nil {
						t.Error(err)
					}
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	edition(0)
	want("first", "GET p/log/0000000000000001", "PUT p/log/0000000000000001")
	edition(1)
	want("second", "GET p/log/0000000000000002", "PUT p/log/0000000000000002")
	if got, err := get(t, s, "chunk/1/5"); err != nil || len(got) != 5000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	want("reading its own artifact")
	if err := other.Batch(t.Context(), func(ctx context.Context) error { _, err := other.Stat(ctx, "chunk/1/5"); return err }); err != nil {
		t.Error(err)
	}
	want("another process", "GET p/log/0000000000000001", "GET p/log/0000000000000002", "GET p/log/0000000000000003")
	for n := range 100 {
		if got, err := get(t, other, fmt.Sprint("chunk/1/", n)); err != nil || len(got) != 5000 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	want("reading an artifact of another process")
	put(t, s, t.Context(), "large", strings.Repeat("x", 2<<20))
	if got := d.seen(); len(got) != 3 || !strings.HasPrefix(got[1], "PUT p/file/") {
		t.Errorf("a large artifact: %q", got)
	}
	for range 10 { // within a second
		if _, err := s.Stat(t.Context(), "chunk/1/5"); err != nil {
			t.Error(err)
		}
	}
	if got := d.seen(); len(got) > 1 {
		t.Errorf("ten stats: %q", got)
	}
}

// TestConflicts checks that all processes apply the same changes, even if another process wrote
// first, a response was lost, or the server asked to retry.
func TestConflicts(t *testing.T) {
	d := newDouble(t)
	one, two := d.fresh(t, ""), d.fresh(t, "")
	if err := one.Batch(t.Context(), func(ctx context.Context) error {
		put(t, one, ctx, "a", "first") // this put is written last
		put(t, two, t.Context(), "a", "second")
		put(t, two, t.Context(), "b", "b")
		return two.Delete(t.Context(), "b")
	}); err != nil {
		t.Fatal(err)
	}
	var busy atomic.Int32
	busy.Store(2)
	d.set(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && busy.Add(-1) >= 0 {
			refuse(w, http.StatusConflict, "ConditionalRequestConflict")
			return true
		}
		return false
	})
	put(t, one, t.Context(), "c", "c")
	d.set(nil)
	lost := atomic.Int32{}
	d.after = func(*http.Request) bool { return lost.Add(1) == 1 }
	put(t, one, t.Context(), "d", "d")
	if got := d.seen(); lost.Load() != 1 || !slices.Equal(got[1:3], []string{"PUT log/0000000000000006", "PUT log/0000000000000006"}) {
		t.Errorf("%q", got)
	}
	for i, s := range []*Store{one, two, d.fresh(t, "")} {
		var names []string
		for info, err := range s.List(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, info.Name)
		}
		if got, err := get(t, s, "a"); got != "second" || err != nil || !slices.Equal(names, []string{"a", "c", "d"}) || s.state.Number != 6 {
			t.Errorf("store %d: %q, %v, %q after %d", i, got, err, names, s.state.Number)
		}
	}
}

// TestState checks that a new process reads the state, and that a process that was idle for long
// reads the newest state. Cleaning deletes unused objects and no others.
func TestState(t *testing.T) {
	d := newDouble(t)
	s, behind := d.fresh(t, "p"), d.fresh(t, "p")
	put(t, s, t.Context(), "kept", "kept")
	put(t, s, t.Context(), "kept-large", strings.Repeat("x", 2<<20))
	put(t, s, t.Context(), "gone-large", strings.Repeat("y", 2<<20))
	for i := range 2*stateEvery + 3 {
		put(t, s, t.Context(), "n", fmt.Sprint(i))
		if err := s.Delete(t.Context(), "n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Delete(t.Context(), "gone-large"); err != nil {
		t.Fatal(err)
	}
	d.change(func(objects map[string]stored) { // time passes
		for key, o := range objects {
			o.modified = o.modified.Add(-25 * time.Hour)
			objects[key] = o
		}
		objects["p/file/uploading"] = stored{[]byte("x"), time.Now()}
		objects["p/file/killed"] = stored{[]byte("x"), time.Now().Add(-25 * time.Hour)}
		objects["other/log/0000000000000001"] = stored{[]byte("x"), time.Now().Add(-25 * time.Hour)}
	})
	s.cleaned = time.Now().Add(-2 * keepLog)
	put(t, s, t.Context(), "n", "last")
	if err := s.Delete(t.Context(), "n"); err != nil {
		t.Fatal(err)
	}
	keys := d.keys()
	for _, want := range []string{"other/log/0000000000000001", "p/file/uploading", "p/log/0000000000000001", "p/owner"} {
		if !slices.Contains(keys, want) {
			t.Errorf("%s is gone", want)
		}
	}
	if slices.Contains(keys, "p/file/killed") || slices.Contains(keys, "p/log/0000000000000004") || len(keys) > stateEvery+20 {
		t.Errorf("%d objects remain: %q", len(keys), keys)
	}
	behind.synced = behind.synced.Add(-2 * reloadAfter)
	d.seen()
	for name, s := range map[string]*Store{"self": s, "new": d.fresh(t, "p"), "behind": behind} {
		got, err := get(t, s, "kept")
		large, largeErr := get(t, s, "kept-large")
		if err := errors.Join(err, largeErr); got != "kept" || len(large) != 2<<20 || err != nil {
			t.Errorf("%s: %q, %d bytes, %v", name, got, len(large), err)
		}
		if _, err := s.Stat(t.Context(), "gone-large"); !errors.Is(err, millrace.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(d.seen()); n > 2*stateEvery+40 {
		t.Errorf("%d requests", n)
	}
}

// TestDown checks that the store reads cached artifacts while the bucket is down, fails quickly for
// others, logs one warning, and continues afterwards.
func TestDown(t *testing.T) {
	d := newDouble(t)
	var log bytes.Buffer
	folder := filepath.Join(t.TempDir(), "cache")
	s, err := Open(t.Context(), d.url("p"), "owner", folder, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put(t, s, t.Context(), "a", "small")
	put(t, s, t.Context(), "large", strings.Repeat("x", 2<<20))
	put(t, d.fresh(t, "p"), t.Context(), "foreign", strings.Repeat("x", 2<<20))
	if _, err := s.Stat(t.Context(), "foreign"); err != nil {
		t.Fatal(err)
	}
	down := func(w http.ResponseWriter, _ *http.Request) bool {
		refuse(w, http.StatusServiceUnavailable, "SlowDown")
		return true
	}
	unavailable := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, millrace.ErrUnavailable) || millrace.ErrorCode(err) != "bucket-down" {
			t.Errorf("%s: %v", what, err)
		}
	}
	check := func(s *Store) {
		t.Helper()
		for name, size := range map[string]int{"a": 5, "large": 2 << 20} {
			if got, err := get(t, s, name); err != nil || len(got) != size {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
			s.synced = time.Time{}
			if info, err := s.Stat(t.Context(), name); err != nil || info.Size != int64(size) {
				t.Errorf("%s: %+v, %v", name, info, err)
			}
		}
		_, err := get(t, s, "foreign")
		unavailable("open", err)
		unavailable("put", s.Put(t.Context(), "new", strings.NewReader("x")))
		unavailable("put an existing artifact", s.Put(t.Context(), "a", strings.NewReader("x")))
		unavailable("delete", s.Delete(t.Context(), "a"))
		unavailable("batch", s.Batch(t.Context(), func(context.Context) error { t.Error("called"); return nil }))
		_, err = s.Stat(t.Context(), "absent")
		unavailable("stat", err)
		for _, err := range s.List(t.Context(), "") {
			unavailable("list", err)
		}
	}
	d.set(down)
	check(s)
	if n := len(d.seen()); n > 2*attempts {
		t.Errorf("%d requests within a second", n)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings: %s", n, log.String())
	}
	// Only one request at a time tries the bucket. A canceled request does not change the state of
	// the bucket.
	asked, answer := make(chan bool), make(chan bool)
	d.set(func(w http.ResponseWriter, r *http.Request) bool {
		asked <- true
		<-answer
		return down(w, r)
	})
	s.bucket.rest = time.Time{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Delete(ctx, "a") }()
	<-asked
	_, err = get(t, s, "foreign")
	unavailable("open while another request tries", err)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("delete: %v", err)
	}
	close(answer)
	d.set(down)
	check(s)
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings: %s", n, log.String())
	}
	again := d.opened(t, "p", folder) // after a restart
	check(again)
	if s, err := Open(t.Context(), d.url("p"), "another", folder, nil); millrace.ErrorCode(err) != "bucket-down" {
		t.Errorf("another owner opens the cache: %v, %v", s, err)
	}
	d.set(nil)
	for _, s := range []*Store{s, again} {
		s.bucket.rest = time.Time{}
		put(t, s, t.Context(), "new", "x")
		if got, err := get(t, s, "foreign"); err != nil || len(got) != 2<<20 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	if n := strings.Count(log.String(), "level=INFO"); n != 1 {
		t.Errorf("%d notes: %s", n, log.String())
	}
}

// TestSlow checks that a request without a response does not delay reads of cached artifacts. If a
// permission is missing, the error says so, and nothing is stored.
func TestSlow(t *testing.T) {
	d := newDouble(t)
	s := d.fresh(t, "p")
	put(t, s, t.Context(), "a", "small")
	asked, answer := make(chan bool), make(chan bool)
	d.set(func(http.ResponseWriter, *http.Request) bool {
		asked <- true
		<-answer
		return false
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Put(ctx, "b", strings.NewReader("x")) }()
	<-asked
	if got, err := get(t, s, "a"); got != "small" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("put: %v", err)
	}
	close(answer)
	d.set(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			refuse(w, http.StatusForbidden, "AccessDenied")
		}
		return r.Method == http.MethodPut
	})
	before := d.keys()
	for _, content := range []string{"x", strings.Repeat("x", 2<<20)} {
		if err := s.Put(t.Context(), "b", strings.NewReader(content)); millrace.ErrorCode(err) != "bucket-permission" {
			t.Errorf("put: %v", err)
		}
	}
	if _, err := s.Stat(t.Context(), "b"); !errors.Is(err, millrace.ErrNotFound) || !slices.Equal(d.keys(), before) {
		t.Errorf("stat: %v, %q", err, d.keys())
	}
}

// TestCache checks that damaged files in the cache and lost objects of the bucket are detected, and
// that the size of the cache is limited.
func TestCache(t *testing.T) {
	d := newDouble(t)
	folder := filepath.Join(t.TempDir(), "cache")
	s := d.opened(t, "p", folder)
	put(t, s, t.Context(), "a", "small")
	put(t, s, t.Context(), "large", strings.Repeat("x", 2<<20))
	files, err := filepath.Glob(filepath.Join(folder, "*", "*"))
	if err != nil || len(files) != 3 { // two of the files belong to the log
		t.Fatalf("%q, %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil {
			err = os.WriteFile(f, bytes.ToUpper(b), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, size := range map[string]int{"a": 5, "large": 2 << 20} { // the caller finds the damage, and puts the artifact again
		if got, err := get(t, s, name); len(got) != size || strings.ToUpper(got) != got || err != nil {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if err := s.Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		put(t, s, t.Context(), name, strings.Repeat("y", size))
		if got, err := get(t, s, name); got != strings.Repeat("y", size) || err != nil {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if files, err = filepath.Glob(filepath.Join(folder, "*", "*")); err != nil || len(files) == 0 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, f := range files { // damaged objects are downloaded again
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	for name, size := range map[string]int{"a": 5, "large": 2 << 20} {
		if got, err := get(t, s, name); got != strings.Repeat("y", size) || err != nil {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	d.change(func(objects map[string]stored) {
		for key := range objects {
			if strings.HasPrefix(key, "p/file/") {
				delete(objects, key)
			}
		}
	})
	other := d.fresh(t, "p")
	if got, err := get(t, other, "a"); got != "yyyyy" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := get(t, other, "large"); !errors.Is(err, millrace.ErrNotFound) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	put(t, other, t.Context(), "large", "built again")
	if got, err := get(t, other, "large"); got != "built again" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	limited := d.fresh(t, "q")
	limited.cache.limit = 6 << 20
	for i := range 10 {
		put(t, limited, t.Context(), fmt.Sprint("large-", i), strings.Repeat(fmt.Sprint(i), 3<<19))
	}
	size := int64(0)
	kept, err := limited.cache.files()
	for _, f := range kept {
		size += f.Size()
	}
	if err != nil || size > limited.cache.limit || size < limited.cache.limit/2 {
		t.Errorf("%d bytes are cached (%v)", size, err)
	}
	for i := range 10 { // read from the cache, or as a stream
		r, err := limited.Open(t.Context(), fmt.Sprint("large-", i), 5, 3)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 4)
		if n, _ := r.Read(b); string(b[:n]) != strings.Repeat(fmt.Sprint(i), 3) {
			t.Errorf("%q", b[:n])
		}
		r.Close()
	}
}

// TestErrors checks that each cause of a failure has its own code, and that no message contains a
// secret.
func TestErrors(t *testing.T) {
	d := newDouble(t)
	refusals := make(map[string]func(w http.ResponseWriter, r *http.Request) bool)
	var tries []func()
	for code, want := range map[string]struct {
		status   int
		sentinel error
		code     string
	}{
		"AccessDenied":                 {403, millrace.ErrForbidden, "bucket-permission"},
		"SignatureDoesNotMatch":        {403, millrace.ErrForbidden, "bucket-credentials"},
		"InvalidAccessKeyId":           {403, millrace.ErrForbidden, "bucket-credentials"},
		"SomethingElse":                {403, millrace.ErrForbidden, "bucket-permission"},
		"RequestTimeTooSkewed":         {403, millrace.ErrUnavailable, "bucket-clock"},
		"NoSuchBucket":                 {404, millrace.ErrUnavailable, "bucket-absent"},
		"AuthorizationHeaderMalformed": {400, millrace.ErrInvalid, "bucket-region"},
		"PermanentRedirect":            {301, millrace.ErrInvalid, "bucket-region"},
		"NotImplemented":               {501, millrace.ErrInvalid, "bucket-unsupported"},
		"Unsupported method":           {501, millrace.ErrInvalid, "bucket-unsupported"},
		"MethodNotAllowed":             {405, millrace.ErrInvalid, "bucket-unsupported"},
		"QuotaExceeded":                {403, millrace.ErrUnavailable, "disk-full"},
		"NoSpace":                      {507, millrace.ErrUnavailable, "disk-full"},
		"SlowDown":                     {503, millrace.ErrUnavailable, "bucket-down"},
		"InternalError":                {500, millrace.ErrUnavailable, "bucket-down"},
		"TooManyRequests":              {429, millrace.ErrUnavailable, "bucket-down"},
	} {
		for _, method := range []string{http.MethodPut, http.MethodGet} { // a permission may be missing for only one of the methods
			prefix := code + "-" + method
			refusals[prefix+"/owner"] = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == method {
					refuse(w, want.status, code)
				}
				return r.Method == method
			}
			tries = append(tries, func() {
				_, err := Open(t.Context(), d.url(prefix), "owner", filepath.Join(t.TempDir(), "cache"), nil)
				if !errors.Is(err, want.sentinel) || millrace.ErrorCode(err) != want.code || strings.Contains(err.Error(), "the-secret") {
					t.Errorf("%s of %s: %v with the code %s", code, method, err, millrace.ErrorCode(err))
				}
			})
		}
	}
	d.set(func(w http.ResponseWriter, r *http.Request) bool {
		f := refusals[strings.TrimPrefix(r.URL.Path, "/bucket/")]
		return f != nil && f(w, r)
	})
	var all sync.WaitGroup
	for _, try := range tries { // most of the time is the wait for the second attempt
		all.Go(try)
	}
	all.Wait()
	d.set(nil)
	for url, want := range map[string]string{
		"s3://bucket/p?endpoint=http://127.0.0.1:1":         "bucket-down",
		"s3://bucket/p?endpoint=http://169.254.169.254":     "address-metadata",
		"s3://the-key:the-secret@bucket/p":                  "bucket-url",
		"s3://bucket/p?endpoint=http://the-secret@host":     "bucket-url",
		"s3://bucket/p?secret=the-secret":                   "bucket-url",
		"s3://bucket/p?endpoint=http://host/path":           "bucket-url",
		"s3://bucket/p?endpoint=host":                       "bucket-url",
		"s3://bucket/p?endpoint=http://a&endpoint=http://b": "bucket-url",
		"s3://bucket/p//q?endpoint=http://host":             "bucket-url",
		"s3://bucket/p?cache=1&endpoint=http://host":        "bucket-url",
		"s3://B?endpoint=http://host":                       "bucket-url",
		"s3://":                                             "bucket-url",
		"http://bucket/p":                                   "bucket-url",
		d.url("p") + "#fragment":                            "bucket-url",
	} {
		s, err := Open(t.Context(), url, "owner", filepath.Join(t.TempDir(), "cache"), nil)
		if got := millrace.ErrorCode(err); got != want || s != nil || strings.Contains(err.Error(), "the-secret") {
			t.Errorf("%s: %v with the code %s, want %s", url, err, got, want)
		}
	}
	d.fresh(t, "p")
	open := func(want, owner, cache string) {
		t.Helper()
		if s, err := Open(t.Context(), d.url("p"), owner, cache, nil); millrace.ErrorCode(err) != want || s != nil {
			t.Errorf("%v with the code %s, want %s", err, millrace.ErrorCode(err), want)
		}
	}
	open("bucket-owner", "another", filepath.Join(t.TempDir(), "cache"))
	open("file-permission", "owner", filepath.Join(t.TempDir(), "absent", "cache"))
	d.change(func(objects map[string]stored) {
		objects["p/owner"] = stored{[]byte(`{"store":"owner","format":2}`), time.Now()}
	})
	open("bucket-newer", "owner", filepath.Join(t.TempDir(), "cache"))
	d.change(func(objects map[string]stored) { clear(objects) })
	d.ignores = true
	open("bucket-unsupported", "owner", filepath.Join(t.TempDir(), "cache"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "absent"))
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} { // each variable is useless without the other
		t.Setenv(name, "")
		open("bucket-credentials", "owner", filepath.Join(t.TempDir(), "cache"))
		t.Setenv(name, "x")
	}
}

// TestCredentialsFile checks that credentials can come from a file.
func TestCredentialsFile(t *testing.T) {
	d := newDouble(t)
	file := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(file, []byte("[default]\naws_access_key_id = other\n[mill]\naws_access_key_id = filed\naws_secret_access_key = s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SHARED_CREDENTIALS_FILE": file, "AWS_PROFILE": "mill"} {
		t.Setenv(name, value)
	}
	d.set(func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=filed/") {
			t.Errorf("%s %s: %s", r.Method, r.URL, r.Header.Get("Authorization"))
		}
		return false
	})
	d.fresh(t, "p")
}
