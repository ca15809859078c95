package wordpress

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/weblink"
)

const (
	apiRel  = "https://api.w.org/" // the relation by which a page names the API
	maxHead = 512 << 10            // bytes of an HTML page that are looked through
	maxAPIs = 4                    // roots of the API that a page may name in its HTML, and as many in its header
)

// site is what was found out about a WordPress before its items are read. It
// never changes.
type site struct {
	api     *url.URL // root of the API: a path that ends in "/", or a query rest_route=/
	home    *url.URL // as WordPress calls it; the path ends in "/"
	at      *url.URL // where the root was found, after redirects
	lang    string   // of the root's HTML; "" = unknown
	noindex bool     // the root's HTML asks not to be indexed
	rules   string   // fingerprint of all that, and of what else decides beside an item
	types   []postType
	listed  []string // the slugs of all types of the API, those without pages too
}

// discover asks for a page of the site, and finds the API by what it says. If
// only a site that says that it is of WordPress counts, others cost one
// request; otherwise the usual places are tried too. The index of the API is
// not asked for again if the API is that of the cursor.
func (s *Site) discover(ctx context.Context, page *url.URL, sure bool, was cursor) (*site, error) {
	resp, err := s.do(ctx, http.MethodGet, page.String())
	if err != nil {
		return nil, err
	}
	at := page
	if resp.Request != nil && resp.Request.URL != nil {
		at = resp.Request.URL
	}
	status := fetch.CheckStatus(resp)
	said := readHead(resp)
	f := &site{at: at, lang: said.lang, noindex: said.noindex}
	candidates := said.apis
	for _, l := range weblink.Header(resp.Header, at) {
		if l.Is(apiRel, "") && len(candidates) < 2*maxAPIs {
			candidates = slices.Insert(candidates, 0, l.URL)
		}
	}
	if len(candidates) == 0 {
		if status != nil {
			return nil, status
		}
		if sure && !said.wordpress {
			return nil, millrace.Coded("no-wordpress", fmt.Errorf("%w: %s does not say that it is of WordPress", millrace.ErrNotFound, at))
		}
		root := at.ResolveReference(&url.URL{Path: "./"})
		candidates = []string{root.String() + "wp-json/", root.String() + "?rest_route=/"}
	}
	var tried []string
	forbidden := false
	for _, c := range slices.Compact(candidates) {
		if f.api, err = apiAt(at, c); err == nil {
			err = s.index(ctx, f, was)
		}
		if err == nil {
			break
		}
		if ctx.Err() != nil || errors.Is(err, millrace.ErrUnavailable) {
			return nil, err
		}
		forbidden = forbidden || errors.Is(err, millrace.ErrForbidden)
		tried = append(tried, err.Error())
	}
	if err != nil {
		kind := millrace.ErrNotFound
		if forbidden {
			kind = millrace.ErrForbidden
		}
		return nil, millrace.Coded(millrace.ErrorCode(err), fmt.Errorf("%w: no REST API of WordPress is open here; tried %s", kind, strings.Join(tried, "; ")))
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %q %q %q %q %t%s", format, extract.Version, s.root, f.api, f.home, f.lang, f.noindex, s.rules.Fingerprint())
	f.rules = strconv.FormatUint(h.Sum64(), 36)
	return f, nil
}

// apiAt checks what a page says the root of the API is: it must be on the
// page's own host. WordPress behind a proxy that does TLS for it may not know
// its own scheme.
func apiAt(page *url.URL, ref string) (*url.URL, error) {
	abs, err := canon.Resolve(page, ref)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(abs)
	if err != nil {
		return nil, err
	}
	if u.Hostname() != page.Hostname() {
		return nil, millrace.Coded("other-host", fmt.Errorf("%s: that is another host", abs))
	}
	u.Scheme = page.Scheme
	if u.Query().Get("rest_route") == "" && !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	return u, nil
}

// index asks the index of the API for the home.
func (s *Site) index(ctx context.Context, f *site, was cursor) error {
	if was.API == f.api.String() {
		home, err := parseRoot(was.Home)
		f.home = home
		return err
	}
	var index struct {
		Home       string   `json:"home"`
		Namespaces []string `json:"namespaces"`
	}
	at := f.route("", url.Values{"_fields": {"home,namespaces"}})
	if _, err := s.get(ctx, at, &index); err != nil {
		return err
	}
	if !slices.Contains(index.Namespaces, "wp/v2") {
		return millrace.Coded("no-wp-v2", fmt.Errorf("%s: it has no wp/v2", at))
	}
	home, err := parseRoot(index.Home)
	if err != nil {
		return fmt.Errorf("%s: home: %w", at, err)
	}
	if f.home = home; home.Hostname() == f.at.Hostname() {
		f.home = &url.URL{Scheme: f.at.Scheme, Host: home.Host, Path: home.Path, RawPath: home.RawPath}
	}
	return nil
}

// route returns the URL of a route of the API, such as "wp/v2/posts/12".
func (f *site) route(path string, q url.Values) string {
	u := *f.api
	all := u.Query()
	if at := all.Get("rest_route"); at != "" {
		all.Set("rest_route", strings.TrimSuffix(at, "/")+"/"+path)
	} else {
		u.Path, u.RawPath = u.Path+path, ""
	}
	for k, v := range q {
		all[k] = v
	}
	// Colons, commas and slashes stand for themselves in a query (RFC 3986,
	// section 3.4), and logs are read by people.
	u.RawQuery = strings.NewReplacer("%2F", "/", "%3A", ":", "%2C", ",").Replace(all.Encode())
	return u.String()
}

// path returns the route that a URL of the API has, the opposite of route.
func (f *site) path(location string) (string, bool) {
	u, err := url.Parse(location)
	if err != nil || u.Host != f.api.Host {
		return "", false
	}
	if at := f.api.Query().Get("rest_route"); at != "" {
		return strings.CutPrefix(u.Query().Get("rest_route"), strings.TrimSuffix(at, "/")+"/")
	}
	return strings.CutPrefix(u.Path, f.api.Path)
}

// head is what the HTML of a page says of its site.
type head struct {
	apis      []string
	lang      string
	noindex   bool
	wordpress bool // it looks like one
}

var language = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,3}$`)

// readHead reads the start of an HTML page and closes it. What is broken or no
// HTML says nothing.
func readHead(resp *http.Response) head {
	var h head
	body, err := fetch.Decode(resp)
	if err != nil {
		return h
	}
	defer body.Close()
	if resp.Header.Get("Content-Type") != "" && !weblink.IsHTML(resp.Header) {
		return h
	}
	z := html.NewTokenizer(io.LimitReader(body, maxHead))
	z.SetMaxBuf(maxHead)
	for {
		switch z.Next() {
		case html.ErrorToken:
			return h
		case html.StartTagToken, html.SelfClosingTagToken:
			h.tag(z.Token())
		}
	}
}

func (h *head) tag(t html.Token) {
	a := map[string]string{}
	for _, at := range t.Attr {
		if _, ok := a[at.Key]; !ok {
			a[at.Key] = at.Val
		}
	}
	rel, name := strings.ToLower(a["rel"]), strings.ToLower(a["name"])
	switch t.Data {
	case "html":
		if l := strings.TrimSpace(a["lang"]); h.lang == "" && language.MatchString(l) {
			h.lang = l
		}
	case "link":
		if rel == apiRel && len(h.apis) < maxAPIs {
			h.apis = append(h.apis, a["href"])
		}
		h.wordpress = h.wordpress || strings.Contains(a["href"], "/wp-content/") || strings.Contains(a["href"], "/wp-includes/")
	case "script", "img":
		h.wordpress = h.wordpress || strings.Contains(a["src"], "/wp-content/") || strings.Contains(a["src"], "/wp-includes/")
	case "meta":
		content := strings.ToLower(a["content"])
		h.noindex = h.noindex || name == "robots" && isNoIndex(content)
		h.wordpress = h.wordpress || name == "generator" && strings.HasPrefix(content, "wordpress")
	}
}

// isNoIndex reads the value of a robots meta element in lower case.
func isNoIndex(content string) bool {
	for v := range strings.SplitSeq(content, ",") {
		if v = strings.TrimSpace(v); v == "noindex" || v == "none" {
			return true
		}
	}
	return false
}
