package tct

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"
	"github.com/millrace/millrace/internal/kit"
)

// document contains the members of an M-URL's document, except its profile, which is constant, and
// its hash. "" and nil mean that a member is absent. The members after Content are optional.
type document struct {
	CanonicalURL string // C-URL of the page
	Title        string
	Content      string

	ContentType    string            // media type of Content. If empty, plain text.
	Language       string            // BCP 47 language tag
	Published      string            // publication time (RFC 3339), in UTC and whole seconds
	Modified       string            // modification time, in the same form
	Description    string            // description of the page; an extension of the drafts
	Author         string            // name of the author; an extension of the drafts
	StructuredData []json.RawMessage // JSON-LD objects, each in RFC 8785 form
}

// Extended reports whether d has any optional member other than ContentType.
func (d *document) Extended() bool {
	return d.Language != "" || d.Published != "" || d.Modified != "" || d.Description != "" || d.Author != "" ||
		len(d.StructuredData) > 0
}

// member describes a member of a draft's documents.
type member struct {
	Name string
	Kind kind
	Of   func(d *document) *string // nil if the value follows from the kind
}

// kind is the type of a member.
type kind uint8

// Kinds of members.
const (
	textMember      kind = iota // a string; absent if empty
	requiredMember              // a string
	timeMember                  // a time; absent if unknown
	personMember                // an object with a name; absent without a name
	profileMember               // the profile of the draft
	hashMember                  // the hash of the document
	schemaMember                // an array of objects; absent if empty
	oneSchemaMember             // like schemaMember, but a single object is not in an array
)

// Functions that return the string members of documents.
func docURL(d *document) *string         { return &d.CanonicalURL }
func docTitle(d *document) *string       { return &d.Title }
func docContent(d *document) *string     { return &d.Content }
func docType(d *document) *string        { return &d.ContentType }
func docLanguage(d *document) *string    { return &d.Language }
func docPublished(d *document) *string   { return &d.Published }
func docModified(d *document) *string    { return &d.Modified }
func docDescription(d *document) *string { return &d.Description }
func docAuthor(d *document) *string      { return &d.Author }

// Encode returns the bytes of a document and its hash: the hash member, or the hash of the bytes if
// documents have no hash member.
func (d *draft) Encode(doc *document) (body []byte, sum string) {
	dst, at, name := d.unhashed(doc)
	sum = d.Hash(doc, func() []byte { return dst })
	if name == "" {
		return dst, sum
	}
	own := canon.AppendMember(nil, name, sum)
	if at == len(dst) { // the hash is after the last member
		return slices.Insert(dst, at-1, append([]byte{','}, own...)...), sum
	}
	return slices.Insert(dst, at, append(own, ',')...), sum
}

// unhashed returns a document without its hash member, and the offset and name of that member. If
// documents have no hash member, name is "".
func (d *draft) unhashed(doc *document) (dst []byte, at int, name string) {
	dst = make([]byte, 0, 640+len(doc.Title)+len(doc.Content)+len(doc.Content)/16)
	dst = append(dst, '{')
	for _, m := range d.Members {
		n := len(dst)
		switch m.Kind {
		case hashMember:
			at, name = n, m.Name
		case profileMember:
			dst = canon.AppendMember(dst, m.Name, d.Profile)
		case schemaMember, oneSchemaMember:
			if len(doc.StructuredData) > 0 {
				dst = append(canon.AppendString(dst, m.Name), ':')
				dst = appendObjects(dst, doc.StructuredData, m.Kind == oneSchemaMember)
			}
		default:
			value := *m.Of(doc)
			switch {
			case value == "" && m.Kind != requiredMember:
			case m.Kind == personMember:
				dst = append(canon.AppendString(dst, m.Name), ":{"...)
				dst = append(canon.AppendMember(dst, "name", value), '}')
			default:
				dst = canon.AppendMember(dst, m.Name, value)
			}
		}
		if len(dst) > n {
			dst = append(dst, ',')
		}
	}
	dst[len(dst)-1] = '}'
	return dst, at, name
}

// profileMember returns the name of the member that contains the profile.
func (d *draft) profileMember() string {
	for _, m := range d.Members {
		if m.Kind == profileMember {
			return m.Name
		}
	}
	return "profile"
}

