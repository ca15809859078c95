package tct

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"
	"github.com/millrace/millrace/internal/kit"
)

// Errors for documents that cannot be read as lists.
var (
	errNoList  = errors.New("not an M-Sitemap")
	errVersion = millrace.Coded("unknown-version", errors.New("unknown list version"))
)

// listItem is one item of a list. A reader accepts the name that any draft uses for the ETag.
type listItem struct {
	CURL        string `json:"cUrl"`        // URL of the page
	MURL        string `json:"mUrl"`        // URL of its document
	Modified    date   `json:"modified"`    // draft-00: modification time of the page
	ContentHash string `json:"contentHash"` // draft-00: ETag of the document without quotes
	ETag        string `json:"etag"`        // draft-01 and later: the same ETag

	LastModified date `json:"lastModified"` // draft-03: modification time of the page
}

// date is an RFC 3339 time. It is only a hint, so any value that is not a string becomes "".
type date string

// UnmarshalJSON implements [json.Unmarshaler].
func (d *date) UnmarshalJSON(raw []byte) error {
	*d = date(rawString(raw))
	return nil
}

// Version returns the validator that the item's M-URL should have, in the form of an ETag field:
// etag, else contentHash. If the item has no value that is valid in an ETag, Version returns "".
func (it *listItem) Version() string {
	v := it.ETag
	if v == "" {
		v = it.ContentHash
	}
	for _, c := range []byte(v) { // etagc of RFC 9110, section 8.8.3
		if c <= ' ' || c == '"' || c == 0x7F {
			return ""
		}
	}
	if v == "" {
		return ""
	}
	return `"` + v + `"`
}

// appendItem appends an item as JSON, with the members of the draft.
func (d *draft) appendItem(dst []byte, it *listItem) []byte {
	dst = append(dst, '{')
	for _, name := range d.Items {
		if value := it.member(name); value != "" {
			dst = append(canon.AppendMember(dst, name, value), ',')
		}
	}
	dst[len(dst)-1] = '}'
	return dst
}

// member returns the value of the member with the given name.
func (it *listItem) member(name string) string {
	switch name {
	case "cUrl":
		return it.CURL
	case "mUrl":
		return it.MURL
	case "contentHash":
		return it.ContentHash
	case "etag":
		return it.ETag
	}
	return string(cmp.Or(it.Modified, it.LastModified))
}

// listTop contains the members of a list other than its items.
type listTop struct {
	Version jsonio.Raw // nil = absent
	Profile string
	Items   bool     // whether the member is present
	Lists   []string // lists in an index
	Index   bool     // whether the member sitemaps is present
}

// walk reads a list in constant memory. It calls visit with the index of each item, and with the
// item or the reason why it is invalid. visit returns false to end the walk. If the rest of the
// list is invalid, the caller must discard the items. The errors are those of [jsonio.Reader].
func walk(r *jsonio.Reader, visit func(i int, it *listItem, err error) bool) (top listTop, err error) {
	for name, err := range r.Members() {
		if err != nil {
			return top, err
		}
		switch name {
		case "version":
			if top.Version, err = r.Raw(); err != nil {
				return top, err
			}
		case "profile":
			raw, err := r.Raw()
			if err != nil {
				return top, err
			}
			top.Profile = rawString(raw)
		case "sitemaps":
			raw, err := r.Raw()
			if err != nil {
				return top, err
			}
			top.Index, top.Lists = true, indexed(raw)
		case "items":
			top.Items = true
			for i, err := range r.Elements() {
				if err != nil {
					return top, err
				}
				var it listItem
				if err := r.Decode(&it); !visit(i, &it, err) {
					return top, nil
				}
			}
		}
	}
	return top, nil
}

// indexError is the error for a list of lists.
type indexError struct{ Lists []string }

// Error returns the reason.
func (*indexError) Error() string { return "index without lists of this origin" }

// Unwrap returns ErrInvalid.
func (*indexError) Unwrap() error { return millrace.ErrInvalid }

// listsIn returns the lists in an index that are on the same origin as the index, whose URL is at.
// It returns nil if err is not an indexError.
func listsIn(err error, at string) (lists []kit.Resource) {
	if e, ok := errors.AsType[*indexError](err); ok {
		for _, u := range e.Lists[:min(len(e.Lists), maxIndexed)] {
			if canon.Origin(u) == canon.Origin(at) {
				lists = append(lists, kit.Resource{URL: u})
			}
		}
	}
	return lists
}

