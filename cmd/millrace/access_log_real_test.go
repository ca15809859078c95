package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/testkit"
)

// Alongside nginx, nginx's log and millrace's own records together count each request of a bot
// once, even with a rotation and a restart.
func TestRealAccessLogNginx(t *testing.T) {
	t.Parallel()
	port, listen, file := testkit.FreePort(t), "127.0.0.1:"+testkit.FreePort(t), filepath.Join(t.TempDir(), "s.db")
	url := "http://127.0.0.1:" + port + "/"
	snippet := snippetFile(t, "nginx", url, "--listen", listen)
	_, folder := realSite(t, "nginx", "--html", copySite(t, "handbook"), "--snippet", snippet, "--port", port)
	log := filepath.Join(folder, "access.log")
	args := []string{url, "--base-url", url, "--listen", listen, "--allow-private", "--proxies", "127.0.0.1", "--store", file, "--access-log", log}
	s := serve(t, args...)
	asked(t, url)

	counts := func() (int64, string) { return servedCounts(t, file) }

	var requests int64
	request := func(path string, header ...string) {
		t.Helper()
		requests++
		get(t, url+path, append([]string{"User-Agent", "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"}, header...)...)
	}
	all := func() {
		t.Helper()
		for _, coding := range []string{"identity", "gzip"} {
			for _, path := range []string{"", "llms.txt", "llm.json", "robots.txt", "sitemap.xml", "feed.atom", "none", "index.html.md", ""} {
				request(path, "Accept-Encoding", coding)
			}
			request("", "Accept", "text/markdown", "Accept-Encoding", coding)
			request("", "Accept", "text/markdown", "Accept-Encoding", coding)
		}
	}
	counted := func() {
		t.Helper()
		for range 20 {
			if n, _ := counts(); n >= requests {
				break
			}
			time.Sleep(500 * time.Millisecond)
		}
		time.Sleep(2500 * time.Millisecond) // no further request may be counted
		if n, protocols := counts(); n != requests {
			lines, _ := os.ReadFile(log)
			t.Fatalf("%d requests, want %d: %s\n%s", n, requests, protocols, lines)
		}
	}
	eventually(t, "the log is followed", func() bool { request(""); n, _ := counts(); return n > 0 })
	time.Sleep(2 * time.Second)
	requests, _ = counts() // without the requests before millrace followed the log
	all()
	counted()

	if err := os.Rename(log, log+".1"); err != nil {
		t.Fatal(err)
	}
	all() // nginx still writes to the renamed log
	pid, err := os.ReadFile(filepath.Join(folder, "nginx.pid"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(id, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nginx opens a new log", func() bool { _, err := os.Stat(log); return err == nil })
	all()
	counted()

	s.stop()
	request("") // while millrace is not running
	serve(t, args...)
	asked(t, url)
	all()
	counted()
}
