package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/conns"
	"github.com/millrace/millrace/internal/testkit"
)

// A signal reloads the configuration under load: hidden pages disappear, no request
// fails, and a wrong configuration changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	dir, file := copySite(t, "handbook"), filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, file, "listen: 127.0.0.1:0\n")
	var out buffer
	ctx, cancel := context.WithCancel(t.Context())
	child := asProcess(ctx, t, "serve", dir, "--config", file)
	child.Stderr = &out
	child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	stop := make(chan bool)
	defer func() {
		close(stop)
		clients.Wait()
		cancel()
		if err := child.Wait(); err != nil && child.ProcessState.ExitCode() != 0 {
			t.Errorf("%v:\n%s", err, &out)
		}
	}()
	eventually(t, "it is ready", func() bool { return readyLine.MatchString(out.String()) })
	url := readyLine.FindStringSubmatch(out.String())[1]

	var answers atomic.Int64
	for i := range 4 {
		transport := &http.Transport{DisableKeepAlives: i%2 == 0}
		clients.Go(func() {
			defer transport.CloseIdleConnections()
			for {
				for _, path := range []string{"llm-pages.json", "llm.json", "", "scp/", "about/"} {
					select {
					case <-stop:
						return
					default:
					}
					res, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Get(url + path)
					if err != nil {
						t.Errorf("refused: %v", err)
						return
					}
					_, err = io.Copy(io.Discard, res.Body)
					res.Body.Close()
					if err != nil || res.StatusCode != http.StatusOK && path != "scp/" || res.StatusCode >= 500 {
						t.Errorf("/%s: %s, %v", path, res.Status, err)
						return
					}
					answers.Add(1)
				}
			}
		})
	}
	status := func(path string) int {
		code, _, _ := get(t, url+path)
		return code
	}
	reload := func(config string, line *regexp.Regexp) (logged string) {
		t.Helper()
		write(t, file, config)
		n := len(line.FindAllString(out.String(), -1))
		if err := child.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, line.String(), func() bool {
			all := line.FindAllString(out.String(), -1)
			logged = strings.Join(all[n:], "\n")
			return len(all) > n
		})
		return logged
	}
	wrong := regexp.MustCompile(`level=ERROR .* code=.*`)
	if code := status("about/llm.json"); code != 200 {
		t.Fatalf("/about/llm.json: %d", code)
	}
	reload("listen: 127.0.0.1:0\nexclude: [/about]\n", configTaken)
	eventually(t, "/about is hidden", func() bool { return status("about/llm.json") == 404 })
	if code, _, list := get(t, url+"llm-pages.json"); code != 200 || strings.Contains(list, "/about/") {
		t.Errorf("%d, the list:\n%s", code, list)
	}
	// serve still watches the files of the site.
	write(t, filepath.Join(dir, "later.html"), "<!DOCTYPE html><title>Later</title><main><h1>Later</h1><p>What was written after the configuration had been read again, and is long enough.</p></main>")
	eventually(t, "a new page is published", func() bool { return status("later.html/llm.json") == 200 })
	for config, word := range map[string]string{
		"listen: 127.0.0.1:1\n":                             "usage/listen",
		"listen: 127.0.0.1:0\nexclud: [/about]\n":           file + ":2:1",
		"listen: 127.0.0.1:0\nexclude: [about]\n":           "usage/exclude",
		"listen: 127.0.0.1:0\nrequest-log: /no/such/file\n": "/no/such/file",
		"listen: [\n": file,
	} {
		if got := reload(config, wrong); !strings.Contains(got, word) {
			t.Errorf("%q: %q is not logged:\n%s", config, word, got)
		}
		if code := status("about/llm.json"); code != 404 {
			t.Errorf("%q: hidden page returns %d", config, code)
		}
	}
	log := filepath.Join(t.TempDir(), "access.log")
	reload("listen: 127.0.0.1:0\nrequest-log: "+log+"\n", configTaken)
	eventually(t, "/about is shown again", func() bool { return status("about/llm.json") == 200 })
	eventually(t, "the log is written", func() bool { b, _ := os.ReadFile(log); return bytes.Contains(b, []byte("/about/llm.json")) })
	if answers.Load() == 0 {
		t.Error("no requests in the meantime")
	}
}

