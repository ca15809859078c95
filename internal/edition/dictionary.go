package edition

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/dcz"
)

// If a client has an earlier version of a document, the server can send the current one compressed
// with that version as the dictionary (RFC 9842). Such a document is called "coded against" the
// dictionary. The artifact store contains the versions that clients have received: the bytes of
// small documents, and references to the chunks or the file of large ones.

// Prefixes of the names of artifacts. The ID of the dictionary follows in lower-case hex.
const (
	dczPrefix        = "dcz/"
	dictionaryPrefix = dczPrefix + "bytes-"   // the dictionary
	versionPrefix    = dczPrefix + "version-" // a version in JSON
	pairPrefix       = dczPrefix + "pair-"    // a large document, coded against the dictionary
)

const (
	keepVersions    = 8 // number of versions of a large document to keep, in addition to the last one of each earlier day
	keepDictionary  = 35 * 24 * time.Hour
	maxDictionaries = 256 << 20 // maximum total size in bytes of these artifacts, and of the chunks and files that only versions need
	largePair       = 512 << 10 // sum of the sizes of dictionary and document in bytes above which pairs are coded one at a time
	minGain         = 5         // the result must be smaller than the plain coding by at least 1/minGain
	maxSent         = 256
)

// dictionaries codes documents against their earlier versions.
type dictionaries struct {
	encoder dcz.Encoder
	large   sync.Mutex  // held while a large pair is coded
	sent    chan *entry // versions to store

	responses, saved atomic.Int64 // see Server.SentAsChanges
}

// SentAsChanges returns the number of responses of this process that were coded against an earlier
// version, and the total number of bytes that this saved.
func (s *Server) SentAsChanges() (responses, saved int64) {
	return s.dictionaries.responses.Load(), s.dictionaries.saved.Load()
}

// version locates the bytes of a version of a large document.
type version struct {
	Site   string   `json:"site"` // name of the publication
	Path   string   `json:"path"`
	Chunks *chunked `json:"chunks,omitempty"` // if nil, File is set
	File   *coded   `json:"file,omitempty"`
	Gzip   *coded   `json:"gzip,omitempty"` // see storedArtifact
}

// dictionaryUse reports whether a client can use the response to a request as a dictionary (offer),
// and whether the client accepts a response that is coded against a dictionary (accept). A browser
// names this coding only if it has a dictionary; otherwise, dictionaryUse takes support of zstd as
// a sign that the browser can use one. For a request with credentials, both are false: the response
// may contain secrets, and the size of the coded bytes would reveal which parts are also in the
// dictionary.
func dictionaryUse(r *http.Request, q *access.Request) (offer, accept bool) {
	fields, browser := r.Header["Accept-Encoding"], r.Header["Sec-Fetch-Dest"] != nil
	accept = slices.ContainsFunc(fields, func(f string) bool { return strings.Contains(f, dcz.Name) })
	if !accept && !browser || !reads(r) || r.Header["Authorization"] != nil || r.Header["Cookie"] != nil || r.Header["Range"] != nil || q.HasKey() {
		return false, false
	}
	accept = false
	for _, field := range fields {
		for element := range strings.SplitSeq(field, ",") {
			token, params, _ := strings.Cut(element, ";")
			weight, ok := quality(params)
			switch token = strings.Trim(token, " \t"); {
			case !ok || weight == 0:
			case strings.EqualFold(token, dcz.Name):
				offer, accept = true, true
			case browser && strings.EqualFold(token, codingTable[zstdCoding].name):
				offer = true
			}
		}
	}
	return offer, accept
}

