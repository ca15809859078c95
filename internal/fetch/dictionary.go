package fetch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/dcz"
)

// Limits of the dictionaries of one origin. Below minDictionary, the header of a response, which no
// dictionary reduces, is about as large as the compressed body. Above maxDictionary, a dictionary
// and the next version of the document could together exceed [dcz.MaxSum].
const (
	minDictionary   = 4 << 10
	maxDictionary   = dcz.MaxSum / 2
	maxDictionaries = 64
	maxMatch        = 1024 // maximum length of a pattern, and of an ID, in bytes
	refusedFor      = 24 * time.Hour
)

// Dictionaries stores the content of responses. Servers can compress later responses with this
// content as the dictionary (RFC 9842). Implementations must be safe for concurrent use. Origins
// have the form "https://example.com:443". The client logs errors. After an error, a request only
// transfers more bytes; it does not fail.
type Dictionaries interface {
	// Index returns the index of an origin, or the zero value if it has none.
	Index(ctx context.Context, origin string) (DictionaryIndex, error)
	// Update changes the index of an origin.
	Update(ctx context.Context, origin string, change func(*DictionaryIndex)) error
	// Read returns the content of the last dictionary with a pattern. It returns ErrNotFound if
	// the dictionary was deleted.
	Read(ctx context.Context, origin, match string) ([]byte, error)
	// Write replaces the content of the dictionary with a pattern. It may delete dictionaries that
	// were not used recently.
	Write(ctx context.Context, origin, match string, content []byte) error
}

// DictionaryIndex lists the dictionaries of one origin.
type DictionaryIndex struct {
	// Refused is the time of the last response that could not be decoded. For a day after it, the
	// client does not offer the coding to the origin.
	Refused      time.Time    `json:"refused,omitzero"`
	Dictionaries []Dictionary `json:"held,omitempty"` // oldest first
}

// Dictionary describes the content of one response.
type Dictionary struct {
	Hash  string `json:"hash"`         // value of Available-Dictionary
	Match string `json:"match"`        // pattern of path and query to which the dictionary applies, with "*" for any text
	ID    string `json:"id,omitempty"` // value of Dictionary-ID, unquoted
	Size  int    `json:"size"`         // size of the content in bytes
}

// add adds a dictionary, or replaces the one with the same pattern, and reports whether the index
// has changed. If there are too many, add keeps the largest ones, which save the most. These are
// usually the lists and collections of a site, not its pages.
func (ix *DictionaryIndex) add(d Dictionary) bool {
	if slices.Contains(ix.Dictionaries, d) {
		return false
	}
	held := append(slices.DeleteFunc(slices.Clone(ix.Dictionaries), func(h Dictionary) bool { return h.Match == d.Match }), d)
	if len(held) > maxDictionaries {
		least := slices.MinFunc(held, func(a, b Dictionary) int { return a.Size - b.Size })
		held = slices.DeleteFunc(held, func(h Dictionary) bool { return h == least })
	}
	ix.Dictionaries = held
	return slices.Contains(held, d)
}

// offer describes the dictionary coding that a request accepts.
type offer struct {
	origin string
	held   *Dictionary // If nil, no dictionary matches, but the response may become a dictionary.
}

// offer returns the offer of a request, or nil if the request must not offer the coding. Bodies for
// one user, and bodies over connections that others can modify, must not become dictionaries.
func (c *Client) offer(req *http.Request) *offer {
	bare := req.Context().Value(withoutDictionaries{}) != nil
	if c.dictionaries == nil && !bare || req.Method != http.MethodGet && req.Method != "" || req.URL.Scheme != "https" && !IsLoopback(req.URL.Hostname()) {
		return nil
	}
	for _, name := range []string{"Authorization", "Cookie", "Range"} {
		if len(req.Header[name]) > 0 {
			return nil
		}
	}
	d, _ := req.Context().Value(download{}).(download)
	stream := d.timeout == math.MaxInt64
	if stream || req.Header.Get("Accept-Encoding") == "identity" {
		return nil
	}
	o := &offer{origin: origin(req.URL)}
	if c.dictionaries == nil {
		return o
	}
	ix, err := c.dictionaries.Index(req.Context(), o.origin)
	if err != nil {
		if req.Context().Err() == nil {
			c.log.WarnContext(req.Context(), "could not read dictionaries", "err", err)
		}
		return nil
	}
	if age := time.Since(ix.Refused); age >= 0 && age < refusedFor {
		return nil
	}
	for i := range ix.Dictionaries {
		if d := &ix.Dictionaries[i]; !bare && matches(d.Match, req.URL) && (o.held == nil || len(d.Match) >= len(o.held.Match)) {
			o.held = d
		}
	}
	return o
}

type withoutDictionaries struct{}

