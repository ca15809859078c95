package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// up measures `millrace up --apply nginx` on a WordPress site behind nginx: the time from the start
// of the command to the first page in Markdown at the public address.
func (b *bench) up(ctx context.Context, only bool) error {
	root := filepath.Join(b.dir, "up")
	if err := os.MkdirAll(root, 0o755); err != nil { //nolint:gosec // the servers may run as another user
		return err
	}
	if err := os.Chmod(b.dir, 0o755); err != nil { //nolint:gosec // see above
		return err
	}
	public, own := freeAddress(), freeAddress()
	url := "http://" + public + "/"
	site := filepath.Join(root, "site")
	out, err := exec.CommandContext(ctx, "bash", "../testdata/real/wordpress.sh", "--pages", "300", "--home", url, site).Output()
	defer func() { _ = exec.Command("bash", "../testdata/real/wordpress.sh", "stop", site).Run() }() //nolint:noctx // the server must also be stopped after an interrupt
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 3 && !only {
		fmt.Fprintf(os.Stderr, "up: %s", exit.Stderr)
		return nil
	}
	if err != nil {
		return err
	}
	lines := strings.Fields(string(out))
	for name, text := range map[string]string{
		"etc/nginx/nginx.conf": fmt.Sprintf(`worker_processes 1; daemon off; pid %[1]s/pid; error_log %[1]s/error.log;
events { worker_connections 256; }
http {
	include /etc/nginx/mime.types; access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	include %[1]s/etc/nginx/sites-enabled/*;
}
`, root),
		"etc/nginx/sites-enabled/default": fmt.Sprintf("server {\n\tlisten %s;\n\tlocation / { proxy_pass %s; proxy_set_header Host $http_host; }\n}\n", public, strings.TrimSuffix(lines[len(lines)-1], "/")),
	} {
		file := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil { //nolint:gosec // see above
			return err
		}
	}
	nginx := exec.CommandContext(ctx, "nginx", "-p", root, "-c", filepath.Join(root, "etc/nginx/nginx.conf"))
	if err := nginx.Start(); err != nil {
		return err
	}
	defer func() { _ = nginx.Process.Signal(os.Interrupt); _ = nginx.Wait() }()
	if err := until(ctx, url, "text/html"); err != nil {
		return err
	}

	var says bytes.Buffer
	started := time.Now()
	cmd := exec.CommandContext(ctx, b.binary, "up", url, "--config", filepath.Join(root, "millrace.yaml"), "--listen", own, "--allow-private", "--yes", "--apply", "nginx", "--root", root)
	cmd.Env, cmd.Stderr = append(os.Environ(), "HOME="+root, "XDG_STATE_HOME="+root), &says
	if err := cmd.Start(); err != nil {
		return err
	}
	err = until(ctx, url, "text/markdown")
	took := time.Since(started)
	if err == nil { // let up complete its check before it is interrupted
		err = until(ctx, "http://"+own+"/readyz", "")
	}
	_ = cmd.Process.Signal(os.Interrupt)
	if wait := cmd.Wait(); err != nil {
		return fmt.Errorf("%w; %w\n%s", err, wait, says.Bytes())
	}
	const most = 20 * time.Second
	b.add(row{
		what:  fmt.Sprintf("up on a WordPress of 300 posts behind nginx: from the command to the first Markdown by Accept; %.1f s of processor time in all", (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()),
		limit: most.String(), ours: fmt.Sprintf("%.1f s", took.Seconds()), ratio: fmt.Sprintf("%.2f", took.Seconds()/most.Seconds()), reach: "at most 1", good: took <= most,
	})
	return nil
}

// freeAddress returns an address that no server uses.
func freeAddress() string {
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
	if err != nil {
		return "127.0.0.1:0"
	}
	defer ln.Close()
	return ln.Addr().String()
}

// until repeats a request until the response has status 200 and the given media type, but at most for
// two minutes.
func until(ctx context.Context, url, media string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Accept", media)
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), media) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: no %s: %w", url, media, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
