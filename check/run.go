package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// RunOptions configures [Run]. The zero value is valid.
type RunOptions struct {
	MaxFindings int           // maximum number of findings per rule, plus one finding that counts the rest. If zero, 20.
	MaxTime     time.Duration // time limit of the whole check. If zero, 10 minutes.
}

// Run runs the rules of every suite, in order, and returns the report. It fails if the site is
// unreachable or responds with status 429 or 5xx, or if the context ends. All other errors are part
// of the report. If a limit of time, requests or bytes is reached, the report is inconclusive.
func Run(ctx context.Context, t *Target, suites []Suite, o *RunOptions) (*Report, error) {
	if o == nil {
		o = new(RunOptions)
	}
	outer := ctx
	most := cmp.Or(o.MaxTime, 10*time.Minute)
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("%w: it takes longer than %s", ErrLimit, most))
	defer cancel()
	resp, err := t.Get(ctx, t.Site())
	switch {
	case err != nil:
		return nil, err // the error names the URL
	case resp.Status >= 500:
		// A 5xx response is not evidence about the documents of a working site.
		return nil, fmt.Errorf("check %s: the site responds with status %d: %w; try again later", t.Site(), resp.Status, ErrDown)
	}
	r := &Report{Site: t.Site(), Protocols: make(map[string]*Result, len(suites)), Findings: []Finding{}}
	for _, s := range suites {
		r.run(ctx, t, s, cmp.Or(o.MaxFindings, 20))
		if outer.Err() != nil {
			return nil, fmt.Errorf("check %s: %w", t.Site(), context.Cause(outer))
		}
	}
	if ctx.Err() != nil {
		t.over = cmp.Or(t.over, context.Cause(ctx))
	}
	if t.over != nil {
		r.Inconclusive = t.over.Error()
	}
	return r, nil
}

func (r *Report) run(ctx context.Context, t *Target, s Suite, maxFindings int) {
	outcomes := make([]Outcome, 0, len(s.Rules))
	var findings []Finding
	for _, rule := range s.Rules {
		found := collector{suite: s.Name, rule: rule, max: maxFindings}
		err := context.Cause(ctx)
		if err == nil {
			err = guarded(ctx, t, rule, found.fail)
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if errors.Is(err, ErrAbsent) {
			// If the protocol is absent, the results of earlier rules are discarded.
			outcomes, findings = outcomes[:0], nil
			for _, rule := range s.Rules {
				outcomes = append(outcomes, Outcome{Protocol: s.Name, Rule: rule, State: NotRun, Reason: clean(err.Error(), 300), Err: err})
			}
			break
		}
		out := Outcome{Protocol: s.Name, Rule: rule, Failures: found.count, Err: err}
		out.State, out.Reason = state(found.count, err)
		outcomes = append(outcomes, out)
		findings = append(findings, found.findings()...)
	}
	result := &Result{Label: cmp.Or(s.Label, s.Name)}
	if len(outcomes) > 0 {
		if other, ok := errors.AsType[*VersionError](outcomes[0].Err); ok {
			result.Version = other.Version
		}
	}
	for _, out := range outcomes {
		result.count(out)
	}
	if n := result.Must.Pass + result.Must.Fail + result.Should.Pass + result.Should.Fail; s.Scored && n > 0 {
		score := (100*(result.Must.Pass+result.Should.Pass) + n/2) / n
		result.Score = &score
	}
	r.Protocols[s.Name] = result
	r.Findings = append(r.Findings, findings...)
	r.Outcomes = append(r.Outcomes, outcomes...)
}

// guarded runs one rule. If the rule panics, guarded returns an error.
func guarded(ctx context.Context, t *Target, rule Rule, fail Fail) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrPanic, p)
		}
	}()
	return rule.Check(ctx, t, fail)
}

// state returns the result of a rule. If a rule reported a violation and then returned an error,
// the violation counts.
func state(failures int, err error) (State, string) {
	reason := ""
	if err != nil {
		reason = clean(err.Error(), 300)
	}
	switch {
	case failures > 0:
		return Failed, reason
	case err == nil:
		return Passed, ""
	case errors.Is(err, ErrNotApplicable):
		return NotApplicable, reason
	}
	return NotRun, reason
}

// collector collects the violations of one rule.
type collector struct {
	suite  string
	rule   Rule
	max    int
	listed []Finding
	count  int
}

func (c *collector) fail(url, got, want string) {
	c.count++
	if len(c.listed) < c.max {
		c.listed = append(c.listed, c.finding(clean(url, 8000), clean(got, 300), clean(want, 300)))
	}
}

func (c *collector) finding(url, got, want string) Finding {
	return Finding{
		Rule: c.rule.ID, Protocol: c.suite, Level: c.rule.Level, Section: c.rule.Section,
		URL: url, Got: got, Want: want, Fix: c.rule.Fix,
	}
}

func (c *collector) findings() []Finding {
	if rest := c.count - len(c.listed); rest > 0 {
		return append(c.listed, c.finding("", fmt.Sprintf("%d more like these", rest), c.rule.Sentence))
	}
	return c.listed
}

// clean cuts a received text to most characters and makes it one printable line.
func clean(s string, most int) string {
	out := make([]rune, 0, min(len(s), most))
	for _, r := range s {
		if len(out) == most {
			return string(append(out, '…'))
		}
		if r < ' ' || r >= 0x7F && r < 0xA0 {
			r = '\uFFFD'
		}
		out = append(out, r)
	}
	return string(out)
}
