package dashboard

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/store/memory"
)

// guest is a client that keeps cookies and submits forms.
type guest struct {
	t       *testing.T
	d       *Dashboard
	host    string // scheme and host
	from    string
	cookies map[string]string
	header  http.Header // of every request
}

// clock is the settable clock of a test dashboard.
type clock struct{ now time.Time }

func newSessions() *Sessions { return NewSessions(memory.New(nil).State(), "site") }

// newGuest returns a client of a dashboard without data, and the clock of the dashboard.
func newGuest(t *testing.T, sessions *Sessions, hash string) (*guest, *clock) {
	t.Helper()
	c := &clock{seedTime}
	if sessions == nil {
		sessions = newSessions()
	}
	d, err := New(&SiteOptions{Name: "s", Base: "https://example.com/", EndpointBase: "https://example.com/"}, &Options{
		Path: boardPath, Password: hash, Sessions: sessions, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return c.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return &guest{t, d, "https://example.com", "192.0.2.7:0", map[string]string{}, http.Header{}}, c
}

// cheap returns a hash of boardPassword with the lowest cost.
func cheap() string {
	p := password{time: 1, memory: 8, threads: 1, salt: []byte("saltsalt"), hash: make([]byte, 16)}
	return fmt.Sprintf("$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$%s", encode(p.of(boardPassword)))
}

func (v *guest) ask(method, path string, form url.Values, edit ...func(*http.Request)) *httptest.ResponseRecorder {
	v.t.Helper()
	r := httptest.NewRequest(method, v.host+path, strings.NewReader(form.Encode()))
	r.TLS = nil // like a request through a proxy
	r.RemoteAddr = v.from
	r.Header = v.header.Clone()
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", v.host)
	}
	for name, value := range v.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	for _, e := range edit {
		e(r)
	}
	w := httptest.NewRecorder()
	v.d.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if v.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(v.cookies, c.Name)
		}
	}
	return w
}

var tokenOf = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// token returns the token of the forms of a page.
func (v *guest) token(path string) string {
	v.t.Helper()
	m := tokenOf.FindStringSubmatch(v.ask(http.MethodGet, path, nil).Body.String())
	if m == nil {
		v.t.Fatalf("%s has no form with a token", path)
	}
	return m[1]
}

// logIn tries a password.
func (v *guest) logIn(password string) *httptest.ResponseRecorder {
	v.t.Helper()
	return v.ask(http.MethodPost, "/login", url.Values{"password": {password}, "csrf": {v.token("/login")}})
}

func (v *guest) in() bool {
	v.t.Helper()
	return v.ask(http.MethodGet, "/", nil).Code == http.StatusOK
}

const secureSession = securePrefix + sessionCookie

func TestLogin(t *testing.T) {
	t.Parallel()
	v, _ := newGuest(t, nil, cheap())
	if w := v.ask(http.MethodGet, "/traffic?range=7d", nil); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/dashboard/login?to=%2Ftraffic%3Frange%3D7d" {
		t.Fatalf("without a session: %d %v", w.Code, w.Header())
	}
	if w := v.logIn("wrong"); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), badMessage) || v.in() {
		t.Errorf("a wrong password: %d", w.Code)
	}
	if w := v.logIn(""); w.Code != http.StatusForbidden {
		t.Errorf("no password: %d", w.Code)
	}

	// The login does not reuse a session ID that was planted in the browser.
	v.cookies[secureSession] = "planted"
	if w := v.logIn(boardPassword); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/dashboard/" || v.cookies[secureSession] == "planted" {
		t.Fatalf("the password: %d %v %v", w.Code, w.Header(), v.cookies)
	}
	if !v.in() {
		t.Fatal("no session")
	}
	first := v.cookies[secureSession]

	// A second login ends the first session and begins another one.
	if w := v.ask(http.MethodGet, "/login", nil); w.Code != http.StatusSeeOther {
		t.Errorf("a login with a session: %d", w.Code)
	}
	stolen := maps.Clone(v.cookies)
	delete(v.cookies, secureSession)
	token := v.token("/login")
	v.cookies[secureSession] = first
	v.ask(http.MethodPost, "/login", url.Values{"password": {boardPassword}, "csrf": {token}})
	if v.cookies[secureSession] == first || !v.in() {
		t.Error("the second login has the first one's session")
	}
	thief := *v
	if thief.cookies = stolen; thief.in() {
		t.Error("the first session is valid after the second login")
	}

	// After the logout, the cookie is invalid.
	stolen = maps.Clone(v.cookies)
	if w := v.ask(http.MethodPost, "/logout", url.Values{"csrf": {v.token("/")}}); w.Code != http.StatusSeeOther || v.in() {
		t.Errorf("logout: %d", w.Code)
	}
	if thief.cookies = stolen; thief.in() {
		t.Error("a stolen cookie is valid after the logout")
	}
}

