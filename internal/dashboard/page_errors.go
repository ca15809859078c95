package dashboard

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/store"
)

// errorsPage is the data about skipped pages and failed requests.
type errorsPage struct {
	Scan *SourceScan // nil: no scan yet

	Reasons []skipReason
	Reason  string // reason by which the list is filtered. If empty, the list is complete.
	Skipped []mirror.Skip
	Part    int // part of the list, from 1
	Parts   int

	Recorded bool
	Span     period
	Outcomes []outcomeCount
	Missing  []store.TopItem
	Failures []store.Event // newest first

	Lags []analytics.Lag // backlogs of the analytics services
}

// skipReason is a reason and the number of pages skipped for it.
type skipReason struct {
	Reason  string
	Pages   int
	Example string // URL of a skipped page
}

// outcomeCount is the number of requests with an outcome.
type outcomeCount struct {
	Outcome  store.Outcome
	Words    string
	Kind     string // kind of badge
	Requests int64
	Of       int64 // number of requests with any outcome
}

// Before returns the number of the previous part.
func (p *errorsPage) Before() int { return p.Part - 1 }

// After returns the number of the next part.
func (p *errorsPage) After() int { return p.Part + 1 }

const (
	skipsPerPart = 100
	maxReasons   = 50
	maxMissing   = 50
	maxFailures  = 30
)

// outcomes are the outcomes of requests with their meaning, in display order.
var outcomes = []outcomeCount{
	{Outcome: store.Sent, Words: "Document sent", Kind: "good"},
	{Outcome: store.Unmodified, Words: "Not modified (304)", Kind: "good"},
	{Outcome: store.Missing, Words: "Not found (404, 410)", Kind: "warn"},
	{Outcome: store.Refused, Words: "Refused by a rule, a limit or a missing key (401, 402, 403, 429)"},
	{Outcome: store.Invalid, Words: "Invalid request (other 4xx)", Kind: "warn"},
	{Outcome: store.Failed, Words: "Server error or interrupted response (5xx)", Kind: "bad"},
}

// errors shows skipped pages and failed requests.
func (d *Dashboard) errors(r *http.Request) (*reply, error) {
	p := &errorsPage{Recorded: d.site.Usage != nil, Span: d.period(r), Reason: r.URL.Query().Get("reason")}
	if d.site.LastScan != nil {
		var err error
		if p.Scan, err = d.site.LastScan(r.Context()); err != nil {
			return nil, err
		}
	}
	if p.Scan != nil {
		if err := p.skips(r.URL.Query().Get("part")); err != nil {
			return nil, err
		}
	}
	if d.site.Lags != nil {
		p.Lags = d.site.Lags(r.Context())
	}
	if p.Recorded {
		return &reply{Data: p}, p.requests(r, d)
	}
	return &reply{Data: p}, nil
}

// skips adds the skipped pages of the last scan.
func (p *errorsPage) skips(part string) error {
	reasons := map[string]*skipReason{}
	var listed []mirror.Skip
	for _, s := range p.Scan.Skipped {
		why := skippedFor(s)
		if reasons[why] == nil {
			reasons[why] = &skipReason{Reason: why, Example: s.URL}
		}
		reasons[why].Pages++
		if p.Reason == "" || p.Reason == why {
			listed = append(listed, s)
		}
	}
	for _, why := range reasons {
		p.Reasons = append(p.Reasons, *why)
	}
	slices.SortFunc(p.Reasons, func(a, b skipReason) int {
		return cmp.Or(cmp.Compare(b.Pages, a.Pages), cmp.Compare(a.Reason, b.Reason))
	})
	p.Reasons = p.Reasons[:min(len(p.Reasons), maxReasons)]
	p.Part, p.Parts = 1, max(1, (len(listed)+skipsPerPart-1)/skipsPerPart)
	if part != "" {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return fmt.Errorf("%w: unknown part %q of the list", millrace.ErrInvalid, printable(cut(20, part)))
		}
		p.Part = min(n, p.Parts)
	}
	start := (p.Part - 1) * skipsPerPart
	p.Skipped = listed[min(start, len(listed)):min(start+skipsPerPart, len(listed))]
	return nil
}

// requests adds the numbers of requests by outcome, the missing paths, and the last failed
// requests.
func (p *errorsPage) requests(r *http.Request, d *Dashboard) error {
	s := d.site
	ctx, all, by := r.Context(), int64(0), map[store.Outcome]int64{}
	for sum, err := range s.Usage.Sums(ctx, s.Name, store.SumQuery{From: p.Span.From, To: p.Span.To, Per: store.Day}) {
		if err != nil {
			return err
		}
		by[sum.Outcome] += sum.Events
		all += sum.Events
	}
	for _, o := range outcomes {
		o.Requests, o.Of = by[o.Outcome], all
		p.Outcomes = append(p.Outcomes, o)
	}
	var err error
	if p.Missing, err = s.Usage.Top(ctx, s.Name, store.TopMissing, p.Span.From, p.Span.To, maxMissing); err != nil {
		return err
	}
	bad := []store.Outcome{store.Failed, store.Invalid}
	p.Failures, err = d.latest(ctx, p.Span, store.EventQuery{Outcomes: bad, Limit: maxFailures},
		func(s *store.Sum) bool { return slices.Contains(bad, s.Outcome) })
	return err
}

// skippedFor returns the reason for a skip with the page's name replaced by an ellipsis, so that the
// caller can group equal reasons.
func skippedFor(s mirror.Skip) string {
	why := s.Reason
	names := []string{s.URL}
	if _, rest, ok := strings.Cut(s.URL, "://"); ok {
		if _, path, ok := strings.Cut(rest, "/"); ok {
			names = append(names, "/"+path, path)
		}
	} else {
		names = append(names, strings.TrimPrefix(s.URL, "/"))
	}
	for _, name := range names {
		if len(name) > 1 {
			why = strings.ReplaceAll(why, name, "…")
		}
	}
	return printable(cut(200, why))
}
