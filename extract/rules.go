package extract

import (
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/andybalholm/cascadia"

	"github.com/millrace/millrace"
)

// Rules correct the extraction of all pages of one site. They never change, and
// are safe for concurrent use. nil is none.
type Rules struct {
	keep, drop  []rule
	comments    bool
	template    *Template
	fingerprint string
}

// rule is one selector, as it was written.
type rule struct {
	text string
	cascadia.Sel
}

// RulesOptions are what [NewRules] makes rules of. The zero value gives none.
type RulesOptions struct {
	// Keep are CSS selectors of elements that are content wherever they stand
	// and whatever they look like.
	Keep []string
	// Drop are CSS selectors of elements that are no content. Of two rules, the
	// one of the inner element counts; of the same element, Keep.
	Drop []string
	// Comments keeps the comments of readers on pages that are no threads.
	Comments bool
	// Template is what was learned of the site; nil = nothing.
	Template *Template
}

// NewRules compiles rules. The error is [millrace.ErrInvalid], and names the
// selector that is none.
func NewRules(o *RulesOptions) (*Rules, error) {
	r := &Rules{comments: o.Comments, template: o.Template}
	for _, list := range []struct {
		name string
		from []string
		to   *[]rule
	}{{"keep", o.Keep, &r.keep}, {"drop", o.Drop, &r.drop}} {
		for _, text := range list.from {
			group, err := cascadia.ParseGroup(text)
			if err != nil {
				return nil, fmt.Errorf("extract: %w: %s %q is no CSS selector: %w", millrace.ErrInvalid, list.name, text, err)
			}
			for _, sel := range group {
				*list.to = append(*list.to, rule{text, sel})
			}
		}
	}
	if len(o.Keep)+len(o.Drop) > 0 || o.Comments || o.Template.fingerprint() != "" {
		h := fnv.New64a()
		fmt.Fprintf(h, "%q %q %t %s", o.Keep, o.Drop, o.Comments, o.Template.fingerprint())
		r.fingerprint = strconv.FormatUint(h.Sum64(), 36)
	}
	return r, nil
}

// Fingerprint is the same for rules that give the same pages: up to 13 letters
// and digits, or "" for rules that change nothing.
func (r *Rules) Fingerprint() string {
	if r == nil {
		return ""
	}
	return r.fingerprint
}