// Forms of other sessions and of other sites have no effect.
func TestForeignForms(t *testing.T) {
	t.Parallel()
	v, _ := newGuest(t, nil, cheap())
	other, _ := newGuest(t, v.d.sessions, cheap())
	for _, x := range []*guest{v, other} {
		if w := x.logIn(boardPassword); w.Code != http.StatusSeeOther {
			t.Fatal(w.Code)
		}
	}
	good, theirs := v.token("/"), other.token("/")
	for _, tt := range []struct {
		name, token string
		status      int
		edit        func(*http.Request)
	}{
		{"no token", "", 303, func(*http.Request) {}},
		{"another session's", theirs, 303, func(*http.Request) {}},
		{"another site's", good, 403, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }},
		{"another port's", good, 403, func(r *http.Request) { r.Header.Set("Origin", "https://example.com:8443") }},
		{"opaque origin", good, 403, func(r *http.Request) { r.Header.Set("Origin", "null") }},
		{"cross-site", good, 403, func(r *http.Request) {
			r.Header.Set("Origin", "https://evil.example")
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}},
		{"another host of the domain", good, 403, func(r *http.Request) {
			r.Header.Set("Origin", "https://www.example.com")
			r.Header.Set("Sec-Fetch-Site", "same-site")
		}},
		{"a frame", good, 403, func(r *http.Request) { r.Header.Set("Sec-Fetch-Dest", "iframe") }},
		{"a script of the site", good, 403, func(r *http.Request) { r.Header.Set("Sec-Fetch-Dest", "empty") }},
		{"a request of a service worker of the site", good, 403, func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Dest", "document")
			r.Header.Set("Service-Worker-Navigation-Preload", "true")
		}},
		{"in the query", "", 303, func(r *http.Request) { r.URL.RawQuery = "csrf=" + good }},
		{"by GET", good, 404, func(r *http.Request) { r.Method = http.MethodGet }},
	} {
		if w := v.ask(http.MethodPost, "/logout", url.Values{"csrf": {tt.token}}, tt.edit); w.Code != tt.status {
			t.Errorf("%s: %d", tt.name, w.Code)
		}
		if !v.in() {
			t.Fatalf("%s: the session has ended", tt.name)
		}
	}
	// Login forms without a cookie, and with the cookie of another browser.
	stranger, _ := newGuest(t, v.d.sessions, cheap())
	token := stranger.token("/login")
	clear(stranger.cookies)
	for _, cookies := range []map[string]string{{}, {securePrefix + formCookie: "planted"}} {
		stranger.cookies = cookies
		if w := stranger.ask(http.MethodPost, "/login", url.Values{"password": {boardPassword}, "csrf": {token}}); w.Code != http.StatusForbidden || stranger.cookies[secureSession] != "" {
			t.Errorf("a form with %v was accepted: %d", cookies, w.Code)
		}
	}
}

