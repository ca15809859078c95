package millrace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// Purpose is what a reader wants the content for.
type Purpose string

// The purposes that policies tell apart.
const (
	AIInput Purpose = "ai-input" // answering with it
	AITrain Purpose = "ai-train" // training on it
	Search  Purpose = "search"   // finding it
)

// AuthorDisplay is the form of authors in public documents.
type AuthorDisplay string

// The ways to display authors.
const (
	AuthorName   AuthorDisplay = ""       // the display name
	AuthorHidden AuthorDisplay = "hidden" // not at all, and no person in the JSON-LD
)

// Visibility is the one rule of what may be public. It holds for every
// protocol, below all of them; the zero value hides [DefaultExclude] and
// nothing else.
type Visibility struct {
	// Exclude lists paths under the base to hide, each with everything below
	// it; whole segments, any case, in every spelling that some server takes for
	// that path: "/account" hides "/Account/x", "//x/..%2Faccount;v=1" and
	// "/%2561ccount", and not "/accounting"; "/" hides all, "" nothing.
	// nil = DefaultExclude; an empty, non-nil list hides none.
	Exclude []string
	Kinds   []PageKind    // kinds of pages to hide
	Authors AuthorDisplay // zero = display names
}

// DefaultExclude lists the paths that hold no content for anybody else:
// accounts, carts, checkouts, logins and administration.
var DefaultExclude = []string{
	"/account", "/my-account", "/admin", "/administrator", "/wp-admin", "/wp-login.php", "/wp-json", "/user/login",
	"/user/register", "/login", "/logout", "/signin", "/signup", "/register", "/cart", "/basket", "/checkout",
}

// Excluded reports whether the rule hides a path (an identity, with or without
// a query).
func (v Visibility) Excluded(identity string) bool {
	list := v.Exclude
	if list == nil {
		list = DefaultExclude
	}
	path, _, _ := strings.Cut(identity, "?")
	readings := spellings(path)
	for _, ex := range list {
		if ex == "" {
			continue
		}
		hidden := segments(unescape(ex), false)
		for _, r := range readings {
			if len(r) >= len(hidden) && slices.EqualFunc(r[:len(hidden)], hidden, strings.EqualFold) {
				return true
			}
		}
	}
	return false
}

// decodings is how often a path is decoded: some servers do so twice, before and
// after they have looked at it.
const decodings = 3

// spellings returns the segments of the paths that servers may take one for.
func spellings(path string) (out [][]string) {
	for range decodings {
		out = append(out, segments(path, false))
		if strings.Contains(path, ";") {
			out = append(out, segments(path, true))
		}
		plain := unescape(path)
		if plain == path {
			break
		}
		path = plain
	}
	return out
}

