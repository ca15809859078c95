package sqlite

import (
	"database/sql"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/store/internal/sqlstore"
)

// checkPlans checks that no statement of a store has read all rows of a table that grows.
func checkPlans(t testing.TB, s *Store) {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection has a database of its own
	for _, query := range append([]string{sqlstore.Schema}, sqlstore.Additions...) {
		if _, err := db.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	queries := slices.Collect(maps.Keys(s.db.writer.stmts))
	s.db.read.stmts.Range(func(query, _ any) bool { queries = append(queries, query.(string)); return true })
	for _, query := range queries {
		checkSteps(t, db, query)
	}
}

func checkSteps(t testing.TB, db *sql.DB, query string) {
	t.Helper()
	parameters := len(regexp.MustCompile(`\?(\D|$)`).FindAllString(query, -1))
	for _, number := range regexp.MustCompile(`\?(\d+)`).FindAllStringSubmatch(query, -1) {
		n, _ := strconv.Atoi(number[1])
		parameters = max(parameters, n)
	}
	rows, err := db.Query("EXPLAIN QUERY PLAN "+query, make([]any, parameters)...)
	if err != nil {
		t.Errorf("%v: %s", err, query)
		return
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		table, _, _ := strings.Cut(strings.TrimPrefix(step, "SCAN "), " ")
		if strings.HasPrefix(step, "SCAN ") && slices.Contains([]string{"entry", "tag", "body", "memory", "original", "state", "usage_event", "g", "h", "s", "fleet_group", "fleet_host", "fleet_site"}, table) {
			t.Errorf("%s: %s", step, query)
		}
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
}
