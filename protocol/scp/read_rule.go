package scp

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/jsonio"
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

// breaks gives the rule that a line breaks by what is fatal about it.
func (i issue) breaks(number int64, line []byte) string {
	switch {
	case i.rule != "":
		return i.rule
	case i.section == sectionLimits:
		return noteRefused // the specification has no number for depth and time
	case i.section == metaSectionName || i.section == sectionVersion:
		name := i.member
		if name == "" {
			pointer := jsonio.Pointer(line, i.at)
			name = pointer[strings.LastIndexByte(pointer, '/')+1:]
		}
		switch name {
		case "id", "section", "type", "generated", "since", "version":
			return "metadata/" + name
		case "checksum":
			return "checksum/form"
		}
		return "format/first-line"
	case !utf8.Valid(line) || bytes.HasPrefix(line, []byte("\uFEFF")):
		return "format/json-lines"
	case number == 1:
		return "format/first-line"
	case i.member != "":
		return "page/required"
	}
	return "format/json-lines"
}

// skips gives the rule for which a page is skipped.
func (i issue) skips(line []byte) string {
	if i.section == sectionLimits {
		return "limits/blocks"
	}
	at := strings.Split(jsonio.Pointer(line, i.at)+"////", "/")
	switch name, member := at[1], at[3]; {
	case name != "content":
		return "page/" + name
	case i.rule == "":
		return "page/content"
	case hasRule(member):
		return "blocks/" + member
	}
	return i.rule
}
