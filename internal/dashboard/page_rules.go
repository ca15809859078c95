package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
)

// ruleForm is the form in which rules are tried.
type ruleForm struct {
	Keep, Drop string // one selector on each line
	InForce    bool   // they are those that are in force
	Wrong      string // what is wrong with them; "" = nothing
	Trial      *trial // nil = nothing was tried
	Took       time.Duration
	CanSave    bool
	Lines      string // of a configuration file
}

// rules tries rules on a page and others. Without any, those in force are shown.
func (d *Dashboard) rules(ctx context.Context, v millrace.View, p *onePage, given bool, keep, drop string) error {
	now := d.inForce()
	f := &ruleForm{Keep: keep, Drop: drop, CanSave: d.site.SaveRules != nil}
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

// plainError returns an error in words for a person, without what programs tell
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

// ruleLines returns the lines of a configuration file that say rules.
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
