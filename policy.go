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

// Purpose is a purpose for which a reader uses content.
type Purpose string

// The purposes that policies distinguish.
const (
	AIInput Purpose = "ai-input" // input of an AI system that answers questions
	AITrain Purpose = "ai-train" // training of AI models
	Search  Purpose = "search"   // search engines
)

// AuthorDisplay is the form in which public documents show authors.
type AuthorDisplay string

// Values of AuthorDisplay.
const (
	AuthorName   AuthorDisplay = ""       // the display name
	AuthorHidden AuthorDisplay = "hidden" // no author, and no persons in the JSON-LD
)

// Visibility is the rule that decides what is public. It applies to all protocols. Pages with
// [Access] restrictions are always hidden. In addition, the zero value hides the paths of
// [DefaultExclude].
type Visibility struct {
	// Exclude lists paths under the base that are hidden, each with all paths below it. Whole
	// segments are compared, ignoring case, in every spelling that some server resolves to the same
	// path. "/account" hides "/Account/x", "//x/..%2Faccount;v=1" and "/%2561ccount", but not
	// "/accounting". "/" hides everything, "" nothing. If nil, DefaultExclude applies. An empty,
	// non-nil list hides nothing.
	Exclude []string
	Kinds   []PageKind    // kinds of pages to hide
	Authors AuthorDisplay // if zero, display names
}

// DefaultExclude lists paths of personal and administrative pages: accounts, carts, checkouts,
// logins and administration.
var DefaultExclude = []string{
	"/account", "/my-account", "/admin", "/administrator", "/wp-admin", "/wp-login.php", "/wp-json", "/user/login",
	"/user/register", "/login", "/logout", "/signin", "/signup", "/register", "/cart", "/basket", "/checkout",
}

// Excluded reports whether the rule hides a path. pagePath is the path of a page, with or without
// its query.
func (v Visibility) Excluded(pagePath string) bool {
	list := v.Exclude
	if list == nil {
		list = DefaultExclude
	}
	path, _, _ := strings.Cut(pagePath, "?")
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

// decodings is the number of spellings of a path: as is, decoded once, and decoded twice. Some
// servers decode a path before and after they check it.
const decodings = 3

// spellings returns the segments of every path that a server may resolve path to.
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

// segments splits a path like a file system. It drops empty and "." segments, resolves "..", and
// treats a backslash as a slash. If parameters is set, it removes the part of each segment after
// ";", which some servers ignore.
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

// unescape decodes the percent-encoding of a path. If the encoding is invalid, it returns the path
// unchanged.
func unescape(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}

// Apply returns the public form of a page, and reports whether the page is public. It does not
// change p.
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

// Fingerprint returns a string that differs for two rules if Apply may give different results for
// them.
func (v Visibility) Fingerprint() string {
	if v.Exclude == nil {
		v.Exclude = DefaultExclude
	}
	const format = "visibility 5\n" // change this with the code of Apply
	b, err := json.Marshal(v)
	if err != nil {
		panic("millrace: cannot encode strings: " + err.Error())
	}
	sum := sha256.Sum256(append([]byte(format), b...))
	return hex.EncodeToString(sum[:8])
}

// withoutMail removes the words of a text that are e-mail addresses.
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

// displayName removes e-mail addresses and URLs from a name.
func displayName(s string) string {
	words := strings.FieldsFunc(s, unicode.IsSpace)
	words = slices.DeleteFunc(words, func(w string) bool {
		return strings.Contains(w, "@") && strings.Contains(w, ".") || strings.Contains(w, "://") ||
			strings.HasPrefix(w, "mailto:")
	})
	return strings.Trim(strings.Join(words, " "), " ,;<>()")
}

// private lists the JSON-LD properties that are never public: contact details, identifiers, and
// other personal data.
var private = map[string]bool{
	"email": true, "telephone": true, "faxNumber": true, "address": true, "contactPoint": true,
	"identifier": true, "taxID": true, "vatID": true, "birthDate": true, "homeLocation": true,
	"givenName": true, "familyName": true, "additionalName": true,
}

// scrub returns JSON-LD without the private properties and without mailto and tel URLs. If persons
// is set, it also removes persons and properties such as author. It drops elements that are not
// JSON objects or become empty. The members of the result are in a fixed order.
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

// scrubValue returns the scrubbed value, or nil to remove it.
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

// displayNames applies [displayName] to a string or to the strings of an array. If nothing remains,
// it returns nil.
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
