package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/bots"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/replica"
	"github.com/millrace/millrace/store"
)

// overviewPage shows the owner which bots read the site, the costs and savings, and the
// problems to fix.
type overviewPage struct {
	Answer    string // what bots cost and save, in one or two sentences
	Tiles     []tile
	Chart     *chart
	Visitors  []visitor // bots with the most requests
	NVisitors int
	Pages     []pageRow // pages with the most requests
	Most      int64     // number of requests of the first visitor
	Notices   []notice  // problems to fix
	Scan      *SourceScan
	Counts    *edition.PageCounts
	Edition   *editionState
	Replicas  []replica.Process // nil if there is only one
	Rows      int               // number of published protocols
	Silent    bool              // requests are not recorded
	NoBots    bool              // no bot has sent a request
}

// visitor is a bot that reads the site.
type visitor struct {
	*group
	Purpose string // purpose of its requests
	Effect  string // consequence for the owner
	Kind    string // kind of badge for Effect
	Trend   string // number of requests compared with the week before
}

// editionState is the state of the current edition.
type editionState struct {
	Seq   uint64
	Time  time.Time
	Pages int
	// Lag is the time from the oldest change in the last edition to the publication of that
	// edition. It is zero if this process has published no edition. Waiting is the age of the
	// oldest unpublished change, or zero if none is known.
	Lag, Waiting time.Duration
	// Changes is the number of responses of this process that were coded against an earlier
	// version, and Saved is the number of bytes that this saved.
	Changes, Saved int64
}

// notice is a problem that needs attention.
type notice struct {
	Kind string // warn or bad
	Word string
	Text string
	To   string // link, or ""
	Link string // text of the link
}

const (
	overviewDays = 30 // number of days in the chart
	overviewWeek = 7  // number of days of the other figures
	overviewBots = 8  // number of machines with the most requests
	overviewTop  = 5  // number of pages with the most requests
)

func (d *Dashboard) overview(r *http.Request) (*reply, error) {
	ctx := r.Context()
	p := &overviewPage{Rows: len(d.site.Protocols), Silent: d.site.Usage == nil}
	if d.site.LastScan != nil {
		var err error
		if p.Scan, err = d.site.LastScan(ctx); err != nil {
			return nil, err
		}
	}
	p.Edition = d.edition()
	if d.site.Replicas != nil {
		all, err := d.site.Replicas(ctx)
		if err != nil {
			return nil, err
		}
		if len(all) > 1 {
			p.Replicas = all
		}
	}
	if err := d.pageCounts(ctx, p); err != nil {
		return nil, err
	}
	if !p.Silent {
		if err := d.overviewFigures(ctx, p); err != nil {
			return nil, err
		}
		if err := d.overviewPages(ctx, p); err != nil {
			return nil, err
		}
	}
	if err := p.notice(ctx, d); err != nil {
		return nil, err
	}
	return &reply{Data: p}, nil
}

// pageCounts adds the numbers of pages of the current edition.
func (d *Dashboard) pageCounts(ctx context.Context, p *overviewPage) error {
	if p.Edition == nil {
		return nil
	}
	c, err := edition.CountPages(ctx, d.site.Pages, d.site.Server.Current().View.Site())
	p.Counts = &c
	return err
}

// overviewPages adds the pages with the most requests.
func (d *Dashboard) overviewPages(ctx context.Context, p *overviewPage) error {
	if p.Edition == nil {
		return nil
	}
	now := d.now()
	top, err := d.site.Usage.Top(ctx, d.site.Name, store.TopPages, now.AddDate(0, 0, -overviewWeek), now, overviewTop)
	if err != nil {
		if errors.Is(err, millrace.ErrNotFound) {
			return nil
		}
		return err
	}
	v := d.site.Server.Current().View
	for _, item := range top {
		row := pageRow{Path: item.Name, Read: item.Events}
		switch page, err := v.Page(ctx, millrace.Ref{URL: item.Name}); {
		case errors.Is(err, millrace.ErrNotFound):
			if row.Gone, err = d.gone(ctx, v, item.Name); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			row.Title, row.Published = page.Title, true
		}
		p.Pages = append(p.Pages, row)
	}
	return nil
}

// edition returns the state of the edition, or nil before the first one.
func (d *Dashboard) edition() *editionState {
	if d.site.Server == nil {
		return nil
	}
	ed := d.site.Server.Current()
	if ed == nil {
		return nil
	}
	s := ed.View.Site()
	last, waiting := d.site.Server.Lag()
	changes, saved := d.site.Server.SentAsChanges()
	return &editionState{s.Seq, s.Time, s.Pages, last, waiting, changes, saved}
}

