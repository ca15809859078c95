package wordpress

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/html"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/jsonio"
)

// item is a post, a page or an item of another type in the API. Only the first author is used.
type item struct {
	ID       int64    `json:"id"`
	Status   string   `json:"status"`
	Link     string   `json:"link"`
	Date     string   `json:"date_gmt"`     // in the format gmtLayout; "" or null = none
	Modified string   `json:"modified_gmt"` // in the format gmtLayout
	Title    rendered `json:"title"`
	Content  rendered `json:"content"`
	Excerpt  rendered `json:"excerpt"`
	Embedded struct {
		Author []struct {
			Name string `json:"name"`
		} `json:"author"`
		// Terms contains a list of terms for each taxonomy, or an error.
		Terms []jsonio.Raw `json:"wp:term"`
	} `json:"_embedded"`
	// Yoast is an object if the site uses the plugin Yoast SEO. It may be any other value.
	Yoast jsonio.Raw `json:"yoast_head_json"`
}

// rendered is text in the form of HTML.
type rendered struct {
	HTML      string `json:"rendered"`
	Protected bool   `json:"protected"`
}

// term is a category, a tag, or a term of another taxonomy.
type term struct {
	Name     string `json:"name"`
	Slug     string `json:"slug"`
	Taxonomy string `json:"taxonomy"`
}

// yoast contains the metadata of Yoast SEO for an item.
type yoast struct {
	Description string `json:"description"`
	Locale      string `json:"og_locale"`
	Robots      struct {
		Index string `json:"index"`
	} `json:"robots"`
}

// closed reports whether an item has a password.
func (it item) closed() bool { return it.Content.Protected || it.Excerpt.Protected }

// hidden reports whether an item is not public.
func (it item) hidden() bool {
	return it.closed() || it.ID <= 0 || it.Status != "" && it.Status != "publish"
}

var errEmpty = fmt.Errorf("%w: no content", millrace.ErrNotFound)

// fields are the fields that are known for every item.
const fields = millrace.FieldTitle | millrace.FieldDescription | millrace.FieldSummary | millrace.FieldPublished |
	millrace.FieldModified | millrace.FieldSection | millrace.FieldTags | millrace.FieldKind | millrace.FieldAccess | millrace.FieldContent

// convert builds the page of an item. If the item has no content, the page is an alias.
func (s *Site) convert(ctx context.Context, f *site, t postType, it item, at string) (*millrace.Page, error) {
	content, err := extract.Content(ctx, []byte(dropShortcodes(it.Content.HTML)), at, &extract.Options{Rules: s.rules})
	if err != nil {
		return nil, err
	}
	p := &millrace.Page{URL: at}
	excerpt := ownExcerpt(it.Excerpt.HTML, it.Content.HTML)
	if len(content.Blocks) == 0 && excerpt == "" {
		return p, nil
	}
	p.Known, p.Detail, p.Blocks, p.Extra = fields|content.Known, content.Detail, content.Blocks, content.Extra
	p.Title, p.Summary, p.Description = plain(it.Title.HTML), excerpt, excerpt
	p.Published, p.Modified = readTime(it.Date), readTime(it.Modified)
	p.Kind = kinds[t.slug]
	if a := it.Embedded.Author; len(a) > 0 && a[0].Name != "" {
		p.Known |= millrace.FieldAuthor
		// If an author has never chosen a display name, it may be an e-mail address.
		if name := plain(a[0].Name); !strings.Contains(name, "@") {
			p.Author = name
		}
	}
	p.Section, p.Tags = it.terms(t)
	p.Language, p.Access.NoIndex = f.lang, f.noindex
	it.yoast(p)
	if p.Language != "" {
		p.Known |= millrace.FieldLanguage
	}
	return p, nil
}

// kinds maps the slugs of types to kinds of pages.
var kinds = map[string]millrace.PageKind{
	"post": millrace.Article, "product": millrace.Product, "topic": millrace.Forum, "forum": millrace.Forum, "reply": millrace.Forum,
	"docs": millrace.Documentation,
}

