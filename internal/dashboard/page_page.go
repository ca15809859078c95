package dashboard

import (
	"context"
	"encoding/json"
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

// The parts of the page about a page.
const (
	asForms = ""     // as every protocol has it
	asHTML  = "html" // the original, and what is taken of it
	asRules = "rules"
)

// onePage is one page of the site.
type onePage struct {
	Page     *millrace.Page
	Identity string
	URL      string // where people read it
	As       string
	HasHTML  bool // the source is made of HTML
	Words    int
	Weight   millrace.Weight
	Asked    []store.Event // the last requests for it
	Slow     bool          // they took too long to find

	Forms  []*form
	Shown  *form     // of them
	Source *original // with HTML
	Rules  *ruleForm
}

// original is the HTML of a page with what was taken of it.
type original struct {
	Text    string
	Size    int
	Cut     bool
	Err     string // why there is none; "" = there is
	Result  *extract.Result
	Content string // as Markdown
	Fields  []foundField
	Dropped []droppedPart
	Drop    string // the selectors in force, one a line
}

// foundField is a field of a page with the place of the HTML that it is from.
type foundField struct{ Name, Value, From string }

// droppedPart is a part of the HTML that was left out.
type droppedPart struct {
	extract.Dropped
	Keep string // selectors, one a line, that bring it back; "" = it cannot be brought back so
}

// ruleForm is the form in which rules are tried.
type ruleForm struct {
	Keep, Drop string // one selector on each line
	InForce    bool   // they are those that are in force
	Wrong      string // what is wrong with them; "" = nothing
	Trial      *trial // nil = nothing was tried
	Took       time.Duration
	CanSave    bool
	Lines      string // of a configuration file
	Learned    bool   // the site's template has a part in it
}

// page shows one page: what is known of it, and a part of the rest.
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
		p.Shown = shown(p.Forms, q.Get("room"))
		err = d.recent(r.Context(), p)
	}
	if err != nil {
		return nil, err
	}
	return &reply{Data: p}, nil
}

