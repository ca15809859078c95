// Package check is the conformance engine. It runs the rules of specifications against a site and
// reports violations. It has no rules of its own: protocols define the rules, which access the site
// through a [Target].
//
//	t, err := check.NewTarget("https://example.com/", client, nil)
//	report, err := check.Run(ctx, t, []check.Suite{{Name: "tct-01", Rules: tct.Draft01().Rules()}}, nil)
//	json.NewEncoder(os.Stdout).Encode(report) // or report.WriteText(os.Stdout)
//	failed := report.Failed()                 // a MUST rule is violated
//
// Rules run one after the other and share responses, so that a site receives few requests,
// always in the same order.
package check

import "context"

// Level is the requirement level of a rule.
type Level string

// The levels of RFC 2119 that rules have. Must includes MUST NOT, REQUIRED and SHALL; Should
// includes SHOULD NOT and RECOMMENDED.
const (
	Must   Level = "MUST"
	Should Level = "SHOULD"
)

// Rule is one requirement of a specification, with the function that checks it.
type Rule struct {
	ID       string // protocol, section and a word, such as "tct-01/1.6.2/strong-etag"
	Level    Level
	Section  string // section of the specification
	Sentence string // the requirement in one sentence
	Fix      string // how to fix a violation. If empty, make the sentence true.
	// Check checks the target and reports violations. It returns [ErrNotApplicable] if the rule
	// applies to nothing on the site, [ErrAbsent] if the site does not have the protocol, and
	// another error if it could not check.
	Check func(ctx context.Context, t *Target, fail Fail) error
}

// Fail reports one violation of a rule: the URL, what was found, and what the rule requires.
type Fail func(url, got, want string)

// Suite holds the rules of one protocol, in the order in which they run. The rule that detects
// whether the site has the protocol comes first.
type Suite struct {
	Name  string // name of the protocol, such as "tct-01"
	Label string // display name of the protocol, such as "TCT 01"; if empty, Name
	// Scored adds a score to the result: the percentage of the checked rules that have no
	// violation.
	Scored bool
	Rules  []Rule
}

// Errors of a rule that has nothing to check.
var (
	ErrNotApplicable = error(&reason{"not-applicable", "the rule applies to nothing on the site"})
	ErrAbsent        = error(&reason{"protocol-absent", "the site does not have the protocol"})
)

// VersionError is the [ErrAbsent] for a site with a version of the protocol that the rules do not
// cover.
type VersionError struct{ Version string }

// Error returns a text that names the version.
func (e *VersionError) Error() string {
	return "the site has " + e.Version + ", which these rules do not cover"
}

// Unwrap returns [ErrAbsent].
func (e *VersionError) Unwrap() error { return ErrAbsent }

// Errors of a request without a usable response, although the network works. Rules return them
// unchanged.
var (
	ErrLimit = error(&reason{"check-limit", "a limit of the check was reached"}) // see TargetOptions
	ErrBusy  = error(&reason{"site-busy", "the site asks to slow down"})         // status 429 or 503
	ErrDown  = error(&reason{"site-down", "server error"})                       // status 500 or above
)

// ErrPanic is the error of a rule that panicked.
var ErrPanic = error(&reason{"panic", "panic"})

// reason is an error with a code for millrace.ErrorCode.
type reason struct{ code, text string }

func (r *reason) Error() string     { return r.text }
func (r *reason) ErrorCode() string { return r.code }
