package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// stock has the files of a server as Debian installs it, and a site.
var stock = map[string]map[string]string{
	"nginx": {
		"etc/nginx/nginx.conf": "http {\n\tupstream server { server 127.0.0.1:9; }\n\tinclude /etc/nginx/sites-enabled/*;\n}\n",
		"etc/nginx/sites-available/default": "server {\n\tlisten 80 default_server;\n\tserver_name _;\n}\n" +
			"server { # a comment with a {\n\tlisten [::]:443 ssl;\n\tset $a \"}\";\n\tserver_name www.example.com\n\t\texample.com;\n\tlocation / { add_header X ${a}; }\n}\n",
	},
	"caddy": {
		"etc/caddy/Caddyfile": "# a comment\n{\n\tadmin off\n}\n\n(common) {\n\tencode gzip\n}\nother.example {\n\trespond 1\n}\nwww.example.com, example.com {\n\troot * /srv\n}\n",
	},
	"systemd": {"etc/hostname": "mill\n"},
}

// machine is a folder with the files of a server, whose programs are functions.
type machine struct {
	t      *testing.T
	root   string
	before map[string]string
	calls  []string
	fail   string // begins the call that fails
	die    string // begins the call in which the process ends
}

func newMachine(t *testing.T, program string) *machine {
	m := &machine{t: t, root: t.TempDir()}
	for name, text := range stock[program] {
		file := filepath.Join(m.root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if program == "nginx" {
		if err := errors.Join(os.Mkdir(filepath.Join(m.root, "etc/nginx/sites-enabled"), 0o755),
			os.Symlink("../sites-available/default", filepath.Join(m.root, "etc/nginx/sites-enabled/default"))); err != nil {
			t.Fatal(err)
		}
	}
	m.before = m.files()
	return m
}

// files returns all files and folders.
func (m *machine) files() map[string]string {
	m.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(m.root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		text := "folder"
		if !d.IsDir() {
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			text = string(b)
		}
		out[strings.TrimPrefix(name, m.root)] = text
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

func (m *machine) run(_ context.Context, name string, args ...string) ([]byte, error) {
	call := strings.ReplaceAll(strings.Join(append([]string{name}, args...), " "), m.root, "")
	m.calls = append(m.calls, call)
	switch {
	case m.die != "" && strings.HasPrefix(call, m.die):
		runtime.Goexit() // nothing after this call runs
	case m.fail != "" && strings.HasPrefix(call, m.fail):
		return []byte("[emerg] broken"), errors.New("exit status 1")
	case strings.HasPrefix(call, "nginx -T"):
		return fmt.Appendf(nil, "# configuration file %[1]s/etc/nginx/nginx.conf:\n# configuration file %[1]s/etc/nginx/sites-enabled/default:\n", m.root), nil
	}
	return nil, nil
}

func (m *machine) applier(program string) *Applier {
	return New(program, &Options{
		Root: m.root, Base: "https://www.example.com/", Listen: "127.0.0.1:8080", Exec: "/usr/local/bin/millrace",
		Config: []byte("source: https://www.example.com/\n"), Run: m.run,
	})
}

var errEnded = errors.New("the process ended")

func good(context.Context) error { return nil }

// apply runs both steps, in a goroutine that may end.
func (m *machine) apply(program string, check func(context.Context) error) (applied bool, err error) {
	err = errEnded
	done := make(chan struct{})
	go func() {
		defer close(done)
		a := m.applier(program)
		was, e := a.Prepare(m.t.Context())
		if e == nil && !was {
			e = a.Apply(m.t.Context(), check)
		}
		applied, err = was, e
	}()
	<-done
	return applied, err
}

// undone checks that all files are as before.
func (m *machine) undone(what string) {
	m.t.Helper()
	if d := cmp.Diff(m.before, m.files()); d != "" {
		m.t.Errorf("%s: files differ (-before +after):\n%s", what, d)
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	for _, program := range Programs() {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, program)
			if applied, err := m.apply(program, good); applied || err != nil {
				t.Fatal(applied, err)
			}
			after := m.files()
			want := map[string][]string{
				"nginx":   {"/etc/nginx/sites-available/default", "server {\n\tinclude ", "etc/nginx/snippets/millrace.conf; # millrace up"},
				"caddy":   {"/etc/caddy/Caddyfile", "admin off\n}\nimport ", "/etc/caddy/millrace.caddy # millrace up", "www.example.com, example.com {\n\timport millrace # millrace up"},
				"systemd": {"/etc/systemd/system/millrace.service", "ExecStart=/usr/local/bin/millrace serve"},
			}[program]
			for _, text := range want[1:] {
				if !strings.Contains(after[want[0]], text) {
					t.Errorf("%q is missing in:\n%s", text, after[want[0]])
				}
			}
			if n := strings.Count(after[want[0]], "millrace up --undo"); n != map[string]int{"nginx": 1, "caddy": 2}[program] {
				t.Errorf("%d lines:\n%s", n, after[want[0]])
			}
			calls := len(m.calls)
			if applied, err := m.apply(program, good); !applied || err != nil || len(m.calls) != calls {
				t.Errorf("twice: %t %v %q", applied, err, m.calls[calls:])
			}
			if d := cmp.Diff(after, m.files()); d != "" {
				t.Errorf("twice: %s", d)
			}
			for _, want := range []bool{true, false} {
				if done, err := m.applier(program).Undo(t.Context()); done != want || err != nil {
					t.Errorf("undo: %t %v", done, err)
				}
				m.undone("undo")
			}
		})
	}
}

// Only one process at a time applies or undoes.
func TestLock(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "nginx")
	unlock, err := Lock(m.root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(m.root); millrace.ErrorCode(err) != "apply-running" {
		t.Errorf("another process: %v", err)
	}
	unlock()
	unlock()
	if unlock, err = Lock(m.root); err != nil {
		t.Fatal(err)
	}
	unlock()
	m.undone("afterwards")
}

// Whatever fails, and whenever the process ends, all changes are undone.
func TestApplyFails(t *testing.T) {
	t.Parallel()
	for program, calls := range map[string][]string{
		"nginx":   {"nginx -T", "nginx -t", "nginx -s", "check"},
		"caddy":   {"caddy validate", "caddy reload", "check"},
		"systemd": {"systemd-analyze", "systemd-sysusers", "chgrp", "systemctl daemon-reload", "systemctl enable", "check"},
	} {
		for _, call := range calls {
			t.Run(program+" "+call, func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, program)
				m.fail = call
				check := func(ctx context.Context) error { _, err := m.run(ctx, "check"); return err }
				switch _, err := m.apply(program, check); {
				case err == nil:
					t.Error("it succeeds")
				case call == "nginx -T" || call == "caddy validate":
					if millrace.ErrorCode(err) != "config-broken" || len(m.calls) != 1 {
						t.Errorf("%v %q", err, m.calls)
					}
				case call != "nginx -s" && call != "caddy reload" && call != "systemctl daemon-reload" && millrace.ErrorCode(err) != "apply-undone":
					t.Error(err)
				}
				m.undone("failed")

				for _, again := range []bool{false, true} {
					m.fail, m.die = "", call
					if _, err := m.apply(program, check); !errors.Is(err, errEnded) {
						t.Errorf("%v", err)
					}
					m.die = ""
					if again { // the next run starts over
						if applied, err := m.apply(program, check); applied || err != nil {
							t.Errorf("%t %v", applied, err)
						}
					}
					if done, err := m.applier(program).Undo(t.Context()); !done || err != nil {
						t.Errorf("%t %v", done, err)
					}
					m.undone("killed")
				}
			})
		}
	}
}

