package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	fetching "github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// pulls measures the cost of keeping a mirror of n pages via each protocol: without changes, and
// after a hundredth of the pages changed. The site is a folder that millrace serves. The
// packages that millrace pull uses keep the mirror up to date, over connections that record their
// traffic.
func (b *bench) pulls(ctx context.Context, n int) error {
	dir := filepath.Join(b.dir, "pulled")
	for i := range n {
		if err := writePage(dir, i, generate(i, n, 6)); err != nil {
			return err
		}
	}
	s, err := b.startServer(ctx, dir, "--store", filepath.Join(b.dir, "pulled.db"))
	if err != nil {
		return err
	}
	defer s.stop()
	mirrors := make([]*mirrorOf, 0, 8)
	for _, proto := range all.Protocols() {
		m, err := openMirror(ctx, filepath.Join(b.dir, "mirror-"+proto.Name+".db"), s.url, proto)
		if err != nil {
			return err
		}
		defer m.close()
		mirrors = append(mirrors, m)
		if _, rep, err := m.sync(ctx); err != nil {
			return err
		} else if rep.Added != n {
			return fmt.Errorf("%s: pulled %d of %d pages: %+v", proto.Name, rep.Added, n, rep)
		}
		if err := b.unchanged(ctx, m, n); err != nil {
			return err
		}
	}
	before, err := versions(ctx, s.url)
	if err != nil {
		return err
	}
	edited := n / 100
	for i := range edited {
		k := i * 100
		if err := writePage(dir, k, strings.Replace(generate(k, n, 6), "<p>", "<p>Edited today: ", 1)); err != nil {
			return err
		}
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(500 * time.Millisecond) {
		now, err := versions(ctx, s.url)
		if err != nil {
			return err
		}
		changed := 0
		for u, v := range now {
			if before[u] != v {
				changed++
			}
		}
		if changed == edited {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d edited pages were published", changed, edited)
		}
	}
	for _, m := range mirrors {
		if err := b.changed(ctx, m, n, edited); err != nil {
			return err
		}
	}
	return nil
}

func writePage(dir string, i int, html string) error {
	dir = filepath.Join(dir, "p", strconv.Itoa(i))
	if i == 0 {
		dir = filepath.Dir(filepath.Dir(dir))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "index.html"), []byte(html), 0o600)
}

// versions returns the hash of every page that a site publishes.
func versions(ctx context.Context, url string) (map[string]string, error) {
	_, body, err := fetch(ctx, url+"llm-sitemap.json")
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []struct{ CURL, ContentHash string }
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	hashes := make(map[string]string, len(list.Items))
	for _, it := range list.Items {
		hashes[it.CURL] = it.ContentHash
	}
	return hashes, nil
}

// mirrorOf is a mirror of one site via one protocol.
type mirrorOf struct {
	proto  protocol.Protocol
	url    string
	store  store.Store
	site   store.Site
	robots robots
	lists  map[string]bool // paths that are requested when nothing has changed
}

func openMirror(ctx context.Context, file, url string, proto protocol.Protocol) (*mirrorOf, error) {
	st, err := stores.Open(ctx, file, nil)
	if err != nil {
		return nil, err
	}
	m := &mirrorOf{proto: proto, url: url, store: st, robots: robots{files: map[string][]byte{}}}
	if m.site, err = st.Site(ctx, url, url); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *mirrorOf) close() { _ = m.store.Close() }

// sync pulls once, as a new process would.
func (m *mirrorOf) sync(ctx context.Context) (traffic, *mirror.Report, error) {
	w := new(wire)
	client := fetching.New(&fetching.Options{AllowPrivate: true, Delay: -1, Robots: &m.robots, Dial: w.dial})
	rep, err := mirror.Sync(ctx, m.url+" "+m.proto.Name, m.proto.NewReader(client.HTTP(), m.url, nil), m.site, nil)
	client.CloseIdleConnections()
	if err != nil {
		return traffic{}, rep, err
	}
	t, err := w.read()
	return t, rep, err
}

// robots stores robots.txt between pulls.
type robots struct {
	mu    sync.Mutex
	files map[string][]byte
}

// Load returns the saved record of an origin.
func (r *robots) Load(_ context.Context, origin string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.files[origin], nil
}

// Save stores the record of an origin.
func (r *robots) Save(_ context.Context, origin string, record []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[origin] = record
	return nil
}

// unchanged measures a pull without changes.
func (b *bench) unchanged(ctx context.Context, m *mirrorOf, n int) error {
	t, rep, err := m.sync(ctx)
	if err != nil {
		return err
	}
	if rep.Added+rep.Updated+rep.Deleted+rep.Fetched > 0 {
		return fmt.Errorf("%s: a pull of an unchanged site found changes: %+v", m.proto.Name, rep)
	}
	m.lists = make(map[string]bool)
	not := 0
	for _, e := range t.exchanges {
		m.lists[e.path] = true
		if e.status == http.StatusNotModified {
			not++
		}
	}
	b.add(row{
		what: fmt.Sprintf("second pull of %d pages via %s", n, m.proto.Name), limit: "1 request, a 304",
		ours: fmt.Sprintf("requests: %d, of which 304: %d; bytes received: %d, of which bodies: %d; bytes sent: %d",
			len(t.exchanges), not, t.received, t.bodies, t.sent),
		ratio: fmt.Sprintf("%.2f", float64(len(t.exchanges))), reach: "at most 1", good: len(t.exchanges) == 1 && not == 1 && t.bodies == 0,
	})
	return nil
}

// changed measures a pull after changes of a few pages.
func (b *bench) changed(ctx context.Context, m *mirrorOf, n, edited int) error {
	t, rep, err := m.sync(ctx)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("pull after %d of %d pages changed, via %s", edited, n, m.proto.Name)
	if rep.Fetched == 0 {
		b.add(row{what: what, ours: "no changes yet: the protocol's files are rebuilt less often"})
		return nil
	}
	if rep.Updated != edited || rep.Added+rep.Deleted > 0 {
		return fmt.Errorf("%s: %d pages have changed, but a pull found %+v", m.proto.Name, edited, rep)
	}
	type part struct{ bodies, alone, count int64 }
	var parts [2]part // documents, lists
	for _, e := range t.exchanges {
		p := &parts[0]
		if m.lists[e.path] {
			p = &parts[1]
		}
		p.count++
		p.bodies += int64(len(e.body))
		if len(e.body) == 0 {
			continue
		}
		alone, err := e.alone()
		if err != nil {
			return err
		}
		p.alone += alone
	}
	for i, p := range parts {
		reach, most := "at most 1.05", 1.05
		name := "documents"
		if i == 1 {
			name, reach, most = "lists", "at most 1", 1
		}
		if p.alone == 0 {
			continue
		}
		ratio := float64(p.bodies) / float64(p.alone)
		b.add(row{
			what:  fmt.Sprintf("%s: bodies of %s (%d)", what, name, p.count),
			limit: fmt.Sprintf("%d bytes (each compressed by itself)", p.alone), ours: fmt.Sprintf("%d bytes", p.bodies),
			ratio: fmt.Sprintf("%.3f", ratio), reach: reach, good: ratio <= most,
		})
	}
	b.add(row{
		what: what + ": header fields and framing",
		ours: fmt.Sprintf("%d bytes received with %d responses, %d sent", t.received-t.bodies, len(t.exchanges), t.sent),
	})
	return nil
}
