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
	"github.com/millrace/millrace/internal/kit"
)

const (
	version     = "1.0"                             // sections 2.1, 9
	schema      = "openfeeder/1.0"                  // sections 3.2, 3.3, 8
	contentType = "application/json; charset=utf-8" // section 2
	discovery   = "/.well-known/openfeeder.json"    // section 2
	endpoint    = "/openfeeder"                     // section 3
	versionHead = "X-Openfeeder"                    // section 9, spelled like a key of http.Header
	cacheHead   = "X-OpenFeeder-Cache"              // section 9

	// Limits of chunks and items in a response (section 3.1).
	defaultLimit = 10
	maxLimit     = 50
)

// Values of feed.type (2.1).
const (
	paginatedFeed = "paginated"
	staticFeed    = "static"
)

// Values of capabilities (2.1). diffSync is an extension of the specification.
const (
	searchCapability     = "search"
	realtimeCapability   = "realtime"
	embeddingsCapability = "embeddings"
	authCapability       = "auth"
	diffSync             = "diff-sync"
)

// discoveryDocument is the discovery document (2.1). "" and nil mean that a member is absent.
type discoveryDocument struct {
	Version string `json:"version"`
	Site    struct {
		Name        string `json:"name"`
		URL         string `json:"url"` // canonical base URL
		Language    string `json:"language"`
		Description string `json:"description"`
	} `json:"site"`
	Feed struct {
		Endpoint string `json:"endpoint"` // relative or absolute URL
		Type     string `json:"type"`
	} `json:"feed"`
	Capabilities []string `json:"capabilities"`
	Contact      string   `json:"contact"`
	// Events is the event stream of changes. It is an extension of the specification.
	Events *eventSource `json:"events"`
}

type eventSource struct {
	Endpoint string `json:"endpoint"`
	Type     string `json:"type"` // "text/event-stream"
}

// item is an entry of an index (3.3), of a ranked index, and of the lists of a sync reply (3.4). In
// a sync reply, URL is absolute.
type item struct {
	URL       string `json:"url"`
	Title     string `json:"title"`
	Published string `json:"published"` // RFC 3339; "" = null
	Updated   string `json:"updated"`   // like Published; an extension of 3.3
	Summary   string `json:"summary"`
	// Revision changes with the page, and equals the revision of its document. It is an extension
	// of the specification.
	Revision string `json:"revision"`
	// Document is the URL of the page's document in a static feed. It is an extension of the
	// specification.
	Document  string   `json:"document"`
	Relevance *float64 `json:"relevance"` // only in a ranked index
}

// page is the response to a query with url (3.2).
type page struct {
	URL       string  `json:"url"` // absolute URL
	Title     string  `json:"title"`
	Author    string  `json:"author"`    // "" = null
	Published string  `json:"published"` // RFC 3339; "" = null
	Updated   string  `json:"updated"`   // like Published
	Language  string  `json:"language"`
	Summary   string  `json:"summary"`
	Revision  string  `json:"revision"` // see item
	Chunks    []piece `json:"chunks"`
	Meta      meta    `json:"meta"`
}

// piece is a chunk (3.2).
type piece struct {
	ID        string   `json:"id"`
	URL       string   `json:"url"` // absolute URL, only in a ranked index; an extension of the specification
	Text      string   `json:"text"`
	Type      string   `json:"type"`   // "paragraph", "heading", "list", "code" or "quote"
	Blocks    string   `json:"blocks"` // blocks in Text, see blocksMember; an extension of the specification
	Relevance *float64 `json:"relevance"`
}

// meta counts chunks (3.2). Page and TotalPages are extensions of the specification. cached and
// cache_age_seconds are constant, because a body must not depend on whether it was cached; the
// response header reports this.
type meta struct {
	TotalChunks    int `json:"total_chunks"`
	ReturnedChunks int `json:"returned_chunks"`
	Page           int `json:"page"`
	TotalPages     int `json:"total_pages"`
}

// index is a page of the index (3.3), or the response to q. In the response to q, items and chunks
// are ranked, and meta is present.
type index struct {
	Page       int     `json:"page"`
	TotalPages int     `json:"total_pages"`
	Items      []item  `json:"items"`
	Chunks     []piece `json:"chunks"`
	Meta       *meta   `json:"meta"`
	SyncToken  string  `json:"sync_token"` // token for the changes since this index; an extension of 3.3
	Next       string  `json:"next"`       // next file of a static index; an extension of 3.3
	Note       string  `json:"note"`       // reason why the response is limited; an extension of the specification
	Corrected  string  `json:"corrected"`  // question with corrected spelling; an extension of the specification
}

