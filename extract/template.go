package extract

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
)

// Template is what the pages of a site have in common, as [Learner] found it.
// It is plain data, to be kept as JSON.
type Template struct {
	Pages     int        `json:"pages"`          // distinct pages that it was learned from
	Root      string     `json:"root,omitempty"` // selector of the element that holds the content; "" = none in common
	RootPages int        `json:"root_pages"`     // how many of the pages it fits
	Differs   int        `json:"differs"`        // on how many of them the page alone leads to another root
	Repeated  []Repeated `json:"repeated"`       // parts that are no content, though a page alone does not tell
}

// Repeated is a part that comes back from page to page.
type Repeated struct {
	Selector string `json:"selector"` // leads to it on one of the pages
	Text     string `json:"text"`     // how it begins
	Words    int    `json:"words"`
	Pages    int    `json:"pages"` // of those learned from
	Hash     string `json:"hash"`  // of its text
}

// fingerprint is the same for templates that correct the same; "" = nothing.
func (t *Template) fingerprint() string {
	if t == nil || t.Differs == 0 && len(t.Repeated) == 0 {
		return ""
	}
	h := fnv.New64a()
	if t.Differs > 0 {
		fmt.Fprintf(h, "%q", t.Root)
	}
	for _, r := range t.Repeated {
		fmt.Fprintf(h, " %s", r.Hash)
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// Learner finds out what the pages of a site have in common. The zero value is
// ready; it is not safe for concurrent use.
type Learner struct{}

// Add looks at one page, as [HTML] would without a template.
func (l *Learner) Add(ctx context.Context, data []byte, pageURL string, o *Options) error { return nil }

// Template gives what was learned, nil if there were fewer than 10 distinct
// pages.
func (l *Learner) Template() *Template { return nil }
