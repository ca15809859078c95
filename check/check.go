// Package check is the conformance engine: it runs rules against a site and
// reports what it found. It knows no protocol; rooms bring the rules.
package check

import (
	"context"
)

// Level is how strongly a specification wants something.
type Level string

// The levels of RFC 2119 that rules have.
const (
	Must   Level = "MUST"
	Should Level = "SHOULD"
)

// Rule is one sentence of a specification with the function that checks it.
type Rule struct {
	ID       string // protocol, section and a word, such as "tct-01/1.6.2/strong-etag"
	Level    Level
	Section  string // of the specification
	Sentence string // what the specification wants, in our words
	// Check looks at the target and reports what breaks the rule. It returns
	// ErrNotApplicable when the site has nothing that the rule is about, and
	// any other error when it could not look.
	Check func(ctx context.Context, t *Target, fail Fail) error
}

// Fail reports one place that breaks a rule: the URL, what is there and what
// the rule wants instead.
type Fail func(url, got, want string)