// A process that ends between two writes leaves some files old and some new.
func TestUndoPartial(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "caddy")
	m.die = "check"
	_, _ = m.apply("caddy", func(ctx context.Context) error { _, err := m.run(ctx, "check"); return err })
	if err := os.WriteFile(filepath.Join(m.root, "etc/caddy/Caddyfile"), []byte(m.before["/etc/caddy/Caddyfile"]), 0o644); err != nil {
		t.Fatal(err)
	}
	if done, err := m.applier("caddy").Undo(t.Context()); !done || err != nil {
		t.Error(done, err)
	}
	m.undone("partial")
}

// Undo keeps what the owner has edited since.
func TestUndoEdited(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "nginx")
	if _, err := m.apply("nginx", good); err != nil {
		t.Fatal(err)
	}
	const name = "/etc/nginx/sites-available/default"
	file := filepath.Join(m.root, name)
	text := m.files()[name] + "# mine\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	m.before[name] += "# mine\n"
	m.before["/etc/nginx/sites-enabled/default"] += "# mine\n"
	if done, err := m.applier("nginx").Undo(t.Context()); !done || err != nil {
		t.Error(done, err)
	}
	m.undone("edited")
}

// A configuration without a block for the site is not changed.
func TestApplyElsewhere(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"nginx", "caddy"} {
		m := newMachine(t, program)
		a := m.applier(program)
		a.o.Base = "https://shop.example.net/"
		if _, err := a.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "shop.example.net") {
			t.Errorf("%s: %v", program, err)
		}
		m.undone(program)
	}
}

