//go:build unix

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/pgcluster"
	"github.com/millrace/millrace/internal/s3server"
	"github.com/millrace/millrace/internal/testkit"
)

// fleet is several processes of `millrace serve` over one database and one bucket.
type fleet struct {
	*testing.T
	args    []string
	folder  string
	servers []*fleetServer

	mu      sync.Mutex
	wanted  map[string]int               // revision of each page in the folder, by path
	bodies  map[string][sha256.Size]byte // by path, coding and validator
	first   map[string]time.Time         // when a replica first showed a revision
	late    []time.Duration              // delay until the other replicas showed it
	answers int
}

// fleetServer is one replica, which may be killed and started again.
type fleetServer struct {
	f       *fleet
	address string
	home    string
	process *exec.Cmd
	shown   map[string]int // newest revision of each page that it has shown; guarded by f.mu
}

const fleetPages = 40

func fleetPath(i int) string { return fmt.Sprintf("p%02d/", i) }

// newFleet starts servers over a database and a bucket.
func newFleet(t *testing.T, n int) (*fleet, *pgcluster.Cluster, *s3server.Server) {
	t.Helper()
	testkit.Real(t, s3server.Program)
	db, dsn := startDatabase(t, "site")
	files, err := s3server.New(t.Context(), os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	bucket, err := files.Create(t.Context(), "documents", "site")
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{
		T: t, folder: filepath.Join(t.TempDir(), "site"), wanted: make(map[string]int),
		bodies: make(map[string][sha256.Size]byte), first: make(map[string]time.Time),
	}
	f.args = []string{"serve", f.folder, "--store", dsn, "--artifacts", bucket, "--base-url", "https://www.example.com/"}
	for i := range fleetPages {
		f.edit(fleetPath(i))
	}
	for range n {
		f.servers = append(f.servers, f.server())
	}
	return f, db, files
}

// server returns a replica, not started.
func (f *fleet) server() *fleetServer {
	f.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	defer ln.Close()
	s := &fleetServer{f: f, address: ln.Addr().String(), home: f.TempDir(), shown: make(map[string]int)}
	f.Cleanup(s.kill)
	return s
}

// start starts the replica as the given version of the program.
func (s *fleetServer) start(version string) {
	s.f.Helper()
	s.process = asProcess(context.WithoutCancel(s.f.Context()), s.f.T, slices.Concat(s.f.args, []string{"--listen", s.address})...)
	s.process.Env = []string{
		"MILLRACE_TEST_COMMAND=1", "MILLRACE_TEST_VERSION=" + version, "HOME=" + s.home,
		"AWS_ACCESS_KEY_ID=" + s3server.Key, "AWS_SECRET_ACCESS_KEY=" + s3server.Secret,
	}
	log, err := os.OpenFile(filepath.Join(s.home, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		s.f.Fatal(err)
	}
	defer log.Close()
	if s.process.Stderr = log; s.process.Start() != nil {
		s.f.Fatal("start failed")
	}
}

// end ends the replica by a signal, and waits for its end.
func (s *fleetServer) end(sig os.Signal) {
	if s.process != nil {
		_ = s.process.Process.Signal(sig)
		_ = s.process.Wait()
		s.process = nil
	}
}

func (s *fleetServer) kill() { s.end(os.Kill) }

// edit writes the next revision of a page.
func (f *fleet) edit(path string) {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted[path]++
	dir := filepath.Join(f.folder, path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		f.Fatal(err)
	}
	text := fmt.Sprintf("<!doctype html><title>Page %s</title><main><h1>Page %s</h1><p>This is revision %d of the page.</p></main>", path, path, f.wanted[path])
	next := filepath.Join(filepath.Dir(f.folder), "next")
	write(f.T, next, text)
	if err := os.Rename(next, filepath.Join(dir, "index.html")); err != nil {
		f.Fatal(err)
	}
}

var revision = regexp.MustCompile(`revision (\d+)`)

// get requests a document, and checks its bytes. If the response is incomplete, code is 0.
func (s *fleetServer) get(path string) (code int, body string) {
	f := s.f
	ctx, cancel := context.WithTimeout(f.Context(), 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/"+path, nil)
	if err != nil {
		f.Error(err)
		return 0, ""
	}
	r.Header.Set("Accept-Encoding", "gzip")
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, ""
	}
	if etag := res.Header.Get("ETag"); res.StatusCode == http.StatusOK && etag != "" {
		key, sum := path+" "+res.Header.Get("Content-Encoding")+" "+etag, sha256.Sum256(raw)
		f.mu.Lock()
		f.answers++
		was, ok := f.bodies[key]
		f.bodies[key] = sum
		f.mu.Unlock()
		if ok && was != sum {
			f.Errorf("%s: wrong bytes", key)
		}
	}
	res.Body = io.NopCloser(strings.NewReader(string(raw)))
	text, err := fetch.ReadBody(res, 0) // checks the digest
	if err != nil {
		f.Errorf("%s at %s: %v", path, s.address, err)
	}
	return res.StatusCode, string(text)
}

// checkPage requests one page, and checks that its revision is not older than before.
func (s *fleetServer) checkPage(path string) (code int) {
	f := s.f
	f.mu.Lock()
	before, most := s.shown[path], f.wanted[path]
	f.mu.Unlock()
	code, body := s.get(path + "llm.json")
	switch code {
	case http.StatusOK:
	case 0, http.StatusServiceUnavailable:
		return code
	default:
		f.Errorf("%s at %s: %d %s", path, s.address, code, body)
		return code
	}
	m := revision.FindStringSubmatch(body)
	if m == nil {
		f.Errorf("%s at %s: %s", path, s.address, body)
		return code
	}
	n, _ := strconv.Atoi(m[1])
	f.mu.Lock()
	defer f.mu.Unlock()
	if n < before || n > f.wanted[path] || most > f.wanted[path] {
		f.Errorf("%s at %s: revision %d after %d", path, s.address, n, before)
	}
	if n > s.shown[path] {
		s.shown[path] = n
		key := fmt.Sprint(path, n)
		if at, ok := f.first[key]; ok {
			f.late = append(f.late, time.Since(at))
		} else {
			f.first[key] = time.Now()
		}
	}
	return code
}

// listed checks that no page is missing in the list of pages. It reports whether there is a list.
func (s *fleetServer) listed() bool {
	code, body := s.get("llm-pages.json")
	if code != http.StatusOK {
		return false
	}
	var list struct {
		Items []struct{ CURL string }
	}
	pages := make(map[string]bool)
	err := json.Unmarshal([]byte(body), &list)
	for _, item := range list.Items {
		pages[strings.TrimPrefix(item.CURL, "https://www.example.com/")] = true
	}
	delete(pages, "") // the overview
	if err != nil || len(pages) != fleetPages {
		s.f.Errorf("%s lists %d pages (%v)", s.address, len(pages), err)
	}
	return true
}

// serves waits until the replica serves, and returns the time that it took.
func (s *fleetServer) serves() time.Duration {
	s.f.Helper()
	start := time.Now()
	path := fleetPath(rand.IntN(fleetPages)) // these pages are these pages are mostly not in the cache
	for s.checkPage(path) != http.StatusOK || !s.listed() {
		if time.Since(start) > time.Minute {
			s.f.Fatalf("%s is not ready; see %s/log", s.address, s.home)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(start)
}

// builds reports whether the replica is the builder.
func (s *fleetServer) builds() bool {
	_, body := s.get("metrics")
	return strings.Contains(body, "\nmillrace_edition_builder 1\n")
}

// runTraffic changes pages and reads from every replica, until end is called.
func (f *fleet) runTraffic() (end func()) {
	ctx, stop := context.WithCancel(f.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			f.edit(fleetPath(i * 7 % fleetPages))
			time.Sleep(300 * time.Millisecond)
		}
	})
	for _, s := range f.servers {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if s.checkPage(fleetPath(i % fleetPages)); i%fleetPages == 0 {
					s.listed()
				}
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	return func() { stop(); all.Wait() }
}

// resetDelays drops the times at which revisions were shown.
func (f *fleet) resetDelays() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.first)
	f.late = nil
}

// delays describes the delays after which the other replicas showed the new revisions of the first
// one.
func (f *fleet) delays() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.late) == 0 {
		return "no revision was new"
	}
	slices.Sort(f.late)
	at := func(i int) time.Duration { return f.late[min(i, len(f.late)-1)].Round(time.Millisecond) }
	return fmt.Sprintf("%d times, a revision reached another replica after %v (median), %v (99 %%), %v", len(f.late), at(len(f.late)/2), at(len(f.late)*99/100), at(len(f.late)))
}

