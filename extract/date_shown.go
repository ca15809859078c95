package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// loneDates returns the date in an element of its own, anywhere after the title, if the page
// has no second one: labelled is the only date labelled as the date of publication, and lone
// the only date at all.
func (m *meta) loneDates() (labelled, lone claim) {
	top, tries := m.topNode(), 0
	var many [2]bool
	for i := range m.c.boxes {
		b := &m.c.boxes[i]
		if b.n == top {
			top = nil // the page begins here; the site's header is over
		}
		if top != nil || b.own < 1 || b.words > 8 || headingLevel(b.n) > 0 {
			continue
		}
		l := nearLine{text: plainText(b.n), block: b.n}
		d, ok := findDate(l.text, 0, m.page.Language)
		if ok {
			if tries++; tries > maxTries {
				return claim{}, claim{}
			}
		}
		if !ok || len(l.text) > 48 || m.offSide(b.n) || m.inCard(b.n, l.text) {
			continue
		}
		before := strings.ToLower(l.text[:d.start])
		as := labelRole(before)
		if as == plainDate && i > 0 && m.c.boxes[i-1].words <= 4 {
			as = labelRole(strings.ToLower(plainText(m.c.boxes[i-1].n)))
		}
		hasLabel := as == publishedDate
		if as == plainDate {
			as = classRole(b.n, b.n)
		}
		if as == changedDate || as == otherDate || as == plainDate && len(strings.Trim(before, " -–—|·•")) > 11 || isSentence(l.text[d.end:]) || as == plainDate && inSentence(l.text[:d.start], l.text[d.end:]) {
			continue
		}
		_, two := findDate(l.text, d.end, m.page.Language)
		for k, c := range [...]*claim{&labelled, &lone} {
			if k == 0 && !hasLabel {
				continue
			}
			many[k] = many[k] || two || !c.IsZero() && !c.Equal(d.day)
			*c = claim{d.day, "text"}
		}
	}
	if many[0] {
		labelled = claim{}
	}
	if many[1] {
		lone = claim{}
	}
	return labelled, lone
}

// isSentence reports whether a text after a date continues with words. A time of day, a
// reading time and a byline do not count.
func isSentence(s string) bool {
	if label, name := cutLabel(strings.TrimLeft(s, " ,|·•-–—")); label != "" && isName(name, false) {
		return false
	}
	return len(strings.Fields(s)) > 1 && !strings.ContainsFunc(s, unicode.IsDigit)
}

// inSentence reports whether a date is part of a sentence: the words before and after it are
// neither names nor a byline, and nothing separates the date from them.
func inSentence(before, after string) bool {
	if i := strings.LastIndexAny(before, "|·•–—/:"); i >= 0 {
		before = before[i:]
	}
	if i := strings.IndexAny(after, "|·•–—/:"); i >= 0 {
		after = after[:i]
	}
	if label, name := cutLabel(strings.TrimSpace(before)); label != "" {
		before = name
	}
	ends := strings.HasSuffix(strings.TrimRight(after, " )\"”"), ".")
	n := commonWords(before)
	if strings.HasSuffix(strings.TrimRight(before, " "), ",") {
		n = 0 // "started by the miller, 5 March 2020"
	}
	return n > 1 || n == 1 && ends || ends && commonWords(after) > 1
}

