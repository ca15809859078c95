package extract

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// role is the meaning of a date that a page shows.
type role uint8

const (
	plainDate     role = iota // no label
	publishedDate             // date of publication
	changedDate               // date of the last change
	otherDate                 // another date, such as the date of an event
)

// Words in labels of dates.
var (
	publishedWords = []string{
		"publish", "posted", "submitted", "started", "released", "written on", "veröffentlicht", "erschienen", "erstellt", "publié", "mis en ligne", "publicad", "pubblicat", "gepubliceerd",
		"geplaatst", "opublikowan", "dodano", "опубликован", "дата публикации", "publicerad", "publisert", "公開", "投稿", "掲載", "发布", "發布", "发表", "發表",
	}
	changedWords = []string{
		"updated", "update:", "modified", "revised", "last edit", "last change", "last active", "aktualisiert", "geändert", "stand:", "letzte änderung", "mis à jour", "mise à jour", "modifié", "actualizad",
		"última actualización", "modificad", "aggiornat", "ultima modifica", "modificat", "atualizad", "bijgewerkt", "gewijzigd", "aktualizacja", "zaktualizowan",
		"обновлен", "обновлён", "изменен", "изменён", "uppdaterad", "oppdatert", "opdateret", "更新", "修改", "改訂",
	}
	otherWords = []string{
		"reviewed", "fact checked", "fact-checked", "accessed", "retrieved", "copyright", "©", "expires", "until", "deadline", "born", "died", "geprüft", "starts", "ends ", "joined", "since ",
		"valid", "effective", "available", "version", "event date", "registered", "release date", "photo", "next ", "taken", "tested",
	}
)

// labelRole returns the role of a date from the label before it. The last matching word decides.
// After a word such as "until", the date is the beginning or the end of a period.
func labelRole(s string) role {
	as, at := plainDate, -1
	s = strings.TrimRight(strings.ToLower(s), " :")
	switch s[strings.LastIndexByte(s, ' ')+1:] {
	case "by", "before", "after", "since", "from", "through", "till", "until", "to", "bis", "ab", "seit", "depuis", "hasta", "desde":
		return otherDate
	}
	for r, words := range [...][]string{publishedDate: publishedWords, changedDate: changedWords, otherDate: otherWords} {
		for _, w := range words {
			if i := strings.LastIndex(s, w); i > at {
				as, at = role(r), i
			}
		}
	}
	return as
}

// classRole returns the role of a date according to the classes of the elements around it.
func classRole(n *html.Node) role {
	for steps := 0; n != nil && steps < 4; n, steps = n.Parent, steps+1 {
		switch s := strings.ToLower(attr(n, "class") + " " + attr(n, "itemprop")); {
		case contains(s, []string{"publish", "pubdate", "posted-on", "entry-date"}):
			return publishedDate
		case contains(s, []string{"modif", "updat", "changed"}):
			return changedDate
		}
	}
	return plainDate
}

// inSentence reports whether a date is part of a sentence, judging by the words around it.
func inSentence(before, after string) bool {
	before = before[strings.LastIndexAny(before, "|·•–—")+1:]
	if i := strings.IndexAny(after, "|·•–—"); i >= 0 {
		after = after[:i]
	}
	ends := strings.HasSuffix(strings.TrimRight(after, " )\"”"), ".")
	n := commonWords(before)
	return n > 1 || ends && (n > 0 || commonWords(after) > 1)
}

// commonWords counts the lower-case words that do not occur in bylines.
func commonWords(s string) (n int) {
	for w := range strings.FieldsSeq(s) {
		switch w = strings.TrimRight(w, ",.;"); w {
		case "on", "by", "at", "in", "and", "am", "pm", "um", "le", "min", "mins", "minute", "minutes", "read":
			continue
		}
		if r, size := utf8.DecodeRuneInString(w); size < len(w) && unicode.IsLower(r) {
			n++
		}
	}
	return n
}

// visibleDate is a date in a line of the page.
type visibleDate struct {
	foundDate
	n      *html.Node // innermost element around the date
	role   role
	source string
}

// visibleDates returns the publication date and the modification date that the page shows near its
// title.
func (m *meta) visibleDates() (published, changed claim) {
	var found [otherDate + 1]claim
	var cost [otherDate + 1]int
	for i, l := range m.near() {
		for _, d := range m.lineDates(i) {
			if far := max(l.at, 2-2*l.at); found[d.role].IsZero() || far < cost[d.role] {
				found[d.role], cost[d.role] = claim{d.day, d.source}, far
			}
		}
	}
	if published = found[publishedDate]; published.IsZero() {
		published = found[plainDate]
	}
	return published, found[changedDate]
}

