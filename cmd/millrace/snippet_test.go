package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/testkit"
)

func TestSnippet(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want []string
		not  string
	}{
		{[]string{"nginx", "https://www.example.com/"}, []string{"proxy_pass http://127.0.0.1:8080/.millrace/page;", "add_header X-Markdown-Missing $millrace_x_markdown_missing;"}, "{{"},
		{[]string{"nginx", "--base-url", "https://www.example.com/", "--listen", ":9000"}, []string{"proxy_pass http://127.0.0.1:9000;", "serve https://www.example.com/ --base-url https://www.example.com/ --listen 127.0.0.1:9000 "}, "{{"},
		{[]string{"caddy", "--base-url", "https://www.example.com/docs-1.2/"}, []string{"uri /docs-1.2/.millrace/page?caddy", "unix/@millrace-8080", "--no-head-elements"}, "{{"},
		{[]string{"systemd", "--listen", ":443"}, []string{" serve --config", "ExecReload=/bin/kill -HUP $MAINPID", "AmbientCapabilities=CAP_NET_BIND_SERVICE"}, "{{"},
		{[]string{"systemd", "https://www.example.com/"}, []string{"AmbientCapabilities=\n", "PrivateUsers=yes"}, "AmbientCapabilities=CAP"},
	} {
		code, out, errs := command(t, nil, append([]string{"snippet"}, tt.args...)...)
		for _, want := range tt.want {
			if code != 0 || !strings.Contains(out+errs, want) || tt.not != "" && strings.Contains(out, tt.not) {
				t.Errorf("%q: exit %d, want %q and not %q in:\n%s%s", tt.args, code, want, tt.not, out, errs)
			}
		}
	}
	for _, tt := range []struct {
		code string
		args []string
	}{
		{"usage", []string{"apache"}},
		{"usage/base-url", []string{"nginx"}},
		{"usage/base-url", []string{"caddy", "/srv/site"}},
		{"usage/listen", []string{"nginx", "https://www.example.com/", "--listen", "8080"}},
		{"usage/base-url", []string{"nginx", "--base-url", "example.com"}},
		{"usage/base-url", []string{"nginx", "--base-url", "https://www.example.com/?a"}},
		{"usage/base-url", []string{"nginx", "--base-url", `https://www.example.com/a";deny%20all`}},
	} {
		if exit, code, out := failure(t, nil, append([]string{"snippet"}, tt.args...)...); exit != exitUsage || code != tt.code {
			t.Errorf("%q: exit %d %s, want %s: %s", tt.args, exit, code, tt.code, out)
		}
	}
}

// systemd accepts the unit, and rates its exposure below 2.
func TestRealSnippetSystemd(t *testing.T) {
	t.Parallel()
	program := testkit.Real(t, "systemd-analyze")
	for _, listen := range []string{"127.0.0.1:8080", ":443"} {
		_, unit, _ := command(t, nil, "snippet", "systemd", "--listen", listen)
		file := filepath.Join(t.TempDir(), "millrace.service")
		write(t, file, unit)
		for _, args := range [][]string{{"verify", "--man=no", "--recursive-errors=no", file}, {"security", "--offline=true", "--threshold=20", file}} {
			analyze := exec.CommandContext(t.Context(), program, args...)
			analyze.Env = append(os.Environ(), "SYSTEMD_LOG_LEVEL=warning")
			if out, err := analyze.CombinedOutput(); err != nil || args[0] == "verify" && strings.Contains(string(out), "millrace.service:") {
				t.Errorf("%q with %s: %v:\n%s", args, listen, err, out)
			}
		}
	}
}
