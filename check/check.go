// Package check is the conformance engine: it runs the rules of specifications
// against a site and reports what breaks them. It knows no protocol; protocols
// bring the rules, and a [Target] through which they look at the site.
//
//	t, err := check.NewTarget("https://example.com/", client, nil)
//	report, err := check.Run(ctx, t, []check.Suite{{Name: "tct-01", Rules: tct.Draft01().Rules()}}, nil)
//	json.NewEncoder(os.Stdout).Encode(report) // or report.WriteText(os.Stdout)
//	failed := report.Failed()                 // a MUST is broken
//
// Rules run one after the other, and a request that was sent once is not sent
// again, so that a site sees few requests, in one order, every time.
package check

import "context"

// Level is how strongly a specification wants something.
type Level string

// The levels of RFC 2119 that rules have. MUST NOT, REQUIRED and SHALL are
// Must; SHOULD NOT and RECOMMENDED are Should.
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
	// [ErrNotApplicable] when the site has nothing that the rule is about,
	// [ErrAbsent] when the site does not have the protocol at all, and any
	// other error when it could not look.
	Check func(ctx context.Context, t *Target, fail Fail) error
}

// Fail reports one place that breaks a rule: the URL, what is there and what
// the rule wants instead.
type Fail func(url, got, want string)

// Suite is the rules of one protocol, in the order in which they run. A rule
// that tells whether the site has the protocol comes first.
type Suite struct {
	Name  string // of the protocol, such as "tct-01"
	Label string // of the protocol for people, such as "TCT 01"; "" = Name
	Rules []Rule
}

// What a rule returns when there is nothing to check.
var (
	ErrNotApplicable = error(&reason{"not-applicable", "the site has nothing that the rule is about"})
	ErrAbsent        = error(&reason{"protocol-absent", "the site does not have the protocol"})
)

// VersionError is an [ErrAbsent] of a site that has another version of the protocol
// than the rules are about.
type VersionError struct{ Version string }

// Error names the version.
func (e *VersionError) Error() string {
	return "the site has " + e.Version + ", which these rules do not judge"
}

// Unwrap returns [ErrAbsent].
func (e *VersionError) Unwrap() error { return ErrAbsent }

// Why a request has no answer to judge, although the network is well. A rule
// hands them on.
var (
	ErrLimit = error(&reason{"check-limit", "a limit of the check is reached"}) // see TargetOptions
	ErrBusy  = error(&reason{"site-busy", "the site asks to slow down"})        // it answered 429 or 503
	ErrDown  = error(&reason{"site-down", "the site is out of order"})          // it answered 500 or above
)

// ErrPanic is why a rule that panicked did not run.
var ErrPanic = error(&reason{"panic", "panic"})

// reason is an error with a code, as millrace.ErrorCode has codes.
type reason struct{ code, text string }

func (r *reason) Error() string     { return r.text }
func (r *reason) ErrorCode() string { return r.code }
