package scp

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/sitemap"
)

// sectionDiscovery is the section of the specification about SCP elements in sitemaps.
const sectionDiscovery = "Discovery via Sitemap"

// maxElements is the maximum number of SCP elements in a sitemap.
const maxElements = 20_000

// maxSize is the maximum size of a collection in bytes that a sitemap may declare. The reader
// treats a larger size as unknown.
const maxSize = 1 << 45

// offer contains the SCP elements of a sitemap.
type offer struct {
	collections []*offered // ordered by section, then by time
	flawed      bool       // whether an invalid element was skipped
	frequency   bool       // whether a section declares an update frequency
}

// offered is one collection in a sitemap, in all its codings.
type offered struct {
	section   string
	delta     bool
	since     time.Time // start of the period of a delta
	generated time.Time
	expires   time.Time // zero if absent or invalid
	pages     int       // -1 if absent or invalid
	files     []file    // files by coding: zstd first, uncompressed last
}

// file is a collection in one coding.
type file struct {
	url  string // canonical URL
	size int64  // size in bytes, or 0 if unknown
	// coded reports whether the reader accepts only a response that is compressed with a
	// dictionary.
	coded bool
}

// size returns the size in bytes of the preferred file.
func (o *offered) size() int64 { return o.files[0].size }

// plain returns the uncompressed file, or the zero value if there is no such file.
func (o *offered) plain() (f file) {
	if coding, ok := suffixOf(o.files[len(o.files)-1].url); ok && coding == "" {
		f = o.files[len(o.files)-1]
	}
	return f
}

// offerReader parses the SCP elements of one sitemap.
type offerReader struct {
	*run
	base        *url.URL
	elements    int
	after       int // number of entries since the last SCP element
	collections []*offered
	byKey       map[string]*offered
	frequency   bool  // whether a section declares an update frequency
	leftOut     error // error of the first skipped element, or nil
	err         error // fatal error, or nil
}

// element reads one element. It skips an invalid element and reports a note, because a later
// version of the specification may allow the element.
func (r *offerReader) element(e sitemap.Element) error {
	r.after = 0
	if r.elements++; r.elements > maxElements {
		r.err = fmt.Errorf("%s: sitemap %s: more than %d SCP elements: %w", Name, r.base, maxElements, millrace.ErrTooLarge)
		return r.err
	}
	var err error
	switch e.Name {
	case "version":
		err = r.version(e)
	case "section":
		r.frequency = r.frequency || e.Attr["updateFreq"] != ""
	case "collection", "delta":
		err = r.collection(e)
	}
	if r.err == nil && err != nil {
		r.leftOut = cmp.Or(r.leftOut, err)
		r.Note(ruleOf(err), r.base.String(), fmt.Sprintf("line %d: skipped %s: %v", e.Line, e.Name, err))
	}
	return r.err
}

// version rejects an unsupported major version (Version Compatibility).
func (r *offerReader) version(e sitemap.Element) error {
	major, minor, ok := strings.Cut(e.Text, ".")
	if !ok || !isDigits(major) || !isDigits(minor) {
		return &ruled{"sitemap/version", fmt.Errorf("%q is not a version", kit.Short(e.Text))}
	}
	if strings.Trim(major, "0") != "" {
		r.err = r.format(e, "version "+kit.Short(e.Text)+" is higher than "+version, nil)
	}
	return nil
}

func (r *offerReader) format(e sitemap.Element, reason string, err error) error {
	return &millrace.FormatError{
		Protocol: Name, URL: r.base.String(), Position: fmt.Sprintf("line %d", e.Line), Section: sectionDiscovery, Reason: reason, Err: err,
	}
}

var errEmpty = errors.New("empty value")

