package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// bylineLabels are the labels before an author's name, in lower case.
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
		if r, _ := utf8.DecodeRuneInString(rest); rest == "" || unicode.IsSpace(r) || strings.ContainsRune(":：/／", r) {
			return s[:len(l)], strings.TrimLeft(rest, " :：/／\u00a0")
		}
	}
	return "", s
}

// byline returns the author that the page shows near its title, or "". It searches the lines after
// the title first. The author is the name after a label such as "By". If marked is set, a name in an
// element that is marked as the author is accepted, too.
func (m *meta) byline(marked bool) string {
	lines := m.near()
	for _, after := range []bool{true, false} {
		long := 0
		for i := range lines {
			l := &lines[i]
			if (l.at > 0) != after || l.at > 15 || len(l.text) > 200 {
				continue
			}
			if len(l.text) > 100 {
				if long++; long > 2 {
					break // the text has started
				}
			}
			name := l.labeledName()
			if name == "" && marked {
				name = l.markedName()
			}
			if name != "" && !m.inCard(l.block, l.text) {
				return name
			}
		}
	}
	return ""
}

// labeledName returns the name after a label in a line: the text of a link, or the words up to a
// punctuation mark.
func (l *nearLine) labeledName() string {
	for i, p := range l.parts {
		label, rest := cutLabel(l.text[p.start:])
		if k := strings.LastIndexAny(l.text[p.start:p.end], "•|·●—–/⋅∙"); label == "" && k >= 0 {
			label, rest = cutLabel(strings.TrimLeft(l.text[p.start+k:], "•|·●—–/⋅∙ "))
		}
		if label == "" {
			continue
		}
		at := len(l.text) - len(rest)
		for _, q := range l.parts[i:] {
			if q.end <= at {
				continue
			}
			if text := l.text[q.start:q.end]; q.start >= at && within(q.n, 3, atom.A, atom.Button) && isName(text, true) {
				return text
			}
			break
		}
		if name := leadingName(rest); name != "" {
			return name
		}
	}
	return ""
}

// leadingName returns the name at the beginning of a text, or "".
func leadingName(s string) string {
	if i := strings.IndexFunc(s, func(r rune) bool {
		return strings.ContainsRune("•|·●—–/⋅∙(;!?:{[,\"“", r) || unicode.IsDigit(r)
	}); i >= 0 {
		s = s[:i]
	}
	words := strings.Fields(s[:min(len(s), 300)])
	for i, w := range words {
		if i > 0 && followsName(w) || i > 1 && month(strings.ToLower(strings.Trim(w, ".,")), "") > 0 {
			words = words[:i]
			break
		}
	}
	if s = strings.TrimSuffix(strings.Join(words, " "), "."); isName(s, false) {
		return s
	}
	return ""
}

// followsName reports whether a word usually follows a name, because a date, a section or a job
// title begins.
func followsName(w string) bool {
	switch strings.ToLower(strings.Trim(w, ".,")) {
	case "on", "in", "for", "at", "from", "posted", "published", "updated", "last", "reviewed", "edited", "am", "op", "min", "read":
		return true
	}
	return false
}

// isName reports whether a text looks like a name: up to seven words that all start with a capital
// letter or are in a script without capitals. Particles may be in lower case. A single word in a
// script with capitals is a name only if it links to an author, or is a handle such as BeauHD.
func isName(s string, linked bool) bool {
	words := strings.Fields(s)
	if len(words) > 7 || len(s) > 70 || strings.ContainsAny(s, "@{}<>?!:;=_#") && !linked || personName(s) == "" {
		return false
	}
	wide := false
	for _, w := range words {
		r, _ := utf8.DecodeRuneInString(strings.Trim(w, "(\"'“‘"))
		wide = wide || isWide(r)
		if !isWide(r) && !unicode.IsUpper(r) && r != '&' && !isParticle(w) && !(linked && len(words) == 1) {
			return false
		}
	}
	handle := strings.ContainsFunc(s[1:], unicode.IsUpper) && strings.ContainsFunc(s, unicode.IsLower)
	return linked || wide || len(words) > 1 || handle
}

func isParticle(w string) bool {
	switch strings.ToLower(strings.Trim(w, ".,")) {
	case "de", "von", "van", "der", "den", "del", "della", "di", "da", "do", "dos", "das", "du", "la", "le", "el", "al", "bin", "ibn", "ter", "ten", "zu", "zur", "af", "av", "y", "e", "i", "and", "und", "et", "en", "the", "of", "’t":
		return true
	}
	return false
}

// markedName returns the name in an element of a line whose class marks an author, or the name in a
// link to an author's page.
func (l *nearLine) markedName() string {
	for _, p := range l.parts {
		if text := l.text[p.start:p.end]; len(text) <= 50 && !strings.Contains(text, "&") && marksAuthor(p.n) && isName(text, false) {
			return text
		}
	}
	return ""
}

// marksAuthor reports whether one of the elements around a text marks it as the author.
func marksAuthor(n *html.Node) bool {
	for p, steps := n.Parent, 0; p != nil && steps < 4; p, steps = p.Parent, steps+1 {
		class := strings.ToLower(attr(p, "class"))
		if strings.Contains(class, "author") || strings.Contains(class, "byline") {
			return true
		}
		if p.DataAtom == atom.A {
			return contains(strings.ToLower(attr(p, "href")), []string{"/author", "/contributor", "/writer", "/by/", "/people/", "/person/", "/staff/", "/team/", "/profile/", "/bio/"})
		}
	}
	return false
}
