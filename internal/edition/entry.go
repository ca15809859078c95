package edition

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// field is one header field, made once and shared by every response: nobody
// writes to the slice.
type field struct {
	name  string // canonical
	value []string
}

// shape is what many documents have in common.
type shape struct {
	all  []field // on 200, 206, 304 and HEAD
	full []field // not on 304
}

// entry is a document made ready: a request is answered from it with a few
// assignments. Everything but the atomics is written once.
type entry struct {
	key      key
	shape    *shape
	own      []field         // as shape.all, of this document alone
	inline   [2]field        // where own lies if it is short: fewer objects for the collector
	values   [2]string       // where the values of inline lie
	tag      string          // without quotes
	tags     [codings]string // the validators, with quotes
	modified int64           // of Last-Modified, in Unix seconds; 0 = none
	ahead    bool            // modified lay in the future when the entry was made
	oneTag   bool            // see millrace.Document
	exact    bool            // the same
	private  bool            // for its client alone: no CORS
	shared   bool            // the same for every client that may have it, but for the coding
	public   bool            // see millrace.Document
	guarded  bool            // for those who have a key
	signer   Signer          // of its responses; nil = nobody
	cached   string          // millrace.Document.CacheField, canonical; "" = none
	offer    codingSet       // in which codings it can be had
	large    bool            // of the edition alone: a large document or a file
	proto    string          // whose document it is
	page     string          // see millrace.Document
	extra    *extraSubject   // nil = there is nothing else to say of it

	mu    sync.Mutex                 // one rendering at a time
	inUse [codings]weak.Pointer[rep] // what responses under way are made of, kept or not; guarded by mu
	state atomic.Pointer[entryState]
	reps  [codings]atomic.Pointer[rep]

	used  atomic.Uint32 // a codingSet of the bodies used since the cache looked last, and touched
	cost  int64         // in bytes; guarded by the cache
	clock *clock        // of the cache that it is in; guarded by the cache
	place int           // in the clock's ring; guarded by the cache
}

// standing says in which edition an entry was found last, and how it is
// rendered there.
type entryState struct {
	number    uint64
	write     func(context.Context, io.Writer) error
	pageState string // see Server.Page and Server.Keep
}

// rep is a representation: the bytes of a document in one coding. They are in
// body, or in artifacts.
type rep struct {
	coding  coding // what body is really in: identity when coding does not pay
	body    []byte
	content content // nil = body
	size    int64
	plain   int64     // without coding; 0 = not known
	digest  [1]string // Content-Digest or Repr-Digest of body
	length  [1]string // Content-Length
	made    int64     // Unix seconds; 0 for content
	age     atomic.Pointer[age]
	signed  atomic.Pointer[signed] // nil = not yet

	block *block // that body lies in; nil = body has an allocation of its own
	of    *entry // that has it in the cache, for block; guarded by the cache
	place int32  // of it in block
	at    coding // where of has it
}

func newRep(c coding, body []byte, plain int) *rep {
	return &rep{
		coding: c, body: body, size: int64(len(body)), plain: int64(plain),
		digest: [1]string{canon.Digest(body)}, length: [1]string{strconv.Itoa(len(body))},
		made: time.Now().Unix(),
	}
}

// plainBelow is the size in bytes below which coding a document does not pay.
const plainBelow = 200

// validating names the fields that a 304 repeats (RFC 9110, section 15.4.5)
// beside ETag.
var validating = map[string]bool{
	"Cache-Control": true, "Content-Location": true, "Expires": true, "Last-Modified": true, "Link": true, "Vary": true,
}

// unique names the fields that nearly every document has for itself.
var unique = map[string]bool{"Content-Location": true, "Last-Modified": true, "Link": true}

// reserved names the fields that are never the protocol's to say.
var reserved = map[string]bool{
	"Etag": true, "Content-Length": true, "Content-Digest": true, "Repr-Digest": true, "Content-Range": true,
	"Transfer-Encoding": true, "Connection": true, "Date": true,
}

// Values that every document shares.
var (
	corsOrigin  = []string{"*"}
	corsExpose  = []string{"ETag, Link, Last-Modified, X-OpenFeeder, X-OpenFeeder-Cache"}
	nosniff     = []string{"nosniff"}
	rangesBytes = []string{"bytes"}
	rangesNone  = []string{"none"}
)