// prepared returns the service of a command line, not started.
func prepared(t *testing.T, args ...string) (*service, error) {
	t.Helper()
	var out buffer
	p := newProcess(environment(nil), nil, &out, &out)
	line, _, _, err := p.parse(append([]string{"serve"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	p.start(&line.Serve.commonFlags)
	plan, err := line.Serve.plan(p)
	if err != nil {
		t.Fatal(err)
	}
	return plan.prepare(t.Context(), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, nil)
}

// A replaced configuration closes its connections to the site.
func TestReloadConnections(t *testing.T) {
	t.Parallel()
	var open, all atomic.Int64
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	site.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			all.Add(1)
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	site.Start()
	defer site.Close()
	s, err := prepared(t, site.URL, "--store", filepath.Join(t.TempDir(), "s.db"), "--allow-private")
	if err != nil {
		t.Fatal(err)
	}
	defer s.source.Store.Close()
	if all.Load() == 0 {
		t.Error("the site was not scanned")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "no connection remains", func() bool { return open.Load() == 0 })
}

// If a site hangs, serve publishes the stored pages.
func TestStartHangs(t *testing.T) {
	t.Parallel()
	var hangs atomic.Bool
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case hangs.Load():
			<-r.Context().Done()
		case r.URL.Path == "/":
			io.WriteString(w, "<!DOCTYPE html><title>Mill</title><main><h1>Mill</h1><p>What the mill is for, in a sentence that is long enough to be content.</p></main>")
		default:
			http.NotFound(w, r)
		}
	}))
	defer site.Close()
	args := []string{site.URL, "--store", filepath.Join(t.TempDir(), "s.db"), "--allow-private"}
	s, err := prepared(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.source.Sync(t.Context(), s.site); err != nil || r.Added != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := errors.Join(s.Close(), s.source.Store.Close()); err != nil {
		t.Fatal(err)
	}
	hangs.Store(true)
	start := time.Now()
	if s, err = prepared(t, args...); err != nil {
		t.Fatal(err)
	}
	defer s.source.Store.Close()
	if took := time.Since(start); took > 2*time.Minute || s.source.Kind != "crawl" {
		t.Errorf("%v for a site to be read by %s", took, s.source.Kind)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// writeCertificate writes a certificate for 127.0.0.1 and its key, and returns the certificate.
func writeCertificate(t *testing.T, cert, key string) *x509.Certificate {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(90 * 24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs})))
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func TestServeTLS(t *testing.T) {
	t.Parallel()
	cert, key := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	leaf := writeCertificate(t, cert, key)

	s := serve(t, copySite(t, "handbook"), "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(s.url, "https://127.0.0.1:") || len(warnings(s.out.String())) > 0 {
		t.Errorf("%s\n%s", s.url, s.out)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get(s.url + "llm-pages.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err != nil || res.ProtoMajor != 2 || !strings.Contains(string(b), s.url+"about/") {
		t.Errorf("%s %v:\n%.300s", res.Proto, err, b)
	}

	dir := copySite(t, "handbook")
	for _, tt := range []struct {
		args []string
		exit int
		code string
	}{
		{[]string{"--tls-cert", cert}, 2, "usage/tls-cert"},
		{[]string{"--tls-key", key}, 2, "usage/tls-key"},
		{[]string{"--tls-cert", key, "--tls-key", cert}, 1, "certificate-pair"},
		{[]string{"--tls-cert", cert + "x", "--tls-key", key}, 1, "file-not-found"},
	} {
		exit, code, out := failure(t, nil, append([]string{"serve", dir, "--listen", "127.0.0.1:0"}, tt.args...)...)
		if exit != tt.exit || code != tt.code {
			t.Errorf("%q: exit %d %s, want %s:\n%s", tt.args, exit, code, tt.code, out)
		}
	}
	certs, err := conns.LoadCertificates(cert, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		base  string
		warns bool
		certs *conns.Certificates
	}{
		{"http://handbook.example/", true, nil},
		{"http://handbook.example/", true, certs},
		{"http://10.0.0.1/", true, nil},
		{"http://localhost/", false, nil},
		{"http://[::1]:1/", false, nil},
		{"http://127.0.0.2/a/", false, nil},
		{"https://handbook.example/", true, certs},
		{"https://handbook.example/", false, nil},
		{"https://127.0.0.1:1/", false, certs},
	} {
		var out buffer
		secure(&process{log: slog.New(slog.NewTextHandler(&out, nil))}, tt.base, tt.certs)
		if got := out.String(); strings.Contains(got, "level=WARN") != tt.warns {
			t.Errorf("%s: %s", tt.base, got)
		}
	}
}

// serve notifies its service manager, such as systemd, of its state.
func TestNotify(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	var out buffer
	ctx, cancel := context.WithCancel(t.Context())
	reloadSignals := make(chan os.Signal)
	var before string // log before the first signal
	p := newProcess(environment(map[string]string{"HOME": t.TempDir(), "NOTIFY_SOCKET": name}), nil, &out, &out)
	p.reloadSignals = func() (<-chan os.Signal, func()) { before = out.String(); return reloadSignals, func() {} }
	ended := make(chan int, 1)
	go func() { ended <- p.run(ctx, []string{"serve", copySite(t, "handbook"), "--listen", "127.0.0.1:0"}) }()
	hear := func() string {
		t.Helper()
		b := make([]byte, 1000)
		_ = socket.SetReadDeadline(time.Now().Add(time.Minute))
		n, err := socket.Read(b)
		if err != nil {
			t.Fatalf("%v:\n%s", err, &out)
		}
		return string(b[:n])
	}
	for _, want := range []string{"READY=1\nSTATUS=listening on 127.0.0.1:", "STATUS=serving http://127.0.0.1:"} {
		if got := hear(); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	reloadSignals <- syscall.SIGHUP
	for _, want := range []string{"RELOADING=1", "READY=1"} {
		if got := hear(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	cancel()
	if got := hear(); got != "STOPPING=1" {
		t.Errorf("the last state is %q", got)
	}
	if code := <-ended; code != 0 {
		t.Errorf("exit %d:\n%s", code, &out)
	}
	if before != "" {
		t.Errorf("a signal would have ended the server after:\n%s", before)
	}
}

// A server ends when its terminal closes, unless it was started with a command such as nohup.
func TestRealTerminalCloses(t *testing.T) {
	t.Parallel()
	script := testkit.Real(t, "script")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for command, outlives := range map[string]bool{"exec": false, "exec nohup": true} {
		dir, log := copySite(t, "handbook"), filepath.Join(t.TempDir(), "log")
		terminal := exec.CommandContext(t.Context(), script, "-qfc",
			"echo $$ >"+log+".pid; "+command+" "+exe+" serve "+dir+" --listen 127.0.0.1:0 2>"+log, "/dev/null")
		terminal.Env = []string{"MILLRACE_TEST_COMMAND=1", "HOME=" + t.TempDir(), "SHELL=/bin/sh", "PATH=" + os.Getenv("PATH")}
		// A child of a process that ignores the signal, as with nohup, ignores it too.
		heard := make(chan os.Signal, 1)
		signal.Notify(heard, syscall.SIGHUP)
		err := terminal.Start()
		signal.Stop(heard)
		if err != nil {
			t.Fatal(err)
		}
		logText := func() string { b, _ := os.ReadFile(log); return string(b) }
		eventually(t, "it is ready", func() bool { return readyLine.MatchString(logText()) })
		url := readyLine.FindStringSubmatch(logText())[1]
		if err := terminal.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = terminal.Wait() // the server was killed
		alive := func() bool {
			c, err := net.Dial("tcp", strings.Trim(strings.TrimPrefix(url, "http:"), "/"))
			if err == nil {
				c.Close()
			}
			return err == nil
		}
		if !outlives {
			eventually(t, "it has ended", func() bool { return !alive() })
			continue
		}
		eventually(t, "it reloads its configuration", func() bool {
			return configTaken.MatchString(logText())
		})
		if !alive() {
			t.Errorf("%s: the server has ended:\n%s", command, logText())
		}
		b, err := os.ReadFile(log + ".pid")
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it has ended", func() bool { return !alive() })
	}
}
