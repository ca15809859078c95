package dashboard

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/millrace/millrace"
)

// changesPage contains one part of the site's change log.
type changesPage struct {
	history
	What   string // If empty, every kind of change.
	Kinds  []string
	Newest bool // the list starts with the newest change
	Site   millrace.Site
	Days   []changeDay
}

// changeDay contains the changes of one day.
type changeDay struct {
	Day     time.Time
	Changes []changed
}

// changes shows added, updated and deleted pages, newest first.
func (d *Dashboard) changes(r *http.Request) (*reply, error) {
	q := r.URL.Query()
	p := &changesPage{Newest: true, Kinds: []string{changeAdded, changeUpdated, changeRemoved}}
	for _, kind := range p.Kinds {
		if q.Get("what") == kind {
			p.What = kind
		}
	}
	from := uint64(math.MaxUint64)
	if s := q.Get("before"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: before=%q is not a position in the log", millrace.ErrInvalid, printable(cut(40, s)))
		}
		from, p.Newest = n, false
	}
	v, err := d.view(r.Context())
	if err != nil {
		return nil, err
	}
	h, err := readHistory(r.Context(), v, from, p.What)
	if err != nil {
		return nil, err
	}
	p.history, p.Site = *h, v.Site()
	for _, c := range h.Changes {
		day := c.Time.UTC().Truncate(24 * time.Hour)
		if n := len(p.Days); n == 0 || !p.Days[n-1].Day.Equal(day) {
			p.Days = append(p.Days, changeDay{Day: day})
		}
		of := &p.Days[len(p.Days)-1]
		of.Changes = append(of.Changes, c)
	}
	return &reply{Data: p}, nil
}

// view returns the view of the edition. Before the first edition, it returns that of the
// store.
func (d *Dashboard) view(ctx context.Context) (millrace.View, error) {
	if ed := d.site.Server.Current(); ed != nil {
		return ed.View, nil
	}
	return d.site.Pages.Head(ctx)
}
