package sqlite

import (
	"database/sql"
	"encoding/json"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/search"
)

// expression writes what FTS5 is asked for; "" if words are not asked for.
// Terms are letters and digits, so that quoting them is enough.
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
	words := x.generation.words()
	var from, where []string
	var args []any
	matched := expression(m)
	if matched != "" {
		from = append(from, words)
		where = append(where, words+" MATCH ?")
		args = append(args, matched)
	}
	pages := x.query.Page != "" || len(m.URL) > 0 || len(m.NotURL) > 0
	look := x.look || pages || matched == ""
	if look {
		from = append(from, "passage p")
		if matched != "" {
			where = append(where, "p.id = "+words+".rowid")
		} else {
			where = append(where, "p.id > ? AND p.id <= ?")
			args = append(args, x.generation.first(), x.generation.last())
		}
		where = append(where, "p.seq <= ? AND p.until > ?")
		args = append(args, x.seq, x.seq)
	} else if x.newer <= x.generation.last() {
		where = append(where, words+".rowid < ?")
		args = append(args, x.newer)
	}
	if matched == "" && len(m.Not) > 0 {
		where = append(where, "p.id NOT IN (SELECT rowid FROM "+words+" WHERE "+words+" MATCH ?)")
		args = append(args, anyOf(m.Not))
	}
	if pages {
		from = append(from, "sheet s")
		where = append(where, "s.id = p.sheet")
		if x.query.Page != "" {
			where = append(where, "s.url = ?")
			args = append(args, x.site.identity(x.query.Page))
		}
		for _, part := range m.URL {
			where = append(where, "instr(lower(iif(s.url LIKE '/%', ? || s.url, s.url)), ?) > 0")
			args = append(args, strings.TrimSuffix(x.site.config.Base, "/"), part)
		}
		for _, part := range m.NotURL {
			where = append(where, "instr(lower(iif(s.url LIKE '/%', ? || s.url, s.url)), ?) = 0")
			args = append(args, strings.TrimSuffix(x.site.config.Base, "/"), part)
		}
	}
	id, order := words+".rowid", ""
	switch {
	case matched == "":
		id = "p.id"
	case best:
		order = " ORDER BY bm25(" + words + ", 3, 2, 1)"
	}
	if len(from) > 1 && from[len(from)-1] == "sheet s" && matched == "" {
		// From the pages to their passages: the pages decide.
		from[0], from[1] = from[1], from[0]
	}
	query := "SELECT " + id + " FROM " + strings.Join(from, " CROSS JOIN ") + " WHERE " + strings.Join(where, " AND ") + order + " LIMIT ?"
	hidden := x.hidden
	if look {
		hidden = nil
	}
	err = x.rows(query, append(args, limit+len(hidden)), func(scan scanner) error {
		var id int64
		if err := scan(&id); err != nil {
			return err
		}
		if _, out := slices.BinarySearch(hidden, id); !out {
			ids = append(ids, id)
		}
		if len(ids) == limit {
			return errEnough
		}
		return nil
	})
	return ids, err
}

// Passages implements [search.Index].
func (x *searching) Passages(ids []int64, f func(p search.Passage) error) error {
	var p search.Passage
	var profile sql.RawBytes
	return x.each(`SELECT p.id, p.length, p.profile FROM json_each(?) CROSS JOIN passage p ON p.id = json_each.value
		WHERE p.seq <= ? AND p.until > ?`, ids, []any{x.seq, x.seq}, func(scan scanner) error {
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
	return x.each(`SELECT p.id, s.url, p.ord, p.print, (SELECT data FROM vector WHERE vector.id = ? | (p.id & 4294967295))
		FROM json_each(?) CROSS JOIN passage p ON p.id = json_each.value CROSS JOIN sheet s ON s.id = p.sheet`,
		ids, nil, func(scan scanner) error {
			if err := scan(&d.ID, &d.URL, &d.Order, &print, &vector); err != nil {
				return err
			}
			d.Print, d.Vector = uint64(print), search.Vector(vector)
			return f(d)
		}, vectorID(x.generation.model, 0))
}

// each runs a statement over a list of ids; before and after are its other
// arguments.
func (x *searching) each(query string, ids []int64, after []any, f func(scan scanner) error, before ...any) error {
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	return x.rows(query, append(append(before, string(list)), after...), f)
}

// Hit implements [search.Index].
func (x *searching) Hit(id int64, h *millrace.Hit) (language string, err error) {
	var data []byte
	err = x.row(`SELECT s.url, s.title, s.language, p.chunk, t.data FROM passage p, sheet s, passage_text t
		WHERE p.id = ? AND s.id = p.sheet AND t.id = p.id`, []any{id}, &h.URL, &h.Title, &language, &h.Chunk, &data)
	if err != nil {
		return "", err
	}
	var t passageText
	if err := json.Unmarshal(data, &t); err != nil {
		return "", err
	}
	h.URL = x.site.absolute(h.URL)
	h.Type, h.Headings, h.Text = t.Type, t.Headings, t.Text
	return language, nil
}
