package crawl

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
)

// format is the version of this package in the versions of pages. It must be increased when the
// same response may result in another page or another identity.
const format = 1

// Kinds of versions. The kind is the first byte of the text form.
const (
	isPage    = 'p' // a page
	isAlias   = 'm' // an alias: a redirect, a duplicate, or an address that is not HTML
	isPending = 'q' // found, but not fetched yet
)

// version is the state of an address, which the sink stores. Its text form is
//
//	p1.by.depth.flags.sketch.modified.claim.revision etag
//	m1.by.day.target.flags
//	q1.by.depth.listed
//
// The 1 is the version of this package. by is the version of the extractor; if there are rules, "-"
// and their fingerprint follow. Numbers are in base 36. The ETag is unchanged.
type version struct {
	kind byte
	// stale reports whether extracting the page today may give a different result. If it is set,
	// only kind, depth, nothingNew and old are valid.
	stale bool
	old   *version // stored version of a page that is stale only because by differs
	by    string   // extractor and rules; ignored if the address has no page

	depth      int    // number of links from the root or a list
	listed     bool   // a list contains the address
	nothingNew bool   // the page had no new text or links; see traps
	sketch     uint64 // see reading
	// revision is the start of the page's Revision. If the server sends validators, it is a hash of
	// the text, and only measures how often the page changes. If it is "", the page must be fetched
	// without conditions, because a decision about the page was temporary.
	revision string
	modified int64  // Last-Modified, in seconds since 1970, or 0
	hint     int64  // modification time in the lists, if Last-Modified is missing, or 0
	claim    uint64 // key of the page's canonical address on another site, or 0
	etag     string

	day    int64  // day of the last fetch, in days since 1970
	target uint64 // key of the page to which an alias points
}

const (
	revisionLength = 24 // corresponds to 96 bits
	maxTag         = 200
)

// String returns the text form of the version.
func (v *version) String() string {
	b := make([]byte, 0, 96+len(v.etag))
	b = append(b, v.kind)
	b = strconv.AppendInt(b, format, 10)
	b = append(b, '.')
	b = append(b, v.by...)
	number := func(n uint64) {
		b = append(b, '.')
		b = strconv.AppendUint(b, n, 36)
	}
	switch v.kind {
	case isPage:
		number(uint64(v.depth))
		number(uint64(flag(v.nothingNew) | flag(v.hint > 0)<<1))
		number(v.sketch)
		number(uint64(max(v.modified, v.hint, 0)))
		number(v.claim)
		b = append(b, '.')
		b = append(b, v.revision...)
		if v.etag != "" {
			b = append(b, ' ')
			b = append(b, v.etag...)
		}
	case isAlias:
		number(uint64(v.day))
		number(v.target)
		number(uint64(flag(v.nothingNew)))
	case isPending:
		number(uint64(v.depth))
		number(uint64(flag(v.listed)))
	}
	return string(b)
}

// parseVersion parses the text form. A page is stale if by differs. "" is the version of a page
// whose version is unknown.
func parseVersion(s, by string) version {
	unknown := version{kind: isPage, stale: true}
	v := unknown
	if s == "" {
		return unknown
	}
	if v.kind = s[0]; v.kind != isAlias && v.kind != isPending {
		v.kind = isPage
	}
	unknown.kind, v.stale = v.kind, false
	head, etag, _ := strings.Cut(s[1:], " ")
	fields := strings.Split(head, ".")
	if len(fields) < 2 || fields[0] != strconv.Itoa(format) {
		return unknown
	}
	v.by, fields = fields[1], fields[2:]
	numbers := [5]uint64{}
	for i := range min(len(fields), len(numbers)) {
		n, err := strconv.ParseUint(fields[i], 36, 64)
		if err != nil {
			return unknown
		}
		numbers[i] = n
	}
	switch {
	case v.kind == isPage && len(fields) == 6:
		v.depth, v.nothingNew, v.sketch = int(min(numbers[0], 1<<16)), numbers[1]&1 != 0, numbers[2]
		v.modified, v.claim, v.revision, v.etag = int64(min(numbers[3], 1<<40)), numbers[4], fields[5], etag
		if numbers[1]&2 != 0 {
			v.modified, v.hint = 0, v.modified
		}
	case v.kind == isAlias && len(fields) == 3:
		v.day, v.target, v.nothingNew = int64(min(numbers[0], 1<<31)), numbers[1], numbers[2] != 0
	case v.kind == isPending && len(fields) == 2:
		v.depth, v.listed = int(min(numbers[0], 1<<16)), numbers[1] != 0
	default:
		return unknown
	}
	switch {
	case v.String() != s:
		return unknown // an unknown format
	case v.kind == isPage && v.by != by:
		unknown.depth, unknown.nothingNew, unknown.old = v.depth, v.nothingNew, &v
		return unknown
	}
	return v
}

// conditions makes a request conditional if the stored version is current. It reports whether the
// request is conditional. For a stale page, it sends a validator only if the page was extracted
// again, because the sink then has the new page or will receive it.
func (v *version) conditions(h http.Header, remade bool) bool {
	if remade && v.old != nil {
		v = v.old
	}
	if v.kind != isPage || v.stale || v.revision == "" {
		return false
	}
	if v.etag != "" {
		h.Set("If-None-Match", v.etag)
	}
	if v.modified > 0 {
		h.Set("If-Modified-Since", time.Unix(v.modified, 0).UTC().Format(http.TimeFormat))
	}
	return v.etag != "" || v.modified > 0
}

// validators stores the validators of a response.
func (v *version) validators(h http.Header) {
	v.etag, v.modified = "", 0
	if tag := h.Get("ETag"); len(tag) <= maxTag && isTag(tag) {
		v.etag = tag
	}
	if t, ok := lastModified(h); ok {
		v.modified = t.Unix()
	}
}

// revise sets the revision of a page. If there are no validators, it encodes the page, which takes
// up to a fifth of the extraction time.
func (v *version) revise(r *result) {
	if v.etag != "" || v.modified > 0 {
		v.revision = "t" + strconv.FormatUint(r.sum, 36)
		return
	}
	v.revision = r.page.Revision()[:revisionLength]
}

// detailed reports whether pages with this version are equal in every field.
func (v *version) detailed() bool { return len(v.revision) == revisionLength }

// isTag reports whether a value is an entity tag (RFC 9110, section 8.8.3).
func isTag(s string) bool {
	s = strings.TrimPrefix(s, "W/")
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return false
	}
	for _, c := range []byte(s[1 : len(s)-1]) {
		if c <= ' ' || c == '"' || c == 0x7F {
			return false
		}
	}
	return true
}

// lastModified returns the Last-Modified time of a response. It ignores a time that is not before
// the time of the response, because scripts send the current time.
func lastModified(h http.Header) (time.Time, bool) {
	t, err := http.ParseTime(h.Get("Last-Modified"))
	if err != nil || t.Unix() <= 0 {
		return time.Time{}, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil && t.After(date.Add(-2*time.Second)) {
		return time.Time{}, false
	}
	return t.UTC(), true
}

// aliasVersion returns an alias for u, with a version: a page that contains only these.
func aliasVersion(u string, v *version) *millrace.Page {
	return &millrace.Page{URL: u, Version: v.String()}
}
