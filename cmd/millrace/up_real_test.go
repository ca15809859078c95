package main

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/testkit"
)

// stockServer starts nginx or Caddy with the folders of its Debian package below a root. It
// passes requests on to a site. file is the configuration of the site.
func stockServer(t *testing.T, program, url, behind string) (root, file string) {
	t.Helper()
	binary := testkit.Real(t, program)
	root = t.TempDir()
	host := strings.Trim(strings.TrimPrefix(url, "http:"), "/")
	for _, dir := range []string{"nginx/sites-available", "nginx/sites-enabled", "caddy"} {
		if err := os.MkdirAll(filepath.Join(root, "etc", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var args []string
	switch program {
	case "nginx":
		user := ""
		if os.Geteuid() == 0 {
			user = "user root;"
		}
		main := filepath.Join(root, "etc/nginx/nginx.conf")
		file = filepath.Join(root, "etc/nginx/sites-available/default")
		write(t, main, fmt.Sprintf(`%[2]s
worker_processes 1; daemon off; pid %[1]s/nginx.pid; error_log %[1]s/error.log;
events { worker_connections 256; }
http {
	include /etc/nginx/mime.types;
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	gzip on;
	include %[1]s/etc/nginx/sites-enabled/*;
}
`, root, user))
		write(t, file, fmt.Sprintf(`server {
	listen %s;
	server_name _;
	location / { proxy_pass %s; proxy_set_header Host $http_host; }
}
`, host, strings.TrimSuffix(behind, "/")))
		if err := os.Symlink("../sites-available/default", filepath.Join(root, "etc/nginx/sites-enabled/default")); err != nil {
			t.Fatal(err)
		}
		args = []string{"-p", root, "-c", main}
	case "caddy":
		file = filepath.Join(root, "etc/caddy/Caddyfile")
		write(t, file, fmt.Sprintf("{\n\tadmin 127.0.0.1:%s\n\tauto_https off\n}\n\nhttp://%s {\n\treverse_proxy %s\n}\n", testkit.FreePort(t), host, strings.TrimSuffix(behind, "/")))
		args = []string{"run", "--config", file, "--adapter", "caddyfile"}
	}
	cmd := exec.Command(binary, args...) //nolint:noctx // the program is stopped below
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+root, "XDG_CONFIG_HOME="+root)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	eventually(t, "the site answers", func() bool {
		resp, err := http.Get(url)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return root, file
}

// millrace up configures the server of a WordPress, and undoes it.
func TestRealUp(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"nginx", "caddy"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			port := testkit.FreePort(t)
			url := "http://127.0.0.1:" + port + "/"
			behind, _ := realSite(t, "wordpress", "--pages", "15", "--home", url)
			root, file := stockServer(t, program, url, behind)
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			unchanged := func(what string) {
				t.Helper()
				after, err := os.ReadFile(file)
				if d := cmp.Diff(string(before), string(after)); err != nil || d != "" {
					t.Errorf("%s: %v %s", what, err, d)
				}
				if left, err := filepath.Glob(root + "/etc/*/*millrace*"); err != nil || len(left) > 0 {
					t.Errorf("%s: %v %q", what, err, left)
				}
				if code, h, body := get(t, url, "Accept", "text/markdown"); code != http.StatusOK || !strings.HasPrefix(h.Get("Content-Type"), "text/html") || !strings.Contains(body, "<html") {
					t.Errorf("%s: the site: %d %v", what, code, h)
				}
			}
			args := func() []string {
				return []string{url, "--config", filepath.Join(t.TempDir(), "millrace.yaml"), "--listen", "127.0.0.1:" + testkit.FreePort(t), "--allow-private", "--apply", program, "--root", root}
			}
			start := time.Now()
			mine := args()
			u, code := startUp(t, mine...)
			if code != -1 || len(u.Applied) != 1 || u.Dashboard != url+"millrace/" {
				t.Fatalf("exit %d: %+v\n%s", code, u.Report, u.errs)
			}
			t.Logf("time until the end of the check: %.1f s", time.Since(start).Seconds())
			if code, h, body := get(t, url, "Accept", "text/markdown"); code != http.StatusOK || !strings.HasPrefix(h.Get("Content-Type"), "text/markdown") || !strings.Contains(h.Get("Vary"), "Accept") {
				t.Errorf("%d %v %.200s", code, h, body)
			}
			if code, h, _ := get(t, url); code != http.StatusOK || !strings.HasPrefix(h.Get("Content-Type"), "text/html") || !strings.Contains(strings.Join(h["Link"], ", "), "llm.json>") {
				t.Errorf("%d %v", code, h)
			}
			if code, _, body := get(t, u.Dashboard+"login"); code != http.StatusOK || !strings.Contains(body, "current-password") {
				t.Errorf("the dashboard: %d %.200s", code, body)
			}
			u.stop()

			// A second run changes nothing.
			applied, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			u, code = startUp(t, append(mine[1:], "--log-level", "info")...)
			if again, err := os.ReadFile(file); code != -1 || err != nil || string(again) != string(applied) || len(u.Applied) != 1 {
				t.Errorf("twice: exit %d, %v\n%s", code, err, u.errs)
			}
			u.stop()
			for range 2 {
				if code, out, errs := command(t, nil, "up", "--undo", "--root", root); code != 0 {
					t.Errorf("undo: exit %d\n%s%s", code, out, errs)
				}
				unchanged("undo")
			}

			// A broken configuration is left unchanged.
			good := before
			before = append(before[:len(before):len(before)], "\n}}} broken\n"...)
			write(t, file, string(before))
			if exit, code, out := failure(t, nil, append([]string{"up"}, args()...)...); exit != exitFailure || code != "config-broken" {
				t.Errorf("exit %d %s: %s", exit, code, out)
			}
			unchanged("broken")

			// Changes are undone if the configuration prevents their effect at the public
			// address, or if it breaks a document.
			if program == "caddy" {
				return
			}
			for _, location := range []string{"location / { auth_request off;", "location = /llm-pages.json { return 200 '{}'; } location / {"} {
				before = []byte(strings.Replace(string(good), "location / {", location, 1))
				write(t, file, string(before))
				if out, err := exec.CommandContext(t.Context(), "nginx", "-s", "reload", "-c", filepath.Join(root, "etc/nginx/nginx.conf")).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				if exit, code, out := failure(t, nil, append([]string{"up"}, args()...)...); exit != exitFailure || code != "apply-undone" {
					t.Errorf("%s: exit %d %s: %s", location, exit, code, out)
				}
				unchanged(location)
			}
		})
	}
}

// A killed run is undone by --undo, or by the next run.
func TestRealUpKilled(t *testing.T) {
	t.Parallel()
	behind, _ := realSite(t, "nginx", "--html", copySite(t, "handbook"))
	url := "http://127.0.0.1:" + testkit.FreePort(t) + "/"
	root, file := stockServer(t, "nginx", url, behind)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir, names := t.TempDir(), listed(t, filepath.Join(root, "etc"))
	args := []string{url, "--config", filepath.Join(dir, "millrace.yaml"), "--listen", "127.0.0.1:" + testkit.FreePort(t), "--allow-private", "--apply", "nginx", "--root", root}
	for _, awaited := range []string{"etc/millrace/applied/nginx.json", "etc/millrace/applied/nginx-1-default", "etc/nginx/snippets/millrace.conf"} {
		c := asProcess(t.Context(), t, append([]string{"up"}, args...)...)
		var says buffer
		c.Env, c.Stderr = append(c.Env, "PATH="+os.Getenv("PATH")), &says
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Microsecond) {
			if _, err := os.Stat(filepath.Join(root, awaited)); err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %s", awaited, says.String())
			}
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		if code, out, errs := command(t, nil, "up", "--undo", "--root", root); code != 0 {
			t.Errorf("%s: exit %d\n%s%s", awaited, code, out, errs)
		}
		after, err := os.ReadFile(file)
		if d := cmp.Diff(string(before), string(after)); err != nil || d != "" {
			t.Errorf("%s: %v %s", awaited, err, d)
		}
		if d := cmp.Diff(names, listed(t, filepath.Join(root, "etc"))); d != "" {
			t.Errorf("%s: %s", awaited, d)
		}
		if code, _, _ := get(t, url); code != http.StatusOK {
			t.Errorf("%s: the site: %d", awaited, code)
		}
	}
	u, code := startUp(t, args...)
	if code != -1 || len(u.Applied) != 1 {
		t.Errorf("exit %d: %s", code, u.errs)
	}
}

// listed returns all files and folders below a folder.
func listed(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		names = append(names, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// systemd accepts the service that up writes. If --root is set, the service is not started.
func TestRealUpSystemd(t *testing.T) {
	t.Parallel()
	testkit.Real(t, "systemd-analyze")
	site, root := initSite(t, ""), t.TempDir()
	// The command ends, because the service runs instead of it.
	code, _, errs := command(t, nil, "up", site.URL, "--config", filepath.Join(t.TempDir(), "millrace.yaml"), "--allow-private", "--listen", "127.0.0.1:"+testkit.FreePort(t), "--apply", "systemd", "--root", root)
	settings, err := os.ReadFile(filepath.Join(root, "etc/millrace/millrace.yaml"))
	if code != exitGood || err != nil || !strings.Contains(string(settings), site.URL) {
		t.Fatalf("exit %d, %v: %s", code, err, errs)
	}
	if code, out, errs := command(t, nil, "up", "--undo", "--root", root); code != 0 || !strings.Contains(out, "millrace.service") {
		t.Errorf("undo: exit %d\n%s%s", code, out, errs)
	}
	if left, err := filepath.Glob(root + "/*"); err != nil || len(left) > 0 {
		t.Errorf("remaining files: %v %q", err, left)
	}
}
