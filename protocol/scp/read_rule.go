package scp

import (
	"errors"

	"github.com/millrace/millrace"
)

// ruled is an error with the rule that its cause breaks, by the id that the
// checker has for it, without the protocol.
type ruled struct {
	rule string
	err  error
}

func (e *ruled) Error() string { return e.err.Error() }
func (e *ruled) Unwrap() error { return e.err }

// ErrorCode returns the ID of the rule, as notes have it.
func (e *ruled) ErrorCode() string { return Name + "/" + e.rule }

// What the reader has to say that no rule of the checker is about.
const (
	noteRefused = "reader/refused"                // for a reason that is ours: a limit, an option
	noteReplay  = "reader/replay"                 // it is older than what was applied
	noteHost    = "reader/collection-host"        // collections come from a host that is new
	noteChanged = "reader/changed-between-ranges" // a download starts over
	noteMissed  = "reader/missed-deltas"          // and there is no snapshot in their place
	noteSection = "reader/section-missing"        // that the options name
)

var errHost = millrace.Coded("other-host", errors.New("the host is not one that is allowed"))

// ruleOf gives the rule for which something was refused.
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
