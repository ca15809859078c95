package simulation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol"
)

// oracle records every published edition, and checks every response against them:
//
//   - the response belongs to the edition that its replica had when the request
//     arrived, or to a newer one: validator, body, absence;
//   - that edition is at most one poll of the replica behind the published one;
//   - a replica's editions and the dates of its documents never go backwards;
//   - a replica shows nothing of pages that its configuration hides.
//
// The files of an edition depend on earlier ones, and on the process that writes them. The
// oracle only checks that a validator identifies one body, and the content that clients read.
type oracle struct {
	w *world

	mu       sync.Mutex
	editions []*published // in order
	index    map[position]int
	docs     map[string]bool                 // that any edition had
	made     map[[2]string][sha256.Size]byte // files, and documents that list them, by path and validator
	named    map[string]bool                 // their paths
	turns    int
	checked  int
	newest   map[[2]string]int  // by replica and generation: index of its newest edition
	dated    map[[4]string]date // by replica, generation, path and canonical link
	bodies   map[string][]byte  // the first of each path, for the broken mode
}

// date is the Last-Modified of a response.
type date struct {
	at   time.Time
	turn int // when it arrived
}

// position is a sequence number of a generation of the publication.
type position struct {
	gen string
	seq uint64
}

// published is one edition.
type published struct {
	position
	conf  int
	at    time.Time
	docs  map[string]doc             // by path and query
	pages map[string]map[string]bool // by protocol: the canonical URLs that it carries
}

type doc struct {
	etag  string
	large bool
	sum   [sha256.Size]byte
	body  []byte // only while the edition is being described
}

func (o *oracle) init(w *world) {
	o.w = w
	o.index, o.docs = make(map[position]int), make(map[string]bool)
	o.made, o.named = make(map[[2]string][sha256.Size]byte), make(map[string]bool)
	o.newest, o.dated, o.bodies = make(map[[2]string]int), make(map[[4]string]date), make(map[string][]byte)
}

// make records a file, or a document that is built together with files.
func (o *oracle) make(path, etag string, sum [sha256.Size]byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := [2]string{path, etag}
	if old, ok := o.made[k]; ok && old != sum {
		o.w.fail("%s has two bodies with the validator %s", path, etag)
	}
	o.made[k], o.named[path] = sum, true
}

// describe records the expected documents of an edition.
func (o *oracle) describe(ctx context.Context, v millrace.View, l *process, gen string) (*published, error) {
	ed := &published{
		position: position{gen, v.Site().Seq}, conf: l.conf,
		docs: make(map[string]doc), pages: make(map[string]map[string]bool),
	}
	for _, p := range o.w.protocols {
		var links []string
		pub := p.NewPublisher(o.w.publishing())
		for d, err := range pub.All(ctx, v) {
			if err != nil {
				return nil, err
			}
			var b bytes.Buffer
			if err := d.Write(ctx, &b); err != nil {
				return nil, err
			}
			sum := sha256.Sum256(b.Bytes())
			etag := d.ETag
			if d.Parts != nil && d.ETag == "" && !d.DigestETag {
				if etag, err = edition.ETag(ctx, d.Parts); err != nil {
					return nil, err
				}
			} else if etag == "" {
				etag = fmt.Sprintf("sha256-%x", sum)
			}
			ed.docs[d.Path] = doc{etag, d.Large, sum, b.Bytes()}
		}
		for _, link := range pub.Advertise(v).Root {
			links = append(links, link.String())
		}
		ed.pages[p.Name] = make(map[string]bool)
		for page, err := range v.Scan(ctx, millrace.Scan{WithBlocks: true}) {
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(hidden(l.conf), func(dir string) bool { return strings.HasPrefix(page.URL, base+dir[1:]+"/") }) {
				o.w.fail("edition %d of %s shows the hidden page %s", ed.seq, l.name, page.URL)
			}
			if p.Carry(v.Site(), page) != nil {
				ed.pages[p.Name][page.URL] = true
			}
		}
		if _, files := pub.(millrace.ArtifactPublisher); files || p.Name == "web" { // its pages are listed in SCP's files
			continue
		}
		ask := &frozen{ed, links, func(r *http.Request) (*millrace.Document, error) { return pub.Find(ctx, v, r) }}
		if err := o.parity(ctx, p, ed, ask); err != nil {
			return nil, err
		}
	}
	for path, d := range ed.docs {
		d.body = nil
		ed.docs[path] = d
	}
	return ed, nil
}

