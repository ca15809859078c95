package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// bylineLabels are the labels before an author's name, in lower case. The long forms come
// first.
var bylineLabels = []string{
	"article written by", "written by", "posted by", "published by", "authored by", "created by", "contributed by", "submitted by", "words by", "text by", "story by", "article by", "post by", "reported by", "by",
	"authors", "author", "about the author", "verfasst von", "geschrieben von", "veröffentlicht von", "von", "autoren", "autorin", "autor", "écrit par", "rédigé par", "publié par", "par", "auteurs", "auteur", //nolint:misspell // German, French
	"escrito por", "publicado por", "redactado por", "por", "autores", "autora", "scritto da", "pubblicato da", "a cura di", "di", "autore", "autori", "geschreven door", "door",
	"napisane przez", "napisał", "автор", "作者", "文", "著者", "撰文",
}

// cutLabel splits a byline into its label and the rest: "By Ann" into "By" and "Ann".
func cutLabel(s string) (label, rest string) {
	if s == "" {
		return "", s
	}
	for _, l := range bylineLabels {
		if l[0]|0x20 != s[0]|0x20 || len(s) < len(l) || !strings.EqualFold(s[:len(l)], l) {
			continue
		}
		rest = s[len(l):]
		r, _ := utf8.DecodeRuneInString(rest)
		if !(unicode.IsSpace(r) || r == ':' || r == '：' || r == '/' || r == '／' || rest == "") {
			continue
		}
		if wide, _ := utf8.DecodeRuneInString(l); isWide(wide) && unicode.IsSpace(r) && l == "文" {
			continue
		}
		return s[:len(l)], strings.TrimLeft(rest, " :：/／\u00a0")
	}
	return "", s
}

// byline returns the authors that the page shows near its title: the names after a label such
// as "By", on the same line or the next.
func (m *meta) byline() string {
	lines := m.near()
	for pass := range 2 { // after the title first
		long := 0
		for i := range lines {
			l := &lines[i]
			if (l.at > 0) != (pass == 0) || l.at > 15 || l.at < -4 {
				continue
			}
			if len(l.text) > 100 {
				if long++; long > 2 {
					break // the text has begun
				}
			}
			if len(l.text) > 250 {
				continue
			}
			name, alone := bylineName(l)
			if alone && i+1 < len(lines) && len(lines[i+1].text) < 80 {
				name = leadingName(lines[i+1].text, false)
			}
			if name != "" && !m.inCard(l.block, l.text) {
				return name
			}
		}
	}
	return ""
}

// bylineName reads a line with a label. It sets alone if nothing follows the label.
func bylineName(l *nearLine) (name string, alone bool) {
	for from := 0; from < len(l.text); {
		// Signs or element boundaries separate the parts of a line.
		label, rest := cutLabel(l.text[from:])
		if label != "" && (from > 0 || strings.ToLower(label) != "di" || len(l.text) < 60) {
			if rest == "" {
				return "", true
			}
			at := len(l.text) - len(rest)
			if s := linkedNames(l, at); s != "" {
				return s, false
			}
			if s := leadingName(rest, false); s != "" {
				return s, false
			}
		}
		next := len(l.text)
		if i := strings.IndexAny(l.text[from:], "•|·●—–/⋅∙"); i >= 0 {
			_, size := utf8.DecodeRuneInString(l.text[from+i:])
			next = from + i + size
		}
		for _, p := range l.parts {
			if p.start > from && p.start < next {
				next = p.start
			}
		}
		for next < len(l.text) && l.text[next] == ' ' {
			next++
		}
		from = next
	}
	return "", false
}

// linkedNames returns the names in a line, from an offset on, that are links or buttons, with
// the words that join them: "Ann Bee and Carl Dee".
func linkedNames(l *nearLine, at int) string {
	from, to := -1, -1
	for _, p := range l.parts {
		if p.end <= at {
			continue
		}
		if from < 0 && p.start > at {
			return "" // something else comes first
		}
		text := l.text[p.start:p.end]
		linked := false
		for n, steps := p.n.Parent, 0; n != nil && steps < 3; n, steps = n.Parent, steps+1 {
			linked = linked || n.DataAtom == atom.A || n.DataAtom == atom.Button
		}
		switch {
		case linked && p.start >= at && isName(text, true):
			if from < 0 {
				from = p.start
			}
			to = p.end
		case from >= 0 && isJoin(text):
		default:
			if from < 0 {
				return ""
			}
			return strings.ReplaceAll(l.text[from:to], " ,", ",")
		}
	}
	if from < 0 {
		return ""
	}
	return strings.ReplaceAll(l.text[from:to], " ,", ",")
}

func isJoin(s string) bool {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case ",", "and", "&", ", and", "und", "et", "y", "e", "en":
		return true
	}
	return false
}

// leadingName returns the name or names at the beginning of a text.
func leadingName(s string, handle bool) string {
	for i, r := range s {
		if strings.ContainsRune("•|·●—–/⋅∙(;!?:{[\"“", r) || unicode.IsDigit(r) && !handle {
			s = s[:i]
			break
		}
	}
	var names []string
	rest := s
	for rest != "" && len(names) < 12 {
		part, after, more := strings.Cut(rest, ",")
		part = strings.TrimSpace(part)
		if len(names) > 0 && isCredential(part) {
			names[len(names)-1] += ", " + part
			rest = after
			continue
		}
		part = strings.TrimSuffix(upToVerb(part), ".")
		if len(names) > 0 && !isName(strings.TrimPrefix(part, "and "), false) {
			break
		}
		if part != "" {
			names = append(names, part)
		}
		if rest = after; !more {
			break
		}
	}
	// Adjacent names differ from a name with a title: they contain only names.
	// Only the first is sure to be a name.
	if len(names) > 2 && !strings.HasPrefix(names[len(names)-1], "and ") || len(names) == 2 {
		names = names[:1]
	}
	name := strings.TrimSpace(strings.Join(names, ", "))
	if first, _, _ := strings.Cut(name, ","); !isName(first, handle) {
		return ""
	}
	return name
}