// secure reports whether no intermediary can change the bytes of a response: the endpoint base is
// HTTPS, or the peer is on this machine.
func secure(base string, r *http.Request) bool {
	if strings.HasPrefix(base, "https:") {
		return true
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback()
}

// answer responds with a document, coded against the request's dictionary if possible. base is the
// URL to which the path of r is relative.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, e *entry, base string, bodies keeper, q *access.Request) error {
	offer, accept := dictionaryUse(r, q)
	if !offer || !e.shared || e.guarded || e.exact || e.offer == 1<<identity && e.plain == nil || !secure(base, r) {
		_, err := e.respond(w, r, &s.enc, bodies, q)
		return err
	}
	answer := e
	if fields := r.Header[dcz.Available]; accept && len(fields) == 1 && !e.inFile() {
		id, ok := dcz.ParseField(fields[0])
		c := negotiate(r.Header["Accept-Encoding"], e.offer)
		if status, _ := e.condition(r.Header, c); ok && status == 0 {
			coded, known := s.cachedAgainst(id, e)
			if !known {
				if err := q.WaitTurn(); err != nil {
					return err
				}
				coded = s.codedAgainst(r, id, e, base, c, bodies)
			}
			answer = cmp.Or(coded, e)
		}
	}
	if !answer.coded {
		if e.isDictionary() {
			w.Header()[dcz.Use] = e.use(base, r.URL)
		}
		w.Header()["Vary"] = []string{dcz.Available}
		if e.offer == 1<<identity {
			w.Header()["Vary"] = []string{"Accept-Encoding, " + dcz.Available}
		}
	}
	whole, err := answer.respond(w, r, &s.enc, bodies, q)
	if !whole || err != nil {
		return err
	}
	if e.isDictionary() {
		s.keepVersion(e)
	}
	if answer.coded {
		s.dictionaries.responses.Add(1)
		s.dictionaries.saved.Add(answer.saves)
	}
	return nil
}

// inFile reports whether the entry is an artifact whose file has a coding, such as /all.scp.zst.
func (e *entry) inFile() bool { return e.plain != nil && e.plain != e.reps[identity].Load() }

// isDictionary reports whether later versions may be coded against this document.
func (e *entry) isDictionary() bool { return e.plain == nil || e.versions != "" }

