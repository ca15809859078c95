package openfeeder

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"
	"github.com/millrace/millrace/protocol/kit"
)

const (
	version     = "1.0"                             // 2.1, 9
	schema      = "openfeeder/1.0"                  // 3.2, 3.3, 8
	contentType = "application/json; charset=utf-8" // 2
	discovery   = "/.well-known/openfeeder.json"    // 2
	endpoint    = "/openfeeder"                     // 3
	versionHead = "X-Openfeeder"                    // 9, in the form of http.Header's keys
	cacheHead   = "X-OpenFeeder-Cache"              // 9

	// 3.1
	defaultLimit = 10
	maxLimit     = 50
)

// The values of feed.type (2.1).
const (
	paginatedFeed = "paginated"
	staticFeed    = "static"
)

// What can stand in capabilities (2.1); diffSync is beyond it.
const (
	searchCapability     = "search"
	realtimeCapability   = "realtime"
	embeddingsCapability = "embeddings"
	authCapability       = "auth"
	diffSync             = "diff-sync"
)

// about is the discovery document (2.1). "" and nil are what is absent.
type about struct {
	Version string `json:"version"`
	Site    struct {
		Name        string `json:"name"`
		URL         string `json:"url"` // canonical base
		Language    string `json:"language"`
		Description string `json:"description"`
	} `json:"site"`
	Feed struct {
		Endpoint string `json:"endpoint"` // relative or absolute
		Type     string `json:"type"`
	} `json:"feed"`
	Capabilities []string `json:"capabilities"`
	Contact      string   `json:"contact"`
	// Events is beyond the specification: the stream of changes as they happen.
	Events *eventSource `json:"events"`
}

type eventSource struct {
	Endpoint string `json:"endpoint"`
	Type     string `json:"type"` // "text/event-stream"
}

// item is an entry of an index (3.3), of a ranked index, and of the lists of a
// sync reply (3.4), where URL is absolute.
type item struct {
	URL       string `json:"url"`
	Title     string `json:"title"`
	Published string `json:"published"` // RFC 3339; "" = null
	Updated   string `json:"updated"`   // the same; beyond 3.3
	Summary   string `json:"summary"`
	// Revision is beyond the specification: it moves with the page, and is that
	// of its document.
	Revision string `json:"revision"`
	// Document is beyond the specification: where the page is in a static feed.
	Document  string   `json:"document"`
	Relevance *float64 `json:"relevance"` // of a ranked index
}

// page is what url gives (3.2).
type page struct {
	URL       string  `json:"url"` // absolute
	Title     string  `json:"title"`
	Author    string  `json:"author"`    // "" = null
	Published string  `json:"published"` // RFC 3339; "" = null
	Updated   string  `json:"updated"`   // the same
	Language  string  `json:"language"`
	Summary   string  `json:"summary"`
	Revision  string  `json:"revision"` // as in item
	Chunks    []piece `json:"chunks"`
	Meta      meta    `json:"meta"`
}

// piece is a chunk (3.2).
type piece struct {
	ID        string   `json:"id"`
	URL       string   `json:"url"` // absolute, in a ranked index; beyond the specification
	Text      string   `json:"text"`
	Type      string   `json:"type"`   // paragraph, heading, list, code or quote
	Blocks    string   `json:"blocks"` // the blocks in Text, see blocksMember; beyond the specification
	Relevance *float64 `json:"relevance"`
}

// meta counts chunks (3.2). Page and TotalPages are beyond it. cached and
// cache_age_seconds are constant: a body is the same whether or not it was
// made for this request, and the header says which.
type meta struct {
	TotalChunks    int `json:"total_chunks"`
	ReturnedChunks int `json:"returned_chunks"`
	Page           int `json:"page"`
	TotalPages     int `json:"total_pages"`
}

// index is a page of the index (3.3), and what q gives: then items and chunks
// are ranked, and there is a meta.
type index struct {
	Page       int     `json:"page"`
	TotalPages int     `json:"total_pages"`
	Items      []item  `json:"items"`
	Chunks     []piece `json:"chunks"`
	Meta       *meta   `json:"meta"`
	SyncToken  string  `json:"sync_token"` // what has changed since this index; beyond 3.3
	Next       string  `json:"next"`       // where a static feed goes on; beyond 3.3
	Note       string  `json:"note"`       // why the answer is less than it could be; beyond the specification
	Corrected  string  `json:"corrected"`  // the question as it was read when it had to be mended; beyond the specification
}