func (d *Dashboard) overviewFigures(ctx context.Context, p *overviewPage) error {
	tomorrow := midnight(d.now()).AddDate(0, 0, 1)
	first := tomorrow.AddDate(0, 0, -overviewWeek)
	week, err := d.count(ctx, question{From: tomorrow.AddDate(0, 0, -overviewDays), Since: first, To: tomorrow, Per: store.Day})
	if err != nil {
		return err
	}
	p.Chart = week.chart(fmt.Sprintf("Requests from bots per day, at most the last %d days", overviewDays), "count", week.series(), 1, d.label)
	p.NoBots = len(week.cells) == 0
	t := &week.Total
	verified := 0
	for _, g := range week.Bots {
		if g.Verified > 0 {
			verified++
		}
	}
	bots := tile{Label: "Bots", Figure: count(len(week.Bots))}
	if verified > 0 {
		bots.Note = fmt.Sprintf("%d with verified identity", verified)
	}
	p.Tiles = []tile{
		bots,
		{Label: "Requests", Figure: count(t.Events), Note: against(t.Events, t.Before)},
		{Label: "Not modified", Figure: percent(t.Unmodified, t.Answered()), Note: "needed no new copy"},
		{Label: "Sent", Figure: size(t.Bytes), Note: "as transferred"},
	}
	if s := t.Saved; s != nil {
		saved := tile{Label: "Saved", Figure: size(s.Bytes.Saved), Note: "compared with HTML"}
		if s.Bytes.Saved < 0 {
			saved.Label, saved.Figure = "Extra cost", size(-s.Bytes.Saved)
		} else if s.Bytes.Saved > 0 {
			saved.Kind = "good"
		}
		p.Answer = strings.ReplaceAll(answerOf(t), " %", "\u00a0%")
		p.Tiles = append(p.Tiles, saved, tile{Label: "Tokens saved", Figure: short(s.Tokens.Saved), Note: "an estimate"})
	}
	if t.Failed > 0 {
		p.Notices = append(p.Notices, notice{"bad", "Failed", plural(t.Failed, "request has", "requests have") + " failed in the last 7 days.", "/errors#failed", "See the failed requests"})
	}
	if t.Forged > 0 {
		p.Notices = append(p.Notices, notice{"warn", "Forged", plural(t.Forged, "request came", "requests came") + " with a forged bot name in the last 7 days.", "/unusual", "See which bots"})
	}
	p.NVisitors = len(week.Bots)
	despite := 0
	for _, g := range week.Bots {
		v := d.visitor(g)
		if v.Effect == despitePolicy {
			despite++
		}
		if len(p.Visitors) < overviewBots {
			p.Visitors = append(p.Visitors, v)
		}
	}
	if despite > 0 {
		p.Notices = append(p.Notices, notice{"warn", "Policy", plural(despite, "bot reads", "bots read") + " the site for a purpose that your policy refuses.", "/policy#bots", "Refuse or limit them"})
	}
	if len(p.Visitors) > 0 {
		p.Most = p.Visitors[0].Events
	}
	return nil
}

// answerOf describes what the requests of bots cost and save.
func answerOf(t *group) string {
	s := t.Saved
	html := int64(s.Bytes.Instead)
	switch {
	case s.Bytes.Instead <= 0:
		return ""
	case s.Bytes.Saved >= 0:
		return fmt.Sprintf("In the last 7 days, bots fetched %s for content that is %s as HTML. That saves %s of the traffic.",
			size(s.Bytes.Instead-s.Bytes.Saved), size(html), percent(s.Bytes.Saved, html))
	}
	text := fmt.Sprintf("In the last 7 days, bots fetched %s for content that is %s as HTML. The first visit of a bot costs most, because it fetches lists and every page. If it fetches them again without conditional requests, that costs as much each time.",
		size(s.Bytes.Instead-s.Bytes.Saved), size(html))
	if requests := s.NotModified + s.Pages + s.Carried; requests > 0 && html/requests > 0 {
		page := html / requests
		text += fmt.Sprintf(" A conditional request for an unchanged page saves about %s. After %s, the savings exceed the cost.", size(page), plural(int64(-s.Bytes.Saved)/page+1, "such request", "such requests"))
	}
	return text
}

// despitePolicy is the Effect shown for a bot that received content for a purpose that the
// policy refuses. No rule refuses this bot.
const despitePolicy = "reads despite your policy"

// visitor describes a bot for the owner.
func (d *Dashboard) visitor(g *group) visitor {
	v := visitor{group: g, Purpose: "unknown", Effect: "purpose unknown", Trend: trend(g.Events, g.Before)}
	var bot *bots.Bot
	if d.site.Access != nil && d.site.Access.Bots != nil {
		bot = d.site.Access.Bots.Identify(g.Name)
	}
	if bot == nil {
		bot = bots.Other
	}
	switch {
	case bot.People:
		v.Purpose, v.Effect, v.Kind = "shows pages to people", "brings readers", "good"
	case bot.Purpose == bots.Search:
		v.Purpose, v.Effect, v.Kind = "search engine", "brings visitors", "good"
	case bot.Purpose == bots.User:
		v.Purpose, v.Effect, v.Kind = "answers a person's question", "uses your pages in answers", "good"
	case bot.Purpose == bots.Training:
		v.Purpose, v.Effect = "trains AI models", "brings no visitors"
	}
	if use := bot.Of(); use != "" && d.site.Policy.Refuses(use) && !d.site.Policy.Approves(bot.Token) && g.Lately > 0 && !d.site.Access.refuses(bot) {
		v.Effect, v.Kind = despitePolicy, "bad"
	}
	if g.Forged > 0 && g.Forged == g.Events {
		v.Purpose, v.Effect, v.Kind = "unknown", "uses a forged name", "bad"
	}
	return v
}

