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

// field is a header field. Responses share its value, which is read-only.
type field struct {
	name  string // canonical name
	value []string
}

// shape contains the header fields that many documents share.
type shape struct {
	all  []field // fields for 200, 206, 304 and HEAD
	full []field // fields that a 304 lacks
}

// entry is a document prepared for responses. All fields are written only once, except atomics and
// those guarded by a lock.
type entry struct {
	key        key
	shape      *shape
	own        []field         // fields like shape.all, for this document only
	inline     [2]field        // storage for own if it has few fields, which saves an allocation
	values     [2]string       // storage for the values of inline
	tag        string          // validator without quotes
	tags       [codings]string // the validators, with quotes
	modified   int64           // Last-Modified in Unix seconds, or 0
	ahead      bool            // modified was in the future when the entry was created
	sharedETag bool            // see millrace.Document
	exact      bool            // DigestETag of millrace.Document
	private    bool            // the document is for a single client, so other origins must not read it (CORS)
	shared     bool            // the document is the same for all clients with access, except for the coding
	public     bool            // see millrace.Document
	guarded    bool            // requests need a key
	signer     Signer          // signs the responses. If nil, they are not signed.
	cached     string          // millrace.Document.CacheField in canonical form, or ""
	offer      codingSet       // offered codings
	large      bool            // a large document or an artifact, whose bytes the edition provides
	coded      bool            // the document is coded against a dictionary
	saves      int64           // bytes by which coded is smaller than the plain coding
	plain      *rep            // representation of an artifact without coding, or nil if unknown
	versions   string          // pattern of an artifact's versions; see millrace.Artifact
	proto      string          // name of its protocol
	page       string          // see millrace.Document
	extra      *extraSubject   // If nil, all of its fields are zero.

	mu    sync.Mutex                 // held while rendering
	inUse [codings]weak.Pointer[rep] // representations in use by responses in progress, cached or not; guarded by mu
	state atomic.Pointer[entryState]
	reps  [codings]atomic.Pointer[rep]

	kept  atomic.Bool   // see Server.keepVersion
	used  atomic.Uint32 // coding bits of the bodies used since the clock hand last passed, and the touched bit
	cost  int64         // estimated memory in bytes; guarded by the cache
	clock *clock        // clock that contains the entry; guarded by the cache
	index int           // index in the clock's ring; guarded by the cache
}

// entryState is the last edition that contains an entry, and the function that renders the entry in
// that edition.
type entryState struct {
	number    uint64
	write     func(context.Context, io.Writer) error
	pageState string // see Server.Page and Server.CacheBody
}

// rep is a representation: the bytes of a document in one coding, from body or from
// artifacts.
type rep struct {
	coding  coding // coding of body; identity if encoding saves too little
	body    []byte
	content content // provides the bytes. If nil, they are in body.
	size    int64
	plain   int64     // identity size, or 0 if unknown
	digest  [1]string // Content-Digest or Repr-Digest of body
	length  [1]string // Content-Length
	made    int64     // time of rendering in Unix seconds; 0 if content is set
	age     atomic.Pointer[age]
	signed  atomic.Pointer[signed] // nil = not signed yet

	block *block // block that contains body. If nil, body has its own allocation.
	of    *entry // cached entry of the representation; guarded by the cache
	index int32  // index in block.reps
	at    coding // index of the representation in of.reps
}

// bytes returns the body. r may be nil.
func (r *rep) bytes() []byte {
	if r == nil {
		return nil
	}
	return r.body
}

func newRep(c coding, body []byte, plain int) *rep {
	return &rep{
		coding: c, body: body, size: int64(len(body)), plain: int64(plain),
		digest: [1]string{canon.Digest(body)}, length: [1]string{strconv.Itoa(len(body))},
		made: time.Now().Unix(),
	}
}

// plainBelow is the size in bytes below which encoding saves too little.
const plainBelow = 200

