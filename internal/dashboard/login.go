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

	"github.com/millrace/millrace/internal/fetch"
)

// Names of the cookies. Those for TLS have a prefix that keeps plain HTTP from setting them. They
// are limited to the dashboard's path, so the prefix cannot be __Host-.
const (
	sessionCookie = "millrace-session"
	formCookie    = "millrace-login"
	securePrefix  = "__Secure-"
)

// encrypted reports whether the browser uses TLS, possibly to a proxy.
func (d *Dashboard) encrypted(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	// The Origin of a form is that of its page. A proxy may have changed the host.
	if u, err := url.Parse(r.Header.Get("Origin")); err == nil && u.Host != "" {
		return u.Scheme == "https"
	}
	if u, err := url.Parse(r.Header.Get("Referer")); err == nil && u.Host != "" && d.own(u.Host) {
		return u.Scheme == "https"
	}
	if d.near(r) {
		return false
	}
	// Browsers send Sec-Fetch-Site only over secure connections.
	if r.Header.Get("Sec-Fetch-Site") != "" {
		return true
	}
	// Old browsers do not send Sec-Fetch-Site. A request to the host and port of the site's HTTPS
	// URL came over TLS.
	for _, base := range []string{d.site.EndpointBase, d.site.Base} {
		if u, err := url.Parse(base); err == nil && u.Scheme == "https" && strings.EqualFold(strings.TrimSuffix(r.Host, ":443"), strings.TrimSuffix(u.Host, ":443")) {
			return true
		}
	}
	return false
}

// near reports whether the host of the request is this machine, possibly through a tunnel.
func (d *Dashboard) near(r *http.Request) bool {
	host := r.Host
	if u, err := url.Parse(r.Header.Get("Origin")); err == nil && u.Host != "" {
		host = u.Host
	}
	return fetch.IsLoopback((&url.URL{Host: host}).Hostname())
}

// cookie returns a cookie of the dashboard. Without TLS, browsers send it only to this machine.
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

// sent returns the value of a cookie of the request.
func sent(r *http.Request, name string) string {
	for _, n := range []string{securePrefix + name, name} {
		if c, err := r.Cookie(n); err == nil && c.Value != "" {
			return c.Value
		}
	}
	return ""
}

// session returns the session of a request, or nil if none.
func (d *Dashboard) session(r *http.Request) (*session, error) {
	id := sent(r, sessionCookie)
	if id == "" {
		return nil, nil
	}
	return d.sessions.find(r.Context(), id, d.password.text, d.now())
}

// toLogin redirects to the login page, which later redirects back.
func (d *Dashboard) toLogin(w http.ResponseWriter, r *http.Request) {
	to := ""
	if r.Method == http.MethodGet && r.URL.Path != "/" {
		to = r.URL.RequestURI()
	}
	d.redirect(w, withQuery("/login", "to", to))
}

// loginForm is the data of the login page.
type loginForm struct {
	Token string
	To    string // target after the login
	// Plain omits the form, because HTTP would send the password unencrypted.
	Plain bool
}

