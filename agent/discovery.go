package agent

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/discover"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
)

// Discovery describes the ways into a site and its rules. Its JSON form is the output of
// `millrace discover --json`.
type Discovery struct {
	Site    string          `json:"site"`
	Moved   string          `json:"moved,omitempty"` // URL to which the root redirects, if that is another site
	Ways    []DiscoveredWay `json:"ways"`            // ways to read the site
	Absent  []string        `json:"absent"`          // protocols that the site does not have
	First   string          `json:"first"`           // way of a first pull, or ""
	Refresh string          `json:"refresh"`         // way of a later pull, or ""
	// Inconclusive is the limit that ended a part of the probe; absent if no limit did.
	Inconclusive string             `json:"inconclusive,omitempty"`
	Plan         *discover.Plan     `json:"plan"`           // planned routes and their cost
	Purpose      millrace.Purpose   `json:"purpose"`        // intended use of the content
	Policies     []DiscoveredPolicy `json:"policies"`       // documents about the use of the content
	Licenses     []discover.License `json:"licenses"`       // license documents
	Robots       DiscoveredRobots   `json:"robots"`         // rules of robots.txt
	Requests     int64              `json:"requests"`       // number of requests of the probe
	Received     int64              `json:"bytes_received"` // bytes received, with header fields
	Seconds      float64            `json:"seconds"`
}

// DiscoveredWay describes one way into a site. If the way offers nothing, its figures are 0
// and its Pages is -1.
type DiscoveredWay struct {
	Protocol        string `json:"protocol"`
	Entry           string `json:"entry"`            // URL of the first document
	Pages           int    `json:"pages"`            // number of pages; -1 if unknown
	Carries         string `json:"carries"`          // "blocks", "text" or "summaries"; "" if the way offers nothing
	WithoutContent  int    `json:"without_content"`  // pages that the way lists without content
	Deletes         bool   `json:"deletes"`          // a refresh reports deleted pages
	FirstRequests   int64  `json:"first_requests"`   // requests of a first pull
	FirstBytes      int64  `json:"first_bytes"`      // bytes of a first pull
	RefreshRequests int64  `json:"refresh_requests"` // requests of a later pull
	RefreshBytes    int64  `json:"refresh_bytes"`    // bytes of a later pull
	Allowed         bool   `json:"allowed"`          // whether the policy and robots.txt allow the way
	Reason          string `json:"reason"`           // why the way is not allowed or cannot be used; "" if it can be used
	Code            string `json:"code,omitempty"`   // error code of the reason
	Basis           string `json:"basis,omitempty"`  // basis of estimated figures; absent if all figures were counted
	SendsChanges    bool   `json:"sends_changes"`    // a client that has an earlier version of the entry document receives only its changes (RFC 9842)
}

// DiscoveredPolicy describes the rules of one document on the use of the content.
type DiscoveredPolicy struct {
	Document string                    `json:"document"` // URL of the document
	Purposes map[millrace.Purpose]bool `json:"purposes"` // whether each purpose is allowed
	*Policy
}

// DiscoveredRobots describes the robots.txt of a site.
type DiscoveredRobots struct {
	RootAllowed bool                       `json:"root_allowed"`   // whether robots.txt allows the root
	Rule        string                     `json:"rule,omitempty"` // rule that disallows the root
	CrawlDelay  float64                    `json:"crawl_delay"`    // crawl delay in seconds
	Statements  []discover.RobotsStatement `json:"statements"`     // lines about the use of the content
}

// NewDiscovery describes a probed site. First and Refresh are the ways that a pull would choose; a
// pull may probe less of the site.
func NewDiscovery(site *discover.SiteReport, purpose millrace.Purpose) *Discovery {
	plan := site.Plan(nil)
	if short := site.Short(all.Protocols()); short != nil {
		will := short.Plan(nil)
		will.First.Why += "; pull stops probing here, because more probes would cost more than another way saves"
		plan.First, plan.Refresh = will.First, will.Refresh
	}
	r := &Discovery{
		Site: site.URL, Moved: site.Moved, Ways: []DiscoveredWay{}, Absent: append([]string{}, site.Absent...), Plan: plan,
		Inconclusive: site.Inconclusive, First: plan.First.Primary, Refresh: plan.Refresh.Primary, Purpose: purpose,
		Policies: []DiscoveredPolicy{}, Licenses: append([]discover.License{}, site.Licenses...),
		Robots: DiscoveredRobots{
			RootAllowed: site.Robots.RootRule == "", Rule: site.Robots.RootRule, CrawlDelay: site.Robots.Delay.Seconds(),
			Statements: append([]discover.RobotsStatement{}, site.Robots.Statements...),
		},
	}
	for _, w := range site.Ways {
		row := DiscoveredWay{Protocol: w.Protocol, Pages: -1, Allowed: w.Allowed, Reason: w.Reason, Code: w.Code, SendsChanges: w.SendsChanges}
		if o := w.Offer; o != nil {
			row.Entry, row.Pages, row.Carries, row.WithoutContent = o.Entry, o.Pages, carriesText(o.Detail), o.WithoutContent
			row.Deletes, row.Basis = o.Deletes, o.Basis
		}
		for _, q := range plan.Quotes {
			if q.Protocol == w.Protocol {
				row.FirstRequests, row.FirstBytes = q.First.Requests, q.First.Bytes
				row.RefreshRequests, row.RefreshBytes = q.Refresh.Requests, q.Refresh.Bytes
			}
		}
		r.Ways = append(r.Ways, row)
	}
	for _, t := range site.Terms {
		r.Policies = append(r.Policies, DiscoveredPolicy{t.URL, t.Policy.Purposes, PolicyOf([]protocol.Terms{t})})
	}
	return r
}

