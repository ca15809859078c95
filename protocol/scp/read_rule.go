package scp

import (
	"errors"

	"github.com/millrace/millrace"
)

// ruled is an error with the checker rule that its cause violates. The rule ID is without the
// protocol name.
type ruled struct {
	rule string
	err  error
}

func (e *ruled) Error() string { return e.err.Error() }
func (e *ruled) Unwrap() error { return e.err }

// ErrorCode returns the rule ID, in the format of notes.
func (e *ruled) ErrorCode() string { return Name + "/" + e.rule }

// Notes of the reader that belong to no checker rule.
const (
	noteRefused = "reader/refused"                // a limit or an option of this reader refused it
	noteReplay  = "reader/replay"                 // older than the applied collection
	noteHost    = "reader/collection-host"        // a new host serves collections
	noteChanged = "reader/changed-between-ranges" // a download restarts
	noteMissed  = "reader/missed-deltas"          // a gap between deltas without a snapshot
	noteSection = "reader/section-missing"        // the options name a missing section
)

var errHost = millrace.Coded("other-host", errors.New("host is not allowed"))

// ruleOf returns the rule for an error that refuses a file.
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
