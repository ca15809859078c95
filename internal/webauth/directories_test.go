package webauth

import (
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// host serves a directory that the test can change.
type host struct {
	mu     sync.Mutex
	keys   []PublicKey
	header http.Header
	status int
	body   func(io.Writer)
	asked  int
}

func (h *host) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	if h.status < 0 {
		return nil, errors.New("the network is down")
	}
	rec := httptest.NewRecorder()
	for k, v := range h.header {
		rec.Header()[k] = v
	}
	rec.WriteHeader(max(h.status, http.StatusOK))
	if h.body != nil {
		h.body(rec)
	} else {
		_, _ = rec.Write(AppendDirectory(nil, h.keys))
	}
	resp := rec.Result()
	resp.Request = r
	return resp, nil
}

func (h *host) set(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (h *host) want(t *testing.T, asked int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked != asked {
		t.Errorf("the directory was requested %d times, want %d", h.asked, asked)
	}
}

func find(t *testing.T, d *directories, id string) error {
	t.Helper()
	key, err := d.key(t.Context(), "https://bot.test/keys", id)
	if err == nil && Thumbprint(key) != id {
		t.Errorf("the key is a different one")
	}
	return err
}

func TestDirectoryCache(t *testing.T) {
	a, b := newTestKey(t, 1), newTestKey(t, 2)
	h, c := &host{keys: []PublicKey{a.Public()}, header: http.Header{"Cache-Control": {"max-age=600"}}}, newClock()
	d := newDirectories(&http.Client{Transport: h})
	d.now = c.now
	for range 3 {
		if err := find(t, d, a.ID()); err != nil {
			t.Fatal(err)
		}
	}
	h.want(t, 1)
	// The directory is fetched again for a missing key, but at most once a minute for all
	// callers.
	for range 3 {
		if err := find(t, d, b.ID()); !errors.Is(err, millrace.ErrNotFound) {
			t.Fatal(err)
		}
	}
	h.want(t, 1)
	h.set(func() { h.keys = append(h.keys, b.Public()) })
	c.pass(againAfter)
	for range 3 {
		if err := find(t, d, b.ID()); err != nil {
			t.Fatal(err)
		}
	}
	h.want(t, 2)
	// A removed key remains valid until the cached directory expires.
	h.set(func() { h.keys = []PublicKey{b.Public()} })
	c.pass(599 * time.Second)
	if err := find(t, d, a.ID()); err != nil {
		t.Error(err)
	}
	h.want(t, 2)
	c.pass(time.Second)
	if err := find(t, d, a.ID()); !errors.Is(err, millrace.ErrNotFound) {
		t.Errorf("a removed key: %v", err)
	}
	h.want(t, 3)
	// If the directory cannot be fetched, its keys remain valid for a day.
	h.set(func() { h.status = http.StatusServiceUnavailable })
	c.pass(600 * time.Second)
	for range 3 {
		if err := find(t, d, b.ID()); err != nil {
			t.Error(err)
		}
	}
	h.want(t, 4)
	if err := find(t, d, a.ID()); !errors.Is(err, millrace.ErrUnavailable) {
		t.Errorf("an unknown key: %v", err)
	}
	c.pass(staleFor)
	if err := find(t, d, b.ID()); !errors.Is(err, millrace.ErrUnavailable) {
		t.Errorf("a day later: %v", err)
	}
	h.set(func() { h.status = 0 })
	if err := find(t, d, b.ID()); !errors.Is(err, millrace.ErrUnavailable) {
		t.Errorf("the directory was requested again at once: %v", err)
	}
	c.pass(failedFor)
	if err := find(t, d, b.ID()); err != nil {
		t.Error(err)
	}
	h.want(t, 6)
}

func TestAgeOf(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, tt := range []struct {
		header string
		want   time.Duration
	}{
		{"", usualAge},
		{"Cache-Control: max-age=86400", 24 * time.Hour},
		{"Cache-Control: max-age=99999999", maxCacheAge},
		{"Cache-Control: max-age=0", minCacheAge},
		{"Cache-Control: public, Max-Age=\"600\"", 10 * time.Minute},
		{"Cache-Control: max-age=no", usualAge},
		{"Cache-Control: max-age=99999999999999999999", usualAge},
		{"Cache-Control: no-store", minCacheAge},
		{"Cache-Control: no-cache, max-age=600", minCacheAge},
		{"Cache-Control: max-age=600|Age: 300", 5 * time.Minute},
		{"Cache-Control: max-age=600|Age: -300", 10 * time.Minute},
		{"Expires: " + now.Add(30*time.Minute).UTC().Format(http.TimeFormat), 30 * time.Minute},
		{"Expires: 0", usualAge},
		{"Cache-Control: max-age=600|Expires: " + now.Add(30*time.Minute).UTC().Format(http.TimeFormat), 10 * time.Minute},
	} {
		h := http.Header{}
		for line := range strings.SplitSeq(tt.header, "|") {
			name, value, _ := strings.Cut(line, ": ")
			h.Add(name, value)
		}
		if got := ageOf(h, now); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.header, got, tt.want)
		}
	}
}

