package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// crawl compares crawls with wget --mirror of the same pages: of generated
// pages and of the PostgreSQL manual, which it crawls a second time. Then it
// measures the memory of a crawl of many generated pages.
func (b *bench) crawl(ctx context.Context, pages int) error {
	manual, err := filepath.EvalSymlinks(b.manual)
	if err != nil {
		return fmt.Errorf("install Debian's postgresql-doc-15, or name its folder with -manual: %w", err)
	}
	if err := b.beside(ctx, "generated:1000", "1000 generated pages of 4 kB"); err != nil {
		return err
	}
	if err := b.beside(ctx, "dir:"+manual, "postgresql-doc-15"); err != nil {
		return err
	}
	generated, stop, err := startSite(ctx, "generated:"+strconv.Itoa(pages))
	if err != nil {
		return err
	}
	defer stop()
	r, rss, err := b.pull(ctx, generated, filepath.Join(b.dir, "generated.db"))
	if err != nil {
		return err
	}
	if r.Added != pages {
		return fmt.Errorf("%d of %d generated pages were found", r.Added, pages)
	}
	b.add(row{
		what:  fmt.Sprintf("most resident memory of a crawl of %d generated pages", pages),
		limit: "150 MB", ours: fmt.Sprintf("%.0f MB", rss),
		ratio: fmt.Sprintf("%.2f", rss/150), reach: "at most 1", good: rss <= 150,
	})
	return nil
}

// beside crawls one site in turns with wget, and then once more.
func (b *bench) beside(ctx context.Context, site, name string) error {
	url, stop, err := startSite(ctx, site)
	if err != nil {
		return err
	}
	defer stop()
	n, store := 0, ""
	wget := func() (float64, error) {
		n++
		dir, err := os.MkdirTemp(b.dir, "wget-")
		if err != nil {
			return 0, err
		}
		start := time.Now()
		out, err := exec.CommandContext(ctx, "wget", "--mirror", "--no-parent", "-q", "-P", dir, url).CombinedOutput()
		took := time.Since(start)
		if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 8) { // 8: a dead link
			return 0, fmt.Errorf("wget: %w\n%s", err, out)
		}
		got := 0
		err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && (filepath.Ext(name) == ".html" || filepath.Ext(name) == "") {
				got++
			}
			return err
		})
		return float64(got) / took.Seconds(), err
	}
	var first pullReport
	ours := func() (float64, error) {
		n++
		store = filepath.Join(b.dir, fmt.Sprintf("crawl-%d-%s.db", n, filepath.Base(site)))
		start := time.Now()
		r, _, err := b.pull(ctx, url, store)
		first = r
		return float64(r.Added) / time.Since(start).Seconds(), err
	}
	peer, rate, err := alternate(wget, ours)
	if err != nil {
		return err
	}
	b.add(row{
		what:  fmt.Sprintf("crawl of %s, %d pages on loopback, --delay 0", name, first.Added),
		limit: fmt.Sprintf("%.0f pages/s (wget --mirror)", peer), ours: fmt.Sprintf("%.0f pages/s", rate),
		ratio: fmt.Sprintf("%.2f", rate/peer), reach: "1.5", good: rate/peer >= 1.5,
	})
	second, _, err := b.pull(ctx, url, store)
	if err != nil {
		return err
	}
	if second.Added+second.Updated+second.Deleted > 0 {
		return fmt.Errorf("nothing changed, and the second crawl found %+v", second)
	}
	each := float64(second.BytesReceived) / float64(first.Added)
	b.add(row{
		what:  fmt.Sprintf("second crawl of it: %d requests for %d pages", second.Requests, first.Added),
		limit: "400 bytes a page", ours: fmt.Sprintf("%.0f bytes a page", each),
		ratio: fmt.Sprintf("%.2f", each/400), reach: "at most 1",
		// The lists are robots.txt and two sitemaps that are not there.
		good: each <= 400 && second.Requests <= int64(first.Added)+5,
	})
	return nil
}

// pullReport is what is read of the report of millrace pull.
type pullReport struct {
	Added, Updated, Deleted, Unchanged int
	Requests                           int64
	BytesReceived                      int64 `json:"bytes_received"`
}

// pull crawls a site into a store; it gives the report and the most memory in
// MB that the process had.
func (b *bench) pull(ctx context.Context, url, store string) (r pullReport, rss float64, err error) {
	c := exec.CommandContext(ctx, b.binary, "pull", url, "--via", "crawl", "--allow-private", "--delay", "0", "--store", store, "--json", "--quiet")
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		return r, 0, fmt.Errorf("millrace pull: %w\n%s%s", err, out, errs.String())
	}
	if usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		rss = float64(usage.Maxrss) / 1024
	}
	return r, rss, json.Unmarshal(out, &r)
}

// startSite starts this program as a web server of a folder ("dir:PATH") or of
// so many generated pages ("generated:N"): a process of its own.
func startSite(ctx context.Context, what string) (url string, stop func(), err error) {
	exe, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := exec.CommandContext(ctx, exe)
	c.Env = append(os.Environ(), "MILLRACE_BENCH_SITE="+what)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		cancel()
		return "", nil, err
	}
	ended := false
	stop = func() {
		if !ended {
			ended = true
			cancel()
			_ = c.Wait()
		}
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("the site's server: %w", err)
	}
	return strings.TrimSpace(line), stop, nil
}

// serveSite is the other side of startSite.
func serveSite(what string) {
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		panic("bench: " + err.Error())
	}
	var h http.Handler
	if dir, ok := strings.CutPrefix(what, "dir:"); ok {
		h = http.FileServer(http.Dir(dir))
	} else {
		n, err := strconv.Atoi(strings.TrimPrefix(what, "generated:"))
		if err != nil {
			panic("bench: " + err.Error())
		}
		h = generated(n)
	}
	fmt.Printf("http://%s/\n", ln.Addr())
	if err := (&http.Server{Handler: h}).Serve(ln); err != nil {
		panic("bench: " + err.Error())
	}
}

// generated serves n pages of 4 kB of text: / and /p/1 to /p/n-1, each with
// links to ten others, so that every page is found and none is far.
func generated(n int) http.Handler {
	modified := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// Few pages are made beforehand, so that their server costs next to nothing.
	var made []string
	for i := range min(n, 5000) {
		made = append(made, generate(i, n))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := 0
		if r.URL.Path != "/" {
			var err error
			if i, err = strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/p/")); err != nil || i < 1 || i >= n {
				http.NotFound(w, r)
				return
			}
		}
		var page string
		if i < len(made) {
			page = made[i]
		} else {
			page = generate(i, n)
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		http.ServeContent(w, r, "", modified, strings.NewReader(page))
	})
}

// generate makes page i of n.
func generate(i, n int) string {
	var s strings.Builder
	fmt.Fprintf(&s, "<!doctype html><html lang=en><head><title>Page %d of the generated site</title></head><body><nav><ul>", i)
	for k := i*10 + 1; k <= i*10+10 && k < n; k++ {
		fmt.Fprintf(&s, `<li><a href="/p/%d">Page %d</a></li>`, k, k)
	}
	fmt.Fprintf(&s, "</ul></nav><main><h1>Page %d of the generated site</h1>", i)
	rng := rand.New(rand.NewPCG(uint64(i), 7))
	for range 6 {
		s.WriteString("<p>")
		for range 100 {
			s.WriteString(words[rng.IntN(len(words))])
			s.WriteByte(' ')
		}
		s.WriteString("</p>")
	}
	s.WriteString("</main></body></html>")
	return s.String()
}