// notice adds the problems to fix to the page, worst first.
func (p *overviewPage) notice(ctx context.Context, d *Dashboard) error {
	add := func(kind, word, text, to, link string) {
		p.Notices = append(p.Notices, notice{kind, word, text, to, link})
	}
	if p.Edition == nil {
		add("bad", "Nothing published", "Bots get nothing until the first scan of the source is complete.", "/errors", "See the scan")
	}
	if l := p.Scan; l != nil {
		if l.Err != nil {
			add("bad", "Source", "The last scan of the source failed. Stored pages stay published.", "/errors", "See the error")
		}
		if l.SkippedN > 0 {
			add("warn", "Skipped", "The last scan skipped "+plural(l.SkippedN, "page", "pages")+" of the source.", "/errors", "See the reasons")
		}
	}
	inside := false
	for _, proto := range d.site.Protocols {
		at := &protocolStatus{Protocol: proto}
		at.addResult(d.checks.of(proto.Name))
		if at.Check == nil {
			continue
		}
		inside = inside || at.Check.Unreached != nil
		if at.Kind() == "bad" {
			add("bad", proto.Label, "Result of the check: "+at.Word()+".", "/protocols#"+proto.Name, "See the findings")
		}
	}
	if inside {
		add("warn", "Not reached", "The server could not check its public address "+d.site.EndpointBase+".", "/protocols", "See the reason")
	}
	if !p.Silent {
		week := d.now().AddDate(0, 0, -overviewWeek)
		missing, err := d.site.Usage.Top(ctx, d.site.Name, store.TopMissing, week, d.now(), 1)
		if err != nil && !errors.Is(err, millrace.ErrNotFound) {
			return err
		}
		if len(missing) > 0 && missing[0].Events >= missingNotice {
			add("warn", "Not found", plural(missing[0].Events, "request", "requests")+" for "+readable(100, missing[0].Name)+", which does not exist.", "/errors#missing", "See all such paths")
		}
	}
	if d.site.Policy == nil {
		add("", "No policy", "Bots find no terms of use.", "/policy#edit", "Set a policy")
	}
	if d.site.Dropped != nil {
		if n := d.site.Dropped(); n > 0 {
			add("warn", "Not counted", plural(n, "request", "requests")+" could not be recorded since the server started, so the figures are too low.", "/errors", "See errors")
		}
	}
	slices.SortStableFunc(p.Notices, func(a, b notice) int { return cmp.Compare(badness(b.Kind), badness(a.Kind)) })
	return nil
}

// missingNotice is the number of requests for one missing path that makes it worth a notice.
const missingNotice = 10

func badness(kind string) int { return slices.Index([]string{"", "warn", "bad"}, kind) }

// midnight returns the start of a day in UTC.
func midnight(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// against compares a number with that of the previous week.
func against(now, before int64) string {
	switch t := trend(now, before); {
	case before == 0:
		return "none the week before"
	case now == before:
		return "same as the week before"
	case now >= 10*before:
		return t + " the week before"
	default:
		return t + " on the week before"
	}
}

// trend compares a number with that of the previous week, in one or two words.
func trend(now, before int64) string {
	switch {
	case before == 0:
		return "new"
	case now == before:
		return "same"
	case now >= 10*before:
		return count(now/before) + " times"
	case now > before:
		return "+" + percent(now-before, before)
	}
	return "−" + percent(before-now, before)
}

// short formats a large number with about three digits: 12.3 M.
func short(n float64) string {
	sign := ""
	if n < 0 {
		sign, n = "−", -n
	}
	unit := 0
	for n >= 9999.5 && unit == 0 || n >= 999.5 && unit > 0 && unit < 4 {
		n, unit = n/1000, unit+1
	}
	if unit == 0 {
		return sign + count(n)
	}
	form := "%.0f"
	if n < 99.95 {
		form = "%.1f"
	}
	return sign + fmt.Sprintf(form, n) + " " + []string{"", "k", "M", "G", "T"}[unit]
}

// energyOf formats kilowatt-hours.
func energyOf(kwh float64) string {
	sign := ""
	if kwh < 0 {
		sign, kwh = "−", -kwh
	}
	switch {
	case kwh == 0:
		return "0 Wh"
	case kwh < 0.0001:
		return "about 0 Wh"
	case kwh < 1:
		return sign + fmt.Sprintf("%.1f Wh", 1000*kwh)
	}
	return sign + fmt.Sprintf("%.1f kWh", kwh)
}