// changes is a sync reply (3.4).
type changes struct {
	Sync struct {
		Since     string `json:"since"` // "" = absent
		Until     string `json:"until"` // "" = absent
		AsOf      string `json:"as_of"`
		SyncToken string `json:"sync_token"`
		Counts    struct {
			Added   int `json:"added"`
			Updated int `json:"updated"`
			Deleted int `json:"deleted"`
		} `json:"counts"` // counts of this page of the reply, computed by encode
		DeletedTracking *bool `json:"deleted_tracking"` // nil = absent: the reply lists deletions
		// Next is a reference to the next page of the reply, relative to the endpoint; "" on the
		// last page. It is an extension of the specification.
		Next string `json:"next"`
	} `json:"sync"`
	Added   []item      `json:"added"`
	Updated []item      `json:"updated"`
	Deleted []tombstone `json:"deleted"`
}

// tombstone is a deleted page (3.4).
type tombstone struct {
	URL       string `json:"url"` // absolute URL
	DeletedAt string `json:"deleted_at"`
}

// token is the content of a sync_token (3.4), which encodes it in base64. All members except T are
// extensions of the specification.
type token struct {
	T string  `json:"t"` // the time of as_of
	N *uint64 `json:"n"` // sequence number in the log; nil = use T
	E string  `json:"e"` // epoch of the store to which N belongs
	// Part reports whether the client received some pages in a state later than N. The client may
	// therefore lack their state at N.
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

// maxToken is the maximum length of an accepted token, in bytes.
const maxToken = 1024

var errToken = errors.New("not a sync_token")

// parseToken parses a token in the standard or the URL-safe alphabet, with or without padding. If T
// is a date without a time, at is the start of that day. A space, which is a decoded "+", is
// treated as "+".
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

// failure is the body of an error (8).
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error codes. Those from invalidURL on are extensions of section 8.
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

// pageLimits are the limits of a document that is read into memory.
var pageLimits = jsonio.Limits{Size: 64 << 20, Depth: 64}

// decode parses a document into v. The error is ErrTooLarge, or a [*millrace.FormatError] without a
// URL.
func decode(body []byte, v any, section string) error {
	err := jsonio.Unmarshal(body, &pageLimits, v)
	if f, ok := errors.AsType[*millrace.FormatError](err); ok {
		f.Protocol, f.Section = Name, section
	}
	return err
}

// required returns the error for a missing required member.
func required(pointer, section string) error {
	return &millrace.FormatError{Protocol: Name, Position: pointer, Section: section, Reason: "the member is required"}
}

func decodeAbout(body []byte) (*discoveryDocument, error) {
	a := new(discoveryDocument)
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

// understood reports whether the major version of a schema is supported. It accepts schemas with
// other names.
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
		return nil, &millrace.FormatError{Protocol: Name, Position: "/schema", Section: "3.2", Reason: quote(*w.Schema) + " is not supported"}
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
		return nil, &millrace.FormatError{Protocol: Name, Position: "/schema", Section: "3.3", Reason: quote(*w.Schema) + " is not supported"}
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

// decodeFailure parses the body of an error. If the body is not an error, it returns false.
func decodeFailure(body []byte) (failure, bool) {
	var w struct {
		Error failure `json:"error"`
	}
	err := decode(body, &w, "8")
	return w.Error, err == nil && w.Error.Code != ""
}

// parseTime parses a date from another site: RFC 3339, also without a zone (UTC) or without a time.
// For any other text, it returns the zero time.
func parseTime(s string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return kit.Second(t)
		}
	}
	return time.Time{}
}

// parseInstant accepts only RFC 3339, with or without fractions of a second.
func parseInstant(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	// time.Parse accepts one-digit hours, and a comma before the fraction.
	if err == nil && (s[len("2006-01-02T15")] != ':' || strings.Contains(s, ",")) {
		err = errors.New("not an RFC 3339 date-time")
	}
	return t.UTC(), err
}

// nullable appends a string member, or null for "".
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

// fraction appends a number from 0 to 1, or null for nil.
func fraction(dst []byte, name string, f *float64) []byte {
	dst = key(dst, name)
	if f == nil {
		return append(dst, "null"...)
	}
	return canon.AppendNumber(dst, *f)
}

// key appends the name of a member, preceded by a comma if needed.
func key(dst []byte, name string) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' && dst[n-1] != ',' {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}
