package edition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/dcz"
	"github.com/millrace/millrace/internal/testkit"
)

// dictionaryClient is a client that keeps every body as a dictionary.
type dictionaryClient struct {
	server *Server
	held   []byte // identity bytes of the last response
	tag    string
}

// get asks for a document and returns the response, the number of bytes of its body, and the
// bytes without coding. The server then keeps the version.
func (c *dictionaryClient) get(t *testing.T, target string) (w *httptest.ResponseRecorder, n int, body string) {
	t.Helper()
	fields := []string{"Accept-Encoding", "gzip, dcz"}
	if c.held != nil {
		fields = append(fields, dcz.Available, dcz.Sum(c.held).Field())
	}
	if c.tag != "" {
		fields = append(fields, "If-None-Match", c.tag)
	}
	w = ask(t, c.server, http.MethodGet, target, fields...)
	if digest := w.Header().Get("Repr-Digest"); digest != "" && digest != canon.Digest(w.Body.Bytes()) || digest == "" && w.Header().Get("Content-Encoding") == dcz.Name {
		t.Errorf("Repr-Digest %q", digest)
	}
	if n = w.Body.Len(); w.Code != http.StatusOK {
		return w, n, string(c.held)
	}
	switch coding := w.Header().Get("Content-Encoding"); coding {
	case dcz.Name:
		r, err := dcz.NewReader(w.Body, c.held, dcz.Sum(c.held))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		body = string(b)
	default:
		body = decoded(t, coding, w.Body.Bytes())
	}
	c.held, c.tag = []byte(body), w.Header().Get("ETag")
	drain(t, c.server)
	return w, n, body
}

// drain keeps the versions that were sent.
func drain(t *testing.T, s *Server) {
	t.Helper()
	for len(s.dictionaries.sent) > 0 {
		if err := s.storeVersion(t.Context(), <-s.dictionaries.sent); err != nil {
			t.Fatal(err)
		}
	}
}

// While a request is processed, others get cached documents that are coded against a dictionary.
func TestDictionaryTurn(t *testing.T) {
	site := newMemSite(2)
	site.set("/1", noise(5000))
	c := dictionaryClient{server: serverIn(t, site, &memProtocol{}, newArtifacts(), nil)}
	publish(t, c.server)
	c.get(t, "/1.txt")
	guard, err := access.New(&access.Options{MaxWork: 1})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() (coding string, err error) {
		r := httptest.NewRequest(http.MethodGet, "/1.txt", nil)
		r.RemoteAddr = "127.0.0.1:1"
		r.Header = http.Header{"Accept-Encoding": {"gzip, dcz"}, dcz.Available: {dcz.Sum(c.held).Field()}}
		w := httptest.NewRecorder()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		q := guard.Request(r.WithContext(ctx))
		defer q.Leave()
		_, err = c.server.Answer(w, r, &q)
		return w.Header().Get("Content-Encoding"), err
	}
	synctest.Test(t, func(t *testing.T) {
		works := guard.Request(httptest.NewRequest(http.MethodGet, "/", nil))
		if err := works.WaitTurn(); err != nil {
			t.Fatal(err)
		}
		if coding, err := ask(); err == nil {
			t.Errorf("a response in %q was coded without a turn", coding)
		}
		works.Leave()
		if coding, err := ask(); coding != dcz.Name || err != nil {
			t.Fatalf("%q, %v", coding, err)
		}
		if err := works.WaitTurn(); err != nil {
			t.Fatal(err)
		}
		defer works.Leave()
		if coding, err := ask(); coding != dcz.Name || err != nil {
			t.Errorf("cached: %q, %v", coding, err)
		}
	})
}

// noise returns n bytes that do not compress well.
func noise(n int) string {
	r := rand.New(rand.NewPCG(uint64(n), 2))
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%x ", r.Uint64())
	}
	return b.String()
}

