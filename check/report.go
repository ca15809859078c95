package check

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Report is the result of [Run]. Its JSON, which omits the outcomes, is the report that the
// millrace command writes.
type Report struct {
	Site      string             `json:"site"`
	Protocols map[string]*Result `json:"protocols"` // results by the name of the protocol
	Findings  []Finding          `json:"findings"`  // violations of rules
	// Inconclusive is the limit that ended a part of the check, or "".
	Inconclusive string    `json:"inconclusive,omitempty"`
	Outcomes     []Outcome `json:"-"` // one for each rule, in order
}

// Result counts the rules of one protocol. Each rule counts once, however many violations it has.
type Result struct {
	Label         string `json:"label"`             // display name of the protocol
	Found         bool   `json:"found"`             // whether the site has the protocol
	Version       string `json:"version,omitempty"` // version of the protocol on the site, if the rules do not cover it
	Score         *int   `json:"score,omitempty"`   // percentage of the checked rules that have no violation; absent unless the suite is a profile
	Must          Count  `json:"must"`              // MUST rules
	Should        Count  `json:"should"`            // SHOULD rules
	NotApplicable int    `json:"not_applicable"`    // rules that apply to nothing on the site
	NotRun        int    `json:"not_run"`           // rules that could not run
}

// Count counts the rules of one level.
type Count struct {
	Pass int `json:"pass"` // number of rules without a violation
	Fail int `json:"fail"` // number of rules with violations
}

// Finding is one violation of a rule.
type Finding struct {
	Rule     string `json:"rule"` // ID of the rule
	Protocol string `json:"protocol"`
	Level    Level  `json:"level"`         // MUST or SHOULD
	Section  string `json:"section"`       // section of the specification
	URL      string `json:"url"`           // URL of the violation; "" in the finding that counts the remaining violations
	Got      string `json:"got"`           // what was found
	Want     string `json:"want"`          // what the rule requires
	Fix      string `json:"fix,omitempty"` // instructions for a correction; absent if want contains them
}

// State is the result of one rule.
type State string

// The states of a rule after a run.
const (
	Passed        State = "pass"
	Failed        State = "fail"
	NotApplicable State = "not applicable" // the rule applies to nothing on the site
	NotRun        State = "not run"        // the rule could not be checked
)

// Outcome is the result of one rule with its reason.
type Outcome struct {
	Protocol string
	Rule     Rule
	State    State
	Failures int    // violations, including those without a finding
	Reason   string // why the rule did not apply or could not run, or what stopped it after a violation
	Err      error  // the error that Reason describes
}

// Failed reports whether a MUST rule is violated. The exit code of the command is then 1.
func (r *Report) Failed() bool {
	for _, p := range r.Protocols {
		if p.Must.Fail > 0 {
			return true
		}
	}
	return false
}

func (r *Result) count(o Outcome) {
	r.Found = r.Found || o.State != NotRun
	level := &r.Must
	if o.Rule.Level == Should {
		level = &r.Should
	}
	switch o.State {
	case Passed:
		level.Pass++
	case Failed:
		level.Fail++
	case NotApplicable:
		r.NotApplicable++
	case NotRun:
		r.NotRun++
	}
}

// WriteText writes the report for people: one line per protocol, then the violations by rule, those
// of MUST rules first, then the rules that could not run.
func (r *Report) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, r.Site)
	names := r.names()
	width := 0
	for _, name := range names {
		width = max(width, len(r.Protocols[name].Label))
	}
	for _, name := range names {
		p := r.Protocols[name]
		if !p.Found {
			fmt.Fprintf(b, "  %-*s  %s\n", width, p.Label, r.whyNot(name))
			continue
		}
		score := ""
		if p.Score != nil {
			score = fmt.Sprintf("score %d of 100, ", *p.Score)
		}
		fmt.Fprintf(b, "  %-*s  %sMUST %d of %d passed, SHOULD %d of %d passed, %d not applicable, %d not run\n", width, p.Label, score,
			p.Must.Pass, p.Must.Pass+p.Must.Fail, p.Should.Pass, p.Should.Pass+p.Should.Fail, p.NotApplicable, p.NotRun)
	}
	for _, level := range []Level{Must, Should} {
		for _, o := range r.Outcomes {
			if o.State == Failed && o.Rule.Level == level {
				r.writeRule(b, o)
			}
		}
	}
	r.writeNotRun(b)
	if r.Inconclusive != "" {
		fmt.Fprintf(b, "\ninconclusive: %s\n", r.Inconclusive)
	}
	return b.Flush()
}

func (r *Report) writeRule(b *bufio.Writer, o Outcome) {
	fmt.Fprintf(b, "\n%s  %s\n", o.Rule.Level, o.Rule.ID)
	fmt.Fprintf(b, "  rule  section %s: %s\n", o.Rule.Section, o.Rule.Sentence)
	for _, f := range r.Findings {
		switch {
		case f.Rule != o.Rule.ID || f.Protocol != o.Protocol:
		case f.URL == "":
			fmt.Fprintf(b, "  and   %s\n", f.Got)
		default:
			fmt.Fprintf(b, "  at    %s\n  got   %s\n  want  %s\n", f.URL, f.Got, f.Want)
		}
	}
	if o.Rule.Fix != "" {
		fmt.Fprintf(b, "  fix   %s\n", o.Rule.Fix)
	}
	if o.Reason != "" {
		fmt.Fprintf(b, "  then  the rule stopped: %s\n", o.Reason)
	}
}

func (r *Report) writeNotRun(b *bufio.Writer) {
	head := "\nnot run\n"
	for _, o := range r.Outcomes {
		if o.State == NotRun && r.Protocols[o.Protocol].Found {
			fmt.Fprintf(b, "%s  %s: %s\n", head, o.Rule.ID, o.Reason)
			head = ""
		}
	}
}

// names returns the protocols in the order in which they ran.
func (r *Report) names() []string {
	var names []string
	for _, o := range r.Outcomes {
		if !slices.Contains(names, o.Protocol) {
			names = append(names, o.Protocol)
		}
	}
	return names
}

// whyNot says why a protocol was not found: a limit made the check inconclusive, the protocol is
// absent, or no rule could run.
func (r *Report) whyNot(name string) string {
	for _, o := range r.Outcomes {
		switch {
		case o.Protocol != name:
		case errors.Is(o.Err, ErrLimit):
			return "inconclusive: " + o.Reason
		default:
			return "not found: " + o.Reason
		}
	}
	return "not found"
}
