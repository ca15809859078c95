package sqlite

import (
	"context"
	"fmt"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// trafficTable has the sums of what pulls have cost.
// They are few, however often a site is pulled.
const trafficTable = `
CREATE TABLE traffic (
	site          INTEGER NOT NULL,
	protocol      TEXT NOT NULL,
	since         INTEGER NOT NULL, -- Unix s
	last          INTEGER NOT NULL, -- Unix s
	pulls         INTEGER NOT NULL,
	failed        INTEGER NOT NULL,
	pages         INTEGER NOT NULL,
	brought       INTEGER NOT NULL,
	stand         INTEGER NOT NULL,
	text          INTEGER NOT NULL,
	requests      INTEGER NOT NULL,
	conditional   INTEGER NOT NULL,
	not_modified  INTEGER NOT NULL,
	received      INTEGER NOT NULL,
	html          INTEGER NOT NULL,
	html_received INTEGER NOT NULL,
	html_bytes    INTEGER NOT NULL,
	PRIMARY KEY (site, protocol)
) WITHOUT ROWID;
`

// trafficColumns are the numbers in the order of [store.Traffic.Numbers].
var trafficColumns = strings.Fields(`pulls failed pages brought stand text requests conditional not_modified received
	html html_received html_bytes`)

// addTraffic adds to the row of a site and a protocol, and makes it.
var addTraffic = func() string {
	names := strings.Join(trafficColumns, ", ")
	marks := strings.Repeat(", ?", len(trafficColumns))
	sums := make([]string, len(trafficColumns))
	for i, c := range trafficColumns {
		sums[i] = c + " = " + c + " + excluded." + c
	}
	return "INSERT INTO traffic (site, protocol, since, last, " + names + ") VALUES (?1, ?2, ?3, ?3" + marks + `)
		ON CONFLICT DO UPDATE SET last = max(last, excluded.last), ` + strings.Join(sums, ", ")
}()

// costs is the Costs of a store.
type costs struct{ *Store }

// Costs returns what it has cost to mirror the sites of the store.
func (s *Store) Costs() store.Costs { return costs{s} }

// Add implements [store.Costs].
func (s costs) Add(ctx context.Context, site, protocol string, t store.Traffic) error {
	what := "traffic of " + site + " by " + protocol
	args := []any{0, protocol, s.now().Unix()}
	for i, n := range t.Numbers() {
		if *n < 0 {
			return fmt.Errorf("%s: %w: %s is %d", what, millrace.ErrInvalid, trafficColumns[i], *n)
		}
		args = append(args, *n)
	}
	if protocol == "" {
		return fmt.Errorf("%s: %w: no protocol is named", what, millrace.ErrInvalid)
	}
	err := s.writer.do(ctx, func(tx *tx) error {
		var id int64
		if err := tx.row("SELECT id FROM site WHERE name = ?", []any{site}, &id); absent(err) {
			return fmt.Errorf("%w: there is no such site", millrace.ErrNotFound)
		} else if err != nil {
			return err
		}
		args[0] = id
		return tx.exec(addTraffic, args...)
	})
	return explain(what, err)
}

// List implements [store.Costs].
func (s costs) List(ctx context.Context) ([]store.SiteCost, error) {
	var out []store.SiteCost
	query := "SELECT site.name, protocol, since, last, " + strings.Join(trafficColumns, ", ") +
		" FROM traffic JOIN site ON site.id = traffic.site ORDER BY site.name, protocol"
	err := s.read.rows(ctx, query, nil, func(scan scanner) error {
		var a store.SiteCost
		var since, last int64
		dest := []any{&a.Site, &a.Protocol, &since, &last}
		for _, n := range a.Numbers() {
			dest = append(dest, n)
		}
		err := scan(dest...)
		a.Since, a.Last = moment(since), moment(last)
		out = append(out, a)
		return err
	})
	return out, explain("traffic of store "+s.path, err)
}