// A client gets the second version of a document coded against the first, and the third against the
// second, although another process serves that one. The size of the response depends only on the
// change.
func TestDictionary(t *testing.T) {
	for _, target := range []string{"/1.txt", "/odd.txt"} {
		t.Run(target, func(t *testing.T) {
			site := newMemSite(2)
			text := noise(20_000)
			site.set("/1", text)
			artifacts := newArtifacts()
			c := dictionaryClient{server: serverIn(t, site, &memProtocol{}, artifacts, nil)}
			publish(t, c.server)
			w, _, _ := c.get(t, target)
			if use, vary := w.Header().Get(dcz.Use), w.Header().Get("Vary"); use != `match="`+target+`"` || vary != "Accept-Encoding, Available-Dictionary" {
				t.Errorf("%s, %s", use, vary)
			}
			for i := range 3 {
				text = fmt.Sprintf("change %d", i) + text
				site.set("/1", text)
				if i == 1 {
					c.server = serverIn(t, site, &memProtocol{}, artifacts, nil)
				}
				publish(t, c.server)
				w, n, body := c.get(t, target)
				if w.Header().Get("Content-Encoding") != dcz.Name || n > 200 || !strings.Contains(body, text) {
					t.Fatalf("version %d: %d bytes, %v", i, n, w.Header())
				}
				if plain := ask(t, c.server, http.MethodGet, target); plain.Body.String() != body {
					t.Fatalf("version %d differs from the document without coding", i)
				}
			}
			if n, saved := c.server.SentAsChanges(); n != 2 || saved < 2*9000 {
				t.Errorf("%d responses as changes saved %d bytes", n, saved)
			}
			// The tag names the dictionary, so the client confirms its version once.
			if w, n, _ := c.get(t, target); n > 100 {
				t.Errorf("the same version: %d, %d bytes", w.Code, n)
			}
			if w, _, _ := c.get(t, target); w.Code != http.StatusNotModified {
				t.Errorf("the same version again: %d, %v", w.Code, w.Header())
			}
			if w := ask(t, c.server, http.MethodHead, target, "Accept-Encoding", "dcz", dcz.Available, dcz.Sum(c.held).Field()); w.Header().Get("Content-Encoding") != dcz.Name || w.Body.Len() > 0 {
				t.Errorf("HEAD: %v", w.Header())
			}
		})
	}
}