// Requests for foreign host names are refused, and no redirect leads out of the dashboard.
func TestWays(t *testing.T) {
	t.Parallel()
	v, _ := newGuest(t, nil, cheap())
	for host, want := range map[string]int{
		"https://example.com": 200, "https://EXAMPLE.com.:443": 200, "http://127.0.0.1:8080": 200, "http://[::1]:8080": 200, "http://localhost": 200, "http://10.0.0.1": 200,
		"https://evil.example": 421, "http://127.0.0.1.evil.example": 421, "https://example.com.evil.example": 421, "https://www.example.com": 421,
	} {
		v.host = host
		if w := v.ask(http.MethodGet, "/login", nil); w.Code != want {
			t.Errorf("%s: %d", host, w.Code)
		}
	}
	for to, want := range map[string]string{
		"/traffic?a=b": "/traffic?a=b", "": "/", "traffic": "/", "//evil.example": "/", "https://evil.example": "/", `/\evil.example`: "/",
		"/\t/evil.example": "/", "javascript:alert(1)": "/", "/%0d%0aSet-Cookie:a": "/%0d%0aSet-Cookie:a", "/a\r\nb": "/", "http:/x": "/",
		"/../robots.txt": "/", "/%2e%2E/robots.txt": "/", "/.//evil.example": "/", "/pages//": "/", "/pages/": "/pages/",
	} {
		if got := inside(to); got != want {
			t.Errorf("inside(%q) = %q, want %q", to, got, want)
		}
	}
	v.host = "https://example.com"
	w := v.ask(http.MethodGet, "/login", nil)
	for name, want := range map[string]string{
		"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if csp := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none';") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") {
		t.Error(csp)
	}
	// Without a session, every path redirects.
	for _, path := range []string{"/", "/traffic", "/pages", "/page", "/changes", "/searches", "/protocols", "/policy", "/errors", "/unusual", "/nothing", "/static/../traffic", "/static/", "/static/nothing"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if w := v.ask(method, path, nil); w.Code != http.StatusSeeOther && w.Code != http.StatusMovedPermanently && w.Code != http.StatusTemporaryRedirect || !strings.HasPrefix(w.Header().Get("Location"), "/") {
				t.Errorf("%s %s: %d %s", method, path, w.Code, w.Header().Get("Location"))
			}
		}
	}
}

// The cookies require an encrypted connection, except on this machine.
func TestCookies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		host   string
		header http.Header
		secure bool
		in     bool
	}{
		{"https://example.com", nil, true, true},
		{"http://127.0.0.1:8080", nil, false, true},
		{"http://localhost:8080", nil, false, true},
		{"http://[::1]:8080", nil, false, true},
		{"http://192.0.2.1:8080", nil, true, false},
		{"http://example.com", nil, true, false},
		{"http://127.0.0.1:8080", http.Header{"Origin": {"https://example.com"}}, true, true}, // a proxy has changed the host
	} {
		v, _ := newGuest(t, nil, cheap())
		v.host = tt.host
		if origin := tt.header.Get("Origin"); origin != "" {
			v.header.Set("Referer", origin+"/dashboard/login")
		}
		page := v.ask(http.MethodGet, "/login", nil)
		m := tokenOf.FindStringSubmatch(page.Body.String())
		if m == nil && !tt.in {
			continue // no login form
		}
		if m == nil {
			t.Errorf("%s: the page has no form", tt.host)
			continue
		}
		w := v.ask(http.MethodPost, "/login", url.Values{"password": {boardPassword}, "csrf": {m[1]}}, func(r *http.Request) { maps.Copy(r.Header, tt.header) })
		cookies := w.Result().Cookies()
		i := slices.IndexFunc(cookies, func(c *http.Cookie) bool { return strings.HasSuffix(c.Name, sessionCookie) })
		if i < 0 != !tt.in {
			t.Errorf("%s %v: %d %v", tt.host, tt.header, w.Code, cookies)
			continue
		}
		if i < 0 {
			continue
		}
		if c := cookies[i]; c.Secure != tt.secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != boardPath || c.Domain != "" || strings.HasPrefix(c.Name, securePrefix) != tt.secure {
			t.Errorf("%s: %v", tt.host, c)
		}
	}
}

// The login form is not served without TLS, except to this machine and through a proxy with TLS.
func TestPlain(t *testing.T) {
	t.Parallel()
	v, _ := newGuest(t, nil, cheap())
	for _, tt := range []struct {
		host, fetch string
		asked       bool
	}{
		{"example.com", "", true}, // behind a proxy
		{"EXAMPLE.com:443", "none", true},
		{"example.com:8080", "", false}, // bypasses the proxy
		{"example.com:8080", "same-origin", true},
		{"192.0.2.1:8080", "", false},
		{"192.0.2.1:8080", "none", true}, // a proxy that changes the host
		{"127.0.0.1:8080", "", true},
	} {
		w := v.ask(http.MethodGet, "/login", nil, func(r *http.Request) {
			if r.Host = tt.host; tt.fetch != "" {
				r.Header.Set("Sec-Fetch-Site", tt.fetch)
			}
		})
		if asked := strings.Contains(w.Body.String(), `type="password"`); w.Code != http.StatusOK || asked != tt.asked {
			t.Errorf("%s, Sec-Fetch-Site %q: %d, asked: %v", tt.host, tt.fetch, w.Code, asked)
		}
	}
}

