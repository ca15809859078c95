// Package search implements full-text search, except for storage. It extracts terms from texts,
// parses questions, collects and ranks candidates, and renders snippets. Another package stores
// the index and provides it as an [Index], which [Run] uses to answer questions. The package does
// no I/O, except for the client of an embedder.
//
// # Terms
//
// An [Analyzer] extracts terms from a text. It finds the words, normalizes Unicode and case, stems
// the words in the language of the text, and removes accents. For example, "haus" finds "Häuser",
// and "cafe" finds "café". A question finds a name such as max_connections as a whole and by its
// parts. In scripts without spaces, pairs of letters are the terms. Stop words are marked but kept,
// because phrases need them.
//
// Terms consist of letters, digits and marks. Joined by spaces, they are suitable for any
// full-text index that splits at ASCII characters other than letters and digits. [Format] is the
// version of the analysis. An index with another version must be rebuilt.
//
// # Questions
//
// [Parse] parses what a user types: words, "phrases", -without, title: and url:. It returns no
// errors, and treats other syntax as words. A question without a letter or digit finds nothing.
//
// Run first searches for passages with every word except stop words. If these are few, it adds
// passages with some of the words. Conditions on fields always apply. Phrases and exclusions are
// conditions if at least one passage meets all of them and contains every word. Otherwise a phrase
// counts like a word, and an exclusion halves the score, because whole sentences also contain
// quotation marks and dashes.
//
// On a site with several languages, Run searches for the stems of a word in each language. If the
// site contains a whole name, such as max_connections, Run treats it as an additional word. A
// single Chinese character also finds the pairs that start with it. Words such as "please" and
// "find" are omitted, unless the question has no other words. If few passages are found, Run
// replaces words that the site does not contain with words of similar spelling. If that finds
// more, the result contains the corrected question.
//
// # Order
//
// The share of the question that a passage contains is a number from 0 to 1:
//
//	lexical   = Σ w·f/(f+k) / Σ w     over the words of the question
//	k         = 1.2·(0.25 + 0.75·length/average length)
//	w         = times in the question · ln(1 + (N-n+0.5)/(n+0.5))
//
// N is the number of passages of the site, and n is the number that contain the word. f is the
// number of occurrences of the word in the passage. An occurrence in the title counts three times,
// and one in a heading twice, in f and in the length. This is BM25F divided by its maximum. Without
// vectors, hits are sorted by this share. With vectors, they are sorted by
//
//	score = lexical / max lexical + 0.8·length/(length+10) · cosine / max cosine
//
// The maxima are those of the candidates. The cosine is that of the passage and the question. After
// a first ranking, it is computed again with the weighted sum of the vectors of the question and
// the five best passages. With an [Embedder], the weight of the cosine is 1 for every length. Hits
// with equal scores are sorted by URL, then by their order in the page.
//
// # Relevance
//
// A hit's relevance estimates the chance that the passage is relevant, from 0 to 1 with four
// decimals. It is computed from two numbers: lexical of the best passage, or a third of its cosine
// if that is more, and the ratio of the hit's score to the score of that passage. The chances were
// measured on three public collections of questions.
//
// # Vectors
//
// [Fit] learns a [Model] from the texts of a site: words in similar passages get similar directions
// (latent semantic analysis). The same texts always produce the same model. An [Embedder] uses an
// external model over the API that most model servers have.
//
// # Output
//
// [Analyzer.Snippet] returns the part of a passage with the most terms, and marks them.
// [Fingerprint] and [Near] detect near-duplicate passages, of which Run returns one.
package search