// parity reads an edition like a client, without a network: the lists name every page,
// and each named document exists with the named validator.
func (o *oracle) parity(ctx context.Context, p protocol.Protocol, ed *published, ask *frozen) error {
	named := make(map[string]bool)
	reader := p.NewReader(&http.Client{Transport: ask}, base, nil)
	for c, err := range reader.Changes(ctx, "") {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			o.w.fail("the lists of edition %d: %v", ed.seq, err)
			return err
		}
		if c.Kind != millrace.Put {
			continue
		}
		named[c.URL] = true
		if c.Location == "" {
			continue // the protocol lists only pages
		}
		d, ok := ed.docs["/"+strings.TrimPrefix(c.Location, base)]
		if !ok || strings.Trim(c.Version, `"`) != d.etag {
			o.w.fail("edition %d lists %s with %s, but has %q", ed.seq, c.Location, c.Version, d.etag)
		}
	}
	carried := ed.pages[p.Name]
	for u := range carried {
		if !named[u] {
			o.w.fail("edition %d does not list %s", ed.seq, u)
		}
	}
	for u := range named {
		if !carried[u] && u != base { // a site without a home page has an overview at this path
			o.w.fail("edition %d lists %s, which is absent", ed.seq, u)
		}
	}
	return nil
}

// frozen responds from one edition.
type frozen struct {
	ed    *published
	links []string
	find  func(r *http.Request) (*millrace.Document, error) // documents without their own URL
}

// RoundTrip returns the document for a request.
func (f *frozen) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: r}
	d, ok := f.ed.docs[r.URL.RequestURI()]
	if found, err := f.find(r); !ok && err == nil {
		var b bytes.Buffer
		if err := found.Write(r.Context(), &b); err != nil {
			return nil, err
		}
		d, ok = doc{etag: found.ETag, body: b.Bytes()}, true
	}
	switch {
	case r.URL.Path == "/":
		resp.Header["Link"] = f.links
	case !ok:
		resp.StatusCode = http.StatusNotFound
	}
	resp.Header.Set("ETag", `"`+d.etag+`"`)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(d.body)), int64(len(d.body))
	return resp, nil
}

// add records a published edition. again is true if only its files were rebuilt.
func (o *oracle) add(ed *published) (again bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, again := o.index[ed.position]; again {
		return true
	}
	for _, other := range o.editions {
		if other.gen == ed.gen && other.seq > ed.seq {
			o.w.fail("edition %d of %s is published after %d", ed.seq, ed.gen, other.seq)
		}
	}
	ed.at = time.Now()
	o.index[ed.position] = len(o.editions)
	o.editions = append(o.editions, ed)
	for path := range ed.docs {
		o.docs[path] = true
	}
	return false
}

// of returns the index of the edition that a replica has, or -1 if it has none.
func (o *oracle) of(l *process) int {
	ed := l.server.Current()
	if ed == nil {
		return -1
	}
	// The publishing process may not have added it yet.
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	i, ok := o.index[position{l.gen, ed.View.Site().Seq}]
	if !ok {
		o.w.fail("%s has edition %d, which was never published", l.name, ed.View.Site().Seq)
		return -1
	}
	return i
}

// last returns the index of the newest edition of a generation at a time, or -1 if it had none.
func (o *oracle) last(gen string, t time.Time) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := len(o.editions) - 1
	for i >= 0 && (o.editions[i].gen != gen || o.editions[i].at.After(t)) {
		i--
	}
	return i
}

