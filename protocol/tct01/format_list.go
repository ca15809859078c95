package tct01

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/jsonio"
	"github.com/millrace/millrace/internal/tct"
)

// appendItem appends the item as the lists of this draft have it.
func appendItem(dst []byte, it *tct.Item) []byte {
	dst = append(tct.Member(append(dst, '{'), "cUrl", it.CURL), ',')
	dst = append(tct.Member(dst, "mUrl", it.MURL), ',')
	return append(tct.Member(dst, "etag", it.ETag), '}')
}

// errVersion is an M-Sitemap of a version that nobody here knows.
var errVersion = millrace.Coded("unknown-version", errors.New("the version of the M-Sitemap is unknown"))

// errNoList is a document that is something else than an M-Sitemap.
var errNoList = errors.New("not an M-Sitemap")

// scanList walks an M-Sitemap in flat memory and gives each item to visit
// with its index, or the reason why it is no item; visit may end the walk.
// What was visited counts only if scanList gives nil at the end: the version
// may come after the items. Errors wrap errNoList, errVersion, ErrTooLarge or
// a [*millrace.FormatError] that lacks the list's URL.
func scanList(r io.Reader, visit func(i int, it *tct.Item, err error) bool) error {
	version, items, err := tct.Walk(jsonio.NewReader(r, nil), func(i int, it *tct.Item, err error) bool {
		return visit(i, it, draft.FormatError(err, "", "1.7.1"))
	})
	if _, other := errors.AsType[*tct.DraftError](err); other {
		return draft.FormatError(err, "", "1.7.1")
	}
	n, bad := strconv.ParseFloat(string(version), 64)
	switch {
	case version == nil && !items, version != nil && (bad != nil || n != float64(int64(n))), err == nil && !items:
		return errNoList
	case version != nil && n != 1 && items:
		return fmt.Errorf("%w: %s", errVersion, version)
	case version != nil && n != 1:
		return errNoList
	case err != nil:
		return draft.FormatError(err, "", "1.7.1")
	case version == nil:
		return &millrace.FormatError{Protocol: Name, Position: "/version", Section: "1.7.1", Reason: "the member is required"}
	}
	return nil
}
