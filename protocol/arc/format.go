package arc

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"
	"github.com/millrace/millrace/internal/kit"
)

const (
	contentType  = "application/json; charset=utf-8"
	yamlType     = "application/yaml" // RFC 9512
	cacheControl = "max-age=0, must-revalidate"

	version        = "2.1" // arc_sitemap_version (E.3.1, E.9)
	majorVersion   = "2"
	checksumPrefix = "sha256:" // section E.4

	// maxSnapshot is the maximum size of a published snapshot in bytes. A larger one is replaced by
	// a snapshot derived from the page.
	maxSnapshot = 1 << 20
	// maxEntry is the maximum size of a page's entry that is read, in bytes.
	maxEntry = 4 << 20
	// maxDepth is the maximum nesting depth of a snapshot.
	maxDepth = 48
)

// entry is the entry of one page in a list (E.4). "" and nil mean that the member is absent.
type entry struct {
	URL       string // canonical URL of the page
	Lastmod   string // lastmod, an RFC 3339 time
	Indexable bool   // ai_indexable
	Summary   string // ai_summary, in one line
	Tags      []string
	Checksum  string          // ai_checksum; the publisher writes "sha256:" and 64 hexadecimal digits
	Snapshot  json.RawMessage // ai_snapshot: an object in canonical form
	Priority  *float64        // crawl_priority, from 0 to 1
	Auth      *bool           // auth_required, or nil if absent
	Robots    string          // robots_directive
}

// auth reports whether the page needs authentication.
func (e *entry) auth() bool { return e.Auth != nil && *e.Auth }

// append appends the entry as JSON, with its members in the order of E.4.
func (e *entry) append(dst []byte) []byte {
	dst = canon.AppendMember(append(dst, '{'), "url", e.URL)
	if e.Lastmod != "" {
		dst = canon.AppendMember(append(dst, ','), "lastmod", e.Lastmod)
	}
	dst = strconv.AppendBool(append(dst, `,"ai_indexable":`...), e.Indexable)
	if e.Summary != "" {
		dst = canon.AppendMember(append(dst, ','), "ai_summary", e.Summary)
	}
	if len(e.Tags) > 0 {
		dst = appendStrings(append(dst, `,"ai_tags":`...), e.Tags)
	}
	if e.Checksum != "" {
		dst = canon.AppendMember(append(dst, ','), "ai_checksum", e.Checksum)
	}
	if e.Snapshot != nil {
		dst = append(append(dst, `,"ai_snapshot":`...), e.Snapshot...)
	}
	if e.Priority != nil {
		dst = canon.AppendNumber(append(dst, `,"crawl_priority":`...), *e.Priority)
	}
	if e.Auth != nil {
		dst = strconv.AppendBool(append(dst, `,"auth_required":`...), *e.Auth)
	}
	if e.Robots != "" {
		dst = canon.AppendMember(append(dst, ','), "robots_directive", e.Robots)
	}
	return append(dst, '}')
}

func appendStrings(dst []byte, list []string) []byte {
	sep := byte('[')
	for _, s := range list {
		dst = canon.AppendString(append(dst, sep), s)
		sep = ','
	}
	return append(dst, ']')
}

// decodeEntry decodes one page of a list by the schema of E.9, including its formats. nulls lists
// the null members, which are treated as absent. After an error, e contains the members before it,
// starting with the URL; e is nil if raw is not an object. The Position of the error is the JSON
// pointer to the member within the entry.
//
// The error is ErrTooLarge, or a [*millrace.FormatError] without a URL.
func decodeEntry(raw []byte) (e *entry, nulls []string, err error) {
	var w struct {
		URL       jsonio.Raw `json:"url"`
		Lastmod   jsonio.Raw `json:"lastmod"`
		Indexable jsonio.Raw `json:"ai_indexable"`
		Summary   jsonio.Raw `json:"ai_summary"`
		Tags      jsonio.Raw `json:"ai_tags"`
		Checksum  jsonio.Raw `json:"ai_checksum"`
		Snapshot  jsonio.Raw `json:"ai_snapshot"`
		Priority  jsonio.Raw `json:"crawl_priority"`
		Auth      jsonio.Raw `json:"auth_required"`
		Robots    jsonio.Raw `json:"robots_directive"`
	}
	if err := jsonio.Unmarshal(raw, entryLimits(), &w); err != nil {
		return nil, nil, formatError(err, "", "E.9")
	}
	e = new(entry)
	for _, m := range []struct {
		name     string
		value    jsonio.Raw
		required bool
		take     func(v jsonio.Raw) error
	}{
		{"url", w.URL, true, func(v jsonio.Raw) error { return takeFormat(v, &e.URL, isURI, "an absolute URI") }},
		{"lastmod", w.Lastmod, false, func(v jsonio.Raw) error { return takeFormat(v, &e.Lastmod, isDateTime, "a date-time (RFC 3339)") }},
		{"ai_indexable", w.Indexable, true, func(v jsonio.Raw) error { return take(v, &e.Indexable, "a boolean") }},
		{"ai_summary", w.Summary, false, func(v jsonio.Raw) error { return take(v, &e.Summary, "a string") }},
		{"ai_tags", w.Tags, false, func(v jsonio.Raw) error { return takeTags(v, &e.Tags) }},
		{"ai_checksum", w.Checksum, false, func(v jsonio.Raw) error { return take(v, &e.Checksum, "a string") }},
		{"ai_snapshot", w.Snapshot, false, func(v jsonio.Raw) error { return takeSnapshot(v, &e.Snapshot) }},
		{"crawl_priority", w.Priority, false, func(v jsonio.Raw) error { return takePriority(v, &e.Priority) }},
		{"auth_required", w.Auth, false, func(v jsonio.Raw) error { return take(v, &e.Auth, "a boolean") }},
		{"robots_directive", w.Robots, false, func(v jsonio.Raw) error { return take(v, &e.Robots, "a string") }},
	} {
		switch {
		case m.value == nil && m.required:
			return e, nulls, invalid("/"+m.name, "E.9", "the member is required")
		case m.value == nil:
			continue
		case m.value.Kind() == 'n' && m.required:
			return e, nulls, invalid("/"+m.name, "E.9", "required member is null")
		case m.value.Kind() == 'n':
			nulls = append(nulls, m.name)
			continue
		}
		if err := m.take(m.value); err != nil {
			return e, nulls, invalid("/"+m.name, "E.9", err.Error())
		}
	}
	return e, nulls, nil
}