// shown chooses the form that is shown whole: the one that is named, else the
// first that has a document of this page.
func shown(forms []*form, name string) *form {
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

// about finds a page by its identity or its address.
func (d *Dashboard) about(ctx context.Context, name string) (millrace.View, *onePage, error) {
	if name == "" {
		return nil, nil, fmt.Errorf("%w: no page is named", millrace.ErrInvalid)
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
		Page: page, Identity: canon.Relative(v.Site().Base, page.URL), URL: page.URL,
		HasHTML: d.site.Original != nil, Words: len(strings.Fields(page.Text())),
	}
	weights, err := d.site.Pages.Weights(ctx, []string{p.Identity})
	if err != nil {
		return nil, nil, err
	}
	p.Weight = weights[0]
	return v, p, nil
}

// recent finds the last requests for a page. Those of a large site may take long
// to find, which nobody waits for.
func (d *Dashboard) recent(ctx context.Context, p *onePage) error {
	if d.site.Usage == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	q := store.EventQuery{Newest: true, Path: p.Identity, From: d.now().Add(-trafficTime), Limit: 12}
	for e, err := range d.site.Usage.Events(limited, d.site.Name, q) {
		switch {
		case err == nil:
			p.Asked = append(p.Asked, e)
			continue
		case ctx.Err() == nil && limited.Err() != nil:
			p.Slow = true
		case errors.Is(err, millrace.ErrNotFound):
		default:
			return err
		}
		break
	}
	// They are numbered as they came, whatever the clock said.
	slices.SortStableFunc(p.Asked, func(a, b store.Event) int { return b.Time.Compare(a.Time) })
	return nil
}

// source gives the HTML of a page, and explains what was taken of it by the rules
// in force.
func (d *Dashboard) source(ctx context.Context, page *millrace.Page) *original {
	out := new(original)
	data, o, name, err := d.site.original(ctx, page)
	switch {
	case errors.Is(err, millrace.ErrNotFound) && d.site.Original != nil:
		out.Err = "The HTML of this page is not kept: it was too large, or the page was taken in before it was kept. The next look at the site that finds the page changed brings it."
		return out
	case err != nil:
		d.log.Warn("the original of a page cannot be had", "page", page.URL, "error", err)
		out.Err = "The HTML of this page cannot be had for now. The server's log says why."
		return out
	}
	out.Size, out.Cut = len(data), len(data) > shownBody
	out.Text = sourceText(data[:min(len(data), shownBody)])
	rules, err := d.inForce(ctx)
	if err == nil {
		o.Rules, err = extract.NewRules(rules)
	}
	if err == nil {
		out.Result, err = extract.HTML(ctx, data, name, o)
	}
	if err != nil {
		out.Err = "The HTML of this page gives none: " + printable(err.Error())
		return out
	}
	out.Content, out.Fields = sourceText([]byte(out.Result.Page.Markdown())), fields(out.Result)
	out.Drop = strings.Join(rules.Drop, "\n")
	for _, part := range out.Result.Dropped {
		dropped := droppedPart{Dropped: part}
		if part.Reason != "outside of the root" && extract.CheckSelector(part.Selector) == nil {
			dropped.Keep = addLine(strings.Join(rules.Keep, "\n"), part.Selector)
		}
		out.Dropped = append(out.Dropped, dropped)
	}
	return out
}

// inForce gives the rules that the site is extracted by.
func (d *Dashboard) inForce(ctx context.Context) (*extract.RulesOptions, error) {
	if d.site.Rules == nil {
		return new(extract.RulesOptions), nil
	}
	return d.site.Rules(ctx)
}

// fields gives the fields of a page with what they come from.
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

// rules tries rules on a page and others. Without any, those in force are shown.
func (d *Dashboard) rules(ctx context.Context, v millrace.View, p *onePage, given bool, keep, drop string) error {
	now, err := d.inForce(ctx)
	if err != nil {
		return err
	}
	f := &ruleForm{Keep: keep, Drop: drop, CanSave: d.site.SaveRules != nil, Learned: now.Template != nil}
	p.Rules = f
	if !given {
		f.Keep, f.Drop, f.InForce = strings.Join(now.Keep, "\n"), strings.Join(now.Drop, "\n"), true
		return nil
	}
	keeps, err := selectors(keep)
	if err != nil {
		f.Wrong = "Keep: " + plainError(err)
		return nil //nolint:nilerr // the form says it
	}
	drops, err := selectors(drop)
	if err != nil {
		f.Wrong = "Drop: " + plainError(err)
		return nil //nolint:nilerr // the form says it
	}
	f.InForce, f.Lines = slices.Equal(keeps, now.Keep) && slices.Equal(drops, now.Drop), ruleLines(keeps, drops)
	if d.site.Original == nil {
		return nil
	}
	start := time.Now()
	f.Trial, err = d.site.try(ctx, v, p.Page, now, keeps, drops)
	if errors.Is(err, millrace.ErrInvalid) {
		f.Wrong = plainError(err)
		return nil
	}
	f.Took = time.Since(start)
	return err
}

// saveRules takes the form that has rules saved.
func (d *Dashboard) saveRules(r *http.Request) (*reply, error) {
	q := r.PostForm
	v, p, err := d.about(r.Context(), q.Get("url"))
	if err != nil {
		return nil, err
	}
	p.As = asRules
	if err := d.rules(r.Context(), v, p, true, q.Get("keep"), q.Get("drop")); err != nil {
		return nil, err
	}
	f := p.Rules
	switch {
	case f.Wrong != "":
		return &reply{Data: p, Status: http.StatusBadRequest}, nil
	case d.site.SaveRules == nil:
		return &reply{Data: p, Status: http.StatusConflict, Message: wrong("There is no configuration file to save it in.")}, nil
	case f.InForce:
		return &reply{To: withQuery("/page", "url", p.Identity, "as", asRules), Message: done("Nothing was saved: these rules are in force already.")}, nil
	}
	keep, err := selectors(q.Get("keep"))
	if err != nil {
		return nil, err
	}
	drop, err := selectors(q.Get("drop"))
	if err != nil {
		return nil, err
	}
	if err := d.site.SaveRules(r.Context(), keep, drop); err != nil {
		d.log.Warn("rules of extraction could not be saved", "error", err)
		return &reply{Data: p, Status: http.StatusConflict, Message: wrong("Nothing was saved. " + printable(plainError(err)))}, nil
	}
	d.log.Info("rules of extraction were saved", "keep", len(keep), "drop", len(drop))
	return &reply{
		To: withQuery("/page", "url", p.Identity, "as", asRules), Message: done("Saved in the configuration file. The pages are made again by these rules; machines see them as soon as that is done."),
	}, nil
}

// plainError gives an error in words for a person, without what programs tell
// errors apart by.
func plainError(err error) string {
	s := err.Error()
	for _, word := range []error{millrace.ErrInvalid, millrace.ErrForbidden, millrace.ErrConflict, millrace.ErrUnavailable} {
		s = strings.ReplaceAll(s, word.Error()+": ", "")
	}
	return s
}

// addLine adds a line to a text that does not have it.
func addLine(text, line string) string {
	if text == "" {
		return line
	}
	if slices.Contains(strings.Split(text, "\n"), line) {
		return text
	}
	return text + "\n" + line
}

// ruleLines gives the lines of a configuration file that say rules.
func ruleLines(keep, drop []string) string {
	var b strings.Builder
	for _, list := range []struct {
		key       string
		selectors []string
	}{{"keep", keep}, {"drop", drop}} {
		if len(list.selectors) == 0 {
			b.WriteString(list.key + ": []\n")
			continue
		}
		b.WriteString(list.key + ":\n")
		for _, s := range list.selectors {
			var text strings.Builder
			e := json.NewEncoder(&text) // YAML has the strings of JSON
			e.SetEscapeHTML(false)
			if e.Encode(s) == nil {
				b.WriteString("  - " + text.String())
			}
		}
	}
	return b.String()
}