// A page of the site itself is a dictionary of its next version.
func TestDictionaryPage(t *testing.T) {
	s := newTestServer(t, newMemSite(1), &memProtocol{}, nil)
	publish(t, s)
	text := noise(5000)
	get := func(state string, held []byte) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "https://x.test/a:b", nil)
		r.Header.Set("Accept-Encoding", "br, dcz")
		if held != nil {
			r.Header.Set(dcz.Available, dcz.Sum(held).Field())
		}
		w := httptest.NewRecorder()
		err := s.Page(w, r, nil, "/file", "", state, func() (*millrace.Document, error) {
			header := http.Header{"Vary": {"Accept"}} // Markdown has another entry
			return &millrace.Document{Path: "/file", ETag: state, Header: header, Write: func(_ context.Context, w io.Writer) error {
				_, err := io.WriteString(w, state+text)
				return err
			}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		drain(t, s)
		return w
	}
	if w := get("1", nil); w.Header().Get(dcz.Use) != `match="/a\\:b"` || w.Header().Get("Vary") != "Accept, Accept-Encoding, Available-Dictionary" {
		t.Errorf("%v", w.Header())
	}
	if w := get("2", []byte("1"+text)); w.Header().Get("Content-Encoding") != dcz.Name || w.Body.Len() > 100 {
		t.Errorf("%d bytes, %v", w.Body.Len(), w.Header())
	}
}

// A damaged dictionary is logged once, and the plain document is sent.
func TestDamagedDictionary(t *testing.T) {
	site, artifacts := newMemSite(2), newArtifacts()
	site.set("/1", noise(20_000))
	var log bytes.Buffer
	s := serverIn(t, site, &memProtocol{}, artifacts, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	publish(t, s)
	c := dictionaryClient{server: s}
	_, _, _ = c.get(t, "/1.txt")
	for info, err := range artifacts.List(t.Context(), dictionaryPrefix) {
		if err = errors.Join(err, artifacts.Delete(t.Context(), info.Name), artifacts.Put(t.Context(), info.Name, strings.NewReader("damaged"))); err != nil {
			t.Fatal(err)
		}
	}
	site.set("/1", "changed "+noise(20_000))
	publish(t, s)
	log.Reset()
	for range 2 {
		if w := ask(t, s, http.MethodGet, "/1.txt", "Accept-Encoding", "dcz", dcz.Available, dcz.Sum(c.held).Field()); w.Code != http.StatusOK || w.Header().Get("Content-Encoding") != "" {
			t.Errorf("%d, %v", w.Code, w.Header())
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, &log)
	}
}

// The server never sends a coding that a client cannot decode or must not get.
func TestNoDictionary(t *testing.T) {
	site := newMemSite(2)
	text := noise(20_000)
	site.set("/1", text)
	site.set("/2", noise(20_001))
	s := newTestServer(t, site, &memProtocol{}, nil)
	publish(t, s)
	first := ask(t, s, http.MethodGet, "/1.txt", "Accept-Encoding", "dcz").Body.Bytes()
	other := ask(t, s, http.MethodGet, "/2.txt", "Accept-Encoding", "dcz").Body.Bytes()
	drain(t, s)
	site.set("/1", "changed "+text)
	publish(t, s)
	held, unrelated := dcz.Sum(first).Field(), dcz.Sum(other).Field()
	if w := ask(t, s, http.MethodGet, "/1.txt", "Accept-Encoding", "br, dcz;q=0.1", dcz.Available, held); w.Header().Get("Content-Encoding") != dcz.Name {
		t.Fatalf("without changes to the request: %v", w.Header())
	}
	for name, fields := range map[string][]string{
		"no dcz":           {"Accept-Encoding", "br, gzip", dcz.Available, held},
		"another token":    {"Accept-Encoding", "br, xdcz", dcz.Available, held},
		"dcz;q=0":          {"Accept-Encoding", "br, dcz;q=0", dcz.Available, held},
		"no encodings":     {dcz.Available, held},
		"unknown":          {"Accept-Encoding", "br, dcz", dcz.Available, dcz.Sum([]byte("?")).Field()},
		"unrelated":        {"Accept-Encoding", "br, dcz", dcz.Available, unrelated},
		"not a hash":       {"Accept-Encoding", "br, dcz", dcz.Available, ":AAAA:"},
		"browser":          {"Accept-Encoding", "gzip, deflate, br, zstd", "Sec-Fetch-Dest", "document"},
		"old browser":      {"Accept-Encoding", "gzip, deflate, br", "Sec-Fetch-Dest", "document"},
		"two dictionaries": {"Accept-Encoding", "br, dcz", dcz.Available, held, dcz.Available, held},
		"cookie":           {"Accept-Encoding", "br, dcz", dcz.Available, held, "Cookie", "a=b"},
		"credentials":      {"Accept-Encoding", "br, dcz", dcz.Available, held, "Authorization", "Basic eDp5"},
		"range":            {"Accept-Encoding", "br, dcz", dcz.Available, held, "Range", "bytes=0-9"},
	} {
		w := ask(t, s, http.MethodGet, "/1.txt", fields...)
		if w.Code >= 300 || w.Header().Get("Content-Encoding") == dcz.Name {
			t.Errorf("%s: %d, %v", name, w.Code, w.Header())
		}
		offers := name == "unknown" || name == "unrelated" || name == "not a hash" || name == "two dictionaries" || name == "browser"
		if offered := w.Header().Get(dcz.Use) != ""; offered != offers {
			t.Errorf("%s: %v", name, w.Header())
		}
	}
	for name, vary := range map[string]*memProtocol{"private": {vary: "Cookie"}, "any": {vary: "*"}} {
		s := newTestServer(t, site, vary, nil)
		publish(t, s)
		if w := ask(t, s, http.MethodGet, "/1.txt", "Accept-Encoding", "dcz"); w.Header().Get(dcz.Use) != "" {
			t.Errorf("%s: %v", name, w.Header())
		}
	}
	guarded := NewServer(site.source(), []Protocol{{Name: "mem", Publisher: &memProtocol{}, Guarded: true}}, newArtifacts(), nil)
	publish(t, guarded)
	if w := ask(t, guarded, http.MethodGet, "/1.txt", "Accept-Encoding", "dcz"); w.Header().Get(dcz.Use) != "" {
		t.Errorf("guarded: %v", w.Header())
	}
}

func TestSecure(t *testing.T) {
	for _, c := range []struct {
		base, peer string
		want       bool
	}{{"https://x.test", "192.0.2.1:99", true}, {"http://x.test", "192.0.2.1:99", false}, {"http://x.test", "127.0.0.1:99", true}, {"http://x.test", "[::1]:99", true}, {"", "", false}} {
		if got := secure(c.base, &http.Request{RemoteAddr: c.peer}); got != c.want {
			t.Errorf("%s from %s: %v", c.base, c.peer, got)
		}
	}
}

// A coded file can be the dictionary of later files without a coding, if its protocol allows that.
func TestDictionaryFile(t *testing.T) {
	site := newMemSite(1000)
	for i := range 1000 {
		site.set(fmt.Sprintf("/%d", i), strings.Repeat("x", i*i%997))
	}
	const versions = "/files/*."
	proto := &artifactProtocol{versions: versions}
	s := newTestServer(t, site, proto, nil)
	file := func(coding string) string {
		for _, path := range slices.Backward(s.Current().ArtifactPaths()) {
			if ask(t, s, http.MethodGet, path).Header().Get("Content-Encoding") == coding {
				return path
			}
		}
		t.Fatal(s.Current().ArtifactPaths())
		return ""
	}
	publish(t, s)
	c := dictionaryClient{server: s}
	use := func(w *httptest.ResponseRecorder) string { return w.Header().Get(dcz.Use) }
	if w, _, _ := c.get(t, file("zstd")); use(w) != `match="`+versions+`"` {
		t.Error(w.Header())
	}
	for i, declared := range []bool{true, false} {
		if c.tag = ""; !declared {
			proto.versions = ""
		}
		site.set("/1", strings.Repeat("changed", i))
		publish(t, s)
		w, n, body := c.get(t, file(""))
		if w.Header().Get("Content-Encoding") != dcz.Name || n > 100 || body != ask(t, s, http.MethodGet, file("")).Body.String() || use(w) != "" != declared {
			t.Errorf("%d bytes, %v", n, w.Header())
		}
		if w, n, _ := c.get(t, file("zstd")); w.Header().Get("Content-Encoding") != "zstd" || n < 1000 || use(w) != "" != declared {
			t.Errorf("%d bytes, %v", n, w.Header())
		}
	}
	c.tag = ""
	if w, _, _ := c.get(t, file("")); w.Header().Get("Content-Encoding") != "" {
		t.Errorf("coded against a file that is not a dictionary: %v", w.Header())
	}
}

// Collection keeps the eight newest versions of a list and one of each day, for 35 days. Their
// chunks are kept, too.
func TestDictionariesCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := newMemSite(2)
		text := noise(20_000)
		s := newTestServer(t, site, &memProtocol{}, nil)
		var versions [][]byte
		for day := range 40 {
			for range 3 {
				text = fmt.Sprintf("%d", day) + text
				site.set("/1", text)
				publish(t, s)
				w := ask(t, s, http.MethodGet, "/odd.txt", "Accept-Encoding", "dcz")
				versions = append(versions, bytes.Clone(w.Body.Bytes()))
				drain(t, s)
				time.Sleep(8 * time.Hour)
			}
		}
		kept := 0
		for i, b := range versions {
			_, err := s.dictionary(t.Context(), dcz.Sum(b))
			if err == nil {
				kept++
			}
			if want := i >= len(versions)-keepVersions; want && err != nil {
				t.Errorf("version %d of %d: %v", i, len(versions), err)
			}
		}
		if want := 35 + keepVersions - keepVersions/3; kept < want-3 || kept > want+3 {
			t.Errorf("%d versions are kept, want about %d", kept, want)
		}
	})
}