// changes is a sync reply (3.4).
type changes struct {
	Sync struct {
		Since     string `json:"since"` // "" = absent
		Until     string `json:"until"` // the same
		AsOf      string `json:"as_of"`
		SyncToken string `json:"sync_token"`
		Counts    struct {
			Added   int `json:"added"`
			Updated int `json:"updated"`
			Deleted int `json:"deleted"`
		} `json:"counts"` // of this page of the reply; not written from here
		DeletedTracking *bool `json:"deleted_tracking"` // nil = absent: deletions are listed
		// Next is beyond the specification: where the reply goes on, a
		// reference relative to the endpoint; "" on its last page.
		Next string `json:"next"`
	} `json:"sync"`
	Added   []item      `json:"added"`
	Updated []item      `json:"updated"`
	Deleted []tombstone `json:"deleted"`
}

// tombstone is a page that has gone (3.4).
type tombstone struct {
	URL       string `json:"url"` // absolute
	DeletedAt string `json:"deleted_at"`
}

// token is what a sync_token says (3.4): base64 of it. All but T is beyond the
// specification.
type token struct {
	T string  `json:"t"` // as_of
	N *uint64 `json:"n"` // sequence number of the log; nil = T counts
	E string  `json:"e"` // epoch of the store that N is one of
	// Part says that a client with this token may not have the state at N: it has
	// received later states of some pages.
	Part bool `json:"p"`
}

func (t token) String() string {
	b := member(append([]byte(nil), '{'), "t", t.T)
	if t.N != nil {
		b = append(b, `,"n":`...)
		b = strconv.AppendUint(b, *t.N, 10)
		b = member(append(b, ','), "e", t.E)
		if t.Part {
			b = append(b, `,"p":true`...)
		}
	}
	return base64.StdEncoding.EncodeToString(append(b, '}'))
}

// maxToken is the length in bytes of the longest token that is looked at.
const maxToken = 1024

var errToken = errors.New("not a sync_token")

// parseToken reads a token: of the standard or the URL-safe alphabet, padded or
// not; a day is its beginning. In a query a "+" has become a space.
func parseToken(s string) (t token, at time.Time, err error) {
	if len(s) > maxToken {
		return t, at, errToken
	}
	s = tokenAlphabet.Replace(strings.TrimRight(s, "="))
	raw, err := base64.RawStdEncoding.DecodeString(s)
	if err == nil {
		err = jsonio.Unmarshal(raw, &jsonio.Limits{Depth: 4}, &t)
	}
	if err == nil {
		if at, err = parseInstant(t.T); err != nil {
			at, err = time.Parse(time.DateOnly, t.T) // as in the example of section 3.4
		}
	}
	if err != nil {
		return token{}, time.Time{}, errToken
	}
	return t, at, nil
}

var tokenAlphabet = strings.NewReplacer("-", "+", "_", "/", " ", "+")

// failure is an error's body (8).
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// The codes of errors: of section 8, and from invalidURL on beyond it.
const (
	notFound       = "NOT_FOUND"
	rateLimited    = "RATE_LIMITED"
	authRequired   = "AUTH_REQUIRED"
	serverError    = "SERVER_ERROR"
	invalidURL     = "INVALID_URL"
	invalidParam   = "INVALID_PARAM"
	resyncRequired = "RESYNC_REQUIRED"
	slowConsumer   = "SLOW_CONSUMER"
)

// pageLimits bound what is read in one piece.
var pageLimits = jsonio.Limits{Size: 64 << 20, Depth: 64}

// decode reads a document of any of the forms into v. Errors are
// [*millrace.FormatError] without the URL, or ErrTooLarge.
func decode(body []byte, v any, section string) error {
	err := jsonio.Unmarshal(body, &pageLimits, v)
	if f, ok := errors.AsType[*millrace.FormatError](err); ok {
		f.Protocol, f.Section = Name, section
	}
	return err
}

// required gives an error for a member that a document must have.
func required(pointer, section string) error {
	return &millrace.FormatError{Protocol: Name, Position: pointer, Section: section, Reason: "the member is required"}
}