// TestDirectoryFaults lists the ways in which a directory can be unavailable or invalid.
func TestDirectoryFaults(t *testing.T) {
	a := newTestKey(t, 1)
	for name, set := range map[string]func(*host){
		"down":       func(h *host) { h.status = -1 },
		"missing":    func(h *host) { h.status = http.StatusNotFound },
		"redirected": func(h *host) { h.status, h.header = http.StatusFound, http.Header{"Location": {"http://127.0.0.1/"}} },
		"empty":      func(h *host) { h.body = func(io.Writer) {} },
		"a page":     func(h *host) { h.body = func(w io.Writer) { _, _ = io.WriteString(w, "<!doctype html>") } },
		"no set":     func(h *host) { h.body = func(w io.Writer) { _, _ = io.WriteString(w, `{"kty":"OKP"}`) } },
		"huge": func(h *host) {
			h.body = func(w io.Writer) { _, _ = w.Write(append(AppendDirectory(nil, h.keys), make([]byte, maxDirectory)...)) }
		},
		"of many": func(h *host) {
			for len(h.keys) <= maxKeys {
				h.keys = append(h.keys, a.Public())
			}
		},
		"a digest of other bytes": func(h *host) {
			h.header = http.Header{"Content-Digest": {"sha-256=:" + strings.Repeat("A", 43) + "=:"}}
		},
		"a bomb": func(h *host) {
			h.header = http.Header{"Content-Encoding": {"gzip"}}
			h.body = func(w io.Writer) { gzipZeros(w, 4<<20) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, c := &host{keys: []PublicKey{a.Public()}}, newClock()
			set(h)
			d := newDirectories(&http.Client{Transport: h})
			d.now = c.now
			for range 3 {
				if err := find(t, d, a.ID()); !errors.Is(err, millrace.ErrUnavailable) {
					t.Errorf("got %v", err)
				}
			}
			h.want(t, 1)
		})
	}
}

// TestDirectoryKeys lists keys of a valid directory, usable and not.
func TestDirectoryKeys(t *testing.T) {
	a := newTestKey(t, 1)
	x := strings.SplitN(string(AppendDirectory(nil, []PublicKey{a.Public()})), `"x":"`, 2)[1][:43]
	c := newClock()
	for body, want := range map[string]error{
		`{"kty":"OKP","crv":"Ed25519","x":"` + x + `"}`:                                                                      nil,
		`{"kty":"OKP","crv":"Ed25519","x":"` + x + `","kid":"another","alg":"EdDSA","use":"sig"}`:                            nil,
		`{"kty":"OKP","crv":"Ed25519","x":"` + x + `","nbf":1800000000,"exp":1800000001}`:                                    nil,
		`{"kty":"OKP","crv":"Ed25519","x":"` + x + `","nbf":1800000000000}`:                                                  nil,
		`{"kty":"RSA","n":"AQAB","e":"AQAB","x5c":["x"]},{"kty":"EC","use":7},{"kty":"OKP","crv":"Ed25519","x":"` + x + `"}`: nil,
		`{"kty":"OKP","crv":"Ed25519","x":"` + x + `","nbf":1800000001}`:                                                     millrace.ErrNotFound,
		`{"kty":"OKP","crv":"Ed25519","x":"` + x + `","exp":1800000000}`:                                                     millrace.ErrNotFound,
		`{"kty":"OKP","crv":"Ed25519","x":"` + x + `","use":"enc"}`:                                                          millrace.ErrNotFound,
		`{"kty":"OKP","crv":"X25519","x":"` + x + `"}`:                                                                       millrace.ErrNotFound,
		`{"kty":"OKP","crv":"Ed25519","x":"` + x[:40] + `"}`:                                                                 millrace.ErrUnavailable,
		`{"kty":"OKP","crv":"Ed25519","x":"` + x + `","d":"` + x + `"}`:                                                      millrace.ErrUnavailable,
	} {
		h := &host{body: func(w io.Writer) { _, _ = io.WriteString(w, `{"keys":[`+body+`]}`) }}
		d := newDirectories(&http.Client{Transport: h})
		d.now = c.now
		if err := find(t, d, a.ID()); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", body, err, want)
		}
	}
}

