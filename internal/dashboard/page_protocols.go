package dashboard

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
)

// Off is a protocol that does not publish the site.
type Off struct {
	protocol.Protocol
	Why string // reason, for the owner
}

// protocolsPage is the data about the site's protocols.
type protocolsPage struct {
	Edition   *millrace.Site // the edition's site; nil: no edition yet
	Recorded  bool
	Span      period
	Protocols []*protocolStatus
	Off       []Off
	PublicAt  string
	Checking  bool // a check is running
}

// protocolStatus is the state of one protocol.
type protocolStatus struct {
	protocol.Protocol
	Guarded      bool
	Pages        int // pages that the protocol lists, or 0 if unknown
	Entries      []millrace.Entry
	Files        []edition.Listed // the largest documents and artifacts, at most maxFiles, largest first
	FilesN       int              // number of all large documents and artifacts
	Size         int64            // total size in bytes, without the codings that the server adds
	MinSize      int64            // total size in bytes, in gzip where that is smaller
	Counts       store.Counts     // requests in the period
	NotModified  int64            // requests with a 304
	Check        *checkResult     // nil = not checked
	BeforeReload bool             // checked with the previous configuration
	Old          bool             // checked with an earlier edition
	Since        time.Time        // start of a running check; zero = none
	Broken       []*brokenRule
	NotRun       []check.Outcome
	Absent       string // why the check did not find the protocol. If empty, it did.
}

// MustAsked returns the number of MUST rules with a result.
func (at *protocolStatus) MustAsked() int {
	return at.Check.Result.Must.Pass + at.Check.Result.Must.Fail
}

// ShouldAsked returns the number of SHOULD rules with a result.
func (at *protocolStatus) ShouldAsked() int {
	return at.Check.Result.Should.Pass + at.Check.Result.Should.Fail
}

// brokenRule is a rule of a specification with findings.
type brokenRule struct {
	check.Outcome
	Findings []check.Finding
}

// Kind returns the kind of badge for the rule.
func (b *brokenRule) Kind() string {
	if b.Rule.Level == check.Must {
		return "bad"
	}
	return "warn"
}

const maxFiles = 8

// protocols shows the protocols and the results of their checks.
func (d *Dashboard) protocols(r *http.Request) (*reply, error) {
	p := &protocolsPage{Recorded: d.site.Usage != nil, Span: d.period(r), Off: d.site.Off, PublicAt: d.site.EndpointBase}
	protocols := map[string]*protocolStatus{}
	for _, proto := range d.site.Protocols {
		at := &protocolStatus{Protocol: proto}
		protocols[proto.Name], p.Protocols = at, append(p.Protocols, at)
		at.addResult(d.checks.of(proto.Name))
		at.BeforeReload = at.Check != nil && at.Check.Config != d.config
		p.Checking = p.Checking || !at.Since.IsZero()
	}
	if ed := d.site.Server.Current(); ed != nil {
		site := ed.View.Site()
		p.Edition = &site
		for _, l := range ed.Listing() {
			if at := protocols[l.Protocol]; at != nil {
				at.Files = append(at.Files, l)
				at.FilesN, at.Size, at.MinSize = at.FilesN+1, at.Size+l.Size, at.MinSize+l.MinSize
			}
		}
		for i, n := range ed.Advertisements {
			if i < len(p.Protocols) { // one result per protocol, in order
				p.Protocols[i].Entries = n.Entries
			}
		}
		for _, at := range p.Protocols {
			at.Pages = site.Tagged[at.Name]
			at.Old = at.Check != nil && at.Check.Edition != site.Seq
			slices.SortStableFunc(at.Files, func(a, b edition.Listed) int { return cmp.Compare(b.Size, a.Size) })
			at.Files = at.Files[:min(len(at.Files), maxFiles)]
		}
	}
	if p.Recorded {
		for s, err := range d.site.Usage.Sums(r.Context(), d.site.Name, store.SumQuery{From: p.Span.From, To: p.Span.To, Per: store.Day}) {
			if err != nil {
				return nil, err
			}
			if at := protocols[s.Protocol]; at != nil {
				at.Counts.Events += s.Events
				at.Counts.Bytes += s.Bytes
				if s.Outcome == store.Unmodified {
					at.NotModified += s.Events
				}
			}
		}
	}
	return &reply{Data: p}, nil
}

// addResult adds the result of a check.
func (at *protocolStatus) addResult(is *checkResult, since time.Time) {
	at.Check, at.Since = is, since
	if is == nil || is.Report == nil {
		return
	}
	for _, o := range is.Report.Outcomes {
		switch {
		case !is.Result.Found:
			at.Absent = o.Reason
		case o.State == check.NotRun:
			at.NotRun = append(at.NotRun, o)
		case o.State == check.Failed:
			b := &brokenRule{Outcome: o}
			for _, f := range is.Report.Findings {
				if f.Rule == o.Rule.ID {
					b.Findings = append(b.Findings, f)
				}
			}
			at.Broken = append(at.Broken, b)
		}
	}
	slices.SortStableFunc(at.Broken, func(a, b *brokenRule) int { return cmp.Compare(a.Rule.Level, b.Rule.Level) }) // MUST before SHOULD
}

// Kind returns the kind of badge for the result.
func (at *protocolStatus) Kind() string { kind, _ := at.badge(); return kind }

// Word returns the result in one or two words.
func (at *protocolStatus) Word() string { _, word := at.badge(); return word }

func (at *protocolStatus) badge() (kind, word string) {
	is := at.Check
	switch {
	case is == nil:
		return "", "not checked yet"
	case is.Err != nil:
		return "bad", "could not be checked"
	case !is.Result.Found && len(at.Entries) == 0 && at.FilesN == 0:
		return "", "no documents"
	case !is.Result.Found:
		return "bad", "not found"
	case is.Result.Must.Fail > 0:
		return "bad", plural(is.Result.Must.Fail, "MUST rule", "MUST rules") + " failed"
	case len(at.NotRun) > 0:
		return "warn", "partly checked"
	case is.Unreached != nil:
		return "warn", "conforms inside this server"
	case is.Result.Should.Fail > 0:
		return "good", "conforms, with warnings"
	}
	return "good", "conforms"
}

// checkWait is the time for which a form waits for its check. After that, the form shows the check
// as running.
const checkWait = 10 * time.Second

// check checks one protocol, or all of them.
func (d *Dashboard) check(r *http.Request) (*reply, error) {
	protocols, name := d.site.Protocols, r.PostForm.Get("protocol")
	if name != "" {
		protocols = nil
		for _, proto := range d.site.Protocols {
			if proto.Name == name {
				protocols = []protocol.Protocol{proto}
			}
		}
		if protocols == nil {
			return nil, millrace.ErrNotFound
		}
	}
	timer := time.NewTimer(checkWait)
	defer timer.Stop()
	select {
	case <-d.checks.run(r.Context(), d.config, d.site, protocols):
	case <-timer.C:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	trouble := 0
	for _, proto := range protocols {
		is, since := d.checks.of(proto.Name)
		if !since.IsZero() { // another request may have started it
			return &reply{To: "/protocols", Message: done("The check is running. Reload this page for the result.")}, nil
		}
		if is != nil && (is.Err != nil || is.Result.Must.Fail > 0) {
			trouble++
		}
	}
	if trouble == 0 {
		return &reply{To: "/protocols", Message: done("Checked: every MUST rule passed.")}, nil
	}
	return &reply{To: "/protocols", Message: wrong("Checked: " + plural(trouble, "protocol has", "protocols have") + " findings, see below.")}, nil
}
