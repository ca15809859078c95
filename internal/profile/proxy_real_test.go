package profile

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/testkit"
)

// The faults of real configurations of nginx are found, and a plain one has none.
func TestRealProxyNginx(t *testing.T) {
	t.Parallel()
	nginx := testkit.Real(t, "nginx")
	origin := httptest.NewServer(http.HandlerFunc(mill))
	defer origin.Close()
	cases := []struct {
		set  string
		want []string
	}{
		{"", nil},
		{`gzip on; gzip_types *; gzip_proxied any; gzip_min_length 1; proxy_set_header Accept-Encoding "";`, []string{"proxy/rfc9110-8.8.1/weakened-etag"}},
		{`proxy_set_header If-None-Match "";`, []string{"proxy/rfc9110-13.1.2/not-modified"}},
		{`proxy_hide_header Vary;`, []string{"proxy/rfc9110-12.5.3/vary-coding", "proxy/rfc9110-12.5.5/vary-accept"}},
		{
			`proxy_cache all; proxy_cache_key $uri$http_accept_encoding; proxy_ignore_headers Vary; proxy_cache_valid 1m; add_header X-Cache $upstream_cache_status;`,
			[]string{"proxy/rfc9111-4.1/accept-markdown"},
		},
	}
	dir := t.TempDir()
	var b strings.Builder
	fmt.Fprintf(&b, "pid %[1]s/pid; error_log %[1]s/log; daemon off; worker_processes 1; events {}\nhttp { access_log off;\n", dir)
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;\n" // only root may enter the folder
	}
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&b, "%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	fmt.Fprintf(&b, "proxy_cache_path %s/cache keys_zone=all:1m;\n", dir)
	at := make([]string, len(cases))
	for i, c := range cases {
		ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		at[i] = ln.Addr().String()
		_ = ln.Close()
		fmt.Fprintf(&b, "server { listen %s; location / { proxy_pass %s; %s } }\n", at[i], origin.URL, c.set)
	}
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, []byte(user+b.String()+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.CommandContext(t.Context(), nginx, "-c", conf)
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Wait() }) // after the context has ended
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", at[len(at)-1])
		if err == nil {
			_ = conn.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	for i, c := range cases {
		target, err := check.NewTarget("http://"+at[i]+"/", http.DefaultClient, &check.TargetOptions{Decode: fetch.Decode})
		if err != nil {
			t.Fatal(err)
		}
		report, err := check.Run(t.Context(), target, []check.Suite{Proxy()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range report.Findings {
			if got = append(got, f.Rule); !strings.Contains(f.Got, "(through nginx)") {
				t.Errorf("%q: nginx is not named: %+v", c.set, f)
			}
		}
		if d := cmp.Diff(c.want, slices.Compact(got)); d != "" {
			t.Errorf("%q (-want +got):\n%s%+v", c.set, d, report.Findings)
		}
	}
}
