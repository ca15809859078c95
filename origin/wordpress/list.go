package wordpress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace"
)

// perPage contains the page sizes of list requests. If a request with one size fails, the next size
// is tried. 100 is WordPress's own limit.
var perPage = [...]int{100, 10, 1}

// maxRequests is the maximum number of requests for one list.
const maxRequests = 200_000

// The members of an item that are requested. WordPress before 5.3 returns nothing for a part of a
// member, so the request for a full item names title, content and excerpt without their parts.
const (
	lightFields = "id,status,link,date_gmt,modified_gmt,content.protected,excerpt.protected"
	fullFields  = "id,status,link,date_gmt,modified_gmt,title,content,excerpt,_links.author,_links.wp:term,_embedded," +
		"yoast_head_json.description,yoast_head_json.og_locale,yoast_head_json.robots"
	embedded = "author,wp:term"
)

func query(full bool) url.Values {
	q := url.Values{"context": {"view"}, "_fields": {lightFields}}
	if full {
		q["_fields"], q["_embed"] = []string{fullFields}, []string{embedded}
	}
	return q
}

// lister reads one list of items in the order of their IDs. The result is complete even if the list
// changes during the run.
type lister struct {
	s     *Site
	f     *site
	t     postType
	full  bool
	since string // value of modified_after. If empty, all items.

	after  int64 // ID of the last returned item
	offset int   // offset of the next request
	size   int   // index into perPage
}

// page fetches one part of the list.
func (l *lister) page(ctx context.Context, offset, size int, full bool) ([]item, reply, error) {
	q := query(full)
	q.Set("orderby", "id")
	q.Set("order", "asc")
	q.Set("per_page", strconv.Itoa(size))
	q.Set("offset", strconv.Itoa(offset))
	if l.since != "" {
		q.Set("modified_after", l.since)
	}
	var items []item
	r, err := l.s.get(ctx, l.f.route(l.t.route, q), &items)
	if err == nil && len(items) > size {
		err = millrace.Coded("too-many-items", fmt.Errorf("%w: %s: %d items, want at most %d", millrace.ErrInvalid, l.f.route(l.t.route, q), len(items), size))
	}
	return items, r, err
}

// part is one part of a list.
type part struct {
	items  []item
	date   time.Time // time of the response by the server's clock
	broken error     // error of the part's only item, of which only light fields are known
	more   bool      // whether other parts follow, at lister.after and lister.offset
}

// run calls take with each part of the list, in order.
func (l *lister) run(ctx context.Context, take func(part) error) error {
	var gap int64 = -1 // ID of the item before a gap in the list
	back, loose, alone := false, false, false
	total, least := -1, 0
	for range maxRequests {
		size := perPage[l.size]
		items, r, err := l.page(ctx, l.offset, size, l.full)
		if err != nil {
			if !tooMuch(err) {
				return err
			}
			if l.size+1 < len(perPage) {
				if l.size++; isStatus(err, http.StatusBadRequest) { // the server never allows this size
					least = l.size
				}
				continue
			}
			light, r, lerr := l.page(ctx, l.offset, 1, false)
			if !l.full || lerr != nil || len(light) == 0 {
				return err
			}
			l.offset++
			back, alone = false, true
			if light[0].ID > l.after {
				l.after = light[0].ID
				if err := take(part{light, r.date, err, true}); err != nil {
					return err
				}
			}
			continue
		}
		l.size = max(least, l.size-1)
		if !loose && !slices.IsSortedFunc(items, byID) {
			// A plugin has changed the order, so earlier parts cannot be found. The list is
			// complete if its length does not change.
			if loose = true; l.offset > 0 {
				l.after, l.offset = 0, 0
				continue
			}
		}
		if loose {
			if total >= 0 && total != r.total {
				return fmt.Errorf("%w: the list of %s changed during the run", millrace.ErrUnavailable, l.t.route)
			}
			total = r.total
			l.offset += len(items)
			more := len(items) > 0 && (l.offset < r.total || r.total < 0)
			if err := take(part{items, r.date, nil, more}); err != nil || !more {
				return err
			}
			continue
		}
		first := int64(math.MaxInt64)
		if len(items) > 0 {
			first = items[0].ID
		}
		// If the size is 1, a part cannot include the previous item, which may be broken.
		if l.offset > 0 && first > l.after && gap != l.after && !alone {
			back = true
			l.offset = max(0, l.offset-size)
			continue
		}
		if back {
			back, gap = false, l.after
		}
		alone = size == 1
		fresh := items
		for len(fresh) > 0 && fresh[0].ID <= l.after {
			fresh = fresh[1:]
		}
		more := l.offset+size < r.total || r.total < 0 && len(fresh) > 0
		if len(fresh) > 0 {
			l.after = fresh[len(fresh)-1].ID
		}
		// The next part begins with the last item of this one.
		l.offset += max(1, len(items)-1)
		if len(items) == 0 {
			l.offset += size - 1
		}
		if err := take(part{fresh, r.date, nil, more}); err != nil || !more {
			return err
		}
	}
	return fmt.Errorf("%w: the list of %s did not end after %d requests", millrace.ErrTooLarge, l.t.route, maxRequests)
}