// carriesText names the detail of the content that a way provides: "blocks", "text" or "summaries".
func carriesText(d millrace.Detail) string {
	switch d {
	case millrace.DetailBlocks:
		return "blocks"
	case millrace.DetailText:
		return "text"
	}
	return "summaries"
}

// WriteText writes the discovery as text for people.
func (r *Discovery) WriteText(w io.Writer) error {
	b := new(bytes.Buffer)
	fmt.Fprintf(b, "%s: probed with %s, %s received, %.1f s\n", r.Site, humanize.Quantity(r.Requests, "request"), humanize.Bytes(r.Received), r.Seconds)
	if r.Moved != "" {
		fmt.Fprintf(b, "the root redirects to another site; probe that site, too: %s\n", r.Moved)
	}
	b.WriteByte('\n')
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = io.WriteString(t, "PROTOCOL\tPAGES\tCARRIES\tFIRST SYNC\tREFRESH\tALLOWED\n")
	var entries, notes, basis, changes []string
	printed := map[string]bool{}
	for _, row := range r.Ways {
		name, pages, bound, first, again, allowed := all.Label(row.Protocol), "?", "", "-", "-", "yes"
		if row.Pages >= 0 {
			pages = fmt.Sprint(row.Pages)
		}
		if row.Carries != "" {
			if row.Protocol == discover.Web && row.Pages < 0 {
				bound = "at least "
			}
			first = fmt.Sprintf("%s%d req., %s", bound, row.FirstRequests, humanize.Bytes(row.FirstBytes))
			again = fmt.Sprintf("%s%d req., %s", bound, row.RefreshRequests, humanize.Bytes(row.RefreshBytes))
			entries = append(entries, name+" begins at "+row.Entry)
		} else {
			pages, row.Carries = "-", "-"
		}
		if !row.Allowed {
			allowed = "no"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", name, pages, row.Carries, first, again, allowed)
		if row.Reason != "" && !printed[row.Reason] && r.First != "" {
			printed[row.Reason] = true
			notes = append(notes, name+": "+row.Reason)
		}
		if row.WithoutContent > 0 && row.Carries != "summaries" {
			notes = append(notes, fmt.Sprintf("%s: %d pages without content", name, row.WithoutContent))
		}
		if row.SendsChanges {
			changes = append(changes, name)
		}
		if row.Basis != "" {
			basis = append(basis, name+" from "+row.Basis)
		}
	}
	_ = t.Flush()
	if len(r.Absent) > 0 {
		absent := make([]string, len(r.Absent))
		for i, name := range r.Absent {
			absent[i] = all.Label(name)
		}
		fmt.Fprintf(b, "absent: %s\n", strings.Join(absent, ", "))
	}
	for _, n := range append(entries, notes...) {
		b.WriteString(canon.OneLine(n) + "\n")
	}
	if len(changes) > 0 {
		b.WriteString(canon.OneLine("sent as changes to clients that have an earlier version (RFC 9842): "+strings.Join(changes, ", ")) + "\n")
	}
	if len(basis) > 0 {
		b.WriteString(canon.OneLine("estimates: "+strings.Join(basis, "; ")) + "\n")
	}
	b.WriteByte('\n')
	for _, line := range r.rules() {
		b.WriteString(canon.OneLine(line) + "\n")
	}
	for _, route := range []struct {
		name string
		discover.Route
	}{{"first", r.Plan.First}, {"refresh", r.Plan.Refresh}} {
		if route.Primary == "" {
			fmt.Fprintf(b, "%s\n", canon.OneLine(route.Why))
			break
		}
		fmt.Fprintf(b, "%s: pull would read %s: %s\n", route.name, all.Label(route.Primary), canon.OneLine(route.Why))
	}
	if r.Inconclusive != "" {
		fmt.Fprintf(b, "inconclusive: %s; other ways may exist\n", r.Inconclusive)
	}
	_, err := b.WriteTo(w)
	return err
}

// rules returns lines of text about the site's rules for its content.
func (r *Discovery) rules() (lines []string) {
	for _, d := range r.Policies {
		var statements []string
		for _, purpose := range slices.Sorted(maps.Keys(d.Purposes)) {
			statements = append(statements, fmt.Sprintf("%s %s", purpose, map[bool]string{true: "yes", false: "no"}[d.Purposes[purpose]]))
		}
		statements = append(statements, d.Requirements...)
		if d.PerSecond > 0 {
			statements = append(statements, fmt.Sprintf("%g requests per second", d.PerSecond))
		}
		if d.PerDay > 0 {
			statements = append(statements, fmt.Sprintf("%d requests per day", d.PerDay))
		}
		if d.Retention > 0 {
			statements = append(statements, "copies for "+retentionText(d.Retention))
		}
		if d.Terms != "" {
			statements = append(statements, "terms "+d.Terms)
		}
		lines = append(lines, fmt.Sprintf("policy %s: %s", d.Document, strings.Join(statements, ", ")))
	}
	for _, l := range r.Licenses {
		lines = append(lines, fmt.Sprintf("license %s (%s)", l.URL, l.From))
	}
	robots := "robots.txt: "
	if r.Robots.RootAllowed {
		robots += "the root is allowed"
	} else {
		robots += "the root is disallowed, " + r.Robots.Rule
	}
	if r.Robots.CrawlDelay > 0 {
		robots += fmt.Sprintf(", %g s between requests", r.Robots.CrawlDelay)
	}
	lines = append(lines, robots)
	for _, s := range r.Robots.Statements {
		lines = append(lines, fmt.Sprintf("robots.txt line %d: %s: %s", s.Line, s.Name, s.Value))
	}
	return lines
}