// end returns the newest edition of a generation, and every path that a document
// ever had.
func (o *oracle) end(gen string) (*published, []string) {
	i := o.last(gen, time.Now())
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.editions[i], slices.Sorted(maps.Keys(o.docs))
}

// ask records which responses to a request are valid.
func (o *oracle) ask(l *process, r *http.Request) *exchange {
	now := time.Now()
	x := &exchange{o: o, l: l, r: r, at: now, lo: o.of(l), known: o.last(l.gen, l.delay.before(now))}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.turns++
	x.turn = o.turns
	if x.lo < 0 {
		return x
	}
	who := [2]string{l.name, l.gen}
	if before, ok := o.newest[who]; ok && before > x.lo {
		o.w.fail("%s went back from edition %d to %d", l.name, o.editions[before].seq, o.editions[x.lo].seq)
	}
	o.newest[who] = x.lo
	if x.known > x.lo {
		o.w.fail("%s is too old: it has edition %d since %s, and %d was published at %s", l.name,
			o.editions[x.lo].seq, o.editions[x.lo].at.Sub(o.w.start), o.editions[x.known].seq, o.editions[x.known].at.Sub(o.w.start))
	}
	return x
}

// gone is the line for a deleted page in a delta of ARC.
var gone = regexp.MustCompile(`(?m)^\{"url":"[^"]*","ai_indexable":false,"robots_directive":"noindex"\}`)

// tombstone is the element for a deleted page in a feed.
var tombstone = regexp.MustCompile(`<at:deleted-entry ref="[^"]*"`)