// use returns the value of Use-As-Dictionary for a document with this target. The pattern matches
// the URLs of the document's versions.
func (e *entry) use(base string, target *url.URL) []string {
	path, query, _ := strings.Cut(cmp.Or(e.versions, e.key.target()), "?")
	if strings.HasPrefix(e.key.raw, " ") { // a page of the site, or one of several documents with one URL
		path, query = target.EscapedPath(), ""
	}
	pattern := escapePattern.Replace(path)
	if e.versions != "" {
		pattern = strings.ReplaceAll(pattern, `\*`, `*`)
	}
	if query != "" {
		pattern += "?" + escapePattern.Replace(query)
	}
	if u, err := url.Parse(base); err == nil {
		pattern = escapePattern.Replace(strings.TrimSuffix(u.EscapedPath(), "/")) + pattern
	}
	return []string{`match="` + strings.ReplaceAll(pattern, `\`, `\\`) + `"`} // a string of RFC 9651
}

// escapePattern escapes the characters that have a special meaning in a URLPattern.
var escapePattern = strings.NewReplacer(`*`, `\*`, `:`, `\:`, `?`, `\?`, `+`, `\+`, `(`, `\(`, `)`, `\)`, `{`, `\{`, `}`, `\}`, `\`, `\\`)

// keyAgainst returns the cache key of the document as coded against a dictionary.
func (e *entry) keyAgainst(id dcz.ID) key {
	k := e.key
	k.raw += " " + dcz.Name + string(id[:])
	return k
}

// tagSuffix is the length in bytes of the suffix of a coded document's validator.
const tagSuffix = len("-"+dcz.Name+"-") + 12

// plainTag returns the validator of a coded document without the suffix.
func (e *entry) plainTag() string {
	if e.sharedETag {
		return e.tag
	}
	return e.tag[:len(e.tag)-tagSuffix]
}

// cachedAgainst returns the cached entry of a document as coded against a dictionary, or nil if
// the coding saves too little. If the cache has no result, known is false.
func (s *Server) cachedAgainst(id dcz.ID, e *entry) (coded *entry, known bool) {
	have := s.cache.get(e.keyAgainst(id))
	if have == nil || !e.identified() || have.modified != e.modified || have.plainTag() != e.tag {
		return nil, false
	}
	if have.offer == 0 {
		return nil, true
	}
	return have, have.reps[identity].Load() != nil
}

// codedAgainst codes a document against a dictionary. It returns nil if that fails, for example
// because the dictionary is unknown, or if the result is not much smaller than the document in the
// coding c.
func (s *Server) codedAgainst(r *http.Request, id dcz.ID, e *entry, base string, c coding, bodies keeper) *entry {
	k, tag := e.keyAgainst(id), e.tag
	if !e.sharedETag {
		// Each dictionary has its own validator, because it results in other bytes.
		tag += "-" + dcz.Name + "-" + base64.RawURLEncoding.EncodeToString(id[:9])
	}
	have := s.cache.get(k)
	ctx := r.Context()
	plainly, _, err := e.render(ctx, c, &s.enc, bodies)
	var body []byte
	var plain int
	if err == nil {
		body, plain, err = s.encodeAgainst(ctx, id, e, plainly, bodies)
	}
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, millrace.ErrNotFound) {
			s.log.WarnContext(ctx, "could not code a document against an earlier version", "path", e.key.path, "err", err)
		}
		return nil
	}
	coded := &entry{
		key: k, coded: true, own: slices.Clip(e.own), tag: tag, modified: e.modified, ahead: e.ahead,
		sharedETag: e.sharedETag, shared: true, public: e.public, signer: e.signer, cached: e.cached, proto: e.proto, page: e.page, extra: e.extra,
		shape: &shape{all: addVary(addVary(slices.Clone(e.shape.all), "Accept-Encoding"), dcz.Available), full: []field{{"Content-Encoding", codingOfDictionary}}},
	}
	if e.isDictionary() {
		coded.own = append(coded.own, field{dcz.Use, e.use(base, r.URL)})
	}
	for _, f := range e.shape.full {
		if f.name != "Accept-Ranges" { // requests for a range do not use this entry
			coded.shape.full = append(coded.shape.full, f)
		}
	}
	for c := range codings {
		coded.tags[c] = `"` + tag + `"`
	}
	coded.state.Store(&entryState{number: e.state.Load().number, write: func(ctx context.Context, w io.Writer) error {
		body, _, err := s.encodeAgainst(ctx, id, e, plainly, nil)
		if err == nil {
			_, err = w.Write(body)
		}
		return err
	}})
	s.cache.intern(coded)
	if body == nil {
		s.cache.put(coded, have)
		return nil
	}
	coded.offer, coded.saves = 1<<identity, plainly.size-int64(len(body))
	coded.reps[identity].Store(newRep(identity, body, plain))
	return s.cache.put(coded, have)
}

var codingOfDictionary = []string{dcz.Name}

// encodeAgainst returns the bytes of a document coded against a dictionary, and the size of its
// identity bytes. The bytes are nil if they are not much smaller than the plain coding, or if the
// sizes do not fit; see [dcz.Fits]. encodeAgainst returns ErrNotFound if the dictionary is unknown,
// or if another large pair is being coded.
func (s *Server) encodeAgainst(ctx context.Context, id dcz.ID, e *entry, plainly *rep, bodies keeper) (body []byte, plain int, err error) {
	of := sha256.Sum256([]byte(e.key.target() + "\n" + e.tag))
	pair := pairPrefix + hex.EncodeToString(id[:]) + "-" + hex.EncodeToString(of[:16])
	if e.large {
		if body, err = s.readArtifact(ctx, pair); err == nil {
			return gain(body, plainly), int(plainly.plain), nil
		}
	}
	dict, err := s.dictionary(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	if e.large && !dcz.Fits(int64(len(dict)), plainly.plain) {
		return nil, 0, nil
	}
	target, err := s.identityBytes(ctx, e, bodies)
	if err != nil || !dcz.Fits(int64(len(dict)), int64(len(target))) {
		return nil, 0, err
	}
	large := len(dict)+len(target) > largePair
	if large {
		if !s.dictionaries.large.TryLock() {
			return nil, 0, fmt.Errorf("another document is being coded: %w", millrace.ErrNotFound)
		}
		defer s.dictionaries.large.Unlock()
	} else {
		defer s.enc.turn()()
	}
	if body, err = s.dictionaries.encoder.Encode(dict, id, target); err == nil && large && e.large {
		err = s.artifacts.Put(ctx, pair, bytes.NewReader(body))
	}
	return gain(body, plainly), len(target), err
}

// gain returns body, or nil if it is not much smaller than the plain representation.
func gain(body []byte, plainly *rep) []byte {
	if int64(len(body)) > plainly.size-plainly.size/minGain {
		return nil
	}
	return body
}

// identityBytes returns the bytes of a document without coding.
func (s *Server) identityBytes(ctx context.Context, e *entry, bodies keeper) ([]byte, error) {
	r, _, err := e.render(ctx, identity, &s.enc, bodies)
	if err != nil || r.content == nil {
		return r.bytes(), err
	}
	var b bytes.Buffer
	b.Grow(int(r.size))
	err = r.content.write(ctx, &b, 0, r.size)
	return b.Bytes(), err
}

// dictionary returns the bytes of a dictionary, or ErrNotFound if the store does not have the
// dictionary. It deletes a damaged dictionary.
func (s *Server) dictionary(ctx context.Context, id dcz.ID) ([]byte, error) {
	name := hex.EncodeToString(id[:])
	b, err := s.readArtifact(ctx, dictionaryPrefix+name)
	if errors.Is(err, millrace.ErrNotFound) {
		b, err = s.readVersion(ctx, versionPrefix+name)
	}
	if err == nil && dcz.Sum(b) != id {
		err = errors.Join(fmt.Errorf("dictionary %s is damaged: %w", name, millrace.ErrInvalid),
			s.artifacts.Delete(ctx, dictionaryPrefix+name), s.artifacts.Delete(ctx, versionPrefix+name))
	}
	return b, err
}

// readArtifact returns the bytes of an artifact.
func (s *Server) readArtifact(ctx context.Context, name string) ([]byte, error) {
	r, err := s.artifacts.Open(ctx, name, 0, -1)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// readVersion returns the bytes of a version of a large document.
func (s *Server) readVersion(ctx context.Context, name string) ([]byte, error) {
	v, err := s.loadVersion(ctx, name)
	if err != nil {
		return nil, err
	}
	r, err := v.rep(s)
	if err != nil {
		return nil, err
	}
	if r.size > dcz.MaxSum {
		return nil, fmt.Errorf("%s: %w", name, millrace.ErrNotFound)
	}
	var b bytes.Buffer
	b.Grow(int(r.size))
	if err = r.content.write(ctx, &b, 0, r.size); err != nil { // chunks of old versions may be gone
		err = fmt.Errorf("%s: %w", name, millrace.ErrNotFound)
	}
	return b.Bytes(), err
}

func (s *Server) loadVersion(ctx context.Context, name string) (*version, error) {
	b, err := s.readArtifact(ctx, name)
	if err != nil {
		return nil, err
	}
	v := new(version)
	if err := json.Unmarshal(b, v); err != nil || v.Chunks == nil && v.File == nil {
		return nil, fmt.Errorf("%s: %w", name, millrace.ErrInvalid)
	}
	return v, nil
}

// rep returns the identity representation of a version. If the bytes are missing or damaged, the
// server does not rebuild them.
func (v *version) rep(s *Server) (*rep, error) {
	old := &Server{artifacts: s.artifacts, cache: s.cache}
	if v.Chunks != nil {
		return v.Chunks.rep(identity, old)
	}
	f := storedArtifact{Artifact: millrace.Artifact{Size: v.File.Size, Sum: v.File.Sum}, Gzip: v.Gzip}
	return f.rep(old, v.File.Size)
}

// keepVersion schedules the storage of a version that was sent, unless it was scheduled before. If
// the queue is full, it does nothing, and a later response tries again.
func (s *Server) keepVersion(e *entry) {
	if e.kept.Load() || e.kept.Swap(true) {
		return
	}
	select {
	case s.dictionaries.sent <- e:
	default:
		e.kept.Store(false)
	}
}

// keepVersions stores the versions that were sent, until the context ends.
func (s *Server) keepVersions(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-s.dictionaries.sent:
			var failed error // an error does not prevent storing the other versions
			err := artifact.Batch(ctx, s.artifacts, func(ctx context.Context) error {
				failed = s.storeVersion(ctx, e)
				for range len(s.dictionaries.sent) { // this goroutine is the only receiver
					failed = errors.Join(failed, s.storeVersion(ctx, <-s.dictionaries.sent))
				}
				return nil
			})
			if err = errors.Join(failed, err); err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "could not keep versions as dictionaries", "err", err)
			}
		}
	}
}

// storeVersion stores the version of a document.
func (s *Server) storeVersion(ctx context.Context, e *entry) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", e.key.path, err)
		}
	}()
	r := e.plain
	if r == nil {
		r, _, err = e.render(ctx, identity, &s.enc, nil)
	}
	if err != nil {
		return err
	}
	if r.content == nil {
		id := dcz.Sum(r.body)
		return s.artifacts.Put(ctx, dictionaryPrefix+hex.EncodeToString(id[:]), bytes.NewReader(r.body))
	}
	if r.size > dcz.MaxSum {
		return nil
	}
	v := version{Site: (*s.publication.Load()).Name(), Path: cmp.Or(e.versions, e.key.path)}
	h := sha256.New()
	switch b := r.content.(type) {
	case *bodies:
		v.Chunks = b.chunked
	case *blob:
		v.File = &coded{b.size, hex.EncodeToString(b.sum)}
		if b.gzip {
			v.Gzip = &coded{Sum: strings.TrimSuffix(b.name, artifactSuffix)}
		}
	}
	if err := r.content.write(ctx, h, 0, r.size); err != nil {
		return err
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.artifacts.Put(ctx, versionPrefix+hex.EncodeToString(h.Sum(nil)), bytes.NewReader(raw))
}

// needDictionaries adds the artifacts of the newest dictionaries to needed, up to a total size of
// maxDictionaries.
func (s *Server) needDictionaries(ctx context.Context, now time.Time, needed map[string]bool) error {
	var infos []artifact.Info
	for info, err := range s.artifacts.List(ctx, dczPrefix) {
		if err != nil {
			return err
		}
		if now.Sub(info.Modified) < keepDictionary {
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b artifact.Info) int {
		return cmp.Or(b.Modified.Compare(a.Modified), strings.Compare(a.Name, b.Name))
	})
	type document struct{ site, path string }
	versions, days := make(map[document]int), make(map[document]time.Time)
	free := int64(maxDictionaries)
	for _, info := range infos {
		names, size := []string{info.Name}, info.Size
		if strings.HasPrefix(info.Name, versionPrefix) {
			v, err := s.loadVersion(ctx, info.Name)
			if err != nil {
				continue
			}
			of, day := document{v.Site, v.Path}, info.Modified.Truncate(24*time.Hour)
			if versions[of]++; versions[of] > keepVersions && days[of].Equal(day) {
				continue
			}
			days[of] = day
			err = v.forEach(ctx, s.artifacts, func(name string, n int64) error {
				if !needed[name] {
					names, size = append(names, name), size+n
				}
				return nil
			})
			if err != nil && !unreadable(err) {
				return err
			} else if err != nil {
				continue
			}
		}
		if free -= size; free < 0 {
			return nil
		}
		for _, name := range names {
			needed[name] = true
		}
	}
	return nil
}

// forEach calls f for every artifact of the version, with the artifact's size in bytes, or 0 if
// unknown.
func (v *version) forEach(ctx context.Context, store artifact.Store, f func(name string, size int64) error) error {
	if v.Chunks == nil {
		stored := cmp.Or(v.Gzip, v.File)
		return f(stored.name(), stored.Size)
	}
	return v.Chunks.Tree.forEachNotIn(ctx, store, new(tree), func(b *branch, height int) error {
		if height > 0 {
			return f(b.node(), 0)
		}
		return f(b.chunk(), b.Coded)
	})
}