// An error names the file that is missing. A relative root is in the working folder.
func TestApplyMissing(t *testing.T) {
	for program, file := range map[string]string{"nginx": "etc/nginx/nginx.conf", "caddy": "etc/caddy/Caddyfile"} {
		m := newMachine(t, program)
		if err := os.Remove(filepath.Join(m.root, file)); err != nil {
			t.Fatal(err)
		}
		m.before, m.fail = m.files(), program
		t.Chdir(filepath.Join(m.root, "etc"))
		a := New(program, &Options{Root: "..", Base: "https://www.example.com/", Run: m.run})
		_, err := a.Prepare(t.Context())
		if !errors.Is(err, millrace.ErrNotFound) || !strings.Contains(err.Error(), " "+filepath.Join(m.root, file)+":") {
			t.Errorf("%s: %v", program, err)
		}
		m.undone(program)
	}
}

func TestServers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		base, conf string
		want       []int // expected ranks
	}{
		{"http://127.0.0.1:8080/", "server { listen 127.0.0.1:8080; }", []int{2}},
		{"http://127.0.0.1:8080/", "server { listen 8081; }", nil},
		{"http://example.com/", "server { server_name example.com; }", []int{0}},
		{"http://a.example.com/", "server { listen *:80; server_name *.example.com; }", []int{1}},
		{"http://example.com/", "server { listen 127.0.0.1; server_name .example.com; }", []int{1}},
		{"https://example.com/", "server { listen 80; server_name example.com; }", []int{3}}, // TLS ends at another server
		{"http://example.com/", "stream { server { listen 80; } }", nil},
		{"http://example.com/", "http { server { listen 80; location / { server_name b; } } server { listen 80; server_name c; } }", []int{2}},
		{"http://example.com/", "server { listen 80; add_header a \"server {\"; }", []int{2}},
		{"http://example.com/", "}}} server { listen 80; ", nil},
	} {
		u, err := url.Parse(tt.base)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, b := range servers("f", []byte(tt.conf), "s", u) {
			got = append(got, b.rank)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %s: %v, want %v", tt.base, tt.conf, got, tt.want)
		}
	}
}

func TestCaddyFile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		base, conf string
		top        int
		want       []int
	}{
		{"https://example.com/", "example.com {\n}\n", 0, []int{0}},
		{"http://127.0.0.1:80/", ":80 {\n}\n", 0, []int{2}},
		{"http://example.com/", "http://example.com {\n}\nexample.com {\n}\n", 0, []int{0, 3}},
		{"https://a.example.com/", "{\n\tx {\n\t}\n}\n*.example.com {\n\trespond <<E\n\t}\n\tE\n}\n", 11, []int{1}},
		{"https://example.com/", "(example.com) {\n}\n&(example.com) {\n}\nb.example {\n}\n", 0, nil},
	} {
		u, err := url.Parse(tt.base)
		if err != nil {
			t.Fatal(err)
		}
		f := caddyFile("f", []byte(tt.conf), u)
		var got []int
		for _, b := range f.blocks {
			got = append(got, b.rank)
		}
		if !slices.Equal(got, tt.want) || f.top != tt.top {
			t.Errorf("%s: %q: %v, %d; want %v, %d", tt.base, tt.conf, got, f.top, tt.want, tt.top)
		}
	}
}

// Arbitrary bytes can be scanned.
func FuzzScan(f *testing.F) {
	f.Add([]byte("server { a \"b\\\"; } # c\n'd ${e} <<F\nG\nF\n`"))
	f.Fuzz(func(t *testing.T, data []byte) {
		u := &url.URL{Scheme: "http", Host: "example.com"}
		for _, b := range slices.Concat(servers("f", data, "s", u), caddyFile("f", data, u).blocks) {
			if b.at <= 0 || b.at > len(data) || data[b.at-1] != '{' {
				t.Errorf("%+v", b)
			}
		}
	})
}

// A package has the unit, the user, and a configuration of comments only.
func TestApplyPackaged(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "systemd")
	for name, text := range map[string]string{"usr/lib/systemd/system/millrace.service": "[Service]\n", "etc/millrace/millrace.yaml": "# source: /srv/site\n"} {
		file := filepath.Join(m.root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o640)); err != nil {
			t.Fatal(err)
		}
	}
	m.before = m.files()
	if applied, err := m.apply("systemd", good); applied || err != nil {
		t.Fatal(applied, err)
	}
	after := m.files()
	if after["/etc/millrace/millrace.yaml"] != "source: https://www.example.com/\n" || after["/etc/systemd/system/millrace.service"] != "" || m.calls[len(m.calls)-1] != "systemctl enable --now millrace" {
		t.Errorf("%q %q", after, m.calls)
	}
	if done, err := m.applier("systemd").Undo(t.Context()); !done || err != nil || slices.Contains(m.calls, "userdel millrace") {
		t.Errorf("undo: %t %v %q", done, err, m.calls)
	}
	m.undone("undo")
	if err := os.WriteFile(filepath.Join(m.root, "etc/millrace/millrace.yaml"), []byte("# mine\nsource: /srv/site\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := m.apply("systemd", good); !errors.Is(err, fs.ErrExist) {
		t.Errorf("configured: %v", err)
	}
}