// collection reads a snapshot or delta element (Appendix A).
func (r *offerReader) collection(e sitemap.Element) error {
	o := &offered{section: e.Attr["section"], delta: e.Name == "delta", pages: -1}
	bad := func(name, rule string, err error) error {
		if _, there := e.Attr[name]; !there {
			rule = "sitemap/required"
		}
		return &ruled{rule, fmt.Errorf("%s: %w", name, err)}
	}
	if !isName(o.section) {
		return bad("section", "sitemap/section", fmt.Errorf("%q is not a valid name", kit.Short(o.section)))
	}
	if t := e.Attr["type"]; !o.delta && t != "snapshot" {
		return bad("type", "sitemap/type", fmt.Errorf("want snapshot, got %q", kit.Short(t)))
	}
	u, err := canon.Resolve(r.base, e.Attr["url"])
	switch {
	case err != nil || e.Attr["url"] == "":
		return bad("url", "sitemap/url", cmp.Or(err, errEmpty))
	case kit.IsDowngrade(r.Root, u):
		return bad("url", "security/https", errors.New("http URL on an https site"))
	case !r.allowed(u):
		return fmt.Errorf("%s: %w", hostOf(u), errHost)
	}
	if o.generated, err = instantOf(e.Attr["generated"]); err != nil {
		return bad("generated", "sitemap/date-time", err)
	}
	if o.generated.After(r.now.Add(skew)) {
		return bad("generated", "metadata/generated-past", errors.New("in the future: "+kit.Short(e.Attr["generated"])))
	}
	if o.delta {
		if o.since, err = instantOf(e.Attr["since"]); err != nil {
			return bad("since", "sitemap/date-time", err)
		}
	}
	if o.expires, err = instantOf(e.Attr["expires"]); err != nil {
		err := bad("expires", "sitemap/date-time", err)
		r.Note(ruleOf(err), r.base.String(), fmt.Sprintf("line %d: %v", e.Line, err))
	}
	f := file{url: u}
	if f.size, err = strconv.ParseInt(e.Attr["size"], 10, 64); err != nil || f.size < 0 || f.size > maxSize {
		f.size = 0
	}
	if n, err := strconv.Atoi(e.Attr["pages"]); err == nil && n >= 0 && n < missed {
		o.pages = n
	}
	r.add(o, f)
	return nil
}

// add adds a file to the collection to which it belongs.
func (r *offerReader) add(o *offered, f file) {
	key := fmt.Sprintf("%s %t %d %d", o.section, o.delta, o.since.UnixNano(), o.generated.UnixNano())
	if r.byKey == nil {
		r.byKey = map[string]*offered{}
	}
	first := r.byKey[key]
	if first == nil {
		r.byKey[key] = o
		r.collections = append(r.collections, o)
		first = o
	}
	if !slices.ContainsFunc(first.files, func(have file) bool { return have.url == f.url }) {
		first.files = append(first.files, f)
	}
	if first.pages < 0 {
		first.pages = o.pages
	}
	if o.expires.After(first.expires) {
		first.expires = o.expires
	}
}

func (r *offerReader) offer() *offer {
	for _, o := range r.collections {
		slices.SortStableFunc(o.files, func(a, b file) int { return rank(a.url) - rank(b.url) })
	}
	slices.SortStableFunc(r.collections, func(a, b *offered) int {
		return cmp.Or(strings.Compare(a.section, b.section), a.generated.Compare(b.generated), a.since.Compare(b.since))
	})
	return &offer{collections: r.collections, flawed: r.leftOut != nil, frequency: r.frequency}
}

// broken returns the error for a sitemap whose reading ended with err, or nil if the SCP elements
// were read. In the schema of sitemaps.org, extension elements precede the pages, so errors after
// the elements do not matter.
func (r *offerReader) broken(at string, err error) error {
	format, broken := errors.AsType[*millrace.FormatError](err)
	ends := broken || errors.Is(err, millrace.ErrTooLarge)
	switch {
	case r.err != nil:
		return r.err
	case r.elements > 0 && ends && r.probeCost != nil:
		return nil // a probe reads only the beginning, which contains the SCP elements
	case r.elements > 0 && r.after > 0 && ends:
		r.Note("discovery/valid", at, "skipped the part after the SCP elements: "+err.Error())
		return nil
	case r.elements == 0 && ends:
		return fmt.Errorf("%s: sitemap %s: %w: %v", Name, at, errNoSCP, err) //nolint:errorlint // not an invalid SCP sitemap
	case broken:
		f := *format
		f.Protocol, f.URL, f.Section = Name, at, sectionDiscovery
		return &f
	}
	return fmt.Errorf("%s: sitemap %s: %w", Name, at, err)
}

// rank returns the sort position of a file according to the suffix of its URL.
func rank(u string) int {
	path, _, _ := strings.Cut(u, "?")
	switch {
	case strings.HasSuffix(path, ".zst"):
		return 0
	case strings.HasSuffix(path, ".gz"):
		return 1
	}
	return 2
}

// instantOf parses an XML Schema dateTime, in whole seconds. A time without a zone is UTC.
func instantOf(s string) (time.Time, error) {
	t, ok := parseTime([]byte(s))
	if !ok {
		t, ok = parseTime([]byte(s + "Z"))
	}
	if !ok || t.IsZero() {
		return time.Time{}, fmt.Errorf("%q is not a date and time", kit.Short(s))
	}
	return t.UTC().Truncate(time.Second), nil
}

// hostOf returns the host and port of a canonical URL.
func hostOf(u string) string {
	_, rest, _ := strings.Cut(u, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}
