package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/store"
)

// Tabs of a page.
const (
	asForms = ""      // the page in every protocol
	asHTML  = "html"  // the original and the extracted content
	asRules = "rules" // a trial of extraction rules
)

// onePage is one page of the site.
type onePage struct {
	Page           *millrace.Page
	Path           string
	URL            string // its public URL
	As             string
	HasHTML        bool // the source has HTML
	Words          int
	HTMLSize       millrace.HTMLSize
	LatestRequests []store.Event // the last requests for the page
	Slow           bool          // the search for requests timed out

	Forms  []*form
	Shown  *form     // the selected form
	Source *original // original HTML
	Rules  *ruleForm
}

// original is the HTML of a page with the extracted content.
type original struct {
	Text    string
	Size    int
	Cut     bool
	Err     string // reason why Result is nil. If empty, Result is set.
	Result  *extract.Result
	Content string // extracted content as Markdown
	Fields  []foundField
	Dropped []droppedPart
	Drop    string // the Drop selectors in use, one per line
}

// foundField is a field of a page with its origin in the HTML.
type foundField struct{ Name, Value, From string }

// droppedPart is a part of the HTML that was dropped.
type droppedPart struct {
	extract.Dropped
	Keep string // Keep selectors that would keep this part, one per line. If empty, no selector can.
}

// page shows one page: its fields, and one tab.
func (d *Dashboard) page(r *http.Request) (*reply, error) {
	q := r.URL.Query()
	v, p, err := d.about(r.Context(), q.Get("url"))
	if err != nil {
		return nil, err
	}
	switch as := q.Get("as"); as {
	case asHTML:
		p.As, p.Source = as, d.source(r.Context(), p.Page)
	case asRules:
		p.As = as
		err = d.rules(r.Context(), v, p, q.Has("keep") || q.Has("drop"), q.Get("keep"), q.Get("drop"))
	default:
		p.Forms = d.forms(r.Context(), v, p.Page)
		p.Shown = formByName(p.Forms, q.Get("protocol"))
		err = d.recent(r.Context(), p)
	}
	if err != nil {
		return nil, err
	}
	return &reply{Data: p}, nil
}

// formByName returns the form with a name. If absent, it returns the first form with a document of
// this page alone, or else the first form, or nil.
func formByName(forms []*form, name string) *form {
	for _, f := range forms {
		if f.Name == name {
			return f
		}
	}
	for _, f := range forms {
		if len(f.Bodies) > 0 && !f.Bodies[0].Part {
			return f
		}
	}
	if len(forms) > 0 {
		return forms[0]
	}
	return nil
}

// about finds a page by its path or URL.
func (d *Dashboard) about(ctx context.Context, name string) (millrace.View, *onePage, error) {
	if name == "" {
		return nil, nil, fmt.Errorf("%w: missing page", millrace.ErrInvalid)
	}
	v, err := d.view(ctx)
	if err != nil {
		return nil, nil, err
	}
	page, err := v.Page(ctx, millrace.Ref{URL: name})
	if err != nil {
		return nil, nil, err
	}
	p := &onePage{
		Page: page, Path: canon.Relative(v.Site().Base, page.URL), URL: page.URL,
		HasHTML: d.site.Original != nil, Words: len(strings.Fields(page.Text())),
	}
	sizes, err := d.site.Pages.HTMLSizes(ctx, []string{p.Path})
	if err != nil {
		return nil, nil, err
	}
	p.HTMLSize = sizes[0]
	return v, p, nil
}

// recent finds the last requests for a page. It stops after two seconds, because the search is slow
// on a large site.
func (d *Dashboard) recent(ctx context.Context, p *onePage) error {
	if d.site.Usage == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	q := store.EventQuery{Newest: true, Path: p.Path, From: d.now().Add(-trafficTime), Limit: 12}
	for e, err := range d.site.Usage.Events(limited, d.site.Name, q) {
		switch {
		case err == nil:
			p.LatestRequests = append(p.LatestRequests, e)
			continue
		case ctx.Err() == nil && limited.Err() != nil:
			p.Slow = true
		case errors.Is(err, millrace.ErrNotFound):
		default:
			return err
		}
		break
	}
	// Events are stored in the order in which the responses ended, which may differ from the order
	// of their times.
	slices.SortStableFunc(p.LatestRequests, func(a, b store.Event) int { return b.Time.Compare(a.Time) })
	return nil
}

// source returns the HTML of a page and explains its extraction by the current rules.
func (d *Dashboard) source(ctx context.Context, page *millrace.Page) *original {
	out := new(original)
	data, o, name, err := d.site.original(ctx, page)
	switch {
	case errors.Is(err, millrace.ErrNotFound) && d.site.Original != nil:
		out.Err = "The HTML of this page is not stored: it was too large, or the page was read before HTML was stored. It is stored when a scan finds that the page has changed."
		return out
	case err != nil:
		d.log.Warn("could not read original HTML", "url", page.URL, "err", err)
		out.Err = "The HTML of this page is not available right now. See the server's log."
		return out
	}
	out.Size, out.Cut = len(data), len(data) > maxBodyShown
	out.Text = sourceText(data[:min(len(data), maxBodyShown)])
	rules := d.inForce()
	if o.Rules, err = extract.NewRules(rules); err == nil {
		out.Result, err = extract.HTML(ctx, data, name, o)
	}
	if err != nil {
		out.Err = "No content could be extracted from this page: " + printable(err.Error())
		return out
	}
	out.Content, out.Fields = sourceText([]byte(out.Result.Page.Markdown())), fields(out.Result)
	out.Drop = strings.Join(rules.Drop, "\n")
	for _, part := range out.Result.Dropped {
		dropped := droppedPart{Dropped: part}
		if part.Reason != extract.OutsideRoot && extract.CheckSelector(part.Selector) == nil {
			dropped.Keep = addLine(strings.Join(rules.Keep, "\n"), part.Selector)
		}
		out.Dropped = append(out.Dropped, dropped)
	}
	return out
}

// inForce returns the current extraction rules.
func (d *Dashboard) inForce() *extract.RulesOptions {
	if d.site.Rules == nil {
		return new(extract.RulesOptions)
	}
	return d.site.Rules
}

// fields returns the fields of a page with their origins.
func fields(res *extract.Result) (out []foundField) {
	p := res.Page
	date := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Format(time.RFC3339)
	}
	for _, f := range []foundField{
		{Name: "title", Value: p.Title},
		{Name: "description", Value: p.Description},
		{Name: "author", Value: p.Author},
		{Name: "published", Value: date(p.Published)},
		{Name: "modified", Value: date(p.Modified)},
		{Name: "language", Value: p.Language},
		{Name: "section", Value: p.Section},
		{Name: "tags", Value: strings.Join(p.Tags, ", ")},
		{Name: "kind", Value: string(p.Kind)},
		{Name: "canonical", Value: res.Canonical},
	} {
		if f.Value != "" {
			f.From = res.Sources[f.Name]
			out = append(out, f)
		}
	}
	return out
}
