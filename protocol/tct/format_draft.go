package tct

import (
	"regexp"

	"github.com/millrace/millrace"
)

// draftError is the error of a list or document of another draft than those that
// are read here.
type draftError struct{ Draft string } // such as "draft-03"

// Error says which draft it is.
func (e *draftError) Error() string { return "it is of " + e.Draft + " of TCT, which is not supported" }

// ErrorCode returns "other-draft".
func (e *draftError) ErrorCode() string { return "other-draft" }

// profileOf finds the draft in a profile of draft-03 and later, which is a URI.
var profileOf = regexp.MustCompile(`draft-jurkovikj-collab-tunnel-(\d\d)\b`)

// otherDraft returns the later draft that a profile and the version of a list, as
// JSON, are of: "" for draft-00, draft-01 and what is of no draft. Draft-02 has the
// profile of those before it in lists of version 2.
func otherDraft(profile, version string) string {
	if m := profileOf.FindStringSubmatch(profile); m != nil && m[1] > "01" {
		return "draft-" + m[1]
	}
	if profile == "tct-1" && version == "2" {
		return "draft-02"
	}
	return ""
}

// checkDraft returns a [*millrace.FormatError] with a [*DraftError] for a later draft.
func checkDraft(profile, version string) error {
	if d := otherDraft(profile, version); d != "" {
		return &millrace.FormatError{Err: &draftError{d}}
	}
	return nil
}
