package millrace

import "context"

// Searcher is an optional interface of a [View] that has a full-text index of the passages of
// its pages.
type Searcher interface {
	// Search returns the passages of the view's pages that match a query best. The same query to
	// the same view and index returns the same hits in the same order. A text without searchable
	// words has no hits, and is not an error. If the index is still being built, Search returns
	// ErrUnavailable.
	Search(ctx context.Context, q Query) (*Found, error)
}

// Query is a search query for a [Searcher].
type Query struct {
	// Text is the user's query: words, "phrases", -excluded, title:word and url:part. Anything
	// that is not valid in this syntax is treated as words. Search uses the first MaxQuery
	// characters and, if there are too many words, the rarest ones. If Search ignores part of the
	// text, Found.Note says so.
	Text         string
	Page         string  // restricts the search to the page with this URL, absolute or an identity. If empty, all pages.
	Skip         int     // number of best hits to skip
	Limit        int     // maximum number of hits. If zero, 10.
	MinRelevance float64 // minimum Relevance of a hit
	// PerPage is the maximum number of hits per page. If zero, 3. If Page is set, PerPage is
	// ignored.
	PerPage int
}

// MaxQuery is the maximum number of characters (code points) of Query.Text that Search uses.
const MaxQuery = 4000

// Found is the result of a [Query].
type Found struct {
	Hits []Hit // hits, best first
	// Total is the number of hits regardless of Skip and Limit. Search ranks only the best 300
	// passages that contain words of the query, or up to 500 if 300 give fewer than ten hits.
	Total int
	// Corrected is the query with corrected spelling. If empty, the query was used unchanged. A
	// query is corrected only if it finds few passages and the corrected query finds more.
	Corrected string
	// Stale reports whether the index is older than the view, so that the latest changes are
	// missing. If so, Note describes the state of the index.
	Stale bool
	// Note is the reason why the result is incomplete, such as an embedder that does not respond or
	// a query with too many words. It is nil for a complete result.
	Note error
}

// Hit is one passage of a [Found].
type Hit struct {
	URL      string   // absolute URL of the page
	Title    string   // title of the page
	Chunk    string   // ID of the passage, unique in its page; edits of other passages do not change it
	Type     string   // type of the content: "paragraph", "list", "code" or "quote"; "heading" if there is nothing else
	Headings []string // headings above the start of the passage, outermost first, without the page's title
	Text     string
	// Snippet is the part of Text that matches best, with "…" for omitted text. Marks are the
	// matched words in Snippet, as pairs of byte offsets.
	Snippet string
	Marks   [][2]int
	// Relevance is the estimated probability that the passage answers the query, from 0 to 1,
	// rounded to four decimals. It never rises from one hit to the next.
	Relevance float64
}