// Chromium stores the first version, and decodes the second one with it.
func TestRealBrowser(t *testing.T) {
	chromium := testkit.Real(t, "chromium|chromium-browser|google-chrome")
	site := newMemSite(2)
	text := noise(20_000)
	site.set("/1", text)
	s := newTestServer(t, site, &lastingProtocol{}, nil)
	publish(t, s)
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<p id=o></p><script>(async () => {
			const get = async path => await (await fetch(path)).text()
			const first = await get('/1.txt')
			await get('/edit')
			const second = await fetch('/1.txt', {cache: 'reload'})
			o.textContent = second.headers.get('Content-Encoding') + ' ' + ((await second.text()) === await get('/expected'))
		})()</script>`)
	})
	mux.HandleFunc("/edit", func(http.ResponseWriter, *http.Request) {
		drain(t, s)
		site.set("/1", "changed "+text)
		publish(t, s)
	})
	mux.HandleFunc("/expected", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(ask(t, s, http.MethodGet, "/1.txt").Body.Bytes())
	})
	mux.HandleFunc("/1.txt", func(w http.ResponseWriter, r *http.Request) {
		if _, err := s.Serve(w, r); err != nil {
			t.Error(err)
		}
	})
	web := httptest.NewServer(mux)
	defer web.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
		"--virtual-time-budget=60000", "--dump-dom", web.URL).Output()
	if err != nil || !strings.Contains(string(out), `<p id="o">dcz true</p>`) {
		t.Errorf("%v: %s", err, out)
	}
}

// lastingProtocol is a memProtocol whose documents stay fresh for an hour. Browsers use only
// fresh dictionaries.
type lastingProtocol struct{ memProtocol }

func (p *lastingProtocol) Find(ctx context.Context, view millrace.View, r *http.Request) (*millrace.Document, error) {
	d, err := p.memProtocol.Find(ctx, view, r)
	if err == nil {
		d.Header.Set("Cache-Control", "max-age=3600")
	}
	return d, err
}