// Many requests that name one directory cause one fetch. The number of cached directories is
// bounded.
func TestDirectoryStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newTestKey(t, 1)
		var asked atomic.Int32
		slow := roundTrip(func(r *http.Request) (*http.Response, error) {
			asked.Add(1)
			select {
			case <-time.After(5 * time.Minute):
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
			return nil, errors.New("too late")
		})
		d := newDirectories(&http.Client{Transport: slow})
		began := time.Now()
		var all sync.WaitGroup
		var busy atomic.Int32
		for range 1000 {
			all.Go(func() {
				_, err := d.key(t.Context(), "https://slow.test/keys", a.ID())
				if !errors.Is(err, millrace.ErrUnavailable) {
					t.Errorf("got %v", err)
				}
				if errors.Is(err, errBusy) {
					busy.Add(1)
				}
			})
		}
		all.Wait()
		if n, took := asked.Load(), time.Since(began); n != 1 || took != directoryTime || busy.Load() != 1000-waitersAtOnce {
			t.Errorf("requested %d times in %s, %d got ErrUnavailable", n, took, busy.Load())
		}
		asked.Store(0)
		for i := range 200 {
			all.Go(func() { _, _ = d.key(t.Context(), fmt.Sprintf("https://slow%d.test/keys", i), a.ID()) })
		}
		all.Wait()
		if n := asked.Load(); n != fetchesAtOnce {
			t.Errorf("%d concurrent fetches", n)
		}
		// A canceled caller does not wait.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.key(ctx, "https://other.test/keys", a.ID()); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		time.Sleep(directoryTime)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestDirectoriesBounded(t *testing.T) {
	a := newTestKey(t, 1)
	h, c := &host{keys: []PublicKey{a.Public()}}, newClock()
	d := newDirectories(&http.Client{Transport: h})
	d.now = c.now
	if err := find(t, d, a.ID()); err != nil {
		t.Fatal(err)
	}
	h.set(func() { h.status = http.StatusNotFound })
	for i := range manyDirectories + 500 {
		if i%100 == 0 {
			c.pass(time.Second)
		}
		_, _ = d.key(t.Context(), fmt.Sprintf("https://host%d.test/", i), a.ID())
	}
	if n := len(d.dirs); n > manyDirectories {
		t.Errorf("%d directories are cached", n)
	}
	// Directories with valid keys are not evicted.
	if err := find(t, d, a.ID()); err != nil {
		t.Error(err)
	}
}

// A verifier accepts what a Directory serves, over a real connection.
func TestDirectoryServed(t *testing.T) {
	a, b := newTestKey(t, 1), newTestKey(t, 2)
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	c := newClock()
	for _, tt := range []struct {
		base string
		want error // error for a key that signs the directory
	}{
		{server.URL, nil},
		{"https://another.test", millrace.ErrNotFound}, // served at another host than the signed one
	} {
		dir, err := NewDirectory(tt.base+"/docs/", []*Key{a, a}, []PublicKey{a.Public(), b.Public()})
		if err != nil {
			t.Fatal(err)
		}
		dir.now = c.now
		path := "/" + canonName(tt.base) + DirectoryPath
		mux.Handle(path, dir)
		d := newDirectories(fetch.New(ClientOptions(&fetch.Options{AllowPrivate: true})).HTTP())
		d.now = c.now
		for key, want := range map[*Key]error{a: tt.want, b: nil} {
			if _, err := d.key(t.Context(), server.URL+path, key.ID()); !errors.Is(err, want) {
				t.Errorf("%s at %s: %v, want %v", key, path, err, want)
			}
		}
	}
}

func canonName(base string) string { return strings.NewReplacer(":", "", "/", "").Replace(base) }

