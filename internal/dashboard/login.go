package dashboard

import (
	"crypto/subtle"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// The cookies. Those that are encrypted have the prefix that keeps other hosts
// and plain HTTP from setting them. They go to the dashboard's path alone, not to
// the rest of the host, which may be somebody else's server; that is why they
// are not called __Host-.
const (
	sessionCookie = "millrace-session"
	formCookie    = "millrace-login"
	securePrefix  = "__Secure-"
)

// encrypted reports whether the browser talks TLS, be it to a proxy.
func (d *Dashboard) encrypted(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	// A form says where its page was from; a proxy may have changed the host.
	if u, err := url.Parse(r.Header.Get("Origin")); err == nil && u.Host != "" {
		return u.Scheme == "https"
	}
	if u, err := url.Parse(r.Header.Get("Referer")); err == nil && u.Host != "" && d.own(u.Host) {
		return u.Scheme == "https"
	}
	if d.near(r) {
		return false
	}
	// Browsers send Sec-Fetch-Site over secure connections only.
	if r.Header.Get("Sec-Fetch-Site") != "" {
		return true
	}
	// Old browsers never do. A request to the host and port of the site's HTTPS
	// URL came through its TLS endpoint.
	for _, base := range []string{d.site.Docs, d.site.Base} {
		if u, err := url.Parse(base); err == nil && u.Scheme == "https" && strings.EqualFold(strings.TrimSuffix(r.Host, ":443"), strings.TrimSuffix(u.Host, ":443")) {
			return true
		}
	}
	return false
}

// near reports whether the browser is on this machine, or at the end of a
// tunnel to it, so far as the host tells.
func (d *Dashboard) near(r *http.Request) bool {
	host := r.Host
	if u, err := url.Parse(r.Header.Get("Origin")); err == nil && u.Host != "" {
		host = u.Host
	}
	return local((&url.URL{Host: host}).Hostname())
}

// cookie makes a cookie of the dashboard. Without encryption it is taken from
// this machine alone.
func (d *Dashboard) cookie(r *http.Request, name, value string) *http.Cookie {
	c := &http.Cookie{
		Name: name, Value: value, Path: d.path, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: d.encrypted(r) || !d.near(r),
	}
	if c.Secure {
		c.Name = securePrefix + name
	}
	return c
}

// sent returns the value of a cookie that a browser has brought.
func sent(r *http.Request, name string) string {
	for _, n := range []string{securePrefix + name, name} {
		if c, err := r.Cookie(n); err == nil && c.Value != "" {
			return c.Value
		}
	}
	return ""
}

// session returns the session of a request, or nil if none.
func (d *Dashboard) session(r *http.Request) *session {
	id := sent(r, sessionCookie)
	if id == "" {
		return nil
	}
	return d.sessions.find(id, d.password.text, d.now())
}

// toLogin leads to the login, and from there back to a page.
func (d *Dashboard) toLogin(w http.ResponseWriter, r *http.Request) {
	to := ""
	if r.Method == http.MethodGet && r.URL.Path != "/" {
		to = r.URL.RequestURI()
	}
	d.redirect(w, withQuery("/login", "to", to))
}

// loginForm is what the login page shows.
type loginForm struct {
	Token string
	To    string // where it leads to
	// Plain HTTP would send the password unencrypted, so no login form.
	Plain bool
}

// showLogin shows the form.
func (d *Dashboard) showLogin(w http.ResponseWriter, r *http.Request) {
	to := inside(r.URL.Query().Get("to"))
	if d.session(r) != nil {
		d.redirect(w, to)
		return
	}
	d.askLogin(w, r, 0, to, nil)
}

func (d *Dashboard) askLogin(w http.ResponseWriter, r *http.Request, status int, to string, m *message) {
	value := sent(r, formCookie)
	if value == "" {
		value = token()
	}
	http.SetCookie(w, d.cookie(r, formCookie, value))
	d.write(w, r, nil, "login", &reply{Status: status, Message: m, Data: &loginForm{
		Token: d.sessions.formToken(value), To: to, Plain: !d.encrypted(r) && !d.near(r),
	}})
}

// login begins a session for who knows the password. It has an id of its own,
// whatever cookie came with the request.
func (d *Dashboard) login(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		d.askLogin(w, r, http.StatusBadRequest, "/", wrong("The form cannot be read."))
		return
	}
	to, now := inside(r.PostForm.Get("to")), d.now()
	cookie := sent(r, formCookie)
	if cookie == "" || subtle.ConstantTimeCompare([]byte(d.sessions.formToken(cookie)), []byte(r.PostForm.Get("csrf"))) != 1 {
		d.askLogin(w, r, http.StatusForbidden, to, wrong("The form was too old, or the browser keeps no cookies. Try again."))
		return
	}
	if !d.encrypted(r) && !d.near(r) {
		d.askLogin(w, r, http.StatusForbidden, to, nil)
		return
	}
	from := client(r)
	if wait := d.sessions.attempt(from, now); wait > 0 {
		d.log.Warn("too many attempts to log in to the dashboard", "address", from)
		d.late(w, r, to, wait)
		return
	}
	right, ok := d.hashed(r, r.PostForm.Get("password"))
	if !ok {
		d.late(w, r, to, time.Second)
		return
	}
	if !right {
		d.log.Warn("a wrong password for the dashboard", "address", from)
		d.askLogin(w, r, http.StatusForbidden, to, wrong("That is not the password."))
		return
	}
	if old := d.session(r); old != nil {
		d.sessions.end(old)
	}
	d.sessions.succeeded(from, now)
	d.prepare(r.Context())
	d.log.Info("somebody has logged in to the dashboard", "address", from)
	http.SetCookie(w, d.cookie(r, sessionCookie, d.sessions.begin(d.password.text, now)))
	gone := d.cookie(r, formCookie, "")
	gone.MaxAge = -1
	http.SetCookie(w, gone)
	d.redirect(w, to)
}

