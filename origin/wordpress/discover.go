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
	apiRel  = "https://api.w.org/" // link relation to the API
	maxHead = 512 << 10            // number of bytes at the start of an HTML page that are searched
	maxAPIs = 4                    // maximum number of API roots from the HTML of a page; twice as many with those from its header fields
)

// site contains the properties of a WordPress site, without its items. It never changes.
type site struct {
	api     *url.URL // root of the API; its path ends in "/", or it has the query rest_route=/
	home    *url.URL // home URL in the settings of WordPress; its path ends in "/"
	at      *url.URL // URL of the root after redirects
	lang    string   // language of the root's HTML, or "" if unknown
	noindex bool     // the root's HTML asks not to be indexed
	rules   string   // fingerprint of these fields and all other inputs except the items
	types   []postType
	listed  []string // slugs of all types in the API, including types without pages
}

// discover fetches a page of the site, and finds the API from links in the page. If sure is set,
// the page must identify itself as WordPress, so that any other site needs only one request.
// Otherwise, discover also tries the usual paths of the API. If the API is the one in the cursor,
// discover does not fetch the index of the API.
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
	found := readHead(resp)
	f := &site{at: at, lang: found.lang, noindex: found.noindex}
	candidates := found.apis
	for _, l := range weblink.Header(resp.Header, at) {
		if l.Is(apiRel, "") && len(candidates) < 2*maxAPIs {
			candidates = slices.Insert(candidates, 0, l.URL)
		}
	}
	if len(candidates) == 0 {
		if status != nil {
			return nil, status
		}
		if sure && !found.wordpress {
			return nil, millrace.Coded("no-wordpress", fmt.Errorf("%w: %s is not a page of a WordPress site", millrace.ErrNotFound, at))
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
		return nil, millrace.Coded(millrace.ErrorCode(err), fmt.Errorf("%w: no open WordPress REST API found; tried %s", kind, strings.Join(tried, "; ")))
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %q %q %q %q %t%s", format, extract.Version, s.root, f.api, f.home, f.lang, f.noindex, s.rules.Fingerprint())
	f.rules = strconv.FormatUint(h.Sum64(), 36)
	return f, nil
}

// apiAt validates the API root that a page names: the API must be on the same host as the page. If
// WordPress is behind a TLS proxy, the scheme may differ.
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
		return nil, millrace.Coded("other-host", fmt.Errorf("%s: the API is on another host", abs))
	}
	u.Scheme = page.Scheme
	if u.Query().Get("rest_route") == "" && !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	return u, nil
}

// index fetches the home URL from the index of the API.
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
		return millrace.Coded("no-wp-v2", fmt.Errorf("%s: namespace wp/v2 not found", at))
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

// route returns the URL of a route of the API, such as "wp/v2/posts/12", with a query.
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
	// A query may contain unescaped colons, commas and slashes (RFC 3986, section 3.4), which make
	// logs easier to read.
	u.RawQuery = strings.NewReplacer("%2F", "/", "%3A", ":", "%2C", ",").Replace(all.Encode())
	return u.String()
}

// path returns the route of a URL of the API. It is the inverse of route.
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

// head contains the properties of a site in the HTML of a page.
type head struct {
	apis      []string
	lang      string
	noindex   bool
	wordpress bool // the page was generated by WordPress
}

var language = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,3}$`)

// readHead parses the start of an HTML page and closes the response. If the body cannot be decoded
// or the media type is not HTML, the head is empty.
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

// isNoIndex reports whether the content of a robots meta element, in lower case, includes noindex.
func isNoIndex(content string) bool {
	for v := range strings.SplitSeq(content, ",") {
		if v = strings.TrimSpace(v); v == "noindex" || v == "none" {
			return true
		}
	}
	return false
}
