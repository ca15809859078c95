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
		code int
		want []string
		not  string
	}{
		{[]string{"nginx"}, 0, []string{"proxy_pass http://127.0.0.1:8080;", "</llm-pages.json>; rel=\"index\"", `(?x)^(`}, "sitemap["},
		{[]string{"nginx", "--sitemap", "--listen", ":9000"}, 0, []string{"proxy_pass http://127.0.0.1:9000;", "|/sitemap["}, "{{"},
		{[]string{"caddy", "--base-url", "https://www.example.com/docs-1.2/"}, 0, []string{`path_regexp ^(/docs-1\.2(/`, `)|/\.well-known/(openfeeder|`, "@millrace_home path /docs-1.2/", "</docs-1.2/llm-pages.json>"}, "{{"},
		{[]string{"nginx", "--dashboard", "/our.board/"}, 0, []string{`^(?:/our\.board(?:/.*)?|(`, "	))$\" {"}, "{{"},
		{[]string{"caddy", "--dashboard", "/board", "--base-url", "https://www.example.com/docs/"}, 0, []string{`path_regexp ^(/board(/.*)?|/docs(/`, `signatures-directory))|/\.well-known/(openfeeder|arc-sitemap|arc-policy)\.json)$`}, "{{"},
		{[]string{"nginx", "--dashboard", `/a";deny all`}, 2, []string{"--dashboard"}, ""},
		{[]string{"systemd", "/srv/site", "--listen", ":443"}, 0, []string{" serve /srv/site --config", "ExecReload=/bin/kill -HUP $MAINPID", "AmbientCapabilities=CAP_NET_BIND_SERVICE"}, "{{"},
		{[]string{"systemd"}, 0, []string{" serve https://www.example.com/ "}, "AmbientCapabilities"},
		{[]string{"apache"}, 2, []string{"nginx"}, ""},
		{[]string{"nginx", "--listen", "8080"}, 2, []string{"--listen"}, ""},
		{[]string{"nginx", "--base-url", "example.com"}, 2, []string{"--base-url"}, ""},
		{[]string{"nginx", "--base-url", "https://www.example.com/?a"}, 2, []string{"query"}, ""},
		{[]string{"nginx", "--base-url", `https://www.example.com/a";deny%20all`}, 2, []string{"by hand"}, ""},
	} {
		code, out, errs := command(t, nil, append([]string{"snippet"}, tt.args...)...)
		for _, want := range tt.want {
			if code != tt.code || !strings.Contains(out+errs, want) || tt.not != "" && strings.Contains(out, tt.not) {
				t.Errorf("%q: exit %d, want %q and not %q in:\n%s%s", tt.args, code, want, tt.not, out, errs)
			}
		}
	}
}

// systemd understands the unit.
func TestRealSnippetSystemd(t *testing.T) {
	t.Parallel()
	program := testkit.Real(t, "systemd-analyze")
	_, unit, _ := command(t, nil, "snippet", "systemd", "https://www.example.com/", "--listen", ":443")
	file := filepath.Join(t.TempDir(), "millrace.service")
	write(t, file, unit)
	verify := exec.CommandContext(t.Context(), program, "verify", "--man=no", "--recursive-errors=no", file)
	verify.Env = append(os.Environ(), "SYSTEMD_LOG_LEVEL=warning")
	if out, err := verify.CombinedOutput(); err != nil || strings.Contains(string(out), "millrace.service:") {
		t.Errorf("%v:\n%s", err, out)
	}
}
