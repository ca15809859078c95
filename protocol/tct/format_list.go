package tct

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"
)

// What a list can be instead of one that is read.
var (
	errNoList  = errors.New("not an M-Sitemap")
	errVersion = millrace.Coded("unknown-version", errors.New("the version of the list is unknown"))
)

// listItem is one entry of a list. A reader takes either draft's name of the tag.
type listItem struct {
	CURL        string `json:"cUrl"`        // the page
	MURL        string `json:"mUrl"`        // its document
	Modified    date   `json:"modified"`    // draft-00
	ContentHash string `json:"contentHash"` // draft-00: the document's ETag without quotes
	ETag        string `json:"etag"`        // draft-01: the same
}

// date is a time as RFC 3339 has it. It is but a hint: what is no string counts
// as "", not said.
type date string

// UnmarshalJSON implements [json.Unmarshaler].
func (d *date) UnmarshalJSON(raw []byte) error {
	*d = date(rawString(raw))
	return nil
}

// Version gives the validator that an M-URL of the item should have, as it
// stands in an ETag field: of etag, else of contentHash. It is ""
// when the item names none that can stand there.
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

// walk walks a list in flat memory and gives each item to visit with its index,
// or the reason why it is no item; visit may end the walk. version is the list's
// own, nil if it has none, and items whether there is such a member: what was
// visited counts only if these will do. Errors are those of [jsonio.Reader], or a
// [*millrace.FormatError] with a [*DraftError].
func walk(r *jsonio.Reader, visit func(i int, it *listItem, err error) bool) (version jsonio.Raw, items bool, err error) {
	var profile string
	for name, err := range r.Members() {
		if err != nil {
			return version, items, err
		}
		switch name {
		case "version":
			if version, err = r.Raw(); err != nil {
				return version, items, err
			}
		case "profile":
			raw, err := r.Raw()
			if err != nil {
				return version, items, err
			}
			profile = rawString(raw)
		case "items":
			items = true
			for i, err := range r.Elements() {
				if err != nil {
					return version, items, err
				}
				var it listItem
				if err := r.Decode(&it); !visit(i, &it, err) {
					return version, items, nil
				}
			}
		}
	}
	return version, items, checkDraft(profile, string(version))
}

// ScanList walks a list of at most size bytes in flat memory and gives each item to
// visit with its index, or the reason why it is no item; visit may end the walk. If
// size is zero, 1 GiB. What was visited counts only if ScanList returns nil: the
// version may come after the items. Errors wrap ErrNoList, ErrVersion, ErrTooLarge
// or a [*millrace.FormatError] without the list's URL.
func (d *draft) ScanList(r io.Reader, size int64, visit func(i int, it *listItem, err error) bool) error {
	at := section(d.Rules.Items)
	version, items, err := walk(jsonio.NewReader(r, &jsonio.Limits{Size: size}), func(i int, it *listItem, err error) bool {
		return visit(i, it, d.FormatError(err, "", at))
	})
	if _, other := errors.AsType[*draftError](err); other {
		return d.FormatError(err, "", at)
	}
	n, bad := strconv.ParseFloat(string(version), 64)
	switch {
	case version == nil && !items, version != nil && (bad != nil || n != float64(int64(n))), err == nil && !items:
		return errNoList
	case version != nil && n != 1 && items:
		return fmt.Errorf("%w: %s", errVersion, version)
	case version != nil && n != 1:
		return errNoList
	case err == nil && version == nil && !d.VersionOptional:
		err = &millrace.FormatError{Position: "/version", Err: errRequired}
	}
	return d.FormatError(err, "", at)
}

// Check gives the item with its URLs in canonical form, or says what is wrong
// with it: a [*millrace.FormatError] with the member as its position. The M-URL
// must be of an origin that serves the list.
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
		return wrong("mUrl", "it is on another origin than the list, "+origins[0], nil)
	}
	return it, nil
}

// skip reports the item of that index in a list, which cannot be used.
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
