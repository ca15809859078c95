package tct

import (
	"regexp"

	"github.com/millrace/millrace"
)

// draftError is the error for a list or document of another draft.
type draftError struct{ Draft string } // for example "draft-03". If empty, draft-00, draft-01 or none.

// Error returns a text that names the draft.
func (e *draftError) Error() string {
	if e.Draft == "" {
		return "not of this draft of TCT"
	}
	return "uses " + e.Draft + " of TCT"
}

// ErrorCode returns "other-draft".
func (e *draftError) ErrorCode() string { return "other-draft" }

// lastDraft is the latest draft that this package reads and publishes.
const lastDraft = "03"

// profileOf matches the draft in a profile of draft-03 and later, which is a URI.
var profileOf = regexp.MustCompile(`draft-jurkovikj-collab-tunnel-(\d\d)\b`)

// numberOf returns the number of the draft for the profile and the version (as JSON) of a list. For
// draft-00, draft-01 and unknown drafts, it returns "". Lists of draft-02 have the profile of the
// earlier drafts, and the version 2.
func numberOf(profile, version string) string {
	if m := profileOf.FindStringSubmatch(profile); m != nil && m[1] > "01" {
		return m[1]
	}
	if profile == profileName && version == "2" {
		return "02"
	}
	return ""
}

// ofList returns the draft of a list: d, or another draft that the reader of d accepts. The error
// is a [*millrace.FormatError] with a [*draftError].
func (d *draft) ofList(profile, version string) (*draft, error) {
	n := numberOf(profile, version)
	for _, its := range []*draft{d, d.Also} {
		if its != nil && (n == its.Number || n == "" && its.ListVersion == 1) {
			return its, nil
		}
	}
	return nil, otherDraft(n)
}

// ofDocument is like [draft.ofList], for documents, which have no version.
func (d *draft) ofDocument(profile string) (*draft, error) {
	n := numberOf(profile, "")
	for _, its := range []*draft{d, d.Also} {
		if its != nil && (n == its.Number || n == "" && its.Profile == profileName) {
			return its, nil
		}
	}
	return nil, otherDraft(n)
}

func otherDraft(number string) error {
	if number != "" {
		number = "draft-" + number
	}
	return &millrace.FormatError{Err: &draftError{number}}
}
