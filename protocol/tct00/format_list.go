package tct00

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

// item is one entry of a list (6.1).
type item struct {
	CURL        string `json:"cUrl"`        // the page
	MURL        string `json:"mUrl"`        // its document
	Modified    string `json:"modified"`    // RFC 3339; "" = not said
	ContentHash string `json:"contentHash"` // the document's ETag without quotes
	ETag        string `json:"etag"`        // in place of contentHash in lists of draft-01
}

// listHead and listTail stand around the items of a list (6.1).
const (
	listHead = `{"version":1,"profile":"` + profile + `","items":[`
	listTail = "]}"
)

// append appends the item as the lists of this draft have it.
func (it *item) append(dst []byte) []byte {
	dst = append(member(append(dst, '{'), "cUrl", it.CURL), ',')
	dst = append(member(dst, "mUrl", it.MURL), ',')
	if it.Modified != "" {
		dst = append(member(dst, "modified", it.Modified), ',')
	}
	return append(member(dst, "contentHash", it.ContentHash), '}')
}

// version gives the validator that an M-URL of the item should have, as it
// stands in an ETag field: of draft-01's etag, else of contentHash. It is ""
// when the item names none that can stand there.
func (it *item) version() string {
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

// errVersion is a list of a version that nobody here knows.
var errVersion = errors.New("the version of the list is unknown")

// errNoList is a document that is something else than a list.
var errNoList = errors.New("not a list of TCT")

// listLimits bound a list of the given size in bytes.
func listLimits(size int64) *jsonio.Limits { return &jsonio.Limits{Size: size} }

// scanList walks a list of at most size bytes in flat memory and gives each
// item to visit with its index, or the reason why it is no item; visit may end
// the walk. What was visited counts only if scanList gives nil at the end: the
// version may come after the items. Errors wrap errNoList, errVersion,
// ErrTooLarge or a [*millrace.FormatError] that lacks the list's URL.
func scanList(r io.Reader, size int64, visit func(i int, it *item, err error) bool) error {
	var version jsonio.Raw
	var items bool
	err := walkList(jsonio.NewReader(r, listLimits(size)), &version, &items, visit)
	n, bad := strconv.ParseFloat(string(version), 64)
	switch {
	case version != nil && (bad != nil || n != float64(int64(n))), !items && !errors.Is(err, millrace.ErrTooLarge):
		return errNoList
	case version != nil && n != 1:
		return fmt.Errorf("%w: %s", errVersion, version)
	}
	return formatError(err, "", "6.1")
}

func walkList(
	r *jsonio.Reader, version *jsonio.Raw, items *bool, visit func(i int, it *item, err error) bool,
) error {
	for name, err := range r.Members() {
		if err != nil {
			return err
		}
		switch name {
		case "version":
			if *version, err = r.Raw(); err != nil {
				return err
			}
		case "items":
			*items = true
			for i, err := range r.Elements() {
				if err != nil {
					return err
				}
				var it item
				if err := r.Decode(&it); !visit(i, &it, formatError(err, "", "6.1")) {
					return nil
				}
			}
		}
	}
	return nil
}

// check gives the item with its URLs in canonical form, or says what is wrong
// with it. The M-URL must be of an origin that serves the list.
func (it item) check(origins []string) (item, error) {
	wrong := func(member, reason string, err error) (item, error) {
		return it, &millrace.FormatError{Protocol: Name, Position: member, Section: "6.1", Reason: reason, Err: err}
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
