package extract

import (
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/millrace/millrace"
)

// Rules correct the extraction of all pages of one site. They never change, and
// are safe for concurrent use. nil is none.
//
// They decide what is content, not what the other fields of a page are: the
// title, the author and the dates stay what they are without rules, also if the
// elements that show them are dropped, and so does the kind. The heading that
// is the title is no content, whatever a rule says.
type Rules struct {
	list        []rule // those that keep come first
	selection   selection
	comments    bool
	extras      []extra
	fingerprint string
}

// rule is one selector, as it was written, or a group of them.
type rule struct {
	text string
	keep bool
}

// RulesOptions are what [NewRules] makes rules of. The zero value gives none.
//
// Selectors are those of CSS, so far as an element alone, its place among its
// siblings and what it stands in tell whether they match: tags, classes, ids,
// attributes, the four combinators, :not, :is and :where of one element each,
// the pseudo-classes of places, and :has of a descendant or, after >, a child.
type RulesOptions struct {
	// Keep are CSS selectors of elements that are content wherever they stand
	// and whatever they look like, with all that they hold, but for scripts,
	// forms, and what is hidden inside.
	Keep []string
	// Drop are CSS selectors of elements that are no content. Of two rules, the
	// one of the inner element counts; of the same element, Keep. What is
	// dropped does not count either where the content is looked for.
	Drop []string
	// Comments keeps the comments of readers on pages that are no threads. The
	// form to write one is left out.
	Comments bool
	// Extra is what is made of every document for single protocols, by the name
	// that a protocol has in [millrace.Page.Extra].
	Extra map[string]Extra
}

// NewRules compiles rules. nil options give none. The error is
// [millrace.ErrInvalid], and names the selector that is none, or is not
// supported. All selectors together may have 256 combinators.
func NewRules(o *RulesOptions) (*Rules, error) {
	if o == nil {
		o = &RulesOptions{}
	}
	r := &Rules{comments: o.Comments, extras: extras(o.Extra)}
	for i, text := range append(o.Keep[:len(o.Keep):len(o.Keep)], o.Drop...) {
		ru := rule{text: text, keep: i < len(o.Keep)}
		if err := r.selection.add(text, i); err != nil {
			name := "drop"
			if ru.keep {
				name = "keep"
			}
			return nil, millrace.Coded("bad-selector", fmt.Errorf("extract: %w: %s %.200q is not a supported CSS selector: %w", millrace.ErrInvalid, name, text, err))
		}
		r.list = append(r.list, ru)
	}
	if len(o.Keep)+len(o.Drop) > 0 || o.Comments || len(r.extras) > 0 {
		h := fnv.New64a()
		fmt.Fprintf(h, "%q %q %t", o.Keep, o.Drop, o.Comments)
		for _, e := range r.extras {
			if e.Make == nil {
				return nil, fmt.Errorf("extract: %w: the extra for %q: %w", millrace.ErrInvalid, e.proto, errNoMake)
			}
			fmt.Fprintf(h, " %q %d", e.proto, e.Version)
		}
		r.fingerprint = strconv.FormatUint(h.Sum64(), 36)
	}
	return r, nil
}

// CheckSelector returns an error if a selector of [RulesOptions] is invalid.
func CheckSelector(selector string) error {
	var s selection
	return s.add(selector, 0)
}

// Fingerprint is the same for rules that give the same pages: up to 13 letters
// and digits, or "" for rules that change nothing.
func (r *Rules) Fingerprint() string {
	if r == nil {
		return ""
	}
	return r.fingerprint
}

// Kept is a part of the content that only a rule has kept.
type Kept struct {
	Selector string // leads to it
	Reason   string // such as "keep .intro", "comments"
	Words    int    // how many words it has beside those that are content without it, about
}