// lineDates returns the dates of a line near the title that may be dates of the page. The line must
// contain little else.
func (m *meta) lineDates(at int) []visibleDate {
	l := &m.lines[at]
	if len(l.text) > 300 {
		return nil
	}
	found := m.findDates(l)
	if len(found) == 0 || m.inCard(l.block, l.text) {
		return nil
	}
	words, last, plain := len(strings.Fields(l.text)), 0, 0
	for _, d := range found {
		words -= len(strings.Fields(l.text[d.start:d.end]))
	}
	for i := range found {
		d := &found[i]
		before := l.text[last:d.start]
		d.role = labelRole(before)
		if d.role == plainDate && i == 0 && at > 0 && d.start < 3 {
			if above := m.lines[at-1].text; strings.Count(above, " ") < 2 || strings.HasSuffix(above, ":") {
				d.role = labelRole(above) // the label is on the line above
			}
		}
		switch {
		case d.role != plainDate:
		case words > 12:
			d.role = otherDate
		default:
			if d.role = classRole(d.n); d.role == plainDate {
				if plain++; inSentence(before, l.text[d.end:]) {
					d.role = otherDate
				}
			}
		}
		last = d.end
	}
	return slices.DeleteFunc(found, func(d visibleDate) bool {
		// Two dates without labels are a period.
		return d.role == otherDate || words > 20 || d.role == plainDate && (plain > 1 || !m.leadsIn(l))
	})
}

// leadsIn reports whether a line is so close to the title that a date in it needs no label. A line
// before the title must belong to the title, and not to the site's header: the title or one of its
// nearest ancestors must contain the line. In documentation, only the four lines after the title
// count.
func (m *meta) leadsIn(l *nearLine) bool {
	if m.guess == millrace.Documentation {
		return l.at > 0 && l.at <= 4
	}
	top := m.topNode()
	for steps := 0; steps < 5 && top != nil && top.DataAtom != atom.Body; top, steps = top.Parent, steps+1 {
		if l.at > 0 || isAncestor(top, l.block) {
			return true
		}
	}
	return false
}

// findDates returns the dates in the text of a line, and the dates of time elements whose text
// contains none.
func (m *meta) findDates(l *nearLine) (out []visibleDate) {
	for _, p := range l.parts {
		e := timeElement(p.n)
		if _, ok := findDate(l.text[p.start:p.end], 0, m.page.Language); e == nil || ok || len(out) > 10 {
			continue
		}
		if t, ok := parseTime(attr(e, "datetime")); ok {
			out = append(out, visibleDate{foundDate{t, p.start, p.end}, e, plainDate, "time"})
		}
	}
	for from := 0; ; {
		d, ok := findDate(l.text, from, m.page.Language)
		if !ok {
			break
		}
		n := l.block
		for _, p := range l.parts {
			if p.start <= d.start {
				n = p.n.Parent
			}
		}
		out, from = append(out, visibleDate{d, n, plainDate, "text near title"}), d.end
	}
	slices.SortFunc(out, func(a, b visibleDate) int { return a.start - b.start })
	return out
}

// timeElement returns the time element that contains a text node, or nil.
func timeElement(n *html.Node) *html.Node {
	for p, steps := n.Parent, 0; p != nil && steps < 3; p, steps = p.Parent, steps+1 {
		if p.Data == "time" {
			return p
		}
	}
	return nil
}

// loneDates returns dates in elements of their own, anywhere after the title: labeled is the page's
// only date with a publication label, and lone is its only date.
func (m *meta) loneDates() (labeled, lone claim) {
	top, tries := m.topNode(), 0
	var days [2]map[time.Time]bool
	days[0], days[1] = map[time.Time]bool{}, map[time.Time]bool{}
	for i := range m.c.boxes {
		b := &m.c.boxes[i]
		if b.n == top {
			top = nil // the page begins here, after the site's header
		}
		if top != nil || b.own < 1 || b.words > 8 {
			continue
		}
		text := plainText(b.n)
		d, ok := findDate(text, 0, m.page.Language)
		if ok {
			if tries++; tries > maxTries {
				return claim{}, claim{}
			}
		}
		if !ok || len(text) > 48 || m.isApart(b.n) || m.inCard(b.n, text) {
			continue
		}
		as := labelRole(text[:d.start])
		if as == plainDate && i > 0 && m.c.boxes[i-1].words <= 4 {
			as = labelRole(plainText(m.c.boxes[i-1].n))
		}
		switch {
		case as == changedDate, as == otherDate, commonWords(text[d.end:]) > 1, as == plainDate && (d.start > 12 || inSentence(text[:d.start], text[d.end:])):
			continue
		case as == publishedDate:
			days[0][d.day], labeled = true, claim{d.day, "text"}
		}
		days[1][d.day], lone = true, claim{d.day, "text"}
		if d, ok = findDate(text, d.end, m.page.Language); ok {
			days[1][d.day] = true // a period
		}
	}
	if len(days[0]) > 1 {
		labeled = claim{}
	}
	if len(days[1]) > 1 {
		lone = claim{}
	}
	return labeled, lone
}
