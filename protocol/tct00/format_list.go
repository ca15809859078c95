package tct00

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
	if it.Modified != "" {
		dst = append(tct.Member(dst, "modified", string(it.Modified)), ',')
	}
	return append(tct.Member(dst, "contentHash", it.ContentHash), '}')
}

// errVersion is a list of a version that nobody here knows.
var errVersion = millrace.Coded("unknown-version", errors.New("the version of the list is unknown"))

// errNoList is a document that is something else than a list.
var errNoList = errors.New("not a list of TCT")

// listLimits bound a list of the given size in bytes.
func listLimits(size int64) *jsonio.Limits { return &jsonio.Limits{Size: size} }

// scanList walks a list of at most size bytes in flat memory and gives each
// item to visit with its index, or the reason why it is no item; visit may end
// the walk. What was visited counts only if scanList gives nil at the end: the
// version may come after the items. Errors wrap errNoList, errVersion,
// ErrTooLarge or a [*millrace.FormatError] that lacks the list's URL.
func scanList(r io.Reader, size int64, visit func(i int, it *tct.Item, err error) bool) error {
	version, items, err := tct.Walk(jsonio.NewReader(r, listLimits(size)), func(i int, it *tct.Item, err error) bool {
		return visit(i, it, draft.FormatError(err, "", "6.1"))
	})
	if _, other := errors.AsType[*tct.DraftError](err); other {
		return draft.FormatError(err, "", "6.1")
	}
	n, bad := strconv.ParseFloat(string(version), 64)
	switch {
	case version != nil && (bad != nil || n != float64(int64(n))), !items && !errors.Is(err, millrace.ErrTooLarge):
		return errNoList
	case version != nil && n != 1:
		return fmt.Errorf("%w: %s", errVersion, version)
	}
	return draft.FormatError(err, "", "6.1")
}
