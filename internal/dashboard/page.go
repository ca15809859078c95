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

// handler returns what a page says, or what has become of a form. An error is
// shown as a page of its own: what wraps [millrace.ErrInvalid] or ErrConflict
// with its text, ErrNotFound as such, and others are logged.
type handler func(r *http.Request) (*reply, error)

// reply is what a handler gives.
type reply struct {
	Data   any // for the page's template, as .Data
	Status int // 0 = 200
	// Message stands above the page, or above the page that To leads to.
	Message *message
	// To is where a form leads to when it is done: a path of the dashboard's, with
	// its query. "" = the page is shown.
	To string
}

// message is one sentence about what has just happened.
type message struct {
	Text string
	Bad  bool // it has not
}

// done and wrong give messages.
func done(text string) *message  { return &message{Text: text} }
func wrong(text string) *message { return &message{Text: text, Bad: true} }

// frame is what the templates are given: the page's own data as .Data, and what
// is around it.
type frame struct {
	Site    string // for people
	Page    string // name of the template
	Path    string // of the dashboard
	Here    string // path and query of this page, relative to that
	CSRF    string // token of the session; "" without a login
	Theme   string // light, dark, or "" as the system has it
	Message *message
	Nav     []navGroup
	Now     time.Time
	Data    any
}

type navGroup struct {
	Label string // "" = none
	Items []navItem
}

// navItem is one entry of the navigation.
type navItem struct {
	Page  string // name of the template, by which the entry is marked
	To    string // path in the dashboard
	Label string
}

// To returns the URL of a path of the dashboard's, with a query of names and
// values by turns. Values that are empty are left out.
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

// Marked reports whether an entry of the navigation stands for this page, such
// as "pages" for "page" and "pages".
func (f *frame) Marked(item navItem) bool {
	return item.Page == f.Page || item.Page == f.Page+"s"
}

// show has a page shown, or a form taken, to who is logged in.
func (d *Dashboard) show(m *http.ServeMux, pattern, page string, h handler) {
	m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		s := d.session(r)
		if s == nil {
			d.toLogin(w, r)
			return
		}
		if r.Method == http.MethodPost {
			if err := r.ParseForm(); err != nil {
				d.write(w, r, s, "error", &reply{Status: http.StatusBadRequest, Data: "The form cannot be read."})
				return
			}
			if !s.validToken(r.PostForm.Get("csrf")) {
				d.write(w, r, s, "error", &reply{Status: http.StatusForbidden, Data: "The form was not one of this session. Go back, load the page again, and send it once more."})
				return
			}
		}
		page, a := page, d.ask(h, r)
		if a.failed {
			page = "error"
		}
		if a.To != "" {
			d.sessions.setMessage(s, a.Message)
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

// ask has a handler answer, also if it fails.
func (d *Dashboard) ask(h handler, r *http.Request) (a answer) {
	defer func() {
		if cause := recover(); cause != nil {
			if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(cause)
			}
			d.log.Error("panic", "page", r.URL.Path, "cause", cause, "stack", string(debug.Stack()))
			status, text := failure(nil)
			a = answer{reply{Status: status, Data: text}, true}
		}
	}()
	out, err := h(r)
	if err != nil {
		status, text := failure(err)
		if status >= 500 && r.Context().Err() == nil {
			d.log.Error("a page of the dashboard failed", "page", r.URL.Path, "error", err)
		}
		return answer{reply{Status: status, Data: text}, true}
	}
	return answer{*out, false}
}

// write sends a page. s is nil without a login.
func (d *Dashboard) write(w http.ResponseWriter, r *http.Request, s *session, page string, a *reply) {
	f := &frame{
		Site: d.title(), Page: page, Path: d.path, Here: r.URL.RequestURI(), Theme: themeOf(r),
		Message: a.Message, Now: d.now(), Data: a.Data,
	}
	if s != nil {
		f.CSRF, f.Nav = s.csrf, navigation()
		if f.Message == nil {
			f.Message = d.sessions.takeMessage(s)
		}
	}
	var b bytes.Buffer
	if err := d.pages.write(&b, page, f); err != nil {
		d.log.Error("a page of the dashboard cannot be written", "page", page, "error", err)
		plain(w, http.StatusInternalServerError, "Something went wrong. The server's log says what.\n")
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if a.Status != 0 {
		w.WriteHeader(a.Status)
	}
	_, _ = w.Write(b.Bytes())
}

// redirect leads to a path of the dashboard's.
func (d *Dashboard) redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Location", d.path+to)
	w.WriteHeader(http.StatusSeeOther)
}

// title names the site for people.
func (d *Dashboard) title() string {
	_, rest, _ := strings.Cut(d.site.Base, "://")
	return strings.TrimSuffix(rest, "/")
}

// nowhere answers for paths that there are not.
func (d *Dashboard) nowhere(*http.Request) (*reply, error) { return nil, millrace.ErrNotFound }

// inside returns a path of the dashboard's that a form or a link names;
// anything else is the overview.
func inside(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(to, "/") ||
		strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
		return "/"
	}
	// ".." leads out of the dashboard, and so does "%2e%2e" in browsers.
	if p := path.Clean(u.Path); p != u.Path && p+"/" != u.Path {
		return "/"
	}
	return to
}

const themeCookie = "millrace-theme"

// themeOf returns the theme that was chosen, "" for that of the system.
func themeOf(r *http.Request) string {
	if c, err := r.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

// theme notes which theme was chosen.
func (d *Dashboard) theme(w http.ResponseWriter, r *http.Request) {
	if s := d.session(r); s == nil || !s.validToken(r.PostFormValue("csrf")) {
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