// agree waits until all replicas show the pages of the folder.
func (f *fleet) agree() {
	f.Helper()
	for _, s := range f.servers {
		for i := range fleetPages {
			path := fleetPath(i)
			eventually(f.T, s.address+" shows the newest revision of "+path, func() bool {
				s.checkPage(path)
				f.mu.Lock()
				defer f.mu.Unlock()
				return s.shown[path] == f.wanted[path]
			})
		}
		s.listed()
	}
}

// TestRealReplicas kills the builder, a follower, the database and the bucket at random, while
// pages change and clients read from every replica. No byte may be wrong and no page may be lost,
// and every replica must serve again within ten seconds.
func TestRealReplicas(t *testing.T) {
	f, db, files := newFleet(t, 3)
	for _, s := range f.servers {
		s.start("1")
		s.serves()
	}
	f.agree()
	end := f.runTraffic()
	defer end()
	f.resetDelays()
	time.Sleep(time.Duration(testkit.Size(3, 10, 60)) * time.Second)
	t.Logf("without faults, %s", f.delays())
	f.resetDelays()
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	var longest time.Duration
	kinds := make(map[string]int)
	for range testkit.Size(5, 20, 200) {
		time.Sleep(time.Duration(rng.Int64N(int64(4 * time.Second))))
		kind := []string{"builder", "follower", "database", "bucket"}[rng.IntN(4)]
		kinds[kind]++
		switch kind {
		case "database":
			db.Kill()
			time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Second))))
			if err := db.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		case "bucket":
			files.Stop()
			time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Second))))
			if err := files.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		default:
			order := rng.Perm(len(f.servers))
			i := slices.IndexFunc(order, func(i int) bool { return f.servers[i].builds() == (kind == "builder") })
			s := f.servers[order[max(0, i)]]
			s.kill()
			s.start("1")
		}
		for _, s := range f.servers {
			longest = max(longest, s.serves())
		}
	}
	end()
	f.agree()
	t.Logf("kills: %v; %d responses; every replica served again after %v; %s", kinds, f.answers, longest.Round(time.Millisecond), f.delays())
	if longest > 10*time.Second {
		t.Errorf("a replica served again after %v", longest)
	}
}