// upToVerb cuts a text after the names, where a date, a section or a job title follows.
func upToVerb(s string) string {
	if len(s) > 300 { // too long for a name
		s = strings.ToValidUTF8(s[:300], "")
	}
	words := strings.Fields(s)
	for i, w := range words {
		switch strings.ToLower(strings.Trim(w, ".,")) {
		case "on", "in", "for", "at", "from", "posted", "published", "updated", "last", "reviewed", "edited", "medically", "fact", "am", "le", "el", "il", "op", "min", "read", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday":
			if i > 0 && !(i+1 < len(words) && (w == "le" || w == "Le" || w == "El")) {
				return strings.Join(words[:i], " ")
			}
		}
		if i > 1 && month(strings.ToLower(strings.Trim(w, ".,")), "") > 0 && (i+1 == len(words)) && w != "May" && w != "June" && w != "April" && w != "August" {
			return strings.Join(words[:i], " ")
		}
	}
	return strings.Join(words, " ")
}

// isCredential reports whether a text is a degree or a rank: MD, PhD, R.N.
func isCredential(s string) bool {
	upper, lower := 0, 0
	for _, r := range s {
		switch {
		case unicode.IsUpper(r):
			upper++
		case unicode.IsLower(r):
			lower++
		case r != '.' && r != '-':
			return false
		}
	}
	return upper >= 2 && lower <= 2 && len(s) <= 8 || s == "Jr." || s == "Sr." || s == "Esq." || s == "Jr" || s == "Sr"
}

// isName reports whether a text has the form of a name: up to seven words that all begin with
// a capital or are in a script without capitals. Particles may be in lower case. A single word
// is a name only if it links to an author.
func isName(s string, linked bool) bool {
	words := strings.Fields(s)
	if len(words) == 0 || len(words) > 7 || len(s) > 70 || strings.ContainsAny(s, "@{}<>?!:;=_#") && !linked || strings.Contains(s, "://") {
		return false
	}
	if personName(s) == "" {
		return false
	}
	wide := false
	for i, w := range words {
		r, _ := utf8.DecodeRuneInString(strings.Trim(w, "(\"'“‘"))
		switch {
		case isWide(r):
			wide = true
		case unicode.IsUpper(r) || r == '&':
		case isParticle(w) && i > 0, len(words) > 1 && isParticle(w):
		case linked && len(words) == 1:
		default:
			return false
		}
		switch strings.ToLower(w) {
		case "read", "share", "comments", "comment", "subscribe", "follow", "home", "blog", "menu", "search", "skip", "more", "view", "you", "your", "our", "this", "what", "how", "why", "clicking", "using", "email":
			return false
		}
	}
	return linked || wide || len(words) > 1 || utf8.RuneCountInString(s) > 2 && isCamel(s)
}

// isCamel reports whether a word is a handle such as BeauHD.
func isCamel(s string) bool {
	return strings.ContainsFunc(s, unicode.IsLower) && strings.ContainsFunc(s[1:], unicode.IsUpper)
}

func isParticle(w string) bool {
	switch strings.ToLower(strings.Trim(w, ".,")) {
	case "de", "von", "van", "der", "den", "del", "della", "di", "da", "do", "dos", "das", "du", "la", "le", "el", "al", "bin", "ibn", "ter", "ten", "zu", "zur", "af", "av", "y", "e", "i", "and", "und", "et", "en", "the", "of", "’t":
		return true
	}
	return false
}

// authorClass returns the name near the title in an element whose class marks an author, or in
// a link to an author's page.
func (m *meta) authorClass() string {
	for i := range m.near() {
		l := &m.lines[i]
		if len(l.text) > 200 || l.at > 15 || l.at < -4 {
			continue
		}
		for _, p := range l.parts {
			if !namesAuthor(p.n) {
				continue
			}
			text := l.text[p.start:p.end]
			if _, rest := cutLabel(text); rest != "" {
				text = leadingName(rest, false)
			}
			if len(text) > 50 || strings.Contains(text, "&") || strings.ContainsAny(text, "0123456789:?!") || !isName(text, false) || len(strings.Fields(text)) > 5 {
				continue
			}
			if !m.inCard(l.block, l.text) {
				return text
			}
		}
	}
	return ""
}

// namesAuthor reports whether one of the elements around a text marks it as the author.
func namesAuthor(n *html.Node) bool {
	steps := 0
	for p := n.Parent; p != nil && steps < 4; p, steps = p.Parent, steps+1 {
		class := strings.ToLower(attr(p, "class"))
		if strings.Contains(class, "author") || strings.Contains(class, "byline") {
			return true
		}
		if p.DataAtom == atom.A {
			href := strings.ToLower(attr(p, "href"))
			for _, s := range []string{"/author/", "/authors/", "/contributor/", "/contributors/", "/writer/", "/writers/", "/by/", "/people/", "/person/", "/staff/", "/team/", "/profile/", "/bio/"} {
				if strings.Contains(href, s) {
					return true
				}
			}
		}
	}
	return false
}