// maxIndexed is the maximum number of lists that are read from an index.
const maxIndexed = 64

// indexed returns the lists in an index. Each entry is a string, or an object with one string that
// is an absolute URL. The text of the draft, which defines the members, was not available.
func indexed(raw jsonio.Raw) (lists []string) {
	var entries []jsonio.Raw
	if jsonio.Unmarshal(raw, &jsonLimits, &entries) != nil {
		return nil
	}
	for _, e := range entries {
		var found []string
		var members map[string]jsonio.Raw
		if jsonio.Unmarshal(e, &jsonLimits, &members) != nil {
			members = map[string]jsonio.Raw{"": e}
		}
		for _, m := range members {
			if u, err := canon.URL(rawString(m)); err == nil {
				found = append(found, u)
			}
		}
		if len(found) == 1 {
			lists = append(lists, found[0])
		}
	}
	return lists
}

// ScanList reads a list of at most size bytes in constant memory; if size is zero, 1 GiB. It calls
// visit with the index of each item, and with the item or the reason why it is invalid. visit
// returns false to end the scan. The caller must discard the items unless ScanList returns nil,
// because the version may come after the items. Errors wrap [errNoList], [errVersion], ErrTooLarge,
// an [*indexError] or a [*millrace.FormatError] without the list's URL.
func (d *draft) ScanList(r io.Reader, size int64, visit func(i int, it *listItem, err error) bool) error {
	at := section(d.RuleNames.Items)
	top, err := walk(jsonio.NewReader(r, &jsonio.Limits{Size: size}), func(i int, it *listItem, err error) bool {
		return visit(i, it, d.FormatError(err, "", at))
	})
	if err == nil && top.Profile != "" && top.Profile == d.IndexProfile {
		return &indexError{top.Lists}
	}
	its, other := d.ofList(top.Profile, string(top.Version))
	if other != nil && (err == nil || top.Profile != "") {
		return d.FormatError(other, "", at)
	} else if other != nil {
		its = d
	}
	n, bad := strconv.ParseFloat(string(top.Version), 64)
	switch {
	case top.Version == nil && !top.Items, top.Version != nil && (bad != nil || n != float64(int64(n))), err == nil && !top.Items:
		return errNoList
	case top.Version != nil && n != float64(its.ListVersion) && top.Items:
		return fmt.Errorf("%w: %s", errVersion, top.Version)
	case top.Version != nil && n != float64(its.ListVersion):
		return errNoList
	case err == nil && top.Version == nil && !its.VersionOptional:
		err = &millrace.FormatError{Position: "/version", Err: errRequired}
	case err == nil && its.ListProfile != "" && top.Profile != its.ListProfile:
		err = &millrace.FormatError{Position: "/profile", Reason: "got " + kit.Short(top.Profile) + ", want the profile of a list"}
	case err == nil && top.Index && its.IndexProfile != "":
		err = &millrace.FormatError{Position: "/sitemaps", Reason: "a list must not have this member"}
	}
	return d.FormatError(err, "", at)
}

// Check returns the item with its URLs in canonical form. The error is a [*millrace.FormatError]
// with the invalid member as its Position. The M-URL must be on one of the origins.
func (it listItem) Check(origins []string) (listItem, error) {
	wrong := func(member, reason string, err error) (listItem, error) {
		return it, &millrace.FormatError{Position: member, Reason: reason, Err: err}
	}
	var err error
	if it.CURL, err = canon.URL(it.CURL); err != nil {
		return wrong("cUrl", "", err)
	}
	if it.MURL, err = canon.URL(it.MURL); err != nil {
		return wrong("mUrl", "", err)
	}
	if !slices.Contains(origins, canon.Origin(it.MURL)) {
		return wrong("mUrl", "not on the origin of the list, "+origins[0], nil)
	}
	return it, nil
}

// skip returns the error for an invalid item of a list.
func skip(list string, i int, it *listItem, err error) *millrace.SkipError {
	if f, ok := errors.AsType[*millrace.FormatError](err); ok {
		f.URL = list
		if f.Position == "" || f.Position == "cUrl" || f.Position == "mUrl" {
			at := fmt.Sprintf("/items/%d", i)
			if f.Position != "" {
				at += "/" + f.Position
			}
			f.Position = at
		}
	}
	return &millrace.SkipError{URL: it.CURL, Err: err}
}