// late refuses an attempt for a while.
func (d *Dashboard) late(w http.ResponseWriter, r *http.Request, to string, wait time.Duration) {
	seconds := int(math.Ceil(wait.Seconds()))
	w.Header().Set("Retry-After", fmt.Sprint(seconds))
	d.askLogin(w, r, http.StatusTooManyRequests, to, wrong(fmt.Sprintf("Too many attempts. Try again in %d s.", seconds)))
}

// hashed reports whether a password is right; !ok = too many ask at once. Of
// those who do, one is hashed for at a time.
func (d *Dashboard) hashed(r *http.Request, typed string) (right, ok bool) {
	select {
	case d.sessions.waiting <- struct{}{}:
		defer func() { <-d.sessions.waiting }()
	default:
		return false, false
	}
	select {
	case d.sessions.hashing <- struct{}{}:
		defer func() { <-d.sessions.hashing }()
	case <-r.Context().Done():
		return false, false
	}
	if len(typed) > maxTyped {
		typed = "" // which is never right, and takes as long
	}
	return d.password.is(typed), true
}

// client returns the address that a request is from.
func client(r *http.Request) netip.Addr {
	if a, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return a.Addr()
	}
	a, _ := netip.ParseAddr(r.RemoteAddr) // the zero address is a client as well
	return a
}

// logout ends the session: its cookie opens nothing any more.
func (d *Dashboard) logout(w http.ResponseWriter, r *http.Request) {
	s := d.session(r)
	if s != nil && s.validToken(r.PostFormValue("csrf")) {
		d.sessions.end(s)
		for _, name := range []string{sessionCookie, formCookie} {
			c := d.cookie(r, name, "")
			c.MaxAge = -1
			http.SetCookie(w, c)
		}
	}
	d.redirect(w, "/login")
}
