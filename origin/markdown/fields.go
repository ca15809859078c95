package markdown

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// knownFields are the fields that front matter can contain. If the front matter lacks one of them,
// the field is known to be empty.
const knownFields = millrace.FieldTitle | millrace.FieldDescription | millrace.FieldSummary | millrace.FieldAuthor | millrace.FieldPublished |
	millrace.FieldLanguage | millrace.FieldSection | millrace.FieldTags | millrace.FieldKind | millrace.FieldAccess | millrace.FieldContent

// fields sets all fields except the title and the blocks.
func (s *snapshot) fields(p *millrace.Page, sp spot, h *head) {
	m := h.matter
	p.Known, p.Detail = knownFields, millrace.DetailBlocks
	p.Description = m.text("description", "subtitle")
	p.Summary = m.text("summary", "excerpt")
	p.Author = author(m, s.authors)
	p.Published = m.date("publishdate", "publish_date", "date", "pubdate", "published_at", "created")
	if p.Published.IsZero() {
		p.Published = sp.date
	}
	p.Published = truncate(p.Published)
	p.Modified = m.date("lastmod", "last_modified_at", "updated", "modified", "updated_at", "date_updated", "last_updated")
	for _, part := range []string{"last_update", "date"} { // Docusaurus; Material for MkDocs
		if sub := m.under(part); sub != nil {
			p.Modified = cmp.Or(p.Modified, sub.date("date", "updated"))
			if p.Published.IsZero() {
				p.Published = truncate(sub.date("created"))
			}
		}
	}
	if p.Modified = truncate(p.Modified); !p.Modified.IsZero() {
		p.Known |= millrace.FieldModified
	}
	p.Language = languageTag(cmp.Or(m.text("lang", "language", "locale"), sp.language, s.language))
	p.Section = cmp.Or(m.text("section"), canon.FolderName(sp.section))
	for _, name := range []string{"tags", "tag", "categories", "category", "keywords"} {
		for _, t := range m.list(name, s.kind == Jekyll && name != "keywords" && name != "category") {
			if len(t) <= 80 && len(p.Tags) < 50 && !slices.Contains(p.Tags, t) {
				p.Tags = append(p.Tags, t)
			}
		}
	}
	p.Kind = sp.kind
	if p.Kind == "" {
		p.Kind = kindOf(sp.url, m)
	}
	p.Access.NoIndex = hiddenFromSearch(m)
	p.Access.Auth = m.text("password") != "" || m.is("protected")
}

func truncate(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Second)
}

// kindOf returns the kind of a page, derived from its address as in package extract.
func kindOf(u string, m matter) millrace.PageKind {
	for segment := range strings.SplitSeq(strings.Trim(strings.ToLower(u), "/"), "/") {
		switch segment {
		case "docs", "documentation", "manual", "reference", "handbook":
			return millrace.Documentation
		case "products", "product":
			return millrace.Product
		}
	}
	if strings.EqualFold(m.text("layout", "type"), "post") || strings.EqualFold(m.text("layout", "type"), "article") {
		return millrace.Article
	}
	return ""
}

// author returns the names of the authors without e-mail addresses. known maps keys of authors to
// their names.
func author(m matter, known map[string]string) string {
	var names []string
	add := func(v any) {
		var name string
		switch v := v.(type) {
		case string:
			if name = known[strings.ToLower(v)]; name == "" {
				name = v
			}
		case map[string]any:
			name = lowered(v).text("name", "display_name", "title")
		}
		name, _, _ = strings.Cut(name, "<")
		if name = strings.Join(strings.Fields(valid(name)), " "); name != "" && !strings.Contains(name, "@") && len(names) < 20 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, key := range []string{"author", "authors"} {
		if list, ok := m[key].([]any); ok {
			for _, v := range list {
				add(v)
			}
		} else {
			add(m[key])
		}
	}
	return strings.Join(names, ", ")
}

// hiddenFromSearch reports whether front matter excludes the page from public lists. It supports
// the forms that various tools use.
func hiddenFromSearch(m matter) bool {
	robots := strings.ToLower(m.text("robots"))
	if r := m.under("robots"); r != nil && r.isNot("index") {
		return true
	}
	sitemap := m.under("sitemap")
	return strings.Contains(robots, "noindex") || robots == "none" || m.is("noindex") || m.is("no_index") || m.is("robotsnoindex") || m.is("unlisted") ||
		m.is("private") || m.isNot("sitemap") || m.is("sitemap_exclude") || m.is("sitemapexclude") || sitemap.is("exclude") || sitemap.is("disable")
}

// languageTag returns a BCP 47 tag in its usual case. It returns "" if s is not a language tag.
func languageTag(s string) string {
	parts := strings.Split(strings.ReplaceAll(strings.TrimSpace(s), "_", "-"), "-")
	for i, p := range parts {
		plain := strings.IndexFunc(p, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) }) < 0
		if !plain || p == "" || len(p) > 8 || i == 0 && (len(p) < 2 || len(p) > 3) {
			return ""
		}
		switch {
		case i == 0:
			parts[i] = strings.ToLower(p)
		case len(p) == 2:
			parts[i] = strings.ToUpper(p)
		case len(p) == 4:
			parts[i] = strings.ToUpper(p[:1]) + strings.ToLower(p[1:])
		}
	}
	return strings.Join(parts, "-")
}

// title sets the title. It is taken from the front matter, the first heading of level 1, the
// navigation, or the file name, in this order. A heading of level 1 with the same text as the title
// is removed from the blocks.
func title(p *millrace.Page, sp spot, m matter, file string) {
	p.Title = m.text("title")
	at := slices.IndexFunc(p.Blocks, func(b millrace.Block) bool { return b.Type == millrace.HeadingBlock && b.Level == 1 })
	if at >= 0 {
		text := strings.Join(strings.Fields(p.Blocks[at].Text), " ")
		switch {
		case p.Title == "":
			p.Title = text
			fallthrough
		case strings.EqualFold(p.Title, text):
			p.Blocks = slices.Delete(p.Blocks, at, at+1)
		}
		if len(p.Blocks) == 0 {
			p.Blocks = nil
		}
	}
	if p.Title == "" {
		p.Title = sp.title
	}
	if p.Title != "" {
		return
	}
	stem := stemOf(path.Base(file))
	if s := strings.TrimPrefix(stem, "_"); s == "index" || isReadme(stem) {
		if stem = path.Base(path.Dir(file)); stem == "." {
			stem = "Home"
		}
	}
	if d := fileDate.FindStringSubmatch(stem); d != nil {
		stem = d[2]
	}
	stem = strings.Join(strings.FieldsFunc(stem, func(r rune) bool { return r == '-' || r == '_' || unicode.IsSpace(r) }), " ")
	r, n := utf8.DecodeRuneInString(stem)
	p.Title = valid(string(unicode.ToUpper(r)) + stem[n:])
}
