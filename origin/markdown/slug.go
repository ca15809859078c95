package markdown

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// slugger generates the anchors of headings as the generator does.
type slugger struct {
	kind Kind
	used map[string]int
}

// of returns the anchor of a heading that does not define its own.
func (s *slugger) of(text string) string {
	var slug string
	separator := "-"
	switch s.kind {
	case MkDocs: // Python-Markdown's toc
		separator = "_"
		slug = strings.Join(strings.FieldsFunc(strings.Map(func(r rune) rune {
			switch {
			case r > unicode.MaxASCII:
				return -1
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '_', r == '-', unicode.IsSpace(r):
				return unicode.ToLower(r)
			}
			return -1
		}, norm.NFKD.String(text)), func(r rune) bool { return r == '-' || unicode.IsSpace(r) }), "-")
		if slug == "" {
			slug = "_1"
		}
	case Jekyll: // kramdown
		slug = github(strings.TrimLeftFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }))
		if slug == "" {
			slug = "section"
		}
	default:
		slug = github(text)
		if slug == "" && s.kind == Hugo {
			slug = "heading"
		}
	}
	n := s.taken(slug)
	if n == 0 {
		return slug
	}
	for {
		next := fmt.Sprintf("%s%s%d", slug, separator, n)
		if s.used[next] == 0 {
			s.taken(next)
			return next
		}
		n++
	}
}

// taken records an anchor, and returns the number of its previous uses.
func (s *slugger) taken(slug string) int {
	if s.used == nil {
		s.used = map[string]int{}
	}
	s.used[slug]++
	return s.used[slug] - 1
}

// github returns an anchor in the format of GitHub: letters, digits, hyphens and underscores stay,
// and spaces become hyphens.
func github(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.TrimSpace(text))
}
