package caddy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/testkit"
)

// caddyProcess runs a Caddyfile in a separate process, built from cmd/caddy.
func caddyProcess(b *testing.B, caddyfile string) (pid int) {
	b.Helper()
	dir := b.TempDir()
	program, config := filepath.Join(dir, "server"), filepath.Join(dir, "Caddyfile")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", program, "./cmd/caddy").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(config, []byte(globals+caddyfile), 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), program, "run", "--config", config)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// spent returns the processor time of a process.
func spent(b *testing.B, pid int) time.Duration {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip("processor time is read from /proc: ", err)
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	var ticks int
	for _, i := range []int{11, 12} { // user and system time
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// exchange sends the same request many times over one connection.
func exchange(b *testing.B, address, path, fields string, n, status int) {
	b.Helper()
	conn, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 1<<16)
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n")
	for range n {
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			b.Fatal(err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != status {
			b.Fatalf("%s%s: %d, %v", address, path, resp.StatusCode, err)
		}
	}
}

// BenchmarkDocuments compares the processor time of Caddy for documents of the module with that
// for the same bytes by file_server, in alternating turns of one process. A ratio above 1 means
// that the module takes less time.
func BenchmarkDocuments(b *testing.B) {
	pages := mill()
	for i := range 300 {
		pages[fmt.Sprintf("stones/%d.html", i)] = fmt.Sprintf("Stone %d is from a quarry in the Marne. ", i) + strings.Repeat("It grinds wheat and rye. ", 60)
	}
	module, plain, files := testkit.FreePort(b), testkit.FreePort(b), b.TempDir()
	pid := caddyProcess(b, "http://localhost:"+module+" {\nmillrace\nroot * "+folder(b, pages)+"\nfile_server\n}\nhttp://localhost:"+plain+" {\nroot * "+files+"\nfile_server\n}\n")
	base := "http://localhost:" + module
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if resp, err := http.Get(base + "/llms.txt"); err == nil { //nolint:noctx // a benchmark
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(end) {
			b.Fatal("Caddy does not publish the site")
		}
	}
	for _, path := range []string{"/stones/7.html.md", "/stones/7.html/llm.json", "/llms.txt", "/llm-sitemap.json"} {
		resp, body := get(b, base+path)
		file := filepath.Join(files, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
			b.Fatal(err)
		}
		other, same := get(b, "http://localhost:"+plain+path)
		if same != body || resp.StatusCode != http.StatusOK {
			b.Fatalf("%s: %d, %d bytes, file_server has %d", path, resp.StatusCode, len(body), len(same))
		}
		for _, status := range []int{http.StatusOK, http.StatusNotModified} {
			b.Run(fmt.Sprintf("%d %s %d bytes", status, path, len(body)), func(b *testing.B) {
				fields := [2]string{}
				if status == http.StatusNotModified {
					fields = [2]string{"If-None-Match: " + resp.Header.Get("ETag") + "\r\n", "If-None-Match: " + other.Header.Get("ETag") + "\r\n"}
				}
				const turns, requests = 7, 6000
				var each [2][]float64
				for turn := range 2 * turns {
					i := turn % 2
					before := spent(b, pid)
					exchange(b, "localhost:"+[2]string{module, plain}[i], path, fields[i], requests, status)
					each[i] = append(each[i], float64((spent(b, pid)-before).Nanoseconds())/requests)
				}
				median := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
				ours, theirs := median(each[0]), median(each[1])
				b.ReportMetric(ours/1000, "module-µs/req")
				b.ReportMetric(theirs/1000, "file_server-µs/req")
				b.ReportMetric(theirs/ours, "ratio")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
