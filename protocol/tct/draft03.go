package tct

import (
	"bytes"
	"context"
	"mime"
	"net/url"
	"regexp"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/commonmark"
	"github.com/millrace/millrace/internal/kit"

	"github.com/millrace/millrace/protocol"
)

// name03 is the name of the protocol on the command line, in tags, errors and rule IDs.
const name03 = "tct-03"

// Profiles of draft-03, for documents, for lists, and for lists of lists.
const (
	profiles03     = "https://www.ietf.org/archive/id/draft-jurkovikj-collab-tunnel-03.html#"
	pageProfile03  = profiles03 + "tct-m-url-profile"
	listProfile03  = profiles03 + "tct-m-sitemap-profile"
	indexProfile03 = profiles03 + "tct-m-sitemap-index-profile"
)

// draft03 contains the values and functions that are specific to draft-03.
var draft03 = &draft{
	Number:      "03",
	Title:       "The Collaboration Content Transfer (TCT) Protocol",
	Date:        "2026-07-27",
	Name:        name03,
	Names:       "/tct.json",
	List:        "/tct-pages",
	ListItems:   19_998, // leaves room for an overview; the reference reads at most 100,000 values
	PageLink:    millrace.Link{HTML: true},
	AbsoluteURL: true,
	RootHTML:    true,
	OnRequest:   true,

	MediaType:    mediaType,
	CacheControl: cacheControl + ", no-transform",
	Vary:         "Accept-Encoding",
	Exact:        true,
	Profile:      pageProfile03,
	Members: []member{ // in the order of RFC 8785
		{"author", personMember, docAuthor},
		{"canonical_url", requiredMember, docURL},
		{"content", requiredMember, docContent},
		{"content_media_type", textMember, docType},
		{"excerpt", textMember, docDescription},
		{"language", textMember, docLanguage},
		{"lastModified", timeMember, docModified},
		{"profile", profileMember, nil},
		{"published", timeMember, docPublished},
		{"structured_data", schemaMember, nil},
		{"title", requiredMember, docTitle},
	},
	Hash:        func(_ *document, body func() []byte) string { return hashPrefix + canon.SHA256Hex(body()) },
	ContentType: "text/markdown; charset=utf-8; variant=GFM",
	Content:     markdown,
	Blocks:      blocksOf,
	Prepare:     prepare03,

	Items:        []string{"cUrl", "etag", "lastModified", "mUrl"},
	ListVersion:  2,
	ListProfile:  listProfile03,
	ListHead:     `{"items":[`,
	ListTail:     `],"profile":"` + listProfile03 + `","version":2}`,
	IndexProfile: indexProfile03,
	Also:         draft02,

	Own:       func(p *seenPage) bool { return kit.Text(p.Fields["profile"]) == pageProfile03 },
	TagMember: "etag",
	Rules:     rules03,
	RuleNames: ruleNames{
		Items:          "list/items",
		Parity:         "page/hint",
		Object:         "page/object",
		CanonicalURL:   "page/canonical-url",
		Alternate:      "page/alternate-link",
		CanonicalLink:  "page/canonical-link",
		ContentType:    "page/content-type",
		StrongETag:     "page/etag-is-body-hash",
		HashEqualsETag: "page/etag-is-body-hash",
		Hash:           "page/etag-is-body-hash",
		NotModified:    "page/if-none-match",
	},
}

// Draft03 returns the description of draft-03.
func Draft03() protocol.Protocol { return draft03.Protocol() }

// separators replaces two line separators, which the reference does not write as RFC 8785 requires,
// and removes null characters.
var separators = strings.NewReplacer("\u2028", "\n", "\u2029", "\n", "\x00", "")

// markdown returns blocks as Markdown that parses to the same blocks.
func markdown(doc *document, blocks []millrace.Block) string {
	write := func(blocks []millrace.Block) []byte {
		return []byte(separators.Replace(canon.ValidUTF8(millrace.Markdown(blocks))))
	}
	same := func(blocks []millrace.Block) []millrace.Block { return blocks }
	_, text := commonmark.Settle(blocks, same, write, func(text []byte) ([]millrace.Block, bool) {
		blocks, ok := markdownBlocks(doc.CanonicalURL, string(text))
		return blocks, ok && len(blocks) > 0
	})
	return string(text)
}

// blocksOf returns the blocks of a document's content. Content of a media type other than Markdown
// is plain text. Leading paragraphs or headings that repeat the title are removed.
func blocksOf(doc *document) ([]millrace.Block, millrace.Detail) {
	if typ, _, _ := mime.ParseMediaType(doc.ContentType); typ != "text/markdown" {
		return unheaded(doc)
	}
	blocks, ok := markdownBlocks(doc.CanonicalURL, doc.Content)
	if !ok {
		return millrace.TextBlocks(doc.Content), millrace.DetailText
	}
	for len(blocks) > 0 && blocks[0].Type == millrace.HeadingBlock && blocks[0].Level == 1 &&
		commonmark.Heading(blocks[0].Text) == commonmark.Heading(doc.Title) {
		blocks = blocks[1:]
	}
	return blocks, millrace.DetailBlocks
}

func markdownBlocks(at, text string) ([]millrace.Block, bool) {
	base, err := url.Parse(at)
	if err != nil {
		return nil, false
	}
	blocks, err := commonmark.Page(context.Background(), []byte(text), base)
	return blocks, err == nil
}

// prepare03 changes or drops members that the draft forbids, or that the reference cannot parse.
func prepare03(doc *document) {
	for _, s := range []*string{&doc.Title, &doc.Description, &doc.Author} {
		*s = separators.Replace(*s)
	}
	if !languageTag.MatchString(doc.Language) {
		doc.Language = ""
	}
	valid := doc.StructuredData[:0]
	for _, raw := range doc.StructuredData {
		if !hasArrayObject(raw) && !bytes.ContainsAny(raw, "\u2028\u2029") {
			valid = append(valid, raw)
		}
	}
	doc.StructuredData = valid
}

// hasArrayObject reports whether JSON contains an object that the reference parses as an array: an
// empty object, or an object whose first name is 0.
func hasArrayObject(raw []byte) bool {
	for _, m := range stringOrArrayObject.FindAll(raw, -1) {
		if m[0] == '{' {
			return true
		}
	}
	return false
}

var stringOrArrayObject = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\{\s*(?:\}|"0"\s*:)`)

// languageTag matches well-formed language tags (RFC 5646, section 2.1).
var languageTag = regexp.MustCompile(`(?i)^(?:(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})(?:-[a-z]{4})?(?:-(?:[a-z]{2}|\d{3}))?` +
	`(?:-(?:[a-z0-9]{5,8}|\d[a-z0-9]{3}))*(?:-[a-wyz0-9](?:-[a-z0-9]{2,8})+)*(?:-x(?:-[a-z0-9]{1,8})+)?|x(?:-[a-z0-9]{1,8})+|` +
	`en-GB-oed|i-(?:ami|bnn|default|enochian|hak|klingon|lux|mingo|navajo|pwn|tao|tay|tsu)|sgn-(?:BE-FR|BE-NL|CH-DE))$`)