// showLogin shows the login form.
func (d *Dashboard) showLogin(w http.ResponseWriter, r *http.Request) {
	to := inside(r.URL.Query().Get("to"))
	if s, err := d.session(r); err != nil {
		d.fail(w, r, err)
		return
	} else if s != nil {
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
	token, err := d.sessions.formToken(r.Context(), value)
	if err != nil {
		d.fail(w, r, err)
		return
	}
	http.SetCookie(w, d.cookie(r, formCookie, value))
	d.write(w, r, nil, "login", &reply{Status: status, Message: m, Data: &loginForm{
		Token: token, To: to, Plain: !d.encrypted(r) && !d.near(r),
	}})
}

// login checks the password and begins a session with a new ID.
func (d *Dashboard) login(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		d.askLogin(w, r, http.StatusBadRequest, "/", wrong("Invalid form."))
		return
	}
	to, now := inside(r.PostForm.Get("to")), d.now()
	cookie := sent(r, formCookie)
	token, err := d.sessions.formToken(r.Context(), cookie)
	if err != nil {
		d.fail(w, r, err)
		return
	}
	if cookie == "" || subtle.ConstantTimeCompare([]byte(token), []byte(r.PostForm.Get("csrf"))) != 1 {
		d.askLogin(w, r, http.StatusForbidden, to, wrong("The form has expired, or the browser rejects cookies. Try again."))
		return
	}
	if !d.encrypted(r) && !d.near(r) {
		d.askLogin(w, r, http.StatusForbidden, to, nil)
		return
	}
	from := client(r)
	wait, err := d.sessions.attempt(r.Context(), from, now)
	if err != nil {
		d.fail(w, r, err)
		return
	}
	if wait > 0 {
		d.log.Warn("too many dashboard logins", "address", from)
		d.refuseAttempt(w, r, to, wait)
		return
	}
	correct, ok := d.hashed(r, r.PostForm.Get("password"))
	if !ok {
		d.refuseAttempt(w, r, to, time.Second)
		return
	}
	if !correct {
		d.log.Warn("wrong dashboard password", "address", from)
		d.askLogin(w, r, http.StatusForbidden, to, wrong("Wrong password."))
		return
	}
	id, err := d.begin(r, from, now)
	if err != nil {
		d.fail(w, r, err)
		return
	}
	d.prepare(r.Context())
	d.log.Info("dashboard login", "address", from)
	http.SetCookie(w, d.cookie(r, sessionCookie, id))
	gone := d.cookie(r, formCookie, "")
	gone.MaxAge = -1
	http.SetCookie(w, gone)
	d.redirect(w, to)
}

// begin replaces the session of the request, if any, with a new session, and returns the new ID.
func (d *Dashboard) begin(r *http.Request, from netip.Addr, now time.Time) (id string, err error) {
	old, err := d.session(r)
	if err == nil && old != nil {
		err = d.sessions.end(r.Context(), old)
	}
	if err == nil {
		err = d.sessions.succeeded(r.Context(), from, now)
	}
	if err != nil {
		return "", err
	}
	return d.sessions.begin(r.Context(), d.password.text, now)
}

// refuseAttempt refuses an attempt because the client must wait longer.
func (d *Dashboard) refuseAttempt(w http.ResponseWriter, r *http.Request, to string, wait time.Duration) {
	seconds := int(math.Ceil(wait.Seconds()))
	w.Header().Set("Retry-After", fmt.Sprint(seconds))
	d.askLogin(w, r, http.StatusTooManyRequests, to, wrong(fmt.Sprintf("Too many attempts. Try again in %d s.", seconds)))
}

// hashed reports whether a password is correct. Only one password is hashed at a time. ok is false
// if too many requests wait, or if the request was canceled.
func (d *Dashboard) hashed(r *http.Request, typed string) (correct, ok bool) {
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
		typed = "" // never valid, but takes the same time to hash
	}
	return d.password.is(typed), true
}

// client returns the address of a request.
func client(r *http.Request) netip.Addr {
	if a, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return a.Addr()
	}
	a, _ := netip.ParseAddr(r.RemoteAddr) // the zero address counts as a client
	return a
}

// logout ends the session.
func (d *Dashboard) logout(w http.ResponseWriter, r *http.Request) {
	s, err := d.session(r)
	if err == nil && s != nil && s.validToken(r.PostFormValue("csrf")) {
		err = d.sessions.end(r.Context(), s)
		for _, name := range []string{sessionCookie, formCookie} {
			c := d.cookie(r, name, "")
			c.MaxAge = -1
			http.SetCookie(w, c)
		}
	}
	if err != nil {
		d.fail(w, r, err)
		return
	}
	d.redirect(w, "/login")
}
