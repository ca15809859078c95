package packaging

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/testkit"
)

// system is this machine's Debian, below an overlay that has what a test changes.
type system struct{ dir string }

// newSystem returns a system. It needs root.
func newSystem(t *testing.T) *system {
	t.Helper()
	s := &system{t.TempDir()}
	for _, d := range []string{"upper", "work", "root"} {
		if err := os.Mkdir(filepath.Join(s.dir, d), 0o755); err != nil { //nolint:gosec // it becomes the root folder
			t.Fatal(err)
		}
	}
	if out, err := s.try(t, "true"); err != nil {
		testkit.Missing(t, "an overlay of the system, which needs root: "+out)
	}
	return s
}

// try runs a script of the shell in the system.
func (s *system) try(t *testing.T, script string) (string, error) {
	t.Helper()
	const enter = `mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
for d in proc dev; do mount --rbind /$d "$1/root/$d"; done
exec timeout 300 chroot "$1/root" sh -euc "$2"`
	c := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-euc", enter, "sh", s.dir, script)
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "HOME=/root", "MILLRACE_TEST_SCRATCH=" + os.Getenv("MILLRACE_TEST_SCRATCH")}
	out, err := c.CombinedOutput()
	return string(out), err
}

func (s *system) run(t *testing.T, script string) string {
	t.Helper()
	out, err := s.try(t, script)
	if err != nil {
		t.Fatalf("%s\n%v\n%s", script, err, out)
	}
	return out
}

// install installs a package.
func (s *system) install(t *testing.T, dist string) {
	t.Helper()
	deb, err := os.ReadFile(filepath.Join(dist, "millrace.deb"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.dir, "upper", "millrace.deb")
	if err := os.WriteFile(file, deb, 0o644); err != nil { //nolint:gosec // dpkg reads it
		t.Fatal(err)
	}
	s.run(t, "dpkg --install /millrace.deb")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

// serve runs the service as the unit does, until the script ends. Without systemd, the state
// folder is not made by it.
func (s *system) serve(t *testing.T, script string) string {
	t.Helper()
	return s.run(t, `install -d -o millrace -g millrace /var/lib/millrace
cd /var/lib/millrace
as='setpriv --reuid millrace --regid millrace --init-groups --no-new-privs env XDG_STATE_HOME=/var/lib millrace'
$as serve --config /etc/millrace/millrace.yaml 2>/tmp/serve.log & service=$!
trap 'kill $service; wait $service || :; rm /tmp/serve.log' EXIT
until $as ready --config /etc/millrace/millrace.yaml >/dev/null 2>&1; do
	kill -0 $service || { cat /tmp/serve.log; exit 1; }
	sleep 0.1
done
`+script)
}

// bookkeeping matches what dpkg, useradd and systemd-analyze write for themselves.
var bookkeeping = regexp.MustCompile(`^(var/lib/dpkg/.*|var/cache/.*|var/log/.*|etc/(passwd|group|shadow|gshadow|subuid|subgid)-?|etc/\.pwd\.lock|run/systemd/.*|srv/.*)$`)

// testPackage installs a package, configures, upgrades, downgrades, removes and purges it, with a
// store of many pages and events.
func testPackage(t *testing.T, first string) {
	s := newSystem(t)
	second := release(t, "..", "1.1.0")
	s.run(t, "! getent passwd millrace")
	s.install(t, first)

	out := s.run(t, `stat -c '%U:%G %a' /etc/millrace/millrace.yaml
systemd-analyze --man=no --recursive-errors=no verify /usr/lib/systemd/system/millrace.service
systemd-analyze security --offline=true --threshold=20 /usr/lib/systemd/system/millrace.service >/dev/null
ls /usr/share/man/man1/millrace-serve.1 /usr/share/bash-completion/completions/millrace >/dev/null`)
	if out != "root:millrace 640\n" {
		t.Error(out)
	}
	if out, err := s.try(t, "cd /; millrace serve --config /etc/millrace/millrace.yaml"); exitCode(err) != 2 {
		t.Errorf("without a source: %v: %s", err, out)
	}

	pages, events := testkit.Size(100, 10_000, 10_000), testkit.Size(100, 20_000, 1_000_000)
	site(t, filepath.Join(s.dir, "upper/srv/mill"), pages)
	log := filepath.Join(s.dir, "upper/srv/access.log")
	write(t, log, "")
	write(t, filepath.Join(s.dir, "upper/srv/more.log"), strings.Repeat(`192.0.2.1 - - [01/Nov/2026:08:00:07 +0000] "GET /p7.html HTTP/1.1" 200 4200 "-" "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"`+"\n", events))
	const settings = "source: /srv/mill\naccess-log: /srv/access.log\nlisten: 127.0.0.1:18431\n"
	s.run(t, "cat >/etc/millrace/millrace.yaml <<'E'\n"+settings+"E")
	const look = `curl -sSf http://127.0.0.1:18431/llm-pages.json | sha256sum
curl -sSf http://127.0.0.1:18431/p7.html/llm.json | sha256sum
`
	was := s.serve(t, "sleep 2; cat /srv/more.log >>/srv/access.log; sleep 2\n"+look)
	for _, version := range []string{"1.1.0", "1.0.0"} {
		s.install(t, map[string]string{"1.1.0": second, "1.0.0": first}[version])
		out := s.serve(t, look)
		if out != was {
			t.Errorf("%s serves other documents: %s, want %s", version, out, was)
		}
		var v struct{ Version, Commit, Date string }
		if err := json.Unmarshal([]byte(s.run(t, "millrace version --json; cmp /etc/millrace/millrace.yaml - <<'E'\n"+settings+"E")), &v); err != nil || v.Version != version || v.Commit != "c0ffee" || v.Date != "2026-11-01T12:00:00Z" {
			t.Errorf("%+v %v", v, err)
		}
		var r struct {
			Served []struct{ Total struct{ Requests int } }
		}
		report := s.run(t, `cd /; XDG_STATE_HOME=/var/lib millrace report --config /etc/millrace/millrace.yaml --since 2026-10-01 --json --quiet`)
		if err := json.Unmarshal([]byte(report), &r); err != nil || len(r.Served) != 1 || r.Served[0].Total.Requests < events {
			t.Errorf("%s reports %+v, %v, want %d requests", version, r, err, events)
		}
	}

	s.run(t, "dpkg --remove millrace; test -s /etc/millrace/millrace.yaml; test -d /var/lib/millrace; getent passwd millrace")
	s.run(t, "dpkg --purge millrace; ! getent passwd millrace; ! getent group millrace; ! grep millrace /etc/shadow /etc/subuid /etc/gshadow")
	upper := filepath.Join(s.dir, "upper")
	err := filepath.WalkDir(upper, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(upper, name)
		if !d.IsDir() && !bookkeeping.MatchString(rel) || strings.Contains(rel, "millrace") {
			t.Errorf("left: %s %s", d.Type(), rel)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func exitCode(err error) int {
	if e, ok := err.(*exec.ExitError); ok { //nolint:errorlint // directly from exec
		return e.ExitCode()
	}
	return -1
}
