package millrace

import "context"

// Searcher is an optional interface of a [View] that has a full-text index of the passages of
// its pages.
type Searcher interface {
	// Search returns the passages that match a query best, from the pages of the view. The
	// same query to the same view and index returns the same hits in the same order. A text
	// without searchable words has no hits, and is not an error. ErrUnavailable: the index is
	// still being built.
	Search(ctx context.Context, q Query) (*Found, error)
}

// Query is a search query for a [Searcher].
type Query struct {
	// Text is what the user typed: words, "phrases", -excluded, title:word and url:part. Anything
	// without a meaning in this syntax is treated as words. Search uses the first MaxQuery
	// characters and, if there are too many words, the rarest ones. Found.Note reports both.
	Text  string
	Page  string  // only the page with this URL, absolute or an identity; "" = all pages
	Skip  int     // number of best hits to skip
	Limit int     // maximum number of hits; 0 = 10
	Least float64 // minimum relevance
	// PerPage is the maximum number of hits per page. If zero, 3. It is ignored if Page is
	// set.
	PerPage int
}

// MaxQuery is the number of characters of Query.Text that Search uses, in code points.
const MaxQuery = 4000

// Found is the result of a [Query].
type Found struct {
	Hits []Hit // best first
	// Total is the number of hits without Skip and Limit. Search ranks only the best 300
	// passages that contain words of the query, or up to 500 if these result in fewer than
	// ten hits.
	Total int
	// Corrected is the query with its spelling corrected; "" = it was used as it is. A query is
	// corrected only if it finds few passages and the corrected one finds more.
	Corrected string
	// Behind reports that the index is older than the view, and lacks the pages that changed last.
	// Note describes the state of the index.
	Behind bool
	// Note is the reason why the result is incomplete, such as an embedder that does not respond or
	// a query with too many words. It is nil for a complete result.
	Note error
}

// Hit is one passage of a [Found].
type Hit struct {
	URL      string   // of the page, absolute
	Title    string   // of the page
	Chunk    string   // ID of the passage, unique in its page; edits elsewhere do not change it
	Type     string   // type of its content: "paragraph", "list", "code" or "quote"; "heading" if it has nothing else
	Headings []string // headings above its first text, outermost first, without the page's title
	Text     string
	// Snippet is the part of Text that matches best, with "…" for omitted text. Marks are the
	// matched words in it, as pairs of byte offsets.
	Snippet string
	Marks   [][2]int
	// Relevance estimates the chance that the passage answers the query, from 0 to 1, rounded
	// to four decimals. It does not rise from one hit to the next.
	Relevance float64
}
