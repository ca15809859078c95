package caddy_test

import (
	"bufio"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"golang.org/x/crypto/bcrypt"

	"github.com/millrace/millrace/internal/testkit"
)

// upstream is a site of linked pages behind reverse_proxy. Its pages come compressed if a client
// allows that, and the site trusts private networks.
func upstream(t testing.TB, pages map[string]string) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		tag := fmt.Sprintf(`"%x"`, len(text))
		if w.Header().Set("ETag", tag); strings.TrimPrefix(r.Header.Get("If-None-Match"), "W/") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		var out io.Writer = w
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			out = z
		}
		fmt.Fprintf(out, "<!doctype html><html lang=en><head><title>About %s</title></head><body><main><h1>About %[1]s</h1><p>%s</p>", r.URL.Path, text)
		for _, path := range slices.Sorted(maps.Keys(pages)) {
			fmt.Fprintf(out, "<a href=%q>%s</a> ", path, path)
		}
		fmt.Fprint(out, "</main></body></html>\n")
	}))
	t.Cleanup(srv.Close)
	return srv
}

func linked() map[string]string {
	pages := map[string]string{"/": "A mill with three wheels.", "/office/rent": "The rent is due in May."}
	for i := range 8 {
		pages[fmt.Sprintf("/wheels/%d", i)] = fmt.Sprintf("Wheel %d is of oak, and turns in the race of the river. ", i) + strings.Repeat("It has blades of elm. ", 40)
	}
	return pages
}

// documents are public documents with the text or the names of pages.
var documents = []string{"/llms.txt", "/sitemap.xml", "/llm-sitemap.json", "/feed.xml", "/index.json", "/openfeeder", "/.well-known/arc.json", "/robots.txt"}

// leaks returns the documents that contain a text.
func leaks(t testing.TB, base string, texts ...string) (found []string) {
	t.Helper()
	for _, path := range documents {
		_, body := get(t, base+path)
		for _, text := range texts {
			if strings.Contains(body, text) {
				found = append(found, path+": "+text)
			}
		}
	}
	return found
}

// password protects a path with basic_auth.
func password(t testing.TB, path string) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return "basic_auth " + path + " {\n\t\tmiller " + string(hash) + "\n\t}\n"
}

// No page that needs a password, in whatever way, is in a document, in the title of a link or in
// Markdown. With the password, its own address still works.
func TestProtected(t *testing.T) {
	up := upstream(t, linked())
	dir := folder(t, mill())
	for name, site := range map[string]string{
		"file_server":           password(t, "/office/*") + "millrace\nroot * " + dir + "\nfile_server",
		"reverse_proxy":         password(t, "/office/*") + "millrace\nreverse_proxy " + up.URL,
		"in a handle block":     "millrace\nhandle /office/* {\n" + password(t, "*") + "root * " + dir + "\nfile_server\n}\nhandle {\nroot * " + dir + "\nfile_server\n}",
		"folder by its name":    password(t, "/office/*") + "millrace {\nsource " + dir + "\n}\nrewrite /other /none\nroot * " + dir + "\nfile_server",
		"private networks only": "@out {\npath /office/*\nnot remote_ip private_ranges\n}\nmillrace\nrespond @out 403\nreverse_proxy " + up.URL,
		"another response":      "millrace\nrespond /office/* \"members only\"\nroot * " + dir + "\nfile_server",
		"another page":          "millrace\nrewrite /office/* /wheels/1.html\nroot * " + dir + "\nfile_server",
		"only GET":              "@read {\nmethod GET\npath /office/*\n}\n" + password(t, "@read") + "millrace\nroot * " + dir + "\nfile_server",
		"hidden files":          "millrace\nroot * " + dir + "\nfile_server {\nhide office\n}",
	} {
		t.Run(name, func(t *testing.T) {
			port := testkit.FreePort(t)
			base := "http://localhost:" + port
			run(t, base+" {\n"+site+"\n}\n")
			eventually(t, base+"/llms.txt", "/wheels/3", "")
			time.Sleep(200 * time.Millisecond)
			if found := leaks(t, base, "About office", "About /office", "rent is due"); found != nil {
				t.Errorf("private page in %s", found)
			}
			for _, ending := range []string{"", ".html"} {
				if _, body := get(t, base+"/office/rent"+ending, "Accept", "text/markdown"); name != "private networks only" && strings.Contains(body, "rent is due") {
					t.Errorf("private page as Markdown:\n%s", body)
				}
			}
		})
	}
}

