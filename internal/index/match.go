package index

import (
	"database/sql"
	"encoding/json"
	"strings"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/search"
)

// expression returns the FTS5 expression for the phrases of m, or "" if m.All is empty. Terms
// consist of letters, digits and marks, so quoting them is enough.
func expression(m search.Match) string {
	var b strings.Builder
	for i, group := range m.All {
		if i > 0 {
			b.WriteString(" AND ")
		}
		b.WriteByte('(')
		for j, p := range group {
			if j > 0 {
				b.WriteString(" OR ")
			}
			phrase(&b, p, m.Head)
		}
		b.WriteByte(')')
	}
	if len(m.All) == 0 || len(m.Not) == 0 {
		return b.String()
	}
	return "(" + b.String() + ") NOT (" + anyOf(m.Not) + ")"
}

func anyOf(phrases []search.Phrase) string {
	var b strings.Builder
	for i, p := range phrases {
		if i > 0 {
			b.WriteString(" OR ")
		}
		phrase(&b, p, false)
	}
	return b.String()
}

func phrase(b *strings.Builder, p search.Phrase, head bool) {
	switch {
	case p.Field == search.TitleField:
		b.WriteString("title : ")
	case head:
		b.WriteString("{title headings} : ")
	}
	b.WriteString(`"` + strings.Join(p.Terms, " ") + `"`)
}

// Match implements [search.Index].
func (x *searching) Match(m search.Match, limit int) ([]int64, error) {
	return x.match(m, limit, false)
}

// Best implements [search.Index].
func (x *searching) Best(m search.Match, limit int) ([]int64, error) { return x.match(m, limit, true) }

func (x *searching) match(m search.Match, limit int, best bool) (ids []int64, err error) {
	matched := expression(m)
	pages := x.query.Page != "" || len(m.URL) > 0 || len(m.NotURL) > 0
	var from, where []string
	var args []any
	id, order := "words.rowid", ""
	switch matched {
	case "":
		id = "p.id"
		from = []string{"page s", "passage p"} // select pages first
		if len(m.Not) > 0 {
			where = append(where, "p.id NOT IN (SELECT rowid FROM words WHERE words MATCH ?)")
			args = append(args, anyOf(m.Not))
		}
	default:
		from = []string{"words"}
		where = append(where, "words MATCH ?")
		args = append(args, matched)
		if best {
			order = " ORDER BY bm25(words, 1, 2, 3)"
		}
		if pages {
			from = append(from, "passage p", "page s")
			where = append(where, "p.id = words.rowid")
		}
	}
	if len(from) > 1 {
		where = append(where, "s.id = p.page")
	}
	if x.query.Page != "" {
		where = append(where, "s.url = ?")
		args = append(args, canon.Relative(x.site.Base, x.query.Page))
	}
	if len(m.URL)+len(m.NotURL) > 0 {
		const in = " IN (SELECT instr(lower(iif(s.url LIKE '/%', ? || s.url, s.url)), value) > 0 FROM json_each(?))"
		where = append(where, "0 NOT"+in, "1 NOT"+in)
		base := strings.TrimSuffix(x.site.Base, "/")
		args = append(args, base, list(m.URL), base, list(m.NotURL))
	}
	query := "SELECT " + id + " FROM " + strings.Join(from, " CROSS JOIN ") + " WHERE " + strings.Join(where, " AND ") + order + " LIMIT ?"
	err = x.rows(query, append(args, limit), func(scan scanner) error {
		var id int64
		err := scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// Passages implements [search.Index].
func (x *searching) Passages(ids []int64, f func(p search.Passage) error) error {
	var p search.Passage
	var profile sql.RawBytes
	return x.rows("SELECT p.id, p.length, p.profile FROM json_each(?) CROSS JOIN passage p ON p.id = json_each.value", []any{list(ids)}, func(scan scanner) error {
		if err := scan(&p.ID, &p.Length, &profile); err != nil {
			return err
		}
		p.Profile = search.Profile(profile)
		return f(p)
	})
}

// Details implements [search.Index].
func (x *searching) Details(ids []int64, f func(d search.Detail) error) error {
	var d search.Detail
	var print int64
	var vector sql.RawBytes
	return x.rows(`SELECT p.id, s.id, s.url, p.ord, p.print, (SELECT data FROM vector WHERE vector.id = ? | p.id)
		FROM json_each(?) CROSS JOIN passage p ON p.id = json_each.value CROSS JOIN page s ON s.id = p.page`,
		[]any{vectorID(x.model, 0), list(ids)}, func(scan scanner) error {
			if err := scan(&d.ID, &d.Page, &d.URL, &d.Order, &print, &vector); err != nil {
				return err
			}
			d.Fingerprint, d.Vector = uint64(print), search.Vector(vector)
			return f(d)
		})
}

// list encodes values for json_each.
func list[T any](values []T) string {
	b, err := json.Marshal(values)
	if err != nil || values == nil {
		return "[]" // values is nil; numbers and strings can always be encoded
	}
	return string(b)
}