// segments splits a path as a file system does: empty and "." segments are none,
// ".." takes one back, and a backslash is a slash. Some servers have parameters
// in segments, which then are no part of the name.
func segments(path string, parameters bool) (out []string) {
	for s := range strings.SplitSeq(strings.ReplaceAll(path, `\`, "/"), "/") {
		if parameters {
			s, _, _ = strings.Cut(s, ";")
		}
		switch s {
		case "", ".":
		case "..":
			out = out[:max(0, len(out)-1)]
		default:
			out = append(out, s)
		}
	}
	return out
}

// unescape returns a path without percent-encoding, or as it is when that is
// broken.
func unescape(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}

// Apply returns the page as the public may see it, or false when the public may
// not see it at all. The argument is not changed.
func (v Visibility) Apply(p *Page) (*Page, bool) {
	if p.Access.NoIndex || p.Access.Auth || v.Excluded(p.URL) || slices.Contains(v.Kinds, p.Kind) {
		return nil, false
	}
	out := *p
	out.Author = displayName(p.Author)
	if v.Authors == AuthorHidden {
		out.Author = ""
	}
	out.Summary, out.Description = withoutMail(p.Summary), withoutMail(p.Description)
	out.Schema = scrub(p.Schema, v.Authors == AuthorHidden)
	return &out, true
}

// Fingerprint moves with everything that Apply depends on.
func (v Visibility) Fingerprint() string {
	if v.Exclude == nil {
		v.Exclude = DefaultExclude
	}
	const format = "visibility 5\n" // moves when Apply does
	b, err := json.Marshal(v)
	if err != nil {
		panic("millrace: strings do not encode: " + err.Error())
	}
	sum := sha256.Sum256(append([]byte(format), b...))
	return hex.EncodeToString(sum[:8])
}

// withoutMail drops the words of a text that are mail addresses.
func withoutMail(s string) string {
	if !strings.Contains(s, "@") {
		return s
	}
	return strings.Join(slices.DeleteFunc(strings.Fields(s), isMail), " ")
}

func isMail(word string) bool {
	name, host, ok := strings.Cut(word, "@")
	return ok && name != "" && strings.Contains(strings.TrimRight(host, ".,;:!?)"), ".") || strings.HasPrefix(word, "mailto:")
}

// displayName drops what identifies more than a name does: mail addresses and
// URLs.
func displayName(s string) string {
	words := strings.FieldsFunc(s, unicode.IsSpace)
	words = slices.DeleteFunc(words, func(w string) bool {
		return strings.Contains(w, "@") && strings.Contains(w, ".") || strings.Contains(w, "://") ||
			strings.HasPrefix(w, "mailto:")
	})
	return strings.Trim(strings.Join(words, " "), " ,;<>()")
}

// private names the JSON-LD properties that never become public: they say
// where or how to reach somebody, or identify them to machines.
var private = map[string]bool{
	"email": true, "telephone": true, "faxNumber": true, "address": true, "contactPoint": true,
	"identifier": true, "taxID": true, "vatID": true, "birthDate": true, "homeLocation": true,
	"givenName": true, "familyName": true, "additionalName": true,
}

// scrub returns JSON-LD without what is private; with persons, also without
// persons. Elements that are no JSON objects are dropped. The result has its
// members in a fixed order.
func scrub(schema []json.RawMessage, persons bool) []json.RawMessage {
	var out []json.RawMessage
	for _, raw := range schema {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var v any
		if d.Decode(&v) != nil {
			continue
		}
		v = scrubValue(v, persons)
		if m, ok := v.(map[string]any); !ok || len(m) == 0 {
			continue
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if e.Encode(v) == nil {
			out = append(out, bytes.TrimSuffix(b.Bytes(), []byte("\n")))
		}
	}
	return out
}

// scrubValue returns nil for what has to go.
func scrubValue(v any, persons bool) any {
	switch v := v.(type) {
	case string:
		if scheme, _, ok := strings.Cut(v, ":"); ok && (strings.EqualFold(scheme, "mailto") || strings.EqualFold(scheme, "tel")) {
			return nil
		}
		return v
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			if e = scrubValue(e, persons); e != nil {
				out = append(out, e)
			}
		}
		if len(out) == 0 && len(v) > 0 {
			return nil
		}
		return out
	case map[string]any:
		person := isPerson(v["@type"])
		if person && persons {
			return nil
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			term := k[strings.LastIndexAny(k, ":/#")+1:] // "schema:email" and "https://schema.org/email" are email
			byline := term == "author" || term == "creator" || term == "editor" || term == "contributor"
			if private[term] || person && (term == "@id" || term == "sameAs") || persons && byline {
				delete(v, k)
				continue
			}
			s := scrubValue(v[k], persons)
			if byline || person && term == "name" {
				s = displayNames(s)
			}
			if s == nil && v[k] != nil {
				delete(v, k)
			} else {
				v[k] = s
			}
		}
		return v
	}
	return v
}

// displayNames makes display names of a string and of those in an array, as
// [displayName] does; nil when nothing is left.
func displayNames(v any) any {
	switch v := v.(type) {
	case string:
		if name := displayName(v); name != "" {
			return name
		}
		return nil
	case []any:
		v = slices.DeleteFunc(slices.Clone(v), func(e any) bool { return displayNames(e) == nil })
		for i, e := range v {
			v[i] = displayNames(e)
		}
		if len(v) == 0 {
			return nil
		}
		return v
	}
	return v
}

func isPerson(t any) bool {
	switch t := t.(type) {
	case string:
		return t[strings.LastIndexAny(t, ":/#")+1:] == "Person"
	case []any:
		return slices.ContainsFunc(t, isPerson)
	}
	return false
}