// validating lists the fields that a 304 repeats, except ETag (RFC 9110, section 15.4.5).
var validating = map[string]bool{
	"Cache-Control": true, "Content-Location": true, "Expires": true, "Last-Modified": true, "Link": true, "Vary": true,
}

// unique lists the fields whose values most documents do not share.
var unique = map[string]bool{"Content-Location": true, "Last-Modified": true, "Link": true}

// reserved lists the fields that a protocol must not set.
var reserved = map[string]bool{
	"Etag": true, "Content-Length": true, "Content-Digest": true, "Repr-Digest": true, "Content-Range": true,
	"Transfer-Encoding": true, "Connection": true, "Date": true,
}

// Values that every document shares.
var (
	corsOrigin  = []string{"*"}
	nosniff     = []string{"nosniff"}
	rangesBytes = []string{"bytes"}
	rangesNone  = []string{"none"}
)

// prepare returns the entry of a document in an edition. guarded reports whether its
// protocol needs a key. prepare retains the slices of d.Header.
func prepare(d *millrace.Document, guarded bool, number uint64, now time.Time) (*entry, error) {
	if d.ETag == "" {
		return nil, fmt.Errorf("document %s: no validator", d.Path)
	}
	if strings.ContainsFunc(d.ETag, func(r rune) bool { return r == '"' || r <= ' ' || r == 0x7f }) {
		return nil, fmt.Errorf("document %s: invalid validator %q", d.Path, d.ETag)
	}
	e := &entry{tag: d.ETag, sharedETag: d.SharedETag || d.DigestETag, exact: d.DigestETag, offer: allCodings, shared: true, public: d.Public, shape: new(shape)}
	if d.CacheField != "" {
		e.cached = http.CanonicalHeaderKey(d.CacheField)
	}
	e.state.Store(&entryState{number: number, write: d.Write})
	// Evaluating a condition reads the tag, and recording the request then reads the page. Both
	// are in one allocation, so that they share lines of the processor's cache.
	quoted := `"` + d.ETag + `"` + d.Page
	quoted, e.page = quoted[:len(quoted)-len(d.Page)], quoted[len(quoted)-len(d.Page):]
	e.tag = quoted[1 : len(quoted)-1]
	for c := range codings {
		e.tags[c] = quoted
		if !e.sharedETag && c != identity {
			e.tags[c] = `"` + d.ETag + codingTable[c].suffix + `"`
		}
	}
	if _, final := d.Header["Content-Encoding"]; final || d.DigestETag {
		// The document has only one coding.
		e.offer = 1 << identity
		e.tags = [codings]string{quoted, quoted, quoted, quoted}
	}
	for name, value := range d.Header {
		name = http.CanonicalHeaderKey(name)
		value = slices.Clip(value)
		switch {
		case reserved[name] || len(value) == 0:
			continue
		case name == "Vary" && !e.sharedETag:
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
		case validating[name], strings.HasPrefix(name, "X-"): // protocols describe the server in X- fields
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

// canonical reports whether the document sets its own canonical link.
func (e *entry) canonical() bool {
	return slices.ContainsFunc(e.own, func(f field) bool {
		return f.name == "Link" && strings.Contains(strings.Join(f.value, ","), `rel="canonical"`)
	})
}

// complete adds the fields that the package defines, such as Vary, Accept-Ranges and those for
// CORS, and sorts all fields.
func (e *entry) complete(d *millrace.Document) {
	if e.offer != 1<<identity {
		e.shape.all = addVary(e.shape.all, "Accept-Encoding")
	}
	if !e.private {
		e.shape.all = append(e.shape.all, field{"Access-Control-Allow-Origin", corsOrigin},
			field{"Access-Control-Expose-Headers", e.exposed()})
	}
	e.shape.full = append(e.shape.full, field{"X-Content-Type-Options", nosniff})
	switch {
	case len(d.Header["Accept-Ranges"]) > 0:
	case e.sharedETag:
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

// exposed returns the value of Access-Control-Expose-Headers, which lets scripts of other sites
// read the document's header fields.
func (e *entry) exposed() []string {
	names := []string{"ETag"}
	for _, f := range slices.Concat(e.own, e.shape.all) {
		if f.name == "Link" || strings.HasPrefix(f.name, "X-") {
			names = append(names, f.name)
		}
	}
	if e.cached != "" {
		names = append(names, e.cached)
	}
	slices.Sort(names)
	return []string{strings.Join(names, ", ")}
}

// addVary adds the name of a request field to Vary.
func addVary(fields []field, name string) []field {
	for i, f := range fields {
		if f.name != "Vary" {
			continue
		}
		joined := strings.Join(f.value, ", ")
		for token := range strings.SplitSeq(joined, ",") {
			if token = strings.TrimSpace(token); token == "*" || strings.EqualFold(token, name) {
				return fields
			}
		}
		fields[i].value = []string{joined + ", " + name}
		return fields
	}
	return append(fields, field{"Vary", []string{name}})
}

// same reports whether two entries produce equal responses.
func (e *entry) same(o *entry) bool {
	return e.sameBytes(o) && e.sharedETag == o.sharedETag && e.exact == o.exact && e.offer == o.offer && !e.ahead && !o.ahead &&
		e.public == o.public && e.guarded == o.guarded && e.cached == o.cached &&
		equalFields(e.own, o.own) &&
		(e.shape == o.shape || equalFields(e.shape.all, o.shape.all) && equalFields(e.shape.full, o.shape.full))
}

func equalFields(a, b []field) bool {
	return slices.EqualFunc(a, b, func(a, b field) bool { return a.name == b.name && slices.Equal(a.value, b.value) })
}

// sameBytes reports whether two entries of a target have the same bytes.
func (e *entry) sameBytes(o *entry) bool {
	return e.identified() && e.tag == o.tag && e.modified == o.modified
}

// identified reports whether the ETag and the date identify the bytes. If a document has one ETag
// for all codings, as in TCT draft-00, the bytes may change while the ETag stays the same. The
// date then changes.
func (e *entry) identified() bool { return e.modified != 0 || !e.sharedETag || e.exact }

// adopt copies the representations of an earlier entry, if both entries have the same bytes and
// codings.
func (e *entry) adopt(o *entry) {
	if !e.sameBytes(o) || e.offer != o.offer {
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

// confirm records that an edition contains the document. It ignores an edition that is not newer
// than the last one.
func (e *entry) confirm(in *entryState) {
	for {
		last := e.state.Load()
		if in.number <= last.number || e.state.CompareAndSwap(last, in) {
			return
		}
	}
}

// keeper stores the rendered bodies of entries, if they fit.
type keeper interface {
	keep(e *entry, c coding, r *rep)
}

// render returns the document in a coding, from memory if possible. fresh reports that this call
// rendered it. One caller renders while others wait. If that fails, the next caller tries.
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
		return r, false, nil // the body is too large for the cache, but another response still uses it
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
			return nil, false, fmt.Errorf("render %s: %w", e.key.path, err)
		}
		body = buf.Bytes()
	}
	real := c
	if e.sharedETag && len(body) < plainBelow {
		// Other documents keep the coding, because it is part of their validator, and a 304 must
		// know the validator without rendering the body.
		real = identity
	}
	coded, err := enc.encode(real, body)
	if err != nil {
		return nil, false, fmt.Errorf("render %s: %w", e.key.path, err)
	}
	r := newRep(real, coded, len(body))
	if k != nil {
		k.keep(e, c, r)
		if shared := e.reps[c].Load(); shared != nil {
			r = shared // use the shared copy, which stores the signature of this response
		}
	}
	e.inUse[c] = weak.Make(r)
	return r, true, nil
}
