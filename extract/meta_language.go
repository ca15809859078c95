package extract

import (
	"strings"

	"github.com/RadhiFadlillah/whatlanggo"

	"github.com/millrace/millrace"
)

// language takes the language that the document declares.
func (m *meta) language() {
	for _, p := range []struct{ source, value string }{
		{"html lang", attr(m.c.html, "lang")},
		{"html xml:lang", attr(m.c.html, "xml:lang")},
		{"meta content-language", m.firstNamed("content-language")},
		{"meta og:locale", m.firstNamed("og:locale")},
		{"json-ld inLanguage", m.first("language", "json-ld inLanguage")},
	} {
		if tag := languageTag(p.value); tag != "" {
			m.page.Language = tag
			m.res.Sources["language"] = p.source
			return
		}
	}
	delete(m.res.Sources, "language")
}

// languageTag gives a BCP 47 tag in the usual case, "" for what is none.
func languageTag(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(strings.ReplaceAll(s, "_", "-")), ",")
	parts := strings.Split(s, "-")
	for i, p := range parts {
		if len(p) > 8 || len(p) == 0 || strings.ContainsFunc(p, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
		}) {
			return ""
		}
		switch {
		case i == 0:
			if len(p) < 2 || len(p) > 3 {
				return ""
			}
			parts[i] = strings.ToLower(p)
		case len(p) == 2:
			parts[i] = strings.ToUpper(p)
		case len(p) == 4:
			parts[i] = strings.ToUpper(p[:1]) + strings.ToLower(p[1:])
		}
	}
	return strings.Join(parts, "-")
}

// What a language is detected by: less text is not enough to be sure, and more
// makes it no surer.
const (
	minSample = 200
	maxSample = 1500
)

// detectLanguage gives the language of a page that declares none by its
// content, "" if there is too little of it, or it could be several.
func detectLanguage(blocks []millrace.Block) string {
	var b strings.Builder
	sample(&b, blocks)
	text := b.String()
	if len(text) < minSample {
		return ""
	}
	info := whatlanggo.Detect(strings.ToValidUTF8(text[:min(len(text), maxSample)], ""))
	if !info.IsReliable() {
		return ""
	}
	return info.Lang.Iso6391()
}

// sample gathers the prose of blocks: neither code nor tables.
func sample(b *strings.Builder, blocks []millrace.Block) {
	for i := range blocks {
		if b.Len() >= maxSample {
			return
		}
		if blocks[i].Type != "code" && blocks[i].Type != "math" {
			b.WriteString(blocks[i].Text)
			b.WriteByte('\n')
		}
		for k := range blocks[i].Items {
			b.WriteString(blocks[i].Items[k].Text)
			b.WriteByte('\n')
			if b.Len() >= maxSample {
				return
			}
		}
		sample(b, blocks[i].Blocks)
	}
}