// prepare makes an entry of a document that was found in an edition; guarded
// says that the content of its protocol needs a key. It keeps d.Header's slices.
func prepare(d *millrace.Document, guarded bool, number uint64, now time.Time) (*entry, error) {
	if d.ETag == "" {
		return nil, fmt.Errorf("document %s: no validator", d.Path)
	}
	if strings.ContainsFunc(d.ETag, func(r rune) bool { return r == '"' || r <= ' ' || r == 0x7f }) {
		return nil, fmt.Errorf("document %s: %q cannot be a validator", d.Path, d.ETag)
	}
	e := &entry{tag: d.ETag, oneTag: d.OneTag || d.Exact, exact: d.Exact, offer: allCodings, shared: true, public: d.Public, shape: new(shape)}
	if d.CacheField != "" {
		e.cached = http.CanonicalHeaderKey(d.CacheField)
	}
	e.state.Store(&entryState{number: number, write: d.Write})
	// What the page is called lies beside what every condition is compared with, so
	// that whoever takes it down does not wait for the memory.
	quoted := `"` + d.ETag + `"` + d.Page
	quoted, e.page = quoted[:len(quoted)-len(d.Page)], quoted[len(quoted)-len(d.Page):]
	e.tag = quoted[1 : len(quoted)-1]
	for c := range codings {
		e.tags[c] = quoted
		if !e.oneTag && c != identity {
			e.tags[c] = `"` + d.ETag + codingTable[c].suffix + `"`
		}
	}
	if _, final := d.Header["Content-Encoding"]; final || d.Exact {
		// There is nothing to choose.
		e.offer = 1 << identity
		e.tags = [codings]string{quoted, quoted, quoted, quoted}
	}
	for name, value := range d.Header {
		name = http.CanonicalHeaderKey(name)
		value = slices.Clip(value)
		switch {
		case reserved[name] || len(value) == 0:
			continue
		case name == "Vary" && !e.oneTag:
			for token := range strings.SplitSeq(strings.Join(value, ","), ",") {
				e.shared = e.shared && strings.EqualFold(strings.TrimSpace(token), "Accept-Encoding")
			}
		case name == "Cache-Control":
			directives := strings.ToLower(strings.Join(value, ","))
			e.private = strings.Contains(directives, "private")
			e.shared = e.shared && !e.private && !strings.Contains(directives, "no-store")
		case name == "Last-Modified":
			if t, err := http.ParseTime(value[0]); err == nil {
				e.modified = t.Unix()
				e.ahead = t.After(now)
			}
		}
		switch f := (field{name, value}); {
		case unique[name]:
			e.own = append(e.own, f)
		case validating[name], strings.HasPrefix(name, "X-"): // a field of a protocol's own says what the server is
			e.shape.all = append(e.shape.all, f)
		default:
			e.shape.full = append(e.shape.full, f)
		}
	}
	if guarded && !d.Public {
		e.guard()
	}
	e.complete(d)
	return e, nil
}

// variant reports whether the entry is one of several documents of one URL.
func (e *entry) variant() bool { return strings.HasPrefix(e.key.raw, " ") }

// canonical reports whether the document says itself what its canonical URL is.
func (e *entry) canonical() bool {
	return slices.ContainsFunc(e.own, func(f field) bool {
		return f.name == "Link" && strings.Contains(strings.Join(f.value, ","), `rel="canonical"`)
	})
}

// complete adds what every document of its kind has.
func (e *entry) complete(d *millrace.Document) {
	if e.offer != 1<<identity {
		e.shape.all = addVary(e.shape.all)
	}
	if !e.private {
		e.shape.all = append(e.shape.all, field{"Access-Control-Allow-Origin", corsOrigin},
			field{"Access-Control-Expose-Headers", corsExpose})
	}
	e.shape.full = append(e.shape.full, field{"X-Content-Type-Options", nosniff})
	switch {
	case len(d.Header["Accept-Ranges"]) > 0:
	case e.oneTag:
		e.shape.full = append(e.shape.full, field{"Accept-Ranges", rangesNone})
	default:
		e.shape.full = append(e.shape.full, field{"Accept-Ranges", rangesBytes})
	}
	byName := func(a, b field) int { return strings.Compare(a.name, b.name) }
	slices.SortFunc(e.shape.all, byName)
	slices.SortFunc(e.shape.full, byName)
	slices.SortFunc(e.own, byName)
	if len(e.own) > len(e.inline) || slices.ContainsFunc(e.own, func(f field) bool { return len(f.value) != 1 }) {
		return
	}
	for i, f := range e.own {
		e.values[i] = f.value[0]
		e.inline[i] = field{f.name, e.values[i : i+1 : i+1]}
	}
	e.own = e.inline[:len(e.own)]
}