func TestDirectoryHTTP(t *testing.T) {
	a, c := newTestKey(t, 1), newClock()
	d, err := NewDirectory("https://bot.test/", []*Key{a}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.now = c.now
	ask := func(method, tag string) *http.Response {
		r := httptest.NewRequest(method, DirectoryPath, http.NoBody)
		r.Host = "evil.test" // no key can sign for this host
		if tag != "" {
			r.Header.Set("If-None-Match", tag)
		}
		rec := httptest.NewRecorder()
		d.ServeHTTP(rec, r)
		return rec.Result()
	}
	got := ask(http.MethodGet, "")
	body, _ := io.ReadAll(got.Body)
	if got.StatusCode != http.StatusOK || got.Header.Get("Content-Type") != DirectoryType || got.Header.Get("Cache-Control") != "public, max-age=3600" ||
		string(body) != string(d.Body()) {
		t.Errorf("%d %v %s", got.StatusCode, got.Header, body)
	}
	all, err := signatures(got.Header, directoryTag)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	for authority, good := range map[string]bool{"https://bot.test": true, "https://evil.test": false} {
		m := &message{status: http.StatusOK, field: got.Header, req: &message{method: http.MethodGet, base: authority, target: DirectoryPath}}
		if err := all[0].verify(m, a.public()); (err == nil) != good {
			t.Errorf("for %s: %v", authority, err)
		}
	}
	first := got.Header.Get("Signature")
	if again := ask(http.MethodGet, "").Header.Get("Signature"); again != first {
		t.Error("the directory is signed for each request")
	}
	c.pass(provenNew)
	if again := ask(http.MethodGet, "").Header.Get("Signature"); again == first {
		t.Error("the signature was not renewed")
	}
	if got := ask(http.MethodGet, got.Header.Get("Etag")); got.StatusCode != http.StatusNotModified {
		t.Errorf("304: %d", got.StatusCode)
	}
	if got := ask(http.MethodHead, ""); got.StatusCode != http.StatusOK || got.ContentLength != int64(len(body)) {
		t.Errorf("HEAD: %d, %d", got.StatusCode, got.ContentLength)
	}
	if got := ask(http.MethodPost, ""); got.StatusCode != http.StatusMethodNotAllowed || got.Header.Get("Allow") == "" {
		t.Errorf("POST: %d", got.StatusCode)
	}
}

func TestNewDirectory(t *testing.T) {
	if _, err := NewDirectory("https://bot.test", nil, nil); !errors.Is(err, millrace.ErrInvalid) {
		t.Errorf("without keys: %v", err)
	}
	var many []*Key
	for i := range maxKeys + 1 {
		many = append(many, newTestKey(t, byte(i)))
	}
	if _, err := NewDirectory("https://bot.test", many, nil); !errors.Is(err, millrace.ErrTooLarge) {
		t.Errorf("with many: %v", err)
	}
}

func TestParseKeys(t *testing.T) {
	a := newTestKey(t, 1)
	secret, err := a.PEM()
	if err != nil {
		t.Fatal(err)
	}
	// The public key of RFC 8410, section 10.1, as openssl writes it.
	const public = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"
	const secret8410 = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n"
	pub, err := ParseKeys([]byte(public))
	if err != nil || len(pub) != 1 || len(pub[0].Key) != ed25519.PublicKeySize {
		t.Fatal(pub, err)
	}
	if key, err := ParseKey([]byte("some words\n" + secret8410)); err != nil || key.ID() != pub[0].ID {
		t.Errorf("%v, %v; want the key of %s", key, err, pub[0].ID)
	}
	for text, want := range map[string][]string{
		string(secret):                            {a.ID()},
		public + string(secret):                   {pub[0].ID, a.ID()},
		" \n" + string(AppendDirectory(nil, pub)): {pub[0].ID},
		"": nil,
		"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n":     nil,
		strings.Replace(secret8410, "MC4", "MC5", 1):                   nil,
		strings.ReplaceAll(secret8410, "PRIVATE", "ENCRYPTED PRIVATE"): nil,
		`{"keys":1}`: nil,
	} {
		got, err := ParseKeys([]byte(text))
		if want == nil {
			if !errors.Is(err, millrace.ErrInvalid) {
				t.Errorf("%s: %v, %v", text, got, err)
			}
			continue
		}
		var ids []string
		for _, k := range got {
			ids = append(ids, k.ID)
		}
		if err != nil || fmt.Sprint(ids) != fmt.Sprint(want) {
			t.Errorf("%s: %v, %v; want %v", text, ids, err, want)
		}
	}
	if s := fmt.Sprintf("%v %+v %#v %s", a, a, a, a); strings.Contains(s, "private") || strings.Count(s, a.ID()) != 4 {
		t.Errorf("a key prints as %s", s)
	}
	if _, err := NewKey(strings.NewReader("short")); err == nil {
		t.Error("a key was created from too little randomness")
	}
}

func gzipZeros(w io.Writer, n int) {
	z := gzip.NewWriter(w)
	_, _ = z.Write(make([]byte, n))
	_ = z.Close()
}

// A set has the keys of all its files.
func TestKeySet(t *testing.T) {
	dir := t.TempDir()
	a, err := NewKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := a.PEM()
	if err != nil {
		t.Fatal(err)
	}
	var s KeySet
	for name, text := range map[string][]byte{"private.pem": secret, "directory.json": AppendDirectory(nil, []PublicKey{a.Public()})} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Read(file); err != nil {
			t.Error(err)
		}
	}
	if len(s.Signers) != 1 || s.Signers[0].ID() != a.ID() || len(s.Public) != 2 {
		t.Errorf("%+v", s)
	}
	if err := s.Read(dir); err == nil {
		t.Error("reading a folder returned keys")
	}
	if err := s.Read(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
