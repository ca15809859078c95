package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// documented lists the pages whose commands are run.
var documented = []string{"README.md", "docs/index.md", "docs/guides/*.md"}

// TestDocs runs every command of millrace in the documentation. The commands of a page run in
// order, in one folder. It also sends the requests of curl to the site that the examples publish,
// and reads each block of YAML as a configuration. Instead of the Internet, a small site answers
// at every address.
func TestDocs(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	handbook := serve(t, filepath.Join(root, "testdata/sites/handbook"), "--base-url", "http://127.0.0.1:8080/")
	address := listening.FindStringSubmatch(handbook.out.String())[1]
	small := httptest.NewServer(http.HandlerFunc(smallSite))
	defer small.Close()
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		to := small.Listener.Addr().String()
		if addr == "127.0.0.1:8080" {
			to = address
		}
		return new(net.Dialer).DialContext(ctx, network, to)
	}
	for _, pattern := range documented {
		pages, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || pages == nil {
			t.Fatal(pattern, err)
		}
		for _, name := range pages {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(filepath.Base(name), func(t *testing.T) {
				d := &docsPage{root: root, dial: dial, handbook: "http://" + address}
				t.Chdir(d.folder(t))
				for _, command := range shellCommands(string(b)) {
					d.run(t, command)
				}
				for _, m := range yamlBlock.FindAllStringSubmatch(string(b), -1) {
					write(t, "block.yaml", m[1])
					d.millrace(t, "config", "serve", "--config", "block.yaml")
				}
			})
		}
	}
}

var (
	listening  = regexp.MustCompile(`msg=listening address=(\S+)`)
	collection = regexp.MustCompile(`/scp/[^<]*\.scp\.zst`)
	yamlBlock  = regexp.MustCompile("(?s)```yaml\n(.*?)```")
)

const smallHome = `<!doctype html><title>Home</title><main><h1>Home</h1><p>The undershot wheel turns in the river. <a href="/docs/wheel">Wheel</a></p></main>`

func smallSite(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost:
	case r.URL.Path == "/", r.URL.Path == "/docs/":
		_, _ = io.WriteString(w, smallHome)
	case r.URL.Path == "/docs/wheel":
		_, _ = io.WriteString(w, `<!doctype html><title>Wheel</title><main><h1>Wheel</h1><p>The wheel has forty floats, and is slow in summer.</p></main>`)
	default:
		http.NotFound(w, r)
	}
}

// shellCommands returns the lines of the indented blocks of a page.
func shellCommands(md string) []string {
	var out []string
	fenced := false
	for line := range strings.Lines(strings.ReplaceAll(md, "\\\n", "")) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if text, ok := strings.CutPrefix(line, "    "); ok && !fenced {
			out = append(out, strings.TrimSpace(text))
		}
	}
	return out
}

type docsPage struct {
	root     string
	handbook string // URL at which the handbook is served
	dial     func(ctx context.Context, network, addr string) (net.Conn, error)
}

// folder creates a folder with the files that the commands of a page read.
func (d *docsPage) folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "docs"), os.DirFS(filepath.Join(d.root, "testdata/sites/md-plain"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "public"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "public", "index.html"), smallHome)
	if err := os.Symlink(filepath.Join(d.root, "testdata"), filepath.Join(dir, "testdata")); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(d.root, "testdata/logs/access.log"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "access.log"), string(log))
	write(t, filepath.Join(dir, "policy.yaml"), "policy:\n  purposes:\n    ai-train: false\n")
	write(t, filepath.Join(dir, "sites.txt"), "https://one.example/ https://two.example/docs/\n")
	_, _, sitemap := get(t, d.handbook+"/sitemap.xml")
	_, _, scp := get(t, d.handbook+collection.FindString(sitemap))
	write(t, filepath.Join(dir, "all.scp.zst"), scp)
	writeCertificate(t, filepath.Join(dir, "fullchain.pem"), filepath.Join(dir, "privkey.pem"))
	write(t, filepath.Join(dir, "webhook.secret"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
	return dir
}

// run runs one line, if it is a command of millrace or a request to the handbook.
func (d *docsPage) run(t *testing.T, line string) {
	t.Helper()
	words := shellWords(line)
	switch {
	case words[0] == "millrace":
		out := d.millrace(t, words[1:]...)
		if _, file, ok := strings.Cut(line, " --json > "); ok {
			write(t, file, out)
		}
	case strings.HasPrefix(line, "go run ./cmd/millrace "):
		d.millrace(t, words[3:]...)
	case words[0] == "xargs" && words[1] == "millrace":
		d.millrace(t, append(words[2:], "https://one.example/", "https://two.example/docs/")...)
	case words[0] == "curl" && !slices.Contains(words, "-N") && !strings.Contains(line, "$KEY"):
		u, err := url.Parse(words[slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "http") })])
		if err != nil || u.Host != "127.0.0.1:8080" {
			t.Fatalf("%s: %v, want a request to the handbook", line, err)
		}
		if status, _, body := get(t, d.handbook+u.RequestURI()); status != http.StatusOK {
			t.Errorf("%s: %d %s", line, status, body)
		}
	}
}