func entryLimits() *jsonio.Limits { return &jsonio.Limits{Size: maxEntry, Depth: maxDepth + 4} }

// take decodes a value. If it has another type, the error says what was wanted.
func take(v jsonio.Raw, into any, want string) error {
	if err := jsonio.Unmarshal(v, entryLimits(), into); err != nil {
		return fmt.Errorf("got %s, want %s", kit.Short(string(v)), want)
	}
	return nil
}

func takeFormat(v jsonio.Raw, into *string, is func(string) bool, want string) error {
	if err := take(v, into, "a string"); err != nil {
		return err
	}
	if !is(*into) {
		return fmt.Errorf("%s is not %s", kit.Short(string(v)), want)
	}
	return nil
}

func takeTags(v jsonio.Raw, into *[]string) error {
	var list []jsonio.Raw
	if err := take(v, &list, "an array"); err != nil {
		return err
	}
	for i, t := range list {
		var s string
		if t.Kind() != '"' || take(t, &s, "") != nil {
			return fmt.Errorf("element %d is %s, not a string", i, kit.Short(string(t)))
		}
		*into = append(*into, s)
	}
	return nil
}

func takeSnapshot(v jsonio.Raw, into *json.RawMessage) error {
	if v.Kind() != '{' {
		return fmt.Errorf("got %s, want an object", kit.Short(string(v)))
	}
	if *into = canonicalObject(v); *into == nil {
		return fmt.Errorf("no canonical form, or nested deeper than %d levels", maxDepth)
	}
	return nil
}

func takePriority(v jsonio.Raw, into **float64) error {
	var n float64
	if err := take(v, &n, "a number"); err != nil {
		return err
	}
	if !(n >= 0 && n <= 1) {
		return fmt.Errorf("%s is not from 0 to 1", kit.Short(string(v)))
	}
	*into = &n
	return nil
}

// canonicalObject returns a JSON object in RFC 8785 form, or nil if raw is not an object or is
// nested too deeply.
func canonicalObject(raw []byte) json.RawMessage {
	c, err := jsonio.Canonical(raw, &jsonio.Limits{Size: maxEntry, Depth: maxDepth})
	if err != nil || c.Kind() != '{' {
		return nil
	}
	return json.RawMessage(c)
}

// isURI reports whether s has the format "uri" (E.9): an absolute URI of RFC 3986. As in common
// validators, non-ASCII characters need not be encoded.
func isURI(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c == 0x7F || strings.IndexByte("<>\"\\^`{|}", c) >= 0 {
			return false
		}
	}
	u, err := url.Parse(s)
	return err == nil && u.Scheme != "" && (u.Host != "" || u.Opaque != "" || u.Path != "")
}

// isDateTime reports whether s has the format "date-time" (E.9): RFC 3339, section 5.6.
func isDateTime(s string) bool { return !parseTime(s).IsZero() }

// parseTime parses an RFC 3339 time. It returns the zero time for anything else.
func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339, strings.ToUpper(s))
	if err != nil || len(s) < len("2006-01-02T15:04:05Z") || s[19] == ',' {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Second)
}

// invalid returns an error for a document that breaks a rule.
func invalid(position, section, reason string) error {
	return &millrace.FormatError{Protocol: Name, Position: position, Section: section, Reason: reason}
}

// formatError sets the protocol and the URL of a [*millrace.FormatError], and its section if it has
// none. It returns other errors unchanged.
func formatError(err error, url, section string) error {
	if f, ok := errors.AsType[*millrace.FormatError](err); ok {
		f.Protocol, f.URL = Name, url
		if f.Section == "" {
			f.Section = section
		}
	}
	return err
}
