package tct

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// draft99 is a draft that does not exist: its members have other names, and its hash covers
// other bytes. A new draft needs only such a file and a line in package all.
var draft99 = &draft{
	Number:       "99",
	Name:         "tct-99",
	Names:        "/tct-99.json",
	List:         "/tct-99-pages",
	ListItems:    1000,
	PageLink:     draft01.PageLink,
	MediaType:    contentType,
	CacheControl: cacheControl,
	Vary:         "Accept-Encoding",
	Profile:      "https://www.ietf.org/archive/id/draft-jurkovikj-collab-tunnel-99.html#page",
	Members: []member{
		{"type", profileMember, nil},
		{"address", requiredMember, docURL},
		{"heading", requiredMember, docTitle},
		{"text", requiredMember, docContent},
		{"lang", textMember, docLanguage},
		{"published", timeMember, docPublished},
		{"changed", timeMember, docModified},
		{"summary", textMember, docDescription},
		{"by", personMember, docAuthor},
		{"data", schemaMember, nil},
		{"sum", hashMember, nil},
	},
	Hash:  sum99,
	Holds: func(d *document, _ []byte, hash string) bool { return hash == sum99(d, nil) },

	Items:       []string{"cUrl", "mUrl", "etag"},
	ListVersion: 99,
	ListProfile: list99,
	ListHead:    `{"version":99,"profile":"` + list99 + `","items":[`,
	ListTail:    "]}",

	Own:       func(p *seenPage) bool { return strings.Contains(kit.Text(p.Fields["type"]), "tunnel-99") },
	TagMember: "etag",
	Rules: func(rule newRule) []check.Rule {
		return []check.Rule{
			rule("1", "index-link", check.Must, "The root leads to the list.", checkIndexLink),
			rule("1", "alternate-link", check.Should, "A page leads to its document.", checkAlternate(false)),
			rule("2", "items", check.Must, "items is an array of objects.", onLists(checkItems)),
			rule("2", "version", check.Must, "version is 99.", onLists(checkVersion)),
			rule("3", "heading", check.Must, "heading is a string.", onPages(checkString("heading"))),
			rule("3", "text", check.Must, "text is a string.", onPages(checkString("text"))),
			rule("3", "sum", check.Must, "sum is the hash of heading and text.", onPages(checkSum99)),
			rule("4", "not-modified", check.Must, "The present tag is answered with 304.", askProbes(kit.IfNoneMatch)),
		}
	},
	RuleNames: ruleNames{
		Items: "2/items", Parity: "2/etag", Object: "3/object", CanonicalURL: "3/address", Alternate: "1/alternate-link", CanonicalLink: "3/address",
		ContentType: "3/type", StrongETag: "3/tag", HashEqualsETag: "3/sum", Hash: "3/sum", NotModified: "4/not-modified",
	},
}

const list99 = "https://www.ietf.org/archive/id/draft-jurkovikj-collab-tunnel-99.html#list"

func sum99(d *document, _ func() []byte) string {
	return hashPrefix + canon.SHA256Hex([]byte(strings.ToUpper(d.Title+"\n"+d.Content)))
}

func checkSum99(p *seenPage, fail check.Fail) bool {
	d := &document{Title: kit.Text(p.Fields["heading"]), Content: kit.Text(p.Fields["text"])}
	if d.Title == "" || d.Content == "" {
		return false
	}
	if got := kit.Text(p.Fields["sum"]); got != sum99(d, nil) {
		fail(p.MURL, "sum: "+got, sum99(d, nil))
	}
	return true
}

// A table is enough to define a new draft.
func TestNewDraft(t *testing.T) {
	src, err := os.ReadFile("draft99_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(src), "\n"); n > 150 {
		t.Errorf("the draft takes %d lines", n)
	}
	protocoltest.Run(t, draft99.Protocol())
	const page, list = "/post/tct-99.json", "/tct-99-pages.json"
	fault := func(rule string, b protocoltest.Breaker) protocoltest.Fault {
		return protocoltest.Fault{Rule: "tct-99/" + rule, Break: b}
	}
	protocoltest.Faults(t, draft99.Protocol(), []protocoltest.Fault{
		fault("1/index-link", protocoltest.SetHeader("/", "Link", `</post/tct-99.json>; rel="alternate"; type="application/json"`)),
		fault("1/alternate-link", noLinks("/post/")),
		fault("2/items", protocoltest.ReplaceBody(list, `"items":[`, `"items":["x",`)),
		fault("2/version", protocoltest.ReplaceBody(list, `"version":99`, `"version":"99"`)),
		fault("3/heading", protocoltest.ReplaceBody(page, `"heading":"Page 1"`, `"heading":null`)),
		fault("3/text", protocoltest.ReplaceBody(page, `"text":"`, `"text":5,"other":"`)),
		fault("3/sum", protocoltest.ReplaceBody(page, "flour", "bran")),
		fault("4/not-modified", protocoltest.OnRequest(page, func(r *http.Request) { r.Header.Del("If-None-Match") })),
	})
}
