package millrace

import "context"

// Searcher is a [View] with an index of the passages of its pages. It is found
// by assertion.
type Searcher interface {
	// Search finds the passages that answer a question best, among those of
	// the pages that the view shows. The same question to the same view and
	// index gives the same hits in the same order. A text that means nothing
	// finds nothing; it is never an error. ErrUnavailable: the index is still
	// being built.
	Search(ctx context.Context, q Query) (*Found, error)
}

// Query is a question to a [Searcher].
type Query struct {
	// Text is what a person types: words, "phrases", -without, title:word and
	// url:part. What has no meaning in this little language is words. Only the
	// first MaxQuery characters count, and of many words the rarest; Found.Note
	// reports either.
	Text  string
	Page  string  // only in the page with this URL, absolute or an identity; "" = everywhere
	Skip  int     // leave out so many hits, the best ones
	Limit int     // at most so many hits; 0 = 10
	Least float64 // only hits with at least this relevance
	// PerPage is how many hits one page may have; 0 = 3. It does not hold for
	// a Query with a Page.
	PerPage int
}

// MaxQuery is how many characters of a question count, in code points.
const MaxQuery = 4000

// Found is the answer to a [Query].
type Found struct {
	Hits []Hit // best first
	// Total is how many hits there are without Skip and Limit. Of all passages
	// with words of the question, those count that ranking looks at closely:
	// the best four hundred, up to a thousand if these leave less than ten hits.
	Total int
	// Corrected is the question as it was read, when nothing was found for it
	// as it stood and words that are spelled nearly alike were; else "".
	Corrected string
	// Behind reports that the index has not come as far as the view: pages that
	// changed last are not found yet. Note says how far it has come.
	Behind bool
	// Note is why the answer is less than it could be, such as an embedder that
	// does not answer or a question of too many words; else nil.
	Note error
}

// Hit is one passage of a [Found].
type Hit struct {
	URL      string   // of the page, absolute
	Title    string   // of the page
	Chunk    string   // id of the passage, unique in its page; an edit elsewhere leaves it as it is
	Type     string   // of its content: "paragraph", "list", "code" or "quote"; "heading" if it has nothing else
	Headings []string // the path to its first text, the outermost first, without the page's title
	Text     string
	// Snippet is the part of Text that shows best why it was found, with "…"
	// where something is left out; Marks are the matched words in it, as pairs
	// of byte offsets.
	Snippet string
	Marks   [][2]int
	// Relevance is from 0 to 1, with four decimals, and means the same on every
	// site: how much of what the question asks for stands in the passage.
	Relevance float64
}