// jsonLimits are the limits for parsing a document.
var jsonLimits = jsonio.Limits{Size: 32 << 20, Depth: 256}

// errRequired is the error for a missing required member.
var errRequired = errors.New("the member is required")

// Decode parses a document of the draft, or of another draft that its reader accepts. It returns
// the document's hash: the member unchanged, or the hash of the bytes if documents have no such
// member, or "" if the draft has neither. An optional member of the wrong type counts as absent.
// The error is ErrTooLarge, or a [*millrace.FormatError] without a URL. The FormatError wraps
// [errRequired] for a missing member, and a [*draftError] for another draft.
func (d *draft) Decode(body []byte) (doc *document, sum string, err error) {
	var members map[string]jsonio.Raw
	if err := jsonio.Unmarshal(body, &jsonLimits, &members); err != nil {
		return nil, "", d.FormatError(err, "", section(d.RuleNames.Object))
	}
	its, err := d.ofDocument(rawString(members[d.profileMember()]))
	if err != nil {
		return nil, "", d.FormatError(err, "", section(d.RuleNames.Object))
	}
	doc = new(document)
	own := false
	for _, m := range its.Members {
		raw, there := members[m.Name]
		var s string
		is := there && jsonio.Unmarshal(raw, &jsonLimits, &s) == nil
		switch m.Kind {
		case profileMember:
			if its.ListProfile != "" && s != its.Profile {
				return nil, "", d.FormatError(&millrace.FormatError{Position: "/" + m.Name, Reason: "got " + kit.Short(s) + ", want the profile of a document"}, "", section(d.RuleNames.Object))
			}
		case requiredMember, hashMember:
			if !there || raw.Kind() == 'n' {
				return nil, "", d.FormatError(&millrace.FormatError{Position: "/" + m.Name, Err: errRequired}, "", section(d.RuleNames.CanonicalURL))
			}
			if !is {
				return nil, "", d.FormatError(&millrace.FormatError{Position: "/" + m.Name, Reason: "not a string"}, "", section(d.RuleNames.Object))
			}
			if m.Kind == hashMember {
				sum, own = s, true
			} else {
				*m.Of(doc) = s
			}
		case textMember:
			*m.Of(doc) = s
		case timeMember:
			*m.Of(doc) = kit.FormatTime(parseTime(s))
		case personMember:
			var who struct {
				Name jsonio.Raw `json:"name"`
			}
			if !is && jsonio.Unmarshal(raw, &jsonLimits, &who) == nil {
				s = rawString(who.Name)
			}
			*m.Of(doc) = s
		case schemaMember, oneSchemaMember:
			doc.StructuredData = rawObjects(raw)
		}
	}
	if !own && its.Hash != nil {
		sum = its.Hash(doc, func() []byte { return body })
	}
	return doc, sum, nil
}

// rawString returns the value of a JSON string, or "" for any other value.
func rawString(raw jsonio.Raw) string {
	var s string
	if jsonio.Unmarshal(raw, &jsonLimits, &s) != nil {
		return ""
	}
	return s
}

// rawObjects returns the objects in a JSON array, or a single object, each in RFC 8785 form. Other
// values are dropped.
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

// canonicalObject returns a JSON object in RFC 8785 form. It returns nil if raw is not an object,
// or is nested too deeply for an array in a document.
func canonicalObject(raw []byte) json.RawMessage {
	c, err := jsonio.Canonical(raw, &jsonio.Limits{Size: jsonLimits.Size, Depth: jsonLimits.Depth - 2})
	if err != nil || c.Kind() != '{' {
		return nil
	}
	return json.RawMessage(c)
}

// appendObjects appends an array of objects. If alone is set, a single object is not in an array.
func appendObjects(dst []byte, objects []json.RawMessage, alone bool) []byte {
	if alone && len(objects) == 1 {
		return append(dst, objects[0]...)
	}
	sep := byte('[')
	for _, raw := range objects {
		dst = append(append(dst, sep), raw...)
		sep = ','
	}
	return append(dst, ']')
}

// parseTime parses an RFC 3339 time or a date. For any other text, it returns the zero time.
func parseTime(s string) time.Time {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC().Truncate(time.Second)
		}
	}
	return time.Time{}
}