// A page that a reload makes private disappears from all documents, and a later reload brings it
// back. The publication continues: no document is missing meanwhile.
func TestProtectedByReload(t *testing.T) {
	for name, handler := range map[string]string{"file_server": "root * " + folder(t, mill()) + "\nfile_server", "reverse_proxy": "reverse_proxy " + upstream(t, linked()).URL} {
		t.Run(name, func(t *testing.T) {
			base := "http://localhost:" + testkit.FreePort(t)
			open := base + " {\nmillrace\n" + handler + "\n}\n"
			run(t, open)
			eventually(t, base+"/llms.txt", "/office/rent", "")
			if err := load(t, base+" {\n"+password(t, "/office/*")+"millrace\n"+handler+"\n}\n"); err != nil {
				t.Fatal(err)
			}
			eventually(t, base+"/llms.txt", "/wheels/3", "/office/rent")
			if found := leaks(t, base, "About office", "About /office", "rent is due"); found != nil {
				t.Errorf("private page in %s", found)
			}
			if err := load(t, open); err != nil {
				t.Fatal(err)
			}
			eventually(t, base+"/llms.txt", "/office/rent", "")
		})
	}
}

// clients requests the paths of a site until the end of the test, one client each. All responses
// must be complete with 200. answered waits for n more of them.
func clients(t *testing.T, base string, paths ...string) (answered func(n int64)) {
	t.Helper()
	var running sync.WaitGroup
	var stop atomic.Bool
	var answers atomic.Int64
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: len(paths)}}
	for _, path := range paths {
		running.Go(func() {
			for !stop.Load() {
				resp, err := client.Get(base + path)
				if err != nil {
					time.Sleep(time.Millisecond)
					continue // Caddy itself resets connections to the previous listener
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != http.StatusOK || len(body) == 0 {
					t.Errorf("%s: %d, %d bytes, %v", path, resp.StatusCode, len(body), err)
					return
				}
				answers.Add(1)
			}
		})
	}
	end := sync.OnceFunc(func() { stop.Store(true); running.Wait(); client.CloseIdleConnections() })
	t.Cleanup(end)
	return func(n int64) {
		for until, wait := answers.Load()+n, time.Now().Add(time.Minute); answers.Load() < until; time.Sleep(time.Millisecond) {
			if time.Now().After(wait) || t.Failed() {
				end()
				t.Fatal("no answers")
			}
		}
	}
}

// Requests get their responses during reloads with the same, another and an invalid configuration.
func TestReloads(t *testing.T) {
	dir, base := folder(t, mill()), "http://localhost:"+testkit.FreePort(t)
	site := func(options string) string {
		return base + " {\nencode\nmillrace {\n" + options + "\n}\nroot * " + dir + "\nfile_server\n}\n"
	}
	run(t, site(""))
	eventually(t, base+"/llms.txt", "/wheels/3", "")
	resp, _ := get(t, base+"/llms.txt")
	tag := resp.Header.Get("ETag")

	answered := clients(t, base, "/llms.txt", "/wheels/3.html.md", "/wheels/3.html", "/sitemap.xml")
	for i := range 6 {
		answered(100)
		options := ""
		if i >= 3 {
			options = fmt.Sprintf("title \"The mill, revision %d\"", i)
		}
		if err := load(t, site(options)); err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			if again, _ := get(t, base+"/llms.txt"); again.Header.Get("ETag") != tag {
				t.Errorf("reloads with the same configuration changed the ETag from %s to %s", tag, again.Header.Get("ETag"))
			}
		}
		if err := load(t, site("source /none")); err == nil {
			t.Error("a configuration with an error was loaded")
		}
	}
	eventually(t, base+"/llms.txt", "revision 5", "")
}

