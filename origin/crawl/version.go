package crawl

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
)

// format is the version of this package's own part in a page. It rises
// whenever the same response may give another page or another identity.
const format = 1

// What a name of a site is, the first byte of its version.
const (
	isPage    = 'p' // of a page that was had
	isMute    = 'm' // no page of its own: a redirect, a duplicate, no HTML
	isPending = 'q' // found, and not yet looked at
)

// version is what the sink remembers of a name. Its text form is
//
//	p1.by.depth.flags.sketch.modified.claim.revision etag
//	m1.by.day.target.flags
//	q1.by.depth.listed
//
// where 1 is the version of this package, by is that of the extractor, with "-"
// and the fingerprint of its rules if they have one, numbers are in base 36,
// and the ETag is as the server wrote it.
type version struct {
	kind byte
	// stale: the page would be another one today. Nothing of it may be relied
	// on but kind, depth and barren.
	stale bool
	old   *version // of a stale page: what it said, if it is stale for by alone
	by    string   // what has extracted the page; of a name without one it does not count

	depth     int    // links from the root or a list
	listed    bool   // a list names it
	fruitless bool   // it brought nothing new; see traps
	sketch    uint64 // see sketch
	// revision is the start of the page's Revision or, where the server has
	// validators, a hash of its text, which only says how often the page
	// changes. "" = ask without conditions, because what was decided about
	// the page was for now only.
	revision string
	modified int64  // Last-Modified, seconds since 1970; 0 = none
	claim    uint64 // key of the address on another site that the page goes by; 0 = none
	etag     string

	day    int64  // when it was last looked at, days since 1970
	target uint64 // key of the page that is meant
}

const (
	revisionLength = 24 // 96 bits
	maxTag         = 200
)

// String returns the text form.
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
		number(uint64(flag(v.fruitless)))
		number(v.sketch)
		number(uint64(max(v.modified, 0)))
		number(v.claim)
		b = append(b, '.')
		b = append(b, v.revision...)
		if v.etag != "" {
			b = append(b, ' ')
			b = append(b, v.etag...)
		}
	case isMute:
		number(uint64(v.day))
		number(v.target)
		number(uint64(flag(v.fruitless)))
	case isPending:
		number(uint64(v.depth))
		number(uint64(flag(v.listed)))
	}
	return string(b)
}

// parseVersion reads the text form, of which pages that something else than by
// has extracted are stale. "" is a page of which nothing is known.
func parseVersion(s, by string) version {
	unknown := version{kind: isPage, stale: true}
	v := unknown
	if s == "" {
		return unknown
	}
	if v.kind = s[0]; v.kind != isMute && v.kind != isPending {
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
		v.depth, v.fruitless, v.sketch = int(min(numbers[0], 1<<16)), numbers[1] != 0, numbers[2]
		v.modified, v.claim, v.revision, v.etag = int64(min(numbers[3], 1<<40)), numbers[4], fields[5], etag
	case v.kind == isMute && len(fields) == 3:
		v.day, v.target, v.fruitless = int64(min(numbers[0], 1<<31)), numbers[1], numbers[2] != 0
	case v.kind == isPending && len(fields) == 2:
		v.depth, v.listed = int(min(numbers[0], 1<<16)), numbers[1] != 0
	default:
		return unknown
	}
	switch {
	case v.String() != s:
		return unknown // what this code did not write stands for no state of a page
	case v.kind == isPage && v.by != by:
		unknown.depth, unknown.fruitless, unknown.old = v.depth, v.fruitless, &v
		return unknown
	}
	return v
}

// conditions asks for the page only if it is not what is held. A validator is
// never sent for a page that this code would make another page of, unless it
// was remade: then the sink has it, or is about to.
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

// validators keeps the validators of a response.
func (v *version) validators(h http.Header) {
	v.etag, v.modified = "", 0
	if tag := h.Get("ETag"); len(tag) <= maxTag && isTag(tag) {
		v.etag = tag
	}
	if t, ok := lastModified(h); ok {
		v.modified = t.Unix()
	}
}

// revise sets the revision of a page. To write all that the page says costs as
// much as a fifth of its extraction.
func (v *version) revise(r *result) {
	if v.etag != "" || v.modified > 0 {
		v.revision = "t" + strconv.FormatUint(r.sum, 36)
		return
	}
	v.revision = r.page.Revision()[:revisionLength]
}

// detailed reports whether pages of this version say the same in every field.
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

// lastModified returns the Last-Modified of a response. One that is the time of
// the request, as scripts send it, says nothing.
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

// mute is a page that speaks for nothing: the name belongs to another page, or
// to none.
func mute(u string, v *version) *millrace.Page { return &millrace.Page{URL: u, Version: v.String()} }
