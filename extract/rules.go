package extract

import (
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/millrace/millrace"
)

// Rules correct the extraction of all pages of one site. They are immutable and safe for concurrent
// use. A nil *Rules means no rules.
//
// Rules decide what is content, and do not change the other fields of a page. The title, the
// author, the dates and the kind are the same as without rules, even if rules drop the elements
// that show them. The heading of the title is never content, whatever a rule says.
type Rules struct {
	list        []rule // keep rules come first
	selection   selection
	comments    bool
	extras      []extra
	fingerprint string
}

// rule is one selector or one group of selectors, as written.
type rule struct {
	text string
	keep bool
}

// RulesOptions configures [NewRules]. The zero value means no rules.
//
// Selectors are CSS selectors that depend only on an element, its position among its siblings, and
// its ancestors: tags, classes, ids, attributes, the four combinators, the positional
// pseudo-classes, :not, :is and :where with selectors of single elements, and :has with a
// descendant or, after >, a child.
type RulesOptions struct {
	// Keep are CSS selectors of elements that are content wherever they are and whatever they look
	// like, with their whole subtree except scripts, forms and hidden elements.
	Keep []string
	// Drop are CSS selectors of elements that are not content. If two rules conflict, the rule for
	// the inner element takes precedence; for the same element, Keep takes precedence. Dropped
	// elements are also ignored in the search for the content.
	Drop []string
	// Comments keeps readers' comments on pages that are not threads. Comment forms are left out.
	Comments bool
	// Extra computes data of individual protocols from every document, by the name of the protocol
	// in [millrace.Page.Extra].
	Extra map[string]Extra
}

// NewRules compiles rules. Nil options give no rules. If a selector is invalid or not supported,
// the error is [millrace.ErrInvalid] and names the selector. All selectors together may have at
// most 256 combinators.
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

// Fingerprint returns up to 13 letters and digits that identify the rules, or "" for rules that
// change nothing. Rules that give different pages have different fingerprints.
func (r *Rules) Fingerprint() string {
	if r == nil {
		return ""
	}
	return r.fingerprint
}

// Kept is a part of the content that is kept only because of a rule.
type Kept struct {
	Selector string // path to the subtree
	Reason   string // reason, such as "keep .intro" or "comments"
	Words    int    // approximate number of words, without those that would be content without the rule
}