// encode compresses pages together with their elements, and changes neither documents nor their
// validators.
func TestEncode(t *testing.T) {
	for name, handler := range map[string]string{"file_server": "root * " + folder(t, mill()) + "\nfile_server", "reverse_proxy": "reverse_proxy " + upstream(t, linked()).URL} {
		t.Run(name, func(t *testing.T) {
			base := "http://localhost:" + testkit.FreePort(t)
			run(t, base+" {\nencode zstd gzip\nmillrace\n"+handler+"\n}\n")
			eventually(t, base+"/llms.txt", "/wheels/3", "")
			page := base + "/wheels/3"
			if name == "file_server" {
				page += ".html"
			}
			for _, url := range []string{page, base + "/llms.txt", page + ".md", base + "/llm-sitemap.json"} {
				plain, want := get(t, url)
				coded, body := get(t, url, "Accept-Encoding", "gzip")
				text := body
				if coded.Header.Get("Content-Encoding") == "gzip" {
					z, err := gzip.NewReader(strings.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					b, err := io.ReadAll(z)
					if err != nil {
						t.Fatal(err)
					}
					text = string(b)
				}
				if text != want || coded.StatusCode != http.StatusOK {
					t.Errorf("%s: %d, %d bytes decoded, want %d", url, coded.StatusCode, len(text), len(want))
				}
				if url == page && coded.Header.Get("Content-Encoding") != "gzip" {
					t.Errorf("%s is not compressed: %v", url, coded.Header)
				}
				for _, resp := range []*http.Response{plain, coded} {
					again, _ := get(t, url, "If-None-Match", resp.Header.Get("ETag"), "Accept-Encoding", "gzip")
					if resp == coded && again.StatusCode != http.StatusNotModified {
						t.Errorf("%s with its ETag %s: %d", url, resp.Header.Get("ETag"), again.StatusCode)
					}
					if got, want := again.Header.Get("Cache-Control"), resp.Header.Get("Cache-Control"); url != page && got != want {
						t.Errorf("%s: Cache-Control %q, with its ETag %q", url, want, got)
					}
					if url != page && strings.HasPrefix(resp.Header.Get("ETag"), "W/") {
						t.Errorf("%s: weak ETag", url)
					}
				}
				if url == page && !strings.Contains(want, "<link rel=") {
					t.Errorf("%s has no elements", url)
				}
			}
			// A client that accepts another coding gets the uncoded document.
			if resp, body := get(t, base+"/llms.txt", "Accept-Encoding", "x-none"); resp.Header.Get("Content-Encoding") != "" || !strings.Contains(body, "/wheels/3") {
				t.Errorf("%v", resp.Header)
			}
		})
	}
}

// A site with a certificate has https addresses. Documents are found although try_files rewrites
// every address, and errors of the next handlers are passed on unchanged.
func TestRoutes(t *testing.T) {
	port := testkit.FreePort(t)
	base := "https://localhost:" + port
	run(t, base+" {\ntls internal\nmillrace\nroot * "+folder(t, mill())+"\n@none vars {http.request.orig_uri.path} /none\nerror @none 404\ntry_files {path} /index.html\nfile_server\nhandle_errors {\nrespond \"lost: {err.status_code}\" 404\n}\n}\n")
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) { // Caddy makes the certificate
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", "localhost:"+port) //nolint:gosec // a CA of this test
		if err == nil {
			conn.Close()
			break
		}
	}
	eventually(t, base+"/llms.txt", base+"/wheels/3", "")
	if resp, body := get(t, base+"/wheels/3.html", "Accept", "text/markdown"); !strings.Contains(body, "Wheel 3 is of oak") {
		t.Errorf("%v\n%s", resp.Header, body)
	}
	if resp, body := get(t, base+"/none"); resp.StatusCode != http.StatusNotFound || body != "lost: 404" {
		t.Errorf("absent page: %d %s", resp.StatusCode, body)
	}
	if resp, body := get(t, base+"/deep/link"); resp.StatusCode != http.StatusOK || !strings.Contains(body, "three wheels") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// A site that is down at the start works as soon as it is up, and is then published. Connections
// that change their protocol work.
func TestLateUpstream(t *testing.T) {
	base, behind := "http://localhost:"+testkit.FreePort(t), "127.0.0.1:"+testkit.FreePort(t)
	run(t, base+" {\nmillrace\nreverse_proxy "+behind+"\n}\n")
	if resp, _ := get(t, base+"/"); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("site that is down: %d", resp.StatusCode)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", behind)
	if err != nil {
		t.Fatal(err)
	}
	var tries atomic.Int64
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.UserAgent() == "millrace" && tries.Add(1) == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case r.URL.Path != "/" && r.URL.Path != "/socket":
			http.NotFound(w, r)
			return
		case r.Header.Get("Upgrade") == "":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<!doctype html><title>The mill</title><main><h1>The mill</h1><p>It has three wheels of oak.</p></main>")
			return
		}
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = both.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = both.Flush()
		line, _ := both.ReadString('\n')
		_, _ = both.WriteString("echo " + line)
		_ = both.Flush()
	})}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	eventually(t, base+"/llms.txt", "The mill", "")
	if tries.Load() < 2 {
		t.Errorf("the site was published after %d requests", tries.Load())
	}

	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /socket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%+v, %v", resp, err)
	}
	fmt.Fprintf(conn, "wheel\n")
	if line, err := in.ReadString('\n'); line != "echo wheel\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// Validation of a configuration opens no store.
func TestValidate(t *testing.T) {
	store := filepath.Join(t.TempDir(), "s.db")
	text := "http://localhost:" + testkit.FreePort(t) + " {\nmillrace {\nstore " + store + "\n}\nroot * " + folder(t, mill()) + "\nfile_server\n}\n"
	b, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(globals+text), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatal(err)
	}
	var config caddy.Config
	if err := caddy.StrictUnmarshalJSON(b, &config); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Validate(&config); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(store); err == nil {
		t.Error("validation created a store")
	}
}

