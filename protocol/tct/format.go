package tct

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/jsonio"
	"github.com/millrace/millrace/protocol/kit"
)

// document is what an M-URL says, but for its profile, which is constant, and
// its hash, which follows from the rest. "" and nil mean absent; the members
// after Content are not required.
type document struct {
	CanonicalURL string // canonical_url: the C-URL
	Title        string
	Content      string // plain text

	Language       string            // BCP 47
	Published      string            // RFC 3339, UTC, whole seconds
	Modified       string            // the same
	Description    string            // beyond the drafts
	Author         string            // beyond the drafts
	StructuredData []json.RawMessage // JSON-LD objects, each in RFC 8785 form
}

// Extended reports whether d has any member beyond the required ones.
func (d *document) Extended() bool {
	return d.Language != "" || d.Published != "" || d.Modified != "" || d.Description != "" || d.Author != "" ||
		len(d.StructuredData) > 0
}

// jsonLimits bound a document.
var jsonLimits = jsonio.Limits{Size: 32 << 20, Depth: 256}

// errRequired is a required member that a document lacks.
var errRequired = errors.New("the member is required")

// decode reads a document and gives its hash member as it is. A member that is
// not required and not of its type counts as absent. Errors are
// [*millrace.FormatError] without protocol, URL and section, with [errRequired]
// for a member that is missing or a [*DraftError], or ErrTooLarge.
func decode(body []byte) (d *document, hash string, err error) {
	var w struct {
		CanonicalURL *string    `json:"canonical_url"`
		Title        *string    `json:"title"`
		Content      *string    `json:"content"`
		Hash         *string    `json:"hash"`
		Profile      jsonio.Raw `json:"profile"`

		Language       jsonio.Raw `json:"language"`
		Published      jsonio.Raw `json:"published"`
		Modified       jsonio.Raw `json:"modified"`
		Description    jsonio.Raw `json:"description"`
		Author         jsonio.Raw `json:"author"`
		StructuredData jsonio.Raw `json:"structured_data"`
	}
	if err := jsonio.Unmarshal(body, &jsonLimits, &w); err != nil {
		return nil, "", err
	}
	if err := checkDraft(rawString(w.Profile), ""); err != nil {
		return nil, "", err
	}
	for _, m := range []struct {
		name  string
		value *string
	}{{"canonical_url", w.CanonicalURL}, {"title", w.Title}, {"content", w.Content}, {"hash", w.Hash}} {
		if m.value == nil {
			return nil, "", &millrace.FormatError{Position: "/" + m.name, Err: errRequired}
		}
	}
	return &document{
		CanonicalURL:   *w.CanonicalURL,
		Title:          *w.Title,
		Content:        *w.Content,
		Language:       rawString(w.Language),
		Published:      kit.FormatTime(parseTime(rawString(w.Published))),
		Modified:       kit.FormatTime(parseTime(rawString(w.Modified))),
		Description:    rawString(w.Description),
		Author:         rawString(w.Author),
		StructuredData: rawObjects(w.StructuredData),
	}, *w.Hash, nil
}

// rawString gives the value of a JSON string, "" for anything else.
func rawString(raw jsonio.Raw) string {
	var s string
	if jsonio.Unmarshal(raw, &jsonLimits, &s) != nil {
		return ""
	}
	return s
}

// rawObjects gives the objects of a JSON array, or the one object that stands
// in its place, each in RFC 8785 form; whatever else there is is dropped.
func rawObjects(raw jsonio.Raw) []json.RawMessage {
	list := []jsonio.Raw{raw}
	if raw.Kind() == '[' && jsonio.Unmarshal(raw, &jsonLimits, &list) != nil {
		return nil
	}
	var out []json.RawMessage
	for _, e := range list {
		if c := canonicalObject(e); c != nil {
			out = append(out, c)
		}
	}
	return out
}

// canonicalObject gives a JSON object in RFC 8785 form, nil if raw is none or
// has none where it is going to stand: in an array in an object.
func canonicalObject(raw []byte) json.RawMessage {
	c, err := jsonio.Canonical(raw, &jsonio.Limits{Size: jsonLimits.Size, Depth: jsonLimits.Depth - 2})
	if err != nil || c.Kind() != '{' {
		return nil
	}
	return json.RawMessage(c)
}

// appendObjects appends an array of objects.
func appendObjects(dst []byte, objects []json.RawMessage) []byte {
	sep := byte('[')
	for _, raw := range objects {
		dst = append(append(dst, sep), raw...)
		sep = ','
	}
	return append(dst, ']')
}

// parseTime reads an RFC 3339 time or a date alone; the zero time for anything
// else.
func parseTime(s string) time.Time {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC().Truncate(time.Second)
		}
	}
	return time.Time{}
}
