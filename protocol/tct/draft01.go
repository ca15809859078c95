package tct

import (
	"math"

	"github.com/millrace/millrace"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol"
)

// name01 is the name of the protocol on the command line, in tags, errors and rule IDs.
const name01 = "tct-01"

// docName01 is the file name of M-URLs, each in the folder of its page.
const docName01 = "/llm.json"

// draft01 contains the values and functions that are specific to draft-01.
var draft01 = &draft{
	Number:       "01",
	Date:         "2025-11-14",
	Name:         name01,
	Names:        docName01,
	List:         "/llm-pages",
	ListItems:    math.MaxInt,
	PageLink:     millrace.Link{HTML: true}, // section 1.4.2
	MediaType:    contentType,
	CacheControl: cacheControl,
	Vary:         "Accept-Encoding", // sections 1.7.2 and G.1.1
	Profile:      profileName,
	Members: []member{ // in the order of RFC 8785
		{"author", textMember, docAuthor},
		{"canonical_url", requiredMember, docURL},
		{"content", requiredMember, docContent},
		{"description", textMember, docDescription},
		{"hash", hashMember, nil},
		{"language", textMember, docLanguage},
		{"modified", timeMember, docModified},
		{"profile", profileMember, nil},
		{"published", timeMember, docPublished},
		{"structured_data", schemaMember, nil},
		{"title", requiredMember, docTitle},
	},
	Items:       []string{"cUrl", "mUrl", "etag"},
	Hash:        func(_ *document, body func() []byte) string { return hashPrefix + canon.SHA256Hex(body()) }, // section 1.6.2
	ListVersion: 1,
	ListHead:    listHead,
	ListTail:    listTail,
	ListBreak:   "\n",
	Holds:       func(_ *document, body []byte, hash string) bool { return isHashOf(body, hash) },
	Own:         isOwn01,
	TagMember:   "etag",
	Rules:       rules01,
	RuleNames: ruleNames{
		Items:          "1.7.1/items",
		HTTPS:          "1.10/https",
		Parity:         "1.7.3/parity",
		Object:         "1.5.1/valid-json",
		CanonicalURL:   "1.5.2/canonical-url",
		Alternate:      "1.7.3/parity",
		CanonicalLink:  "1.4.2/canonical-link",
		ContentType:    "1.5.1/content-type",
		StrongETag:     "1.6.2/strong-etag",
		HashEqualsETag: "1.5.2/hash-equals-etag",
		Hash:           "1.6.2/hash-recomputed",
		NotModified:    "1.8.2/if-none-match",
	},
}

// Draft01 returns the description of draft-01.
func Draft01() protocol.Protocol { return draft01.Protocol() }