// addVary makes sure that caches tell the codings apart.
func addVary(fields []field) []field {
	for i, f := range fields {
		if f.name != "Vary" {
			continue
		}
		joined := strings.Join(f.value, ", ")
		for token := range strings.SplitSeq(joined, ",") {
			if token = strings.TrimSpace(token); token == "*" || strings.EqualFold(token, "Accept-Encoding") {
				return fields
			}
		}
		fields[i].value = []string{joined + ", Accept-Encoding"}
		return fields
	}
	return append(fields, field{"Vary", []string{"Accept-Encoding"}})
}

// same reports whether two entries answer alike, bodies apart.
func (e *entry) same(o *entry) bool {
	return e.tag == o.tag && e.oneTag == o.oneTag && e.exact == o.exact && e.offer == o.offer && !e.ahead && !o.ahead &&
		e.public == o.public && e.guarded == o.guarded && e.cached == o.cached &&
		equalFields(e.own, o.own) &&
		(e.shape == o.shape || equalFields(e.shape.all, o.shape.all) && equalFields(e.shape.full, o.shape.full))
}

func equalFields(a, b []field) bool {
	return slices.EqualFunc(a, b, func(a, b field) bool { return a.name == b.name && slices.Equal(a.value, b.value) })
}

// adopt takes the bodies of an earlier entry of the same bytes over.
func (e *entry) adopt(o *entry) {
	if e.tag != o.tag || e.modified != o.modified || e.offer != o.offer {
		return
	}
	for c := range codings {
		e.reps[c].Store(o.reps[c].Load())
	}
}

// err returns an error if the bytes are known to be missing or damaged.
func (e *entry) err() error {
	for c := range codings {
		if r := e.reps[c].Load(); r != nil && r.content != nil && r.content.err() != nil {
			return r.content.err()
		}
	}
	return nil
}

// confirm says that the document stands in an edition; an older edition than
// the last changes nothing.
func (e *entry) confirm(in *entryState) {
	for {
		last := e.state.Load()
		if in.number <= last.number || e.state.CompareAndSwap(last, in) {
			return
		}
	}
}

// keeper is told when an entry has got a body, and stores it if it may stay.
type keeper interface {
	keep(e *entry, c coding, r *rep)
}

// render gives the document in a coding, from memory if it is there; fresh
// says that it was not. Several callers wait for one of them to render; when
// that one fails, the next tries.
func (e *entry) render(ctx context.Context, c coding, enc *encoders, k keeper) (rp *rep, fresh bool, err error) {
	if r := e.reps[c].Load(); r != nil {
		e.touch(1 << c)
		return r, false, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.reps[c].Load(); r != nil {
		return r, false, nil
	}
	if r := e.inUse[c].Value(); r != nil {
		return r, false, nil // too large to keep: its readers share it, however slow they are
	}
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	var body []byte
	if r := e.reps[identity].Load(); r != nil {
		body = r.body
	} else {
		buf := enc.buffer()
		defer enc.free(buf)
		if err := e.state.Load().write(ctx, buf); err != nil {
			return nil, false, fmt.Errorf("rendering %s: %w", e.key.path, err)
		}
		body = buf.Bytes()
	}
	real := c
	if e.oneTag && len(body) < plainBelow {
		// Only where the validator does not name the coding: a 304 has to
		// know the validator without the body.
		real = identity
	}
	coded, err := enc.encode(real, body)
	if err != nil {
		return nil, false, fmt.Errorf("rendering %s: %w", e.key.path, err)
	}
	r := newRep(real, coded, len(body))
	if k != nil {
		k.keep(e, c, r)
		if kept := e.reps[c].Load(); kept != nil {
			r = kept // what others get, with the signature of this response
		}
	}
	e.inUse[c] = weak.Make(r)
	return r, true, nil
}
