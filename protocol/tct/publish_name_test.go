package tct

import (
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// For any set of pages, each page has a unique name, no name is the path of a page, and the
// store's view of rivals is symmetric.
func FuzzNames(f *testing.F) {
	f.Add("/post\n/post/\n/post/llm.json\n/post/llm.json/llm.json")
	f.Add("/post\n/post/\n/post/llm/\n/post/llm//llm/")
	f.Add("/~2\n/~2/\n/\n/~~2/\nhttps://2/\nhttp://2/")
	f.Add("/a//\n/a/\n/a\n/a?b\n/a/?b\n/a/llm.json?b")
	canonical := func(url string) string { // of both drafts
		if d := draft01.Document(millrace.Site{}, &millrace.Page{URL: url}); d != nil {
			return d.CanonicalURL
		}
		return ""
	}
	f.Fuzz(func(t *testing.T, urls string) {
		protocoltest.Names(t, Draft00(), draft00.Names, canonical, urls)
		protocoltest.Names(t, Draft01(), draft01.Names, canonical, urls)
		protocoltest.Names(t, Draft03(), draft03.Names, canonical, urls)
	})
}