// terms returns the section and the tags of an item.
func (it item) terms(t postType) (section string, tags []string) {
	for _, raw := range it.Embedded.Terms {
		var terms []term
		if jsonio.Unmarshal(raw, nil, &terms) != nil {
			continue
		}
		for _, term := range terms {
			name := plain(term.Name)
			switch {
			case name == "", term.Taxonomy == "post_format", term.Slug == "uncategorized",
				strings.HasPrefix(term.Taxonomy, "product_") && term.Taxonomy != "product_cat" && term.Taxonomy != "product_tag":
			case section == "" && (term.Taxonomy == "category" || term.Taxonomy == "product_cat"):
				section = name
			case !slices.Contains(tags, name):
				tags = append(tags, name)
			}
		}
	}
	return cmp.Or(section, t.name, t.slug), tags
}

// yoast sets the fields that Yoast SEO provides.
func (it item) yoast(p *millrace.Page) {
	var y yoast
	if len(it.Yoast) == 0 || jsonio.Unmarshal(it.Yoast, nil, &y) != nil {
		return
	}
	p.Description = cmp.Or(plain(y.Description), p.Description)
	if l := strings.ReplaceAll(y.Locale, "_", "-"); language.MatchString(l) {
		p.Language = l
	}
	if y.Robots.Index != "" {
		p.Access.NoIndex = y.Robots.Index == "noindex"
	}
}

// ref returns the ref of an item. The version is unknown as long as the item may change again in
// the same second.
func (s *site) ref(t postType, it item, at string, date time.Time) millrace.Ref {
	ref := millrace.Ref{URL: at, Section: t.slug, Location: s.route(fmt.Sprintf("%s/%d", t.route, it.ID), url.Values{})}
	if !racy(it.Modified, date) {
		ref.Version = fmt.Sprintf("%s.%d.%s", s.rules, it.ID, it.Modified)
	}
	return ref
}

// gmtLayout is the format of GMT times in the API.
const gmtLayout = "2006-01-02T15:04:05"

// racy reports whether an item may change after a response and keep the same modification time.
// date is the time of the response.
func racy(modified string, date time.Time) bool {
	t, err := time.Parse(gmtLayout, modified)
	age := date.Sub(t)
	return err != nil || age < overlap && age > -overlap
}

// readTime parses a time in the API. For any other text, it returns the zero time.
func readTime(s string) time.Time {
	t, err := time.Parse(gmtLayout, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

// ownExcerpt returns an excerpt as text if the author wrote it, and "" otherwise. An excerpt that
// WordPress generated is the start of the content, and ends in "[…]" or a link to the rest. If the
// content is short, the excerpt may also be all of it, without blocks such as images.
func ownExcerpt(excerpt, content string) string {
	text := plain(excerpt)
	if text == "" || strings.HasSuffix(text, "[…]") || strings.Contains(excerpt, "more-link") || strings.Contains(excerpt, "read-more") {
		return ""
	}
	full := plain(content)
	if strings.HasPrefix(noSpace(full), strings.TrimSuffix(noSpace(text), "…")) {
		return ""
	}
	some, all := strings.Fields(text), strings.Fields(full)
	if rest := some; 2*len(some) >= len(all) {
		for _, word := range all {
			if len(rest) > 0 && rest[0] == word {
				rest = rest[1:]
			}
		}
		if len(rest) == 0 {
			return ""
		}
	}
	return text
}

func noSpace(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// inline contains the elements that may begin and end inside a word.
var inline = map[string]bool{
	"a": true, "abbr": true, "b": true, "bdi": true, "cite": true, "code": true, "del": true, "em": true, "font": true, "i": true, "ins": true,
	"kbd": true, "mark": true, "q": true, "s": true, "small": true, "span": true, "strong": true, "sub": true, "sup": true, "u": true, "wbr": true,
}

// plain returns the text of an HTML fragment as one line.
func plain(s string) string {
	if !strings.ContainsAny(s, "<&") {
		return strings.Join(strings.Fields(s), " ")
	}
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(s))
	skip := ""
	for {
		tt := z.Next()
		if tt == html.ErrorToken {
			return strings.Join(strings.Fields(b.String()), " ")
		}
		name, _ := z.TagName()
		switch tag := string(name); {
		case tt == html.TextToken:
			if skip == "" {
				b.WriteString(html.UnescapeString(string(z.Raw())))
			}
		case tt == html.EndTagToken && tag == skip:
			skip = ""
		case tt == html.StartTagToken && skip == "" && (tag == "script" || tag == "style"):
			skip = tag
		case !inline[tag]:
			b.WriteByte(' ')
		}
	}
}
