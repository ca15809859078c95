package scp

import (
	"errors"

	"github.com/millrace/millrace"
)

// ruled is an error with the ID of the checker rule that its cause violates, without the protocol
// name.
type ruled struct {
	rule string
	err  error
}

func (e *ruled) Error() string { return e.err.Error() }
func (e *ruled) Unwrap() error { return e.err }

// ErrorCode returns the rule ID, in the format of notes.
func (e *ruled) ErrorCode() string { return Name + "/" + e.rule }

// Rule IDs of notes that belong to no checker rule.
const (
	noteRefused = "reader/refused"                // a limit or an option of this reader rejected the collection
	noteReplay  = "reader/replay"                 // the collection is older than the applied one
	noteHost    = "reader/collection-host"        // a new host serves collections
	noteChanged = "reader/changed-between-ranges" // a download was restarted
	noteMissed  = "reader/missed-deltas"          // there is a gap between deltas, and no snapshot fills it
	noteSection = "reader/section-missing"        // the options name a missing section
)

var errHost = millrace.Coded("other-host", errors.New("host is not allowed"))

// ruleOf returns the rule for an error that rejects a file.
func ruleOf(err error) string {
	if e, ok := errors.AsType[*ruled](err); ok {
		return e.rule
	}
	if errors.Is(err, errHost) {
		return noteRefused
	}
	for _, away := range []error{millrace.ErrNotFound, millrace.ErrForbidden, millrace.ErrUnavailable} {
		if errors.Is(err, away) {
			return "download/get"
		}
	}
	return noteRefused
}
