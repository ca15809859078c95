package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// marks is the set of groups to which the tag and the class words of an element belong.
type marks uint32

// Groups of tags and class words. The distance to the nearest ancestor in a group is a feature.
const (
	markMain = iota
	markArticle
	markNav
	markHeader
	markFooter
	markAside
	markForm
	markList
	markTable
	markFigure
	markSection
	wordContent
	wordNav
	wordHeader
	wordFooter
	wordSide
	wordSocial
	wordRelated
	wordComment
	wordMeta
	wordAd
	wordAsk
	wordMedia
	wordCard
	wordTitle
	wordHidden
	wordProduct
	markCount
)

var markNames = [markCount]string{
	"main", "article", "nav", "header", "footer", "aside", "form", "a list", "a table", "a figure", "section",
	"a class for content", "a class for navigation", "a class for a header", "a class for a footer", "a class for a sidebar", "a class for sharing",
	"a class for related pages", "a class for comments", "a class for data about a text", "a class for advertisements", "a class for an appeal",
	"a class for media", "a class for cards", "a class for titles", "a class for hidden elements", "a class for products",
}

// markWords maps each group to its words in class names and ids.
var markWords = map[int]string{
	wordContent: "content article articlebody body entry post story text main blog hentry prose markdown richtext rte copy description detail",
	wordNav:     "nav navigation navbar menu breadcrumb breadcrumbs crumbs pager pagination paging toc submenu topbar links tabs prev previous next index",
	wordHeader:  "header head masthead top banner hero logo brand branding",
	wordFooter:  "footer foot bottom colophon copyright legal disclaimer",
	wordSide:    "sidebar side aside rail secondary right left widget widgets module extra infobox",
	wordSocial:  "share sharing social follow facebook twitter like likes addtoany sharedaddy icons",
	wordRelated: "related recommended recommendations recommend trending popular more similar latest recent teaser teasers also suggested upsell outbrain taboola read",
	wordComment: "comment comments respond reply replies disqus discussion commentlist reviews review",
	wordMeta:    "author authors byline meta date time info postmeta published bio posted tag tags taglist category categories credit credits source label",
	wordAd:      "ad ads advert advertisement sponsor sponsored promo promotion adsense dfp",
	wordAsk:     "cookie cookies consent gdpr newsletter subscribe subscription signup login form search popup modal overlay cta paywall button buttons btn donate register",
	wordMedia:   "caption image img figure gallery photo photos thumb thumbnail video slide slider carousel media player",
	wordCard:    "card cards grid list item items listing archive feed tile tiles row",
	wordTitle:   "title headline subtitle lead dek standfirst summary excerpt intro kicker",
	wordHidden:  "hidden hide sr screen reader visually noprint print skip mobile",
	wordProduct: "product products price cart shop sku variant stock delivery shipping",
}

var markOfWord = func() map[string]marks {
	m := map[string]marks{}
	for g, words := range markWords {
		for w := range strings.FieldsSeq(words) {
			m[w] |= 1 << g
		}
	}
	return m
}()

// marksOf returns the marks of an element.
func marksOf(n *html.Node) (m marks) {
	switch n.DataAtom {
	case atom.Main:
		m = 1 << markMain
	case atom.Article:
		m = 1 << markArticle
	case atom.Nav:
		m = 1 << markNav
	case atom.Header:
		m = 1 << markHeader
	case atom.Footer:
		m = 1 << markFooter
	case atom.Aside:
		m = 1 << markAside
	case atom.Form:
		m = 1 << markForm
	case atom.Ul, atom.Ol, atom.Dl:
		m = 1 << markList
	case atom.Table:
		m = 1 << markTable
	case atom.Figure, atom.Figcaption:
		m = 1 << markFigure
	case atom.Section:
		m = 1 << markSection
	}
	for i := range n.Attr {
		switch a := &n.Attr[i]; a.Key {
		case "class", "id":
			m |= marksOfName(a.Val)
		case "role":
			switch a.Val {
			case "main":
				m |= 1 << markMain
			case "navigation":
				m |= 1 << markNav
			case "banner":
				m |= 1 << markHeader
			case "contentinfo":
				m |= 1 << markFooter
			case "complementary":
				m |= 1 << markAside
			}
		}
	}
	return m
}

// marksOfName returns the marks of the words in a class or an id. Words end at punctuation and
// before capital letters.
func marksOfName(s string) (m marks) {
	var word [16]byte
	n := 0
	for i := 0; i <= len(s) && i < 400; i++ {
		c := byte(' ')
		if i < len(s) {
			c = s[i]
		}
		lower := c | 0x20
		letter := lower >= 'a' && lower <= 'z'
		if !letter || c < 'a' && i > 0 && s[i-1] >= 'a' && s[i-1] <= 'z' {
			if n > 1 && n <= len(word) {
				m |= markOfWord[string(word[:n])]
			}
			n = 0
		}
		if letter {
			if n < len(word) {
				word[n] = lower
			}
			n++
		}
	}
	return m
}