// WithoutDictionaries returns a context for requests that offer no dictionary, so that their
// responses have the same size as for any client. Servers still declare dictionaries in their
// responses.
func WithoutDictionaries(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutDictionaries{}, true)
}

// set adds the offer to the header of a request. Without a dictionary, the name of the coding
// tells the server that declaring one is useful.
func (o *offer) set(h http.Header) {
	if o == nil {
		return
	}
	h.Set("Accept-Encoding", h.Get("Accept-Encoding")+", "+dcz.Name)
	if o.held == nil {
		return
	}
	h.Set(dcz.Available, o.held.Hash)
	if id, err := httpsfv.Marshal(httpsfv.NewItem(o.held.ID)); err == nil && o.held.ID != "" {
		h.Set("Dictionary-ID", id)
	}
}

// HasDictionary reports whether a client offers a dictionary in requests for a URL.
func HasDictionary(ctx context.Context, client *http.Client, target string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	c := clientOf(client.Transport)
	if err != nil || c == nil {
		return false
	}
	if k, ok := client.Transport.(keyed); ok && k.key(asciiOrigin(req.URL)) != "" {
		return false
	}
	o := c.offer(req)
	return o != nil && o.held != nil
}

// decoded returns resp without the dictionary coding. If the body cannot be decoded, decoded sends
// a second request without an offer, and returns its response. The second request bypasses caches,
// because the coded response may have come from one.
func (c *Client) decoded(req *http.Request, resp *http.Response, o *offer, again func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	ctx := req.Context()
	if !repeatable(req) || !coded(resp, o) {
		if body, ok := resp.Body.(*wireBody); ok {
			body.coding, body.keep = resp.Header.Get("Content-Encoding"), c.keeper(ctx, resp, o)
		}
		return resp, nil
	}
	content, err := c.undo(ctx, resp, o)
	if err == nil {
		resp.Body, resp.ContentLength, resp.Uncompressed = io.NopCloser(bytes.NewReader(content)), int64(len(content)), true
		resp.Header.Del("Content-Length")
		if keep := c.keeper(ctx, resp, o); keep != nil {
			keep(content)
		}
		return resp, nil
	}
	if _, spent := errors.AsType[*QuotaError](err); spent || ctx.Err() != nil {
		return nil, err
	}
	c.log.DebugContext(ctx, "could not decode response; requesting it without a dictionary", "url", cleanURL(req.URL), "err", err)
	// A deleted dictionary or a broken connection is not the server's fault.
	gone := errors.Is(err, millrace.ErrNotFound)
	if o != nil && c.dictionaries != nil && (gone || errors.Is(err, millrace.ErrInvalid) || errors.Is(err, millrace.ErrTooLarge)) {
		c.warn(ctx, c.dictionaries.Update(ctx, o.origin, func(ix *DictionaryIndex) {
			if gone {
				ix.Dictionaries = slices.DeleteFunc(slices.Clone(ix.Dictionaries), func(d Dictionary) bool { return d == *o.held })
			} else {
				ix.Refused = time.Now().UTC()
			}
		}))
	}
	plain := req.Clone(ctx)
	plain.Header.Set("Cache-Control", "no-cache")
	if resp, err = again(plain); err == nil {
		resp.Request = req
	}
	return resp, err
}

func (c *Client) warn(ctx context.Context, err error) {
	if err != nil {
		c.log.WarnContext(ctx, "could not save dictionaries", "err", err)
	}
}

// coded reports whether a body has, or may have, the dictionary coding. If a dictionary was
// offered, coded also examines the first bytes, because some proxies remove Content-Encoding, and
// may then compress the body again.
func coded(resp *http.Response, o *offer) bool {
	offered := o != nil && o.held != nil
	codings, err := contentCodings(resp)
	named := slices.Contains(codings, dcz.Name)
	body, ok := resp.Body.(*wireBody)
	if !ok || !offered || err != nil || named || resp.StatusCode != http.StatusOK {
		return err != nil && offered || named
	}
	in := bufio.NewReaderSize(body.body, sniffSize)
	body.watch.idle.Reset(body.watch.idleTimeout)
	head, _ := in.Peek(sniffSize) // Read returns the error again
	body.watch.idle.Stop()
	body.body = struct {
		io.Reader
		io.Closer
	}{in, body.body}
	content := bufio.NewReader(bytes.NewReader(head))
	for _, coding := range codings {
		if open := decoders[coding]; open != nil {
			if r, stop, err := open(content); err == nil && r != nil {
				defer stop()
				content = bufio.NewReader(r)
			}
		}
	}
	_, err = dcz.NewReader(content, nil, dcz.ID{})
	return errors.Is(err, dcz.ErrDictionary)
}

