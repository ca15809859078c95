package proxy

import (
	"net/http"
	"strings"
	"sync"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/edition"
)

// maxLogged limits how many pages of one edition are logged as pages without another form.
const maxLogged = 1000

// otherFormsLog records the pages of an edition that were logged as pages without another form, so
// that each is logged once.
type otherFormsLog struct {
	mu    sync.Mutex
	of    *edition.Edition
	pages map[string]bool
}

// first reports whether to log a page.
func (t *otherFormsLog) first(ed *edition.Edition, page string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of != ed {
		t.of, t.pages = ed, make(map[string]bool)
	}
	if t.pages[page] || len(t.pages) >= maxLogged {
		return false
	}
	t.pages[strings.Clone(page)] = true
	return true
}

// otherForms adds a header field with the reason why a page has no other form, if
// one was requested. The path of r is relative to the base.
func (p *Pages) otherForms(h http.Header, ed *edition.Edition, r *http.Request) {
	for _, n := range ed.Advertisements {
		if n.ExplainFallback == nil {
			continue
		}
		field, why, err := n.ExplainFallback(r.Context(), r)
		switch {
		case err != nil:
			if r.Context().Err() == nil {
				p.o.Logger.Error("could not read other forms of page", "path", access.Redact(r.URL.Path), "err", err)
			}
		case field != "":
			h.Set(field, why)
			addVary(h, "Accept")
			if p.without.first(ed, r.URL.EscapedPath()) {
				p.o.Logger.Info("page has no other form", "path", access.Redact(r.URL.Path), "field", field, "reason", why)
			}
		}
	}
}

// lacks reports whether a request is for a form that the page does not have.
func (p *Pages) lacks(ed *edition.Edition, r *http.Request) bool {
	h := make(http.Header)
	if r.Header["Accept"] != nil {
		p.otherForms(h, ed, r)
	}
	return len(h) > 0
}

// addVary adds a field to Vary.
func addVary(h http.Header, field string) {
	for _, value := range h["Vary"] {
		for token := range strings.SplitSeq(value, ",") {
			if token = strings.TrimSpace(token); token == "*" || strings.EqualFold(token, field) {
				return
			}
		}
	}
	h["Vary"] = append(h["Vary"], field)
}