// commonWords counts the lower-case words that do not occur in a byline.
func commonWords(s string) int {
	n := 0
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

// offSide reports whether an element lies in a part of the page whose dates are never the
// page's own.
func (m *meta) offSide(n *html.Node) bool {
	for ; n != nil && n.DataAtom != atom.Body; n = n.Parent {
		if isAside(n) || n.DataAtom == atom.Aside || n.DataAtom == atom.Li {
			return true
		}
	}
	return false
}

// visibleDates returns the dates of publication and of the last change that the page shows near
// its title.
func (m *meta) visibleDates() (published, changed claim) {
	type choice struct {
		claim
		cost int
	}
	best := map[role]choice{}
	for i, l := range m.near() {
		for _, d := range m.lineDates(i) {
			cost := l.at
			if l.at < 0 {
				cost = 2 - 2*l.at
			}
			if d.role == plainDate {
				cost += 4
			}
			as := d.role
			if as == plainDate {
				as = publishedDate
			}
			if b, ok := best[as]; !ok || cost < b.cost {
				best[as] = choice{claim{d.day, d.source}, cost}
			}
		}
	}
	if published = best[publishedDate].claim; published.IsZero() {
		published = m.titleDate()
	}
	return published, best[changedDate].claim
}

// titleDate returns the date in an element of its own inside the title's heading.
func (m *meta) titleDate() claim {
	var found claim
	if top := m.topNode(); top != nil {
		find(top, func(e *html.Node) bool {
			t := plainText(e)
			if d, ok := findDate(t, 0, m.page.Language); ok && d.start <= 4 && d.end == len(t) {
				found = claim{d.day, "text in title"}
			}
			return !found.IsZero()
		})
	}
	return found
}

// role is the meaning of a shown date.
type role uint8

const (
	plainDate     role = iota // no label
	publishedDate             // of publication
	changedDate               // of the last change
	otherDate                 // of something else
)

// visibleDate is a date in a line.
type visibleDate struct {
	foundDate
	role   role
	unsaid bool // the line does not label it
	source string
}

// Words that label a date.
var (
	publishedWords = []string{
		"publish", "posted", "submitted", "released", "written on", "veröffentlicht", "erschienen", "erstellt", "publié", "mis en ligne", "publicad", "pubblicat", "gepubliceerd",
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

// lineDates returns the dates of a line near the title that may be the page's. The line must
// contain little else.
func (m *meta) lineDates(at int) []visibleDate {
	l := &m.lines[at]
	if len(l.text) > 300 {
		return nil
	}
	found := m.findDates(l)
	if len(found) == 0 {
		return nil
	}
	if m.inCard(l.block, l.text) {
		return nil
	}
	words, last, plain := 0, 0, 0
	for i := range found {
		d := &found[i]
		before := strings.ToLower(l.text[last:d.start])
		words += len(strings.Fields(before))
		d.role = labelRole(before)
		if d.role == plainDate && strings.TrimSpace(strings.Trim(before, " :|·•-–—,")) == "" && i == 0 && at > 0 {
			// A label may be alone on the previous line.
			if above := m.lines[at-1].text; len(above) < 30 && (strings.HasSuffix(above, ":") || len(strings.Fields(above)) <= 2) {
				d.role = labelRole(strings.ToLower(above))
			}
		}
		if d.role == plainDate {
			d.role, d.unsaid = classRole(l.block, l.around(d.start)), true
		}
		if d.role == plainDate {
			plain++
			if inSentence(l.text[last:d.start], l.text[d.end:]) {
				d.role = otherDate
			}
		}
		last = d.end
	}
	words += len(strings.Fields(l.text[last:]))
	out := found[:0]
	for _, d := range found {
		// Two dates without distinct labels are a span of time.
		if d.role == otherDate || words > 20 || d.unsaid && words > 12 || d.role == plainDate && (plain > 1 || !m.leadsIn(l)) {
			continue
		}
		out = append(out, d)
	}
	return out
}

// leadsIn reports whether a line is near enough to the title for a date without a label. A
// line before the title must belong to the title and not to the site's header: both are near
// each other in the document as well. Documentation shows other dates there.
func (m *meta) leadsIn(l *nearLine) bool {
	if m.guess == millrace.Documentation && (l.at < 0 || l.at > 4) || l.at < -4 {
		return false
	}
	if l.at > 0 {
		return true
	}
	top := m.topNode()
	for steps := 0; steps < 5 && top != nil && top.DataAtom != atom.Body; top, steps = top.Parent, steps+1 {
		if isAncestor(top, l.block) {
			return true
		}
	}
	return false
}

// findDates returns the dates of a line. It reads time elements by their attribute.
func (m *meta) findDates(l *nearLine) []visibleDate {
	var out []visibleDate
	from := 0
	text := func(to int) {
		for from < to {
			d, ok := findDate(l.text[:to], from, m.page.Language)
			if !ok {
				break
			}
			out = append(out, visibleDate{foundDate: d, source: "text near title"})
			from = d.end
		}
		from = to
	}
	var done *html.Node
	for _, p := range l.parts {
		e := timeElement(p.n)
		if e == nil || e == done {
			continue
		}
		v := attr(e, "datetime")
		if v == "" {
			continue
		}
		done = e
		if t, ok := parseTime(v); ok && len(out) < 10 {
			text(p.start)
			end := p.end
			for _, q := range l.parts {
				if timeElement(q.n) == e {
					end = q.end
				}
			}
			if d, ok := findDate(l.text[:end], p.start, m.page.Language); ok {
				if _, two := findDate(l.text[:end], d.end, m.page.Language); two {
					continue // only the element's own text distinguishes the two dates
				}
			}
			out, from = append(out, visibleDate{foundDate: foundDate{t, p.start, end}, source: "time"}), end
		}
	}
	text(len(l.text))
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

// labelRole returns the role that the words before a date name. The last of them counts.
func labelRole(s string) role {
	if isTerm(s) {
		return otherDate
	}
	as, at := plainDate, -1
	for r, words := range [...][]string{publishedDate: publishedWords, changedDate: changedWords, otherDate: otherWords} {
		for _, w := range words {
			if i := strings.LastIndex(s, w); i > at {
				as, at = role(r), i
			}
		}
	}
	return as
}

// isTerm reports whether a text ends with a word such as "from" or "until", after which a date
// is the beginning or the end of a period.
func isTerm(s string) bool {
	s = strings.TrimRight(s, " :")
	switch s[strings.LastIndexAny(s, " :(")+1:] {
	case "by", "before", "after", "since", "from", "through", "thru", "till", "until", "to", "bis", "ab", "seit", "vor", "jusqu'au", "depuis", "avant", "hasta", "desde", "antes", "fino", "entro", "dal":
		return true
	}
	return false
}

// classRole returns the role that the classes of the elements around a date name. n is the
// innermost element, and block the one whose text is the line.
func classRole(block, n *html.Node) role {
	for steps := 0; n != nil && steps < 4; n, steps = n.Parent, steps+1 {
		s := strings.ToLower(attr(n, "class") + " " + attr(n, "itemprop") + " " + attr(n, "id"))
		switch published := strings.Contains(s, "publish") || strings.Contains(s, "pubdate") || strings.Contains(s, "release-date") || strings.Contains(s, "posted-on") || strings.Contains(s, "entry-date"); {
		case published:
			return publishedDate
		case strings.Contains(s, "modif") || strings.Contains(s, "update") || strings.Contains(s, "changed"):
			return changedDate
		case strings.Contains(s, "expire") || strings.Contains(s, "event"):
			return otherDate
		}
		if n == block {
			steps = max(steps, 2) // search one more ancestor
		}
	}
	return plainDate
}
