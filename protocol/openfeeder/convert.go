package openfeeder

import (
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/chunk"
	"github.com/millrace/millrace/internal/kit"
)

// fields are the fields that the reader sets in Page.Known. The reader omits FieldLanguage if the
// document has no language.
const fields = millrace.FieldTitle | millrace.FieldSummary | millrace.FieldAuthor | millrace.FieldPublished |
	millrace.FieldModified | millrace.FieldLanguage | millrace.FieldContent

// unknownLanguage is the language of a document whose page has none, because the member is required
// (section 3.2).
const unknownLanguage = "und"

// carry returns the page that a reader gets from the document of p, or nil if p has no document.
func carry(site millrace.Site, p *millrace.Page) *millrace.Page {
	w := documentOf(site, p)
	if w == nil {
		return nil
	}
	return w.read()
}

// tag returns the revision of a page, or "" for a page without a document. If the store has set the
// Version, that is the revision.
func tag(site millrace.Site, p *millrace.Page) (string, error) {
	switch _, ok := published(site, p); {
	case !ok:
		return "", nil
	case p.Version != "":
		return p.Version, nil
	}
	return p.Revision(), nil
}

// published returns the canonical URL of a page, and reports whether the page has a document.
// Archives have none, because they only link to other pages. Pages on another origin have none,
// because url cannot express them.
func published(site millrace.Site, p *millrace.Page) (string, bool) {
	if p.Kind == millrace.Archive {
		return "", false
	}
	u, err := canon.URL(canon.Absolute(site.Base, p.URL))
	return u, err == nil && kit.SameOrigin(site.Base, u)
}

// documentOf returns the document of a page of a View with all its chunks, or nil if the page has
// no document.
func documentOf(site millrace.Site, p *millrace.Page) *page {
	u, ok := published(site, p)
	if !ok {
		return nil
	}
	w := &page{
		URL:       u,
		Title:     kit.Title(p, u),
		Author:    canon.ValidUTF8(p.Author),
		Published: kit.FormatTime(p.Published),
		Updated:   kit.FormatTime(p.Modified),
		Language:  languageOf(p.Language), // not the site's language, which may change without the page
		Revision:  p.Version,
	}
	for _, c := range chunk.Passages(p) {
		if c.Parts != nil { // without parts, the passage is the summary, which only serves searches
			w.Chunks = append(w.Chunks, piece{ID: c.ID, Text: canon.ValidUTF8(c.Text), Type: c.Type, Blocks: blocksMember(&c)})
		}
	}
	w.Summary = summaryOf(p)
	w.Meta = meta{TotalChunks: len(w.Chunks), ReturnedChunks: len(w.Chunks), Page: 1, TotalPages: 1}
	return w
}

// itemOf returns the index entry of a page that has a document. It uses the blocks only if
// needsBlocks returns true.
func itemOf(p *millrace.Page, u string) item {
	return item{
		URL:       u,
		Title:     kit.Title(p, u),
		Published: kit.FormatTime(p.Published),
		Updated:   kit.FormatTime(p.Modified),
		Summary:   summaryOf(p),
		Revision:  p.Version,
	}
}

// needsBlocks reports whether the entry of a page needs its blocks.
func needsBlocks(p *millrace.Page) bool {
	return blank(p.Title) || summarize(p.Summary) == "" && summarize(p.Description) == ""
}

// cut returns one part of the document, for a page number and a limit.
func (w *page) cut(number, limit int) *page {
	out := *w
	total := len(w.Chunks)
	from := total
	if number <= total/limit { // prevents an overflow of the product
		from = min((number-1)*limit, total)
	} else if number == total/limit+1 {
		from = total - total%limit
	}
	out.Chunks = w.Chunks[from:min(from+limit, total)]
	out.Meta = meta{TotalChunks: total, ReturnedChunks: len(out.Chunks), Page: number, TotalPages: pagesOf(total, limit)}
	return &out
}

// pagesOf returns the number of pages for n elements, at least 1.
func pagesOf(n, limit int) int { return max(1, (n+limit-1)/limit) }

// read converts the document to a page.
func (w *page) read() *millrace.Page {
	p := &millrace.Page{
		URL:       w.URL,
		Title:     w.Title,
		Author:    w.Author,
		Published: parseTime(w.Published),
		Modified:  parseTime(w.Updated),
		Language:  w.Language,
		Summary:   w.Summary,
		Blocks:    blocksOf(w.Chunks),
		Known:     fields,
		Detail:    millrace.DetailBlocks,
		Version:   w.Revision,
	}
	switch w.Language {
	case "":
		p.Known &^= millrace.FieldLanguage
	case unknownLanguage:
		p.Language = ""
	}
	return p
}

// relative returns a URL of the site as in an index: the path on its host. If the path would be
// resolved as another host, the URL stays absolute.
func relative(base, u string) string {
	rest, ok := strings.CutPrefix(u, canon.Origin(base))
	if !ok || !strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, "//") {
		return u
	}
	return rest
}

// languageOf returns the first well-formed language tag, or "und".
func languageOf(tags ...string) string {
	for _, t := range tags {
		if isLanguage(t) {
			return t
		}
	}
	return unknownLanguage
}

// isLanguage reports whether a tag has the form of BCP 47: subtags of letters and digits, of which
// the first has two to eight letters.
func isLanguage(t string) bool {
	for i, sub := range strings.Split(t, "-") {
		if len(sub) == 0 || len(sub) > 8 || i == 0 && (len(sub) < 2 || strings.ContainsAny(sub, "0123456789")) {
			return false
		}
		for _, c := range []byte(sub) {
			if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
				return false
			}
		}
	}
	return true
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