// undo reads a body with the dictionary coding to its end, closes the body, and returns its decoded
// content.
func (c *Client) undo(ctx context.Context, resp *http.Response, o *offer) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }()
	bad := &BodyError{URL: responseURL(resp), Code: "coding", Reason: "invalid " + dcz.Name, Kind: millrace.ErrInvalid}
	body, ok := resp.Body.(*wireBody)
	if coding := resp.Header.Get("Content-Encoding"); !ok || o == nil || o.held == nil || coding != "" && !strings.EqualFold(coding, dcz.Name) {
		return nil, bad
	}
	id, _ := dcz.ParseField(o.held.Hash)
	dict, err := c.dictionaries.Read(ctx, o.origin, o.held.Match)
	if err == nil && dcz.Sum(dict) != id {
		err = fmt.Errorf("dictionary for %s: replaced or damaged: %w", o.held.Match, millrace.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	count := body.onComplete
	body.onComplete = nil
	if check := body.check; check != nil {
		body.check = func() (func(), error) {
			_, err := check()
			return nil, err // if the body is broken, the second request replaces this one
		}
	}
	resp.Header.Del("Content-Encoding")
	raw, err := ReadBody(resp, 0)
	if err != nil {
		return nil, err
	}
	resp.Header.Del("Content-Digest") // these fields describe the coded body
	resp.Header.Del("Repr-Digest")
	z, err := dcz.NewReader(bytes.NewReader(raw), dict, id)
	if err != nil {
		bad.Err = err
		return nil, bad
	}
	defer z.Close()
	// A copy of the dictionary is not a decompression bomb, so its bytes count as received.
	most := min(body.limits.body, max(ratioFloor, min(body.limits.ratio, dcz.MaxSum)*int64(len(raw)+len(dict))), int64(dcz.MaxSum-len(dict)))
	content, err := io.ReadAll(io.LimitReader(z, most+1))
	switch {
	case err != nil:
		bad.Err = err
		return nil, bad
	case int64(len(content)) > most:
		return nil, tooLarge(bad.URL, "body-size", "longer than %d bytes", most)
	case count != nil:
		count(int64(len(content)))
	}
	return content, nil
}

// keeper returns a function that stores the complete and verified content of a response as a
// dictionary. It returns nil if the response declares no dictionary that the client can use. It
// ignores match-dest, as specified for clients without request destinations. It also ignores
// freshness (RFC 9842, section 2.2.1), because the dictionary is never used as a response, and the
// server identifies it by its hash.
func (c *Client) keeper(ctx context.Context, resp *http.Response, o *offer) func(content []byte) {
	if o == nil || c.dictionaries == nil || resp.StatusCode != http.StatusOK || len(resp.Header[dcz.Use]) == 0 ||
		strings.Contains(strings.ToLower(strings.Join(resp.Header["Cache-Control"], ",")), "no-store") {
		return nil
	}
	fields, err := httpsfv.UnmarshalDictionary(resp.Header[dcz.Use])
	if err != nil {
		return nil
	}
	item := func(name string) any {
		m, _ := fields.Get(name)
		i, _ := m.(httpsfv.Item)
		return i.Value
	}
	match, _ := item("match").(string)
	id, _ := item("id").(string)
	match = strings.TrimPrefix(match, asciiOrigin(resp.Request.URL))
	// Do not store dictionaries of other formats, for other origins, or with URLPattern operators
	// other than "*".
	if t := item("type"); t != nil && t != httpsfv.Token("raw") || !strings.HasPrefix(match, "/") || strings.HasPrefix(match, "//") ||
		strings.ContainsAny(match, `\(){}:+#`) || strings.Contains(match, "*?") || len(match) > maxMatch || len(id) > maxMatch {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // the body is complete, so store it even if the request is canceled
	return func(content []byte) {
		if len(content) < minDictionary || len(content) > maxDictionary {
			return
		}
		d := Dictionary{dcz.Sum(content).Field(), match, id, len(content)}
		ix, err := c.dictionaries.Index(ctx, o.origin)
		if err == nil && ix.add(d) {
			if err = c.dictionaries.Write(ctx, o.origin, match, content); err == nil {
				err = c.dictionaries.Update(ctx, o.origin, func(ix *DictionaryIndex) { ix.add(d) })
			}
		}
		c.warn(ctx, err)
	}
}

// matches reports whether a URL matches the path and query of a URLPattern. A pattern without a
// query matches any query.
func matches(pattern string, u *url.URL) bool {
	path, query, ok := strings.Cut(pattern, "?")
	return wildcard(path, u.EscapedPath()) && (!ok || wildcard(query, u.RawQuery))
}

// wildcard reports whether s matches a pattern, where "*" is any text.
func wildcard(pattern, s string) bool {
	first, rest, ok := strings.Cut(pattern, "*")
	s, found := strings.CutPrefix(s, first)
	for ok && found {
		if first, rest, ok = strings.Cut(rest, "*"); !ok {
			return strings.HasSuffix(s, first)
		}
		_, s, found = strings.Cut(s, first)
	}
	return found && s == ""
}
