// Package fleetnet is an in-memory network of many virtual hosts, for tests and benchmarks of
// fleets. Each host serves a few pages over TCT draft-01. A machine per address logs the requests
// to its hosts.
package fleetnet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/pipenet"
)

// Pages is the number of pages of a host.
const Pages = 10

// Network is a set of hosts. All methods are safe for concurrent use.
type Network struct {
	// Intercept may handle a request instead of its host, and then returns true. Set it before the
	// first request. If nil, hosts handle all requests.
	Intercept func(w http.ResponseWriter, r *http.Request) bool

	name     func(i int) string
	server   *http.Server
	listener *pipenet.Listener
	hosts    map[string]*host
	machines map[netip.Addr]*machine
}

type host struct {
	name     string
	machines []*machine // one for each of its addresses

	mu       sync.Mutex
	versions [Pages]int
	tags     [Pages]string // ETags of the documents, or "" if not computed
}

// machine logs the requests to the hosts of an address.
type machine struct {
	addr netip.Addr

	mu       sync.Mutex
	requests int64
	running  int
	most     int           // maximum number of concurrent requests
	last     time.Time     // start of the last request
	gap      time.Duration // shortest time between two starts, if there were two requests
}

// New returns a network of n hosts. The function name returns the name of host i; see [Name]. The
// parameter shared is the number of hosts in each hundred that share an address.
func New(n, shared int, name func(i int) string) *Network {
	w := &Network{name: name, hosts: make(map[string]*host, n), machines: make(map[netip.Addr]*machine, n)}
	for i := range n {
		w.hosts[name(i)] = &host{name: name(i)}
		w.AddAddress(i, Address(i, shared))
	}
	w.server = &http.Server{Handler: w}
	w.listener = pipenet.Serve(w.server)
	return w
}

// Close closes the network.
func (w *Network) Close() { _ = w.server.Close() }

// Name returns the name of a host on an in-memory network.
func Name(i int) string { return fmt.Sprintf("h%d.example", i) }

// URL returns the URL of the site of a host.
func (w *Network) URL(i int) string { return "http://" + w.name(i) + "/" }

// Address returns the address of host i. The parameter shared is the number of hosts, at the start of
// each hundred, that share an address.
func Address(i, shared int) netip.Addr {
	if i%100 < shared {
		i = i / 100 * 100
	}
	return netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)})
}

// AddAddress adds an address to those of a host. Call it before the first request.
func (w *Network) AddAddress(i int, addr netip.Addr) {
	m := w.machines[addr]
	if m == nil {
		m = &machine{addr: addr}
		w.machines[addr] = m
	}
	h := w.hosts[w.name(i)]
	h.machines = append(h.machines, m)
}

// Dial connects to an address. It can be the option Dial of an agent.
func (w *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return w.listener.Dial(ctx, network, address)
}

// Resolve returns the addresses of a host. It can be the option Resolve of an agent.
func (w *Network) Resolve(_ context.Context, name string) ([]netip.Addr, error) {
	h := w.hosts[name]
	if h == nil {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	var addrs []netip.Addr
	for _, m := range h.machines {
		addrs = append(addrs, m.addr)
	}
	return addrs, nil
}

// Edit changes a page of a host. It returns the URL of the page and its new title.
func (w *Network) Edit(i, p int) (page, name string) {
	h := w.hosts[w.name(i)]
	h.mu.Lock()
	defer h.mu.Unlock()
	h.versions[p]++
	h.tags[p] = ""
	return h.page(p), title(p, h.versions[p])
}

// Titles returns the titles of the pages of a host, by URL.
func (w *Network) Titles(i int) map[string]string {
	h := w.hosts[w.name(i)]
	h.mu.Lock()
	defer h.mu.Unlock()
	titles := make(map[string]string)
	for p, version := range h.versions {
		titles[h.page(p)] = title(p, version)
	}
	return titles
}

// Log describes the requests to all machines.
type Log struct {
	Requests int64
	Most     int           // maximum number of concurrent requests to one machine
	Gap      time.Duration // shortest time between the starts of two requests to one machine
}

// Log returns the log of all machines.
func (w *Network) Log() (l Log) {
	l.Gap = math.MaxInt64
	for _, m := range w.machines {
		m.mu.Lock()
		l.Requests += m.requests
		l.Most = max(l.Most, m.most)
		if m.requests > 1 {
			l.Gap = min(l.Gap, m.gap)
		}
		m.mu.Unlock()
	}
	return l
}

func (m *machine) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests++
	m.running++
	m.most = max(m.most, m.running)
	now := time.Now()
	if gap := now.Sub(m.last); m.requests == 2 || m.requests > 2 && gap < m.gap {
		m.gap = gap
	}
	m.last = now
}

