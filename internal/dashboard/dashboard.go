package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/savings"
)

// Options configure a [Dashboard]. Path, Password and Sessions are required.
type Options struct {
	// Path is the path of the dashboard, such as "/dashboard". Paths of requests are relative to
	// it, but links are not.
	Path string
	// Password is the hash of the password ([HashPassword]).
	Password string
	// Sessions holds logins and counts attempts. A dashboard that replaces this one can reuse it.
	Sessions *Sessions
	// CheckResults holds the results of the checker. If nil, the dashboard starts without results. A
	// dashboard that replaces this one can reuse them. It then shows them as results of the previous
	// configuration.
	CheckResults *CheckResults
	// Logger receives logins and failures. If nil, they are discarded.
	Logger *slog.Logger
	// Now returns the time. If nil, time.Now.
	Now func() time.Time
}

// Dashboard serves the pages. It is an [http.Handler]. It trusts the address in
// [http.Request.RemoteAddr].
type Dashboard struct {
	site          *SiteOptions
	path          string
	password      password
	sessions      *Sessions
	log           *slog.Logger
	now           func() time.Time
	hosts         []string // names of the site, lower case, without ports
	crossing      *http.CrossOriginProtection
	mux           *http.ServeMux
	pages         templates
	files         map[string]*file
	averagesCache averagesCache
	checks        *CheckResults
	config        int // number of the configuration, from CheckResults
	unusualCache  unusualCache
}

// New returns a dashboard. If an option is invalid, the error wraps [millrace.ErrInvalid].
func New(site *SiteOptions, o *Options) (*Dashboard, error) {
	d := &Dashboard{
		site: site, path: strings.TrimRight(o.Path, "/"), sessions: o.Sessions, log: o.Logger, now: o.Now,
		crossing: http.NewCrossOriginProtection(), checks: o.CheckResults,
	}
	if site.Coefficients == (savings.Coefficients{}) {
		site.Coefficients = savings.Default()
	}
	if !strings.HasPrefix(d.path, "/") {
		return nil, fmt.Errorf("dashboard: path %q: %w; use a path such as /dashboard", o.Path, millrace.ErrInvalid)
	}
	var err error
	if d.password, err = readPassword(o.Password); err != nil {
		return nil, err
	}
	if d.checks == nil {
		d.checks = NewCheckResults()
	}
	d.config = d.checks.configured()
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.now == nil {
		d.now = time.Now
	}
	for _, base := range []string{site.Base, site.EndpointBase} {
		u, err := url.Parse(base)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("dashboard: base URL %q: %w", base, millrace.ErrInvalid)
		}
		d.hosts = append(d.hosts, strings.ToLower(u.Hostname()))
		// Behind a proxy, the host of a request may differ.
		if err := d.crossing.AddTrustedOrigin(u.Scheme + "://" + u.Host); err != nil {
			return nil, fmt.Errorf("dashboard: base URL %q: %w: %w", base, millrace.ErrInvalid, err)
		}
	}
	if d.files, err = readFiles(); err != nil {
		return nil, err
	}
	if d.pages, err = readTemplates(d.files, d.label); err != nil {
		return nil, err
	}
	d.mux = d.routes()
	return d, nil
}

// ServeHTTP responds to one request. Its path is relative to Path.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
	if !d.own(r.Host) {
		plain(w, http.StatusMisdirectedRequest, "The dashboard is not available at this host name. Open it at a host name of the site.\n")
		return
	}
	if d.file(w, r) {
		return
	}
	// Scripts of the site share the origin. They may navigate to a page, but must not fetch or
	// frame it. A service worker could read the responses, so requests without a document as
	// destination are refused.
	dest := r.Header.Get("Sec-Fetch-Dest")
	if dest != "" && dest != "document" || r.Header["Service-Worker-Navigation-Preload"] != nil {
		plain(w, http.StatusForbidden, "Dashboard pages open only in a browser window. If this is one, a service worker of the site intercepts its requests: open the dashboard at another host name, such as through a tunnel.\n")
		return
	}
	if err := d.crossing.Check(r); err != nil {
		plain(w, http.StatusForbidden, "The request comes from another site.\n")
		return
	}
	d.mux.ServeHTTP(w, r)
}

// own reports whether a host is a name of the site or an IP address. This prevents DNS rebinding,
// in which a foreign name points to this server.
func (d *Dashboard) own(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.ToLower(strings.Trim(name, "[]")), ".")
	for _, h := range d.hosts {
		if name == h {
			return true
		}
	}
	_, err := netip.ParseAddr(name)
	return err == nil || fetch.IsLoopback(name)
}

// plain responds with plain text.
func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

// failure returns the status and the public text of an error.
func failure(err error) (status int, text string) {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, "The form is too large."
	case errors.Is(err, millrace.ErrNotFound):
		return http.StatusNotFound, "Page not found."
	case errors.Is(err, millrace.ErrInvalid):
		return http.StatusBadRequest, err.Error()
	case errors.Is(err, millrace.ErrConflict):
		return http.StatusConflict, cmp.Or(err.Error(), "The data has changed in the meantime. Reload the page and try again.")
	case errors.Is(err, millrace.ErrUnavailable):
		return http.StatusServiceUnavailable, "Not available right now. Try again later."
	}
	return http.StatusInternalServerError, "Internal error. See the server's log."
}