func decodeAbout(body []byte) (*about, error) {
	a := new(about)
	if err := decode(body, a, "2.1"); err != nil {
		return nil, err
	}
	switch {
	case a.Version == "":
		return nil, required("/version", "2.1")
	case a.Feed.Endpoint == "":
		return nil, required("/feed/endpoint", "2.1")
	}
	return a, nil
}

// understood reports whether a schema is not that of another major version.
func understood(schema string) bool {
	version, ok := strings.CutPrefix(schema, "openfeeder/")
	major, _, _ := strings.Cut(version, ".")
	return !ok || major == "1"
}

func decodePage(body []byte) (*page, error) {
	var w struct {
		page
		Schema *string  `json:"schema"`
		Chunks *[]piece `json:"chunks"`
	}
	if err := decode(body, &w, "3.2"); err != nil {
		return nil, err
	}
	switch {
	case w.Schema == nil:
		return nil, required("/schema", "3.2")
	case !understood(*w.Schema):
		return nil, &millrace.FormatError{Protocol: Name, Position: "/schema", Section: "3.2", Reason: quote(*w.Schema) + " is not understood"}
	case w.URL == "":
		return nil, required("/url", "3.2")
	case w.Chunks == nil:
		return nil, required("/chunks", "3.2")
	}
	w.page.Chunks = *w.Chunks
	return &w.page, nil
}

func decodeIndex(body []byte) (*index, error) {
	var w struct {
		index
		Schema *string `json:"schema"`
		Items  *[]item `json:"items"`
	}
	if err := decode(body, &w, "3.3"); err != nil {
		return nil, err
	}
	switch {
	case w.Schema == nil:
		return nil, required("/schema", "3.3")
	case !understood(*w.Schema):
		return nil, &millrace.FormatError{Protocol: Name, Position: "/schema", Section: "3.3", Reason: quote(*w.Schema) + " is not understood"}
	case w.Items == nil:
		return nil, required("/items", "3.3")
	}
	w.index.Items = *w.Items
	return &w.index, nil
}

func decodeChanges(body []byte) (*changes, error) {
	var w struct {
		changes
		Sync *jsonio.Raw `json:"sync"`
	}
	if err := decode(body, &w, "3.4"); err != nil {
		return nil, err
	}
	if w.Sync == nil {
		return nil, required("/sync", "3.4")
	}
	if err := decode(*w.Sync, &w.changes.Sync, "3.4"); err != nil {
		return nil, err
	}
	if w.changes.Sync.SyncToken == "" {
		return nil, required("/sync/sync_token", "3.4")
	}
	return &w.changes, nil
}

// decodeFailure reads an error's body; false if it is none.
func decodeFailure(body []byte) (failure, bool) {
	var w struct {
		Error failure `json:"error"`
	}
	err := decode(body, &w, "8")
	return w.Error, err == nil && w.Error.Code != ""
}

// parseTime reads a date that another site has written: RFC 3339, without a
// zone (then UTC), or a day alone; the zero time for anything else.
func parseTime(s string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return kit.Second(t)
		}
	}
	return time.Time{}
}

// parseInstant reads RFC 3339 and nothing else, with the fraction of the second.
func parseInstant(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	// The parser takes an hour of one digit, and a comma before the fraction.
	if err == nil && (s[len("2006-01-02T15")] != ':' || strings.Contains(s, ",")) {
		err = errors.New("no RFC 3339")
	}
	return t.UTC(), err
}

// nullable writes null for "".
func nullable(dst []byte, name, value string) []byte {
	if value == "" {
		return append(key(dst, name), "null"...)
	}
	return member(dst, name, value)
}

func number(dst []byte, name string, n int) []byte {
	return strconv.AppendInt(key(dst, name), int64(n), 10)
}

func member(dst []byte, name, value string) []byte {
	return canon.AppendString(key(dst, name), value)
}

// fraction writes a number from 0 to 1, nil as null.
func fraction(dst []byte, name string, f *float64) []byte {
	dst = key(dst, name)
	if f == nil {
		return append(dst, "null"...)
	}
	return canon.AppendNumber(dst, *f)
}

// key writes a member's name, and a comma before it where there is a member
// before.
func key(dst []byte, name string) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' && dst[n-1] != ',' {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}
