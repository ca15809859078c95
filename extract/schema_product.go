package extract

import (
	"cmp"
	"strings"

	"github.com/millrace/millrace"
)

// productFacts are the descriptive properties of a schema.org Product.
var productFacts = []string{
	"brand", "manufacturer", "model", "color", "material", "size", "pattern", "sku", "mpn", "gtin", "gtin8", "gtin12", "gtin13", "gtin14", "isbn", "productID",
}

// Maximum sizes of a fact and of a description in bytes.
const (
	maxFact        = 120
	maxDescription = 20_000
)

// product returns the facts about the page's product that its text lacks, because shops often show
// them only by scripts. The description becomes a text block. The other facts become definitions,
// with the names of schema.org as terms.
func (m *meta) product(blocks []millrace.Block) []millrace.Block {
	t := m.ownProduct()
	if t == nil {
		return nil
	}
	onPage := readFacts(m.page.Title + "\n" + (&millrace.Page{Blocks: blocks}).Text())
	var out []millrace.Block
	if s := withoutTags(t.text("description")); len(s) <= maxDescription && !isTemplate(s) && !onPage.hasMost(s) {
		out = append(out, millrace.Block{Type: millrace.TextBlock, Text: s})
	}
	list := millrace.Block{Type: millrace.DefinitionsBlock}
	add := func(term, value string) {
		list.Items = append(list.Items, millrace.Item{Term: term, Text: value})
	}
	for _, key := range productFacts {
		if s := t.text(key); len(s) <= maxFact && !isTemplate(s) && !onPage.has(s) {
			add(key, s)
		}
	}
	if len(list.Items) > 0 {
		out = append(out, list)
	}
	if len(out) > 0 {
		m.res.Sources["blocks"] = "json-ld Product"
	}
	return out
}

// ownProduct returns the product that the page is about, or nil if the page declares no product or
// several.
func (m *meta) ownProduct() *ldObject {
	var own *ldObject
	for i := range m.ldObjects {
		if t := &m.ldObjects[i]; t.is("Product", "ProductGroup") {
			if own != nil && own.text("name") != t.text("name") {
				return nil
			}
			own = cmp.Or(own, t)
		}
	}
	return own
}

// facts is an index of a text, used to check which facts the text already contains.
type facts struct {
	letters string // letters and digits of the text
	line    string // words of the text, separated by single spaces
	words   map[string]bool
}

func readFacts(text string) *facts {
	list := titleWords(text)
	f := &facts{letters: strings.Join(list, ""), line: " " + strings.Join(list, " ") + " ", words: map[string]bool{}}
	for _, w := range list {
		f.words[w] = true
	}
	return f
}

// has reports whether the text contains the words of s in a row, or s has no words.
func (f *facts) has(s string) bool {
	list := titleWords(s)
	return len(list) == 0 || strings.Contains(f.line, " "+strings.Join(list, " ")+" ")
}

// hasMost reports whether the text contains the letters of s in a row, or at least 80 % of its words.
func (f *facts) hasMost(s string) bool {
	if strings.Contains(f.letters, letters(s)) {
		return true
	}
	words, known := titleWords(s), 0
	for _, w := range words {
		if f.words[w] {
			known++
		}
	}
	return known*10 >= len(words)*8
}