// balancer starts Caddy in front of replicas, and returns its address.
func (f *fleet) balancer(servers ...*fleetServer) *fleetServer {
	f.Helper()
	testkit.Real(f.T, "caddy")
	b := f.server()
	config := filepath.Join(b.home, "Caddyfile")
	text := "{\n\tadmin off\n}\nhttp://" + b.address + " {\n\tbind 127.0.0.1\n\treverse_proxy"
	for _, s := range servers {
		text += " " + s.address
	}
	write(f.T, config, text+" {\n\t\tlb_try_duration 5s\n\t\tfail_duration 2s\n\t\thealth_uri /readyz\n\t\thealth_interval 2s\n\t}\n}\n")
	b.process = exec.CommandContext(context.WithoutCancel(f.Context()), "caddy", "run", "--config", config, "--adapter", "caddyfile")
	b.process.Env = []string{"HOME=" + b.home}
	if err := b.process.Start(); err != nil {
		f.Fatal(err)
	}
	return b
}

// TestRealUpgrade replaces the processes of one version by those of another behind Caddy, one after
// the other. No request may fail, and unchanged documents must keep their validators.
func TestRealUpgrade(t *testing.T) {
	f, _, _ := newFleet(t, 2)
	for _, s := range f.servers {
		s.start("1")
		s.serves()
	}
	f.agree()
	validator := func(s *fleetServer) string {
		_, h, _ := get(t, "http://"+s.address+"/"+fleetPath(1)+"llm.json")
		return h.Get("ETag")
	}
	was := validator(f.servers[0])
	var old []*fleetServer
	old, f.servers = f.servers, []*fleetServer{f.server(), f.server()}
	front := f.balancer(slices.Concat(old, f.servers)...)
	front.serves()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			path := fleetPath(i % fleetPages)
			if code, _ := front.get(path + "llm.json"); code != http.StatusOK {
				t.Errorf("%s: %d", path, code)
			}
			time.Sleep(time.Millisecond)
		}
	})
	for i, s := range f.servers {
		s.start("2")
		s.serves()
		old[i].end(syscall.SIGTERM)
	}
	eventually(t, "a process of the new version builds", func() bool {
		return slices.ContainsFunc(f.servers, (*fleetServer).builds)
	})
	f.edit(fleetPath(0))
	f.agree()
	stop()
	all.Wait()
	for _, s := range f.servers {
		if is := validator(s); is != was {
			t.Errorf("the validator of an unchanged document is %s, and was %s", is, was)
		}
	}
}
