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

// item is one entry of a list (1.7.1).
type item = tct.Item

// listHead and listTail stand around the items of an M-Sitemap (1.7.1).
const (
	listHead = `{"version":1,"profile":"` + profile + `","items":[`
	listTail = "]}"
)

// appendItem appends the item as the lists of this draft have it.
func appendItem(dst []byte, it *item) []byte {
	dst = append(member(append(dst, '{'), "cUrl", it.CURL), ',')
	dst = append(member(dst, "mUrl", it.MURL), ',')
	return append(member(dst, "etag", it.ETag), '}')
}

// errVersion is an M-Sitemap of a version that nobody here knows.
var errVersion = errors.New("the version of the M-Sitemap is unknown")

// errNoList is a document that is something else than an M-Sitemap.
var errNoList = errors.New("not an M-Sitemap")

// scanList walks an M-Sitemap in flat memory and gives each item to visit
// with its index, or the reason why it is no item; visit may end the walk.
// What was visited counts only if scanList gives nil at the end: the version
// may come after the items. Errors wrap errNoList, errVersion, ErrTooLarge or
// a [*millrace.FormatError] that lacks the list's URL.
func scanList(r io.Reader, visit func(i int, it *item, err error) bool) error {
	version, items, err := tct.Walk(jsonio.NewReader(r, nil), func(i int, it *item, err error) bool {
		return visit(i, it, formatError(err, "", "1.7.1"))
	})
	if _, other := errors.AsType[*tct.DraftError](err); other {
		return formatError(err, "", "1.7.1")
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
		return formatError(err, "", "1.7.1")
	case version == nil:
		return &millrace.FormatError{Protocol: Name, Position: "/version", Section: "1.7.1", Reason: "the member is required"}
	}
	return nil
}
