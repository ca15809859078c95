package dashboard

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"github.com/millrace/millrace"
)

// handler returns the data of a page, or the result of a form. Errors become error pages:
// ErrInvalid and ErrConflict with their text, ErrNotFound as 404. Errors with a status of 500 or
// above are logged.
type handler func(r *http.Request) (*reply, error)

// reply is the result of a handler.
type reply struct {
	Data   any // data of the template, as .Data
	Status int // If zero, 200.
	// Message is shown above the page, or above the page at To.
	Message *message
	// To is the target of a redirect after a form: a path in the dashboard with its
	// query. "" = show the page.
	To string
}

// message is one sentence about the last action.
type message struct {
	Text string `json:"text"`
	Bad  bool   `json:"bad,omitempty"` // reports a failure
}

// done and wrong return messages of success and failure.
func done(text string) *message  { return &message{Text: text} }
func wrong(text string) *message { return &message{Text: text, Bad: true} }

// frame is the data of a template: .Data of the page, and the layout around it.
type frame struct {
	Site    string // display name
	Page    string // name of the template
	Path    string // path of the dashboard
	Here    string // path and query of this page, relative to Path
	CSRF    string // token of the session; "" without a session
	Theme   string // light, dark, or "" for the system's
	Message *message
	Nav     []navGroup
	Now     time.Time
	Data    any
}

type navGroup struct {
	Label string // may be empty
	Items []navItem
}

// navItem is one entry of the navigation.
type navItem struct {
	Page  string // name of the template of the entry
	To    string // path in the dashboard
	Label string
}

// To returns the URL of a path in the dashboard, with alternating names and values
// of a query. Empty values are omitted.
func (f *frame) To(path string, query ...any) string { return f.Path + withQuery(path, query...) }

func withQuery(path string, query ...any) string {
	q := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		if v := fmt.Sprint(query[i+1]); v != "" {
			q.Set(fmt.Sprint(query[i]), v)
		}
	}
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return path
}

// Marked reports whether an entry of the navigation is for this page, or for the list of such
// pages.
func (f *frame) Marked(item navItem) bool {
	return item.Page == f.Page || item.Page == f.Page+"s"
}

// show registers a page, or a form, that needs a session.
func (d *Dashboard) show(m *http.ServeMux, pattern, page string, h handler) {
	m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		s, err := d.session(r)
		switch {
		case err != nil:
			d.fail(w, r, err)
			return
		case s == nil:
			d.toLogin(w, r)
			return
		}
		if r.Method == http.MethodPost {
			if err := r.ParseForm(); err != nil {
				d.write(w, r, s, "error", &reply{Status: http.StatusBadRequest, Data: "The form cannot be read."})
				return
			}
			if !s.validToken(r.PostForm.Get("csrf")) {
				d.write(w, r, s, "error", &reply{Status: http.StatusForbidden, Data: "The form does not belong to this session. Go back, reload the page, and submit it again."})
				return
			}
		}
		page, a := page, d.ask(h, r)
		if a.failed {
			page = "error"
		}
		if a.To != "" {
			if err := d.sessions.setMessage(r.Context(), s, a.Message); err != nil {
				d.log.Warn("could not save the message for the next page", "err", err)
			}
			d.redirect(w, a.To)
			return
		}
		d.write(w, r, s, page, &a.reply)
	})
}

type answer struct {
	reply
	failed bool
}

// ask calls a handler and turns an error or a panic into an error page.
func (d *Dashboard) ask(h handler, r *http.Request) (a answer) {
	defer func() {
		if cause := recover(); cause != nil {
			if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(cause)
			}
			d.log.Error("panic", "path", r.URL.Path, "err", cause, "stack", string(debug.Stack()))
			status, text := failure(nil)
			a = answer{reply{Status: status, Data: text}, true}
		}
	}()
	out, err := h(r)
	if err != nil {
		return d.failed(r, err)
	}
	return answer{*out, false}
}

// failed returns the error page for err. It logs server errors, unless the request was canceled.
func (d *Dashboard) failed(r *http.Request, err error) answer {
	status, text := failure(err)
	if status >= 500 && r.Context().Err() == nil {
		d.log.Error("dashboard page failed", "path", r.URL.Path, "err", err)
	}
	return answer{reply{Status: status, Data: text}, true}
}

// fail sends the error page for err.
func (d *Dashboard) fail(w http.ResponseWriter, r *http.Request, err error) {
	a := d.failed(r, err)
	d.write(w, r, nil, "error", &a.reply)
}

// write sends a page. s is nil without a session.
func (d *Dashboard) write(w http.ResponseWriter, r *http.Request, s *session, page string, a *reply) {
	f := &frame{
		Site: d.title(), Page: page, Path: d.path, Here: r.URL.RequestURI(), Theme: themeOf(r),
		Message: a.Message, Now: d.now(), Data: a.Data,
	}
	if s != nil {
		f.CSRF, f.Nav = s.CSRF, d.navigation()
		if f.Message == nil {
			var err error
			if f.Message, err = d.sessions.takeMessage(r.Context(), s); err != nil {
				d.log.Warn("could not remove a message that was shown", "err", err)
			}
		}
	}
	var b bytes.Buffer
	if err := d.pages.write(&b, page, f); err != nil {
		d.log.Error("could not render dashboard page", "template", page, "err", err)
		plain(w, http.StatusInternalServerError, "Internal error. See the server's log.\n")
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if a.Status != 0 {
		w.WriteHeader(a.Status)
	}
	_, _ = w.Write(b.Bytes())
}

// redirect redirects to a path in the dashboard.
func (d *Dashboard) redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Location", d.path+to)
	w.WriteHeader(http.StatusSeeOther)
}

// title returns the title of the site. The login page shows it to everyone, so if the content of
// the site needs a key, or if there is no edition yet, title returns the host and path.
func (d *Dashboard) title() string {
	if s := d.site.Server; s != nil && !s.Guarded() && s.Current() != nil {
		return s.Current().View.Site().Title
	}
	_, rest, _ := strings.Cut(d.site.Base, "://")
	return strings.TrimSuffix(rest, "/")
}

// notFound serves unknown paths.
func (d *Dashboard) notFound(*http.Request) (*reply, error) { return nil, millrace.ErrNotFound }

// inside returns the path in the dashboard that a form or link names. For any other path, it
// returns that of the overview.
func inside(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(to, "/") ||
		strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
		return "/"
	}
	// "..", or "%2e%2e" in browsers, would lead out of the dashboard.
	if p := path.Clean(u.Path); p != u.Path && p+"/" != u.Path {
		return "/"
	}
	return to
}

const themeCookie = "millrace-theme"

// themeOf returns the selected theme, or "" for the system's.
func themeOf(r *http.Request) string {
	if c, err := r.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

// theme stores the selected theme.
func (d *Dashboard) theme(w http.ResponseWriter, r *http.Request) {
	if s, err := d.session(r); err != nil {
		d.fail(w, r, err)
		return
	} else if s == nil || !s.validToken(r.PostFormValue("csrf")) {
		d.redirect(w, "/login")
		return
	}
	c := d.cookie(r, themeCookie, r.PostFormValue("theme"))
	c.Name, c.MaxAge = themeCookie, 365*24*3600
	if c.Value != "light" && c.Value != "dark" {
		c.Value, c.MaxAge = "", -1
	}
	http.SetCookie(w, c)
	d.redirect(w, inside(r.PostFormValue("to")))
}