func (m *machine) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running--
}

// ServeHTTP implements [http.Handler].
func (w *Network) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	h := w.hosts[r.Host]
	if h == nil {
		http.Error(rw, "no such host", http.StatusMisdirectedRequest)
		return
	}
	m := h.machines[0]
	if local, err := netip.ParseAddrPort(r.Context().Value(http.LocalAddrContextKey).(net.Addr).String()); err == nil && w.machines[local.Addr()] != nil {
		m = w.machines[local.Addr()]
	}
	m.begin()
	defer m.end()
	if w.Intercept != nil && w.Intercept(rw, r) {
		return
	}
	var body []byte
	var tag string
	page := -1
	if _, err := fmt.Sscanf(r.URL.Path, "/p%d/llm.json", &page); err == nil && page >= 0 && page < Pages {
		h.mu.Lock()
		version := h.versions[page]
		h.mu.Unlock()
		body, tag = h.document(page, version)
		rw.Header().Set("Link", "<"+h.page(page)+`>; rel="canonical"`)
	} else if r.URL.Path == "/llm-pages.json" {
		body, tag = h.list()
	} else if r.URL.Path == "/" {
		rw.Header().Set("Link", `</llm-pages.json>; rel="index"; type="application/json"`)
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(rw, "<!DOCTYPE html><title>%s</title><p>Ten pages.</p>", h.name)
		return
	} else {
		http.NotFound(rw, r)
		return
	}
	rw.Header().Set("ETag", `"`+tag+`"`)
	rw.Header().Set("Content-Type", "application/json; charset=utf-8")
	rw.Header().Set("Cache-Control", "max-age=0, must-revalidate")
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		rw.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = rw.Write(body)
}

func (h *host) page(p int) string { return fmt.Sprintf("http://%s/p%d/", h.name, p) }

func title(p, version int) string { return fmt.Sprintf("Page %d, version %d", p, version) }

// words are the words of the generated texts.
var words = strings.Fields("mill race water wheel stone grain flour gate sluice weir river bucket axle beam sack hopper")

// document returns the document of a page, and its ETag.
func (h *host) document(p, version int) (body []byte, tag string) {
	var text strings.Builder
	seed := fnv.New32a()
	fmt.Fprintf(seed, "%s %d %d", h.name, p, version)
	for n, i := seed.Sum32(), 0; i < 120; i++ {
		n = n*1664525 + 1013904223
		text.WriteString(words[n>>16%uint32(len(words))] + " ")
	}
	head := fmt.Sprintf(`{"canonical_url":%s,"content":%s,`, quoted(h.page(p)), quoted(text.String()))
	tail := fmt.Sprintf(`"profile":"tct-1","title":%s}`, quoted(title(p, version)))
	tag = sum(head + tail)
	return fmt.Appendf(nil, `%s"hash":"%s",%s`, head, tag, tail), tag
}

// list returns the list of all pages, and its ETag.
func (h *host) list() (body []byte, tag string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	text := `{"version":1,"profile":"tct-1","items":[`
	for p, version := range h.versions {
		if p > 0 {
			text += ","
		}
		if h.tags[p] == "" {
			_, h.tags[p] = h.document(p, version)
		}
		text += fmt.Sprintf("\n"+`{"cUrl":%q,"mUrl":%q,"etag":%q}`, h.page(p), h.page(p)+"llm.json", h.tags[p])
	}
	text += "]}"
	return []byte(text), sum(text)
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // a string always encodes
	return string(b)
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return "sha256-" + hex.EncodeToString(h[:])
}