func byID(a, b item) int { return cmp.Compare(a.ID, b.ID) }

// tooMuch reports whether a smaller request may succeed after this error.
func tooMuch(err error) bool {
	return errors.Is(err, millrace.ErrTooLarge) || isStatus(err, http.StatusBadRequest, http.StatusRequestEntityTooLarge,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout)
}

// typeScan contains the latest items of a type.
type typeScan struct {
	part          // the items that were modified last, with light fields
	complete bool // whether the part contains all items, in the order of their IDs
	state    typeState
}

// start fetches the items that were modified last. If there are more items, it also fetches those
// that were published last.
func (s *Site) start(ctx context.Context, f *site, t postType) (typeScan, error) {
	items, r, err := s.newest(ctx, f, t, "modified")
	if err != nil {
		return typeScan{}, err
	}
	l := typeScan{part: part{items: items, date: r.date}, complete: r.total == len(items), state: typeState{Total: r.total}}
	for _, it := range items {
		l.state.Newest = max(l.state.Newest, it.Modified)
	}
	h := fnv.New64a()
	digest(h, items, l.complete, func(it item) string { return it.Modified })
	if l.complete {
		slices.SortFunc(items, byID)
	} else {
		published, _, err := s.newest(ctx, f, t, "date")
		if err != nil {
			return typeScan{}, err
		}
		digest(h, published, false, func(it item) string { return it.Date })
	}
	// Without the total number, the deletion of an old item cannot be detected.
	if !racy(l.state.Newest, r.date) && (r.total >= 0 || len(items) < perPage[0]) {
		l.state.State = strconv.FormatUint(h.Sum64(), 36)
	}
	return l, nil
}

// newest fetches the latest items. by is the name of the date field that determines their order.
func (s *Site) newest(ctx context.Context, f *site, t postType, by string) ([]item, reply, error) {
	q := query(false)
	q.Set("orderby", by)
	q.Set("order", "desc")
	for i, size := range perPage {
		q.Set("per_page", strconv.Itoa(size))
		var items []item
		r, err := s.get(ctx, f.route(t.route, q), &items)
		if err == nil || !tooMuch(err) || i == len(perPage)-1 {
			return items, r, err
		}
	}
	panic("wordpress: no page size left to try")
}

// digest writes the entries of a list to a hash. If the list is incomplete, items with the last
// date are omitted, because the order of items with equal dates is undefined.
func digest(w io.Writer, items []item, complete bool, date func(item) string) {
	var lines []string
	for _, it := range items {
		if complete || date(it) != date(items[len(items)-1]) {
			lines = append(lines, fmt.Sprintf("%d %q %q %t\n", it.ID, it.Link, it.Modified, it.hidden()))
		}
	}
	slices.Sort(lines)
	for _, line := range append(lines, "\n") {
		_, _ = io.WriteString(w, line)
	}
}