// Attempts are limited per client and in total. A client that has logged in before does not
// wait for unknown clients.
func TestAttempts(t *testing.T) {
	t.Parallel()
	v, clock := newGuest(t, nil, cheap())
	for range clientBurst {
		if w := v.logIn("wrong"); w.Code != http.StatusForbidden {
			t.Fatal(w.Code)
		}
	}
	if w := v.logIn(boardPassword); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "15" {
		t.Errorf("one attempt more: %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	owner, _ := newGuest(t, v.d.sessions, cheap())
	owner.from = "[2001:db8::1]:0"
	if w := owner.logIn(boardPassword); w.Code != http.StatusSeeOther {
		t.Errorf("another client: %d", w.Code)
	}
	clock.now = clock.now.Add(clientEvery)
	if w := v.logIn("wrong"); w.Code != http.StatusForbidden {
		t.Errorf("a while later: %d", w.Code)
	}

	// Many clients make one attempt each.
	late := 0
	for i := range 3 * allBurst {
		v.from = fmt.Sprintf("[2001:db8:%x::7]:0", i)
		if v.logIn("wrong").Code == http.StatusTooManyRequests {
			late++
		}
	}
	if late < allBurst {
		t.Errorf("%d of %d attempts were allowed", 3*allBurst-late, 3*allBurst)
	}
	owner.cookies, owner.from = map[string]string{}, "[2001:db8::2]:0" // same network
	if w := owner.logIn(boardPassword); w.Code != http.StatusSeeOther {
		t.Errorf("the owner, while unknown clients try: %d", w.Code)
	}

	// The number of requests that wait for a hash is bounded.
	for range maxWaiting {
		v.d.sessions.waiting <- struct{}{}
	}
	if w := owner.ask(http.MethodGet, "/logout", nil); w.Code == http.StatusTooManyRequests {
		t.Error("a page waited for a hash")
	}
	owner.cookies = map[string]string{}
	if w := owner.logIn(boardPassword); w.Code != http.StatusTooManyRequests {
		t.Errorf("one request above the limit: %d", w.Code)
	}
}

// The size of the stored attempts is bounded, however many addresses make them.
func TestManyClients(t *testing.T) {
	t.Parallel()
	d, ctx := newSessions(), t.Context()
	now := seedTime
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	attempt := func(a [16]byte) time.Duration {
		wait, err := d.attempt(ctx, addr(a), now)
		must(err)
		return wait
	}
	counted := func() attempts {
		a, err := d.attempts.Load(ctx)
		must(err)
		return a
	}
	for i := range 1000 {
		now = now.Add(100 * time.Millisecond)
		attempt([16]byte{0x20, 1, byte(i >> 16), byte(i >> 8), byte(i)})
		if n := len(counted().Clients); n > 2*allBurst+maxKnown {
			t.Fatalf("%d clients are stored", n)
		}
	}
	for i := range 3 * maxKnown {
		must(d.succeeded(ctx, addr([16]byte{0x20, 1, 9, byte(i)}), now.Add(time.Duration(i)*time.Second)))
	}
	if n := len(counted().Known); n > maxKnown {
		t.Errorf("%d clients are known", n)
	}
	// A known client has its own limit, however many clients there are.
	for i := range clientBurst + 1 {
		if wait := attempt([16]byte{0x20, 1, 9, 3*maxKnown - 1}); wait > 0 != (i == clientBurst) {
			t.Errorf("attempt %d of a known client waits %s", i+1, wait)
		}
	}
	for range 2 * maxSessions {
		_, err := d.begin(ctx, "hash", now)
		must(err)
	}
	if all, err := d.sessions.Load(ctx); len(all) != maxSessions || err != nil {
		t.Errorf("%d sessions, %v", len(all), err)
	}
	_, err := d.begin(ctx, "hash", now.Add(maxSessionAge))
	must(err)
	if all, err := d.sessions.Load(ctx); len(all) != 1 || err != nil {
		t.Errorf("%d sessions after a day, %v", len(all), err)
	}
}

// A session ends when it is unused, after a day, when the clock is set back far, and when the
// password changes. A new configuration alone does not end it.
func TestSessions(t *testing.T) {
	t.Parallel()
	hash := cheap()
	begin := func() (*guest, *clock) {
		v, c := newGuest(t, nil, hash)
		if w := v.logIn(boardPassword); w.Code != http.StatusSeeOther {
			t.Fatal(w.Code)
		}
		return v, c
	}
	v, c := begin()
	if c.now = c.now.Add(sessionIdle + time.Second); v.in() {
		t.Error("an unused session does not end")
	}
	v, c = begin()
	for range int(maxSessionAge/time.Hour) - 1 {
		if c.now = c.now.Add(time.Hour); !v.in() {
			t.Fatal("a session in use has ended")
		}
	}
	if c.now = c.now.Add(time.Hour + time.Second); v.in() {
		t.Error("a session lasts longer than a day")
	}
	v, c = begin()
	if c.now = c.now.Add(-time.Hour); v.in() {
		t.Error("a session that began in the future is valid")
	}
	v, _ = begin()
	next, _ := newGuest(t, v.d.sessions, hash)
	if next.cookies = v.cookies; !next.in() {
		t.Error("a new configuration ended the session")
	}
	hash2, err := HashPassword("another")
	if err != nil {
		t.Fatal(err)
	}
	other, _ := newGuest(t, v.d.sessions, hash2)
	if other.cookies = v.cookies; other.in() {
		t.Error("a session is valid after the password has changed")
	}
}

// Each browser selects its own theme.
func TestTheme(t *testing.T) {
	t.Parallel()
	v, _ := newGuest(t, nil, cheap())
	v.logIn(boardPassword)
	for _, tt := range []struct{ theme, want string }{{"dark", `<html lang="en" data-theme="dark">`}, {"light", `<html lang="en" data-theme="light">`}, {"auto", `<html lang="en">`}, {`"><script>`, `<html lang="en">`}} {
		w := v.ask(http.MethodPost, "/theme", url.Values{"csrf": {v.token("/")}, "theme": {tt.theme}, "to": {"//evil.example"}})
		if body := v.ask(http.MethodGet, "/", nil).Body.String(); w.Header().Get("Location") != "/dashboard/" || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %v\n%.300s", tt.theme, w.Header(), body)
		}
	}
}

// All replicas share sessions, login forms and the limits of attempts: what changes on one of them
// takes effect on the others at once.
func TestReplicas(t *testing.T) {
	t.Parallel()
	st, hash := memory.New(nil), cheap()
	one, _ := newGuest(t, NewSessions(st.State(), "site"), hash)
	two, _ := newGuest(t, NewSessions(st.State(), "site"), hash)
	two.cookies = one.cookies
	form := url.Values{"password": {boardPassword}, "csrf": {one.token("/login")}}
	if w := two.ask(http.MethodPost, "/login", form); w.Code != http.StatusSeeOther || !one.in() || !two.in() {
		t.Fatalf("a login at another replica: %d", w.Code)
	}
	if w := one.ask(http.MethodPost, "/policy/revoke", url.Values{"csrf": {two.token("/")}, "name": {"none"}}); w.Code != http.StatusNotFound {
		t.Errorf("a form of another replica: %d", w.Code)
	}
	one.ask(http.MethodPost, "/logout", url.Values{"csrf": {two.token("/")}})
	if two.in() {
		t.Error("a session that has ended is valid at another replica")
	}
	one.cookies, two.cookies = map[string]string{}, map[string]string{}
	one.from, two.from = "192.0.2.99:1", "192.0.2.99:2"
	for i := range clientBurst {
		if w := []*guest{one, two}[i%2].logIn("wrong"); w.Code != http.StatusForbidden {
			t.Fatal(w.Code)
		}
	}
	for _, v := range []*guest{one, two} {
		if w := v.logIn(boardPassword); w.Code != http.StatusTooManyRequests {
			t.Errorf("one attempt more: %d", w.Code)
		}
	}
}