// Errors of a configuration name the file and the line.
func TestConfigurationErrors(t *testing.T) {
	dir := folder(t, mill())
	before := strings.Count(globals, "\n") + 2 // the first line of the directive
	for _, tt := range []struct {
		lines string
		at    int
		want  string
	}{
		{"millrace {\nsorce x\n}", 1, "unknown option sorce"},
		{"millrace {\nsource /none/here\n}", 1, "source /none/here"},
		{"millrace {\nbase_url example.com\n}", 1, "base_url example.com"},
		{"millrace {\n\nalso tct-99\n}", 2, "tct-99"},
		{"millrace {\npolicy {\nai-train maybe\n}\n}", 2, "yes or no"},
		{"millrace {\npolicy {\nterms not-a-url\n}\n}", 3, "terms"},
		{"millrace {\ntitle one two\n}", 1, "wrong argument count"},
		{"millrace {\ntitle one\ntitle two\n}", 2, "duplicate"},
		{"@b millrace_bot gtpbot", 0, "gtpbot"},
		{"@b millrace_bot verified unverified", 0, "cannot be combined"},
	} {
		lines := tt.lines
		if strings.HasPrefix(lines, "@") {
			lines += "\nrespond @b 403"
		}
		err := load(t, "http://localhost:1 {\n"+lines+"\nroot * "+dir+"\nfile_server\n}\n")
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), fmt.Sprintf("Caddyfile:%d", before+tt.at)) {
			t.Errorf("%q: %v; want %q at line %d", tt.lines, err, tt.want, before+tt.at)
		}
	}
	err := load(t, ":"+testkit.FreePort(t)+" {\nmillrace\nroot * "+dir+"\nfile_server\n}\n")
	if err == nil || !strings.Contains(err.Error(), "base_url") {
		t.Errorf("a site without a name: %v", err)
	}
}

// The matcher names bots as the gateway does, and verifies them by their addresses.
func TestBots(t *testing.T) {
	ranges := filepath.Join(t.TempDir(), "gptbot.json")
	if err := os.WriteFile(ranges, []byte(`{"prefixes":[{"ipv4Prefix":"192.0.2.0/24"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	base := "http://localhost:" + testkit.FreePort(t)
	run(t, base+` {
	@verified millrace_bot gptbot verified {
		ranges gptbot `+ranges+`
	}
	@training millrace_bot training
	@bot millrace_bot
	route {
		respond @verified verified
		respond @training training
		respond @bot bot
		respond person
	}
}
`)
	const gpt = "Mozilla/5.0; compatible; GPTBot/1.2; +https://openai.com/gptbot"
	for _, tt := range []struct{ agent, from, want string }{
		{gpt, "192.0.2.7", "verified"},
		{gpt, "198.51.100.1", "training"},
		{"CCBot/2.0", "192.0.2.7", "training"},
		{"Mozilla/5.0 (compatible; bingbot/2.0)", "192.0.2.7", "bot"},
		{"Mozilla/5.0 (X11; Linux) Firefox/140.0", "192.0.2.7", "person"},
	} {
		if _, body := get(t, base, "User-Agent", tt.agent, "X-Forwarded-For", tt.from); body != tt.want {
			t.Errorf("%s from %s: %s, want %s", tt.agent, tt.from, body, tt.want)
		}
	}
}

// A policy refuses documents and pages to bots of a purpose.
func TestPolicy(t *testing.T) {
	base := "http://localhost:" + testkit.FreePort(t)
	run(t, base+" {\nmillrace {\npolicy {\nai-train no\nterms https://example.com/terms\n}\n}\nreverse_proxy "+upstream(t, linked()).URL+"\n}\n")
	eventually(t, base+"/llm-policy.json", "https://example.com/terms", "")
	for _, path := range []string{"/llms.txt", "/wheels/3"} {
		if resp, _ := get(t, base+path, "User-Agent", "GPTBot/1.0"); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

// Caddy's metrics include those of each site.
func TestMetrics(t *testing.T) {
	one, two := "http://localhost:"+testkit.FreePort(t), "http://localhost:"+testkit.FreePort(t)
	site := " {\nmillrace\nroot * " + folder(t, mill()) + "\nfile_server\n}\n"
	seen := "http://localhost:" + testkit.FreePort(t)
	run(t, one+site+two+site+seen+" {\nmetrics\n}\n")
	for _, base := range []string{one, two} {
		eventually(t, base+"/llms.txt", "/wheels/3", "")
		eventually(t, seen, `millrace_edition_pages{site="`+base+`/"} 10`, "")
		eventually(t, seen, `millrace_requests_total{bot="none",endpoint="index",outcome="sent",protocol="web",site="`+base+`/"}`, "")
	}
}