// answered checks a complete response.
func (x *exchange) answered(resp *http.Response, body []byte) {
	o, uri := x.o, x.r.URL.RequestURI()
	hi := o.of(x.l)
	text, err := body, error(nil)
	if resp.StatusCode != http.StatusPartialContent {
		text, err = content(resp, body)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.turns++
	o.checked++
	where := fmt.Sprintf("%s %s at %s: %s", x.r.Method, uri, x.l.name, resp.Status)
	o.w.logf("%s %s", where, resp.Header.Get("ETag"))
	if x.l.ctx.Err() != nil {
		return // a process that is being killed may send any response except a wrong document
	}
	// The name of a deleted page is allowed.
	visible, _, _ := bytes.Cut(text, []byte(`"deleted":[`))
	visible, _, _ = bytes.Cut(visible, []byte(`"_deleted":{`))
	visible = tombstone.ReplaceAll(visible, nil)
	if strings.HasPrefix(uri, "/arc-sitemap-deltas/") {
		visible = gone.ReplaceAll(visible, nil)
	}
	for _, dir := range hidden(x.l.conf) {
		if bytes.Contains(visible, []byte(host+dir+"/")) {
			o.w.fail("%s: the response shows hidden pages under %s", where, dir)
		}
	}
	etag := strings.Trim(resp.Header.Get("ETag"), `"`)
	for _, coding := range []string{"-br2", "-gzip", "-zstd"} {
		etag = strings.TrimSuffix(etag, coding)
	}
	var fits func(*published) bool
	switch {
	case err != nil:
		o.w.fail("%s: %v", where, err)
		return
	case resp.StatusCode >= 500:
		if x.lo >= 0 && !o.w.cutOff(x.l.name, x.at) {
			o.w.fail("%s without a cause", where)
		}
		return
	case resp.StatusCode == http.StatusPartialContent:
		return // part of a file: clients assemble it and have its checksum
	case o.named[uri] && resp.StatusCode == http.StatusOK:
		if sum, ok := o.made[[2]string{uri, etag}]; !ok || sum != sha256.Sum256(text) {
			o.w.fail("%s: the body does not match its validator", where)
		}
		return
	case !o.docs[uri]:
		return // a page of the site, or a path that never existed
	case resp.StatusCode == http.StatusOK:
		sum := sha256.Sum256(text)
		if path, _, _ := strings.Cut(uri, "?"); strings.HasSuffix(path, "/llm/") {
			// The validator of TCT draft-00 identifies a text and not all bytes: both
			// must be of one edition.
			fits = func(ed *published) bool { d := ed.docs[uri]; return d.etag == etag && d.sum == sum }
			break
		}
		for _, ed := range o.editions {
			if d, ok := ed.docs[uri]; ok && d.etag == etag && d.sum != sum {
				o.w.fail("%s: the body does not match its validator", where)
				return
			}
		}
		fits = func(ed *published) bool { return ed.docs[uri].etag == etag }
	case resp.StatusCode == http.StatusNotModified:
		if !strings.Contains(x.r.Header.Get("If-None-Match"), etag) {
			o.w.fail("%s for If-None-Match: %s belongs to %s", where, x.r.Header.Get("If-None-Match"), etag)
		}
		fits = func(ed *published) bool { return ed.docs[uri].etag == etag }
	case resp.StatusCode == http.StatusNotFound:
		fits = func(ed *published) bool { _, ok := ed.docs[uri]; return !ok }
	default:
		o.w.fail("%s", where)
		return
	}
	if path, _, _ := strings.Cut(uri, "?"); x.lo < 0 && (strings.HasPrefix(path, "/.well-known/") || path == "/llm-policy.json" || path == "/llm-manifest.json") {
		return // discovery, which does not wait for an edition
	}
	if hi < 0 || !slices.ContainsFunc(o.editions[max(0, x.lo):hi+1], func(ed *published) bool { return ed.gen == x.l.gen && fits(ed) }) {
		o.w.fail("%s %s belongs to no edition from %d to %d", where, etag, x.lo, hi)
	}
	o.date(x, resp, uri, where)
}

// date checks that a document's date does not decrease, and is not in the future. A name may move
// from one page to another: /a and /a/ both use /a/llm.json.
func (o *oracle) date(x *exchange, resp *http.Response, uri, where string) {
	at, err := http.ParseTime(resp.Header.Get("Last-Modified"))
	if err != nil {
		return
	}
	if at.After(time.Now()) {
		o.w.fail("%s is in the future: %s", where, at)
	}
	k := [4]string{x.l.name, x.l.gen, uri, resp.Header.Get("Link")}
	if before, ok := o.dated[k]; ok && before.turn < x.turn && at.Before(before.at) {
		o.w.fail("%s: its date went back from %s to %s", where, before.at, at)
	}
	o.dated[k] = date{at, o.turns}
}

// content returns the decoded bytes of a response, verified by its digest.
func content(resp *http.Response, body []byte) ([]byte, error) {
	c := *resp
	c.Body = io.NopCloser(bytes.NewReader(body))
	return fetch.ReadBody(&c, 0)
}

// first returns the first body of a path, in its original coding.
func (o *oracle) first(r *http.Request, resp *http.Response, body []byte) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := r.URL.RequestURI() + resp.Header.Get("Content-Encoding")
	if old, ok := o.bodies[k]; ok {
		resp.Header.Del("Content-Digest")
		resp.Header.Del("Content-Length")
		resp.ContentLength = int64(len(old))
		return old
	}
	o.bodies[k] = body
	return body
}

// lacked reports whether any edition since a time lacked a page, or whether the edition before
// that time lacked it, in any of the last generations.
func (o *oracle) lacked(proto, url string, since time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := make(map[string]bool)
	for _, ed := range slices.Backward(o.editions) {
		if !ed.at.After(since) {
			if before[ed.gen] || len(before) > o.w.replicas {
				continue
			}
			before[ed.gen] = true
		}
		if !ed.pages[proto][url] {
			return true
		}
	}
	return false
}

var errForgotten = errors.New("the reply was lost")