// millrace runs a command to its end, or a server until it is ready. It returns the output.
func (d *docsPage) millrace(t *testing.T, args ...string) (output string) {
	t.Helper()
	args = slices.Clone(args)
	for i, a := range args {
		switch {
		case i > 0 && slices.Contains([]string{"--listen", "--callback-listen"}, args[i-1]):
			args[i] = "127.0.0.1:0"
		case args[0] == "verify" && filepath.IsAbs(a): // a backup
			args[i] = "handbook.db"
		case strings.HasPrefix(a, "postgres://"):
			args[i] = "database.db" // TestRealPostgres has a server
		case strings.HasPrefix(a, "s3://"):
			args[i] = "documents" // TestRealBucket has a server
		case i > 0 && slices.Contains([]string{"--sign-agent", "--base-url"}, args[i-1]):
		default:
			args[i] = strings.Replace(a, "https://", "http://", 1) // the small site has no certificate
		}
		if i > 0 && args[i-1] == "--store" && args[i] == "handbook.db" && args[0] != "pull" && args[0] != "watch" || args[i] == "handbook.db" && i == 1 {
			d.mirror(t)
		}
	}
	if args[0] == "up" {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var out, errs buffer
	p := newProcess(environment(map[string]string{
		"HOME": ".", "MILLRACE_LISTEN": "127.0.0.1:0", "MILLRACE_DELAY": "1ms", "MILLRACE_ALLOW_PRIVATE": "true", "MILLRACE_NO_EVENTS": "true",
	}), strings.NewReader(""), &out, &errs)
	p.dial = d.dial
	done := make(chan int)
	go func() { done <- p.run(ctx, args) }()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		select {
		case code := <-done:
			if code != exitGood || ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				t.Errorf("millrace %s: exit %d\n%s%s", strings.Join(args, " "), code, out.String(), errs.String())
			}
			return out.String()
		default:
		}
		switch args[0] {
		case "serve":
			if strings.Contains(errs.String(), "ready http") {
				cancel()
			}
		case "up":
			if out.String() != "" {
				cancel()
			}
		case "watch", "mcp":
			if out.String() != "" || time.Since(began) > 500*time.Millisecond {
				cancel()
			}
		}
	}
}

// mirror creates the mirror of the handbook that other guides read.
func (d *docsPage) mirror(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("handbook.db"); err != nil {
		d.millrace(t, "pull", "http://127.0.0.1:8080/", "--store", "handbook.db", "--quiet")
	}
}

var shellWord = regexp.MustCompile(`'[^']*'|"[^"]*"|[|<>&;]|[^\s|<>&;'"]+`)

// shellWords returns the words of a simple command, up to a pipe or a redirection.
func shellWords(line string) []string {
	var out []string
	for _, w := range shellWord.FindAllString(line, -1) {
		if slices.Contains([]string{"|", "<", ">", "&", ";"}, w) {
			break
		}
		names, _ := filepath.Glob(w)
		if strings.Contains(w, "*") && names != nil {
			out = append(out, names...)
			continue
		}
		out = append(out, strings.Trim(w, `'"`))
	}
	if out == nil {
		return []string{""}
	}
	return out
}
