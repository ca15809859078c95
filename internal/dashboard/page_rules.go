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
	"github.com/millrace/millrace/internal/config"
)

// ruleForm is the form for trying rules.
type ruleForm struct {
	Keep, Drop string // one selector per line
	InForce    bool   // the rules are the current ones
	Wrong      string // error in the rules, or ""
	Trial      *trial // nil = not tried
	Took       time.Duration
	CanSave    bool
	Lines      string // lines for a configuration file
}

// rules tries rules on this page and on others. Without rules, it shows the current ones.
func (d *Dashboard) rules(ctx context.Context, v millrace.View, p *onePage, given bool, keep, drop string) error {
	now := d.inForce()
	f := &ruleForm{Keep: keep, Drop: drop, CanSave: d.site.Save != nil}
	p.Rules = f
	if !given {
		f.Keep, f.Drop, f.InForce = strings.Join(now.Keep, "\n"), strings.Join(now.Drop, "\n"), true
		return nil
	}
	keeps, err := selectors(keep)
	if err != nil {
		f.Wrong = "Keep: " + plainError(err)
		return nil //nolint:nilerr // the form shows the error
	}
	drops, err := selectors(drop)
	if err != nil {
		f.Wrong = "Drop: " + plainError(err)
		return nil //nolint:nilerr // the form shows the error
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

// saveRules saves rules.
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
	case d.site.Save == nil:
		return &reply{Data: p, Status: http.StatusConflict, Message: wrong("Not saved: the server has no configuration file.")}, nil
	case f.InForce:
		return &reply{To: withQuery("/page", "url", p.Path, "as", asRules), Message: done("Nothing to save: these rules are already in use.")}, nil
	}
	keep, err := selectors(q.Get("keep"))
	if err != nil {
		return nil, err
	}
	drop, err := selectors(q.Get("drop"))
	if err != nil {
		return nil, err
	}
	if err := d.site.Save(r.Context(), config.Changes{Lists: map[string][]string{"keep": keep, "drop": drop}}); err != nil {
		d.log.Warn("could not save extraction rules", "err", err)
		return &reply{Data: p, Status: http.StatusConflict, Message: wrong("Not saved: " + printable(plainError(err)))}, nil
	}
	d.log.Info("extraction rules saved", "keep", len(keep), "drop", len(drop))
	return &reply{
		To: withQuery("/page", "url", p.Path, "as", asRules), Message: done("Saved in the configuration file. The server now extracts all pages again. Bots get the new pages when that is complete."),
	}, nil
}

// plainError returns the text of an error without those of sentinel errors.
func plainError(err error) string {
	s := err.Error()
	for _, word := range []error{millrace.ErrInvalid, millrace.ErrForbidden, millrace.ErrConflict, millrace.ErrUnavailable} {
		s = strings.ReplaceAll(s, word.Error()+": ", "")
	}
	return s
}

// addLine adds a line to a text unless the text already has it.
func addLine(text, line string) string {
	if text == "" {
		return line
	}
	if slices.Contains(strings.Split(text, "\n"), line) {
		return text
	}
	return text + "\n" + line
}

// ruleLines returns rules as lines of a configuration file.
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
			e := json.NewEncoder(&text) // a JSON string is valid YAML
			e.SetEscapeHTML(false)
			if e.Encode(s) == nil {
				b.WriteString("  - " + text.String())
			}
		}
	}
	return b.String()
}
