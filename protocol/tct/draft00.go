package tct

import (
	"github.com/millrace/millrace"

	"github.com/millrace/millrace/protocol"
)

// name00 is the name of the protocol on the command line, in tags, errors and rule IDs.
const name00 = "tct-00"

// Names of M-URLs (3.3), each in the folder of its page, and of the list (6.1).
const (
	docName00  = "/llm/"
	listName00 = "/llm-sitemap.json"
)

// draft00 contains the values and functions that are specific to draft-00.
var draft00 = &draft{
	Number:        "00",
	Name:          name00,
	Names:         docName00,
	List:          "/llm-sitemap",                           // section 6.1
	PageLink:      millrace.Link{HTML: true, NoField: true}, // section 3.1
	Public:        []string{policyName, manifestName},
	PolicyPath:    policyName, // section 7.3
	SiteDocuments: siteDocuments00,
	MediaType:     contentType,
	CacheControl:  cacheControl,
	Vary:          "Accept, Accept-Encoding", // section 5.4
	Profile:       profileName,
	Members: []member{
		{"profile", profileMember, nil},
		{"canonical_url", requiredMember, docURL},
		{"title", requiredMember, docTitle},
		{"language", textMember, docLanguage},
		{"published", timeMember, docPublished},
		{"modified", timeMember, docModified},
		{"description", textMember, docDescription},
		{"author", textMember, docAuthor},
		{"content", requiredMember, docContent},
		{"hash", hashMember, nil},
		{"structured_data", oneSchemaMember, nil},
	},
	Items:       []string{"cUrl", "mUrl", "modified", "contentHash"},
	Content:     headed,
	Blocks:      unheaded,
	Hash:        func(doc *document, _ func() []byte) string { return fingerprintOf(doc.Content) },
	ListVersion: 1,
	ListHead:    listHead,
	ListTail:    listTail,
	ListBreak:   "\n",
	Holds:       func(d *document, _ []byte, hash string) bool { return isFingerprint(d.Content, hash) },
	PlainHash:   true, // section 8.2

	OneList: true,

	Handshake:       true,
	VersionOptional: true,
	HTMLFirst:       true, // section 3.1
	Own:             isOwn00,
	TagMember:       "contentHash",
	Rules:           rules00,
	RuleNames: ruleNames{
		Items:          "6.1/items",
		Parity:         "6.1/parity",
		Object:         "8.2/object",
		CanonicalURL:   "8.2/canonical-url",
		Alternate:      "3.1/alternate-element",
		CanonicalLink:  "3.2/canonical-link",
		ContentType:    "8.1/content-type",
		StrongETag:     "4.2/strong-etag",
		HashEqualsETag: "8.2/hash-equals-etag",
		Hash:           "4.1/fingerprint",
		NotModified:    "5.2/not-modified",
	},
}

// Draft00 returns the description of draft-00.
func Draft00() protocol.Protocol { return draft00.Protocol() }
