package tct

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/docname"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/weblink"
)

// recommended is the M-URL pattern that section 3.3 recommends.
const recommended = "{path}" + docName00

// patternOf returns the M-URL with {path} in place of the path of its C-URL, or "" for the root and
// for a page without an M-URL. Both URLs are canonical. If the M-URL does not contain the path,
// patternOf returns the M-URL unchanged.
func patternOf(curl, murl string) string {
	cpath, cquery := docname.CutQuery(strings.TrimPrefix(curl, canon.Origin(curl)))
	mpath, mquery := docname.CutQuery(strings.TrimPrefix(murl, canon.Origin(murl)))
	dir := strings.TrimSuffix(cpath, "/")
	i := strings.Index(mpath, dir)
	switch {
	case dir == "":
		return ""
	case i < 0:
		return murl
	}
	out := mpath[:i] + "{path}" + mpath[i+len(dir):]
	if canon.Origin(curl) != canon.Origin(murl) {
		out = canon.Origin(murl) + out
	}
	if mquery != cquery {
		out += mquery
	}
	return out
}

// patternOfMost returns the most common pattern, or "" if no page has one.
func patternOfMost(s *siteContext) string {
	count := map[string]int{}
	most := ""
	for _, p := range s.Pages {
		if !paired(p) {
			continue
		}
		if at := patternOf(p.CURL, p.MURL); strings.Contains(at, "{path}") {
			if count[at]++; count[at] > count[most] {
				most = at
			}
		}
	}
	return most
}

// paired reports whether the C-URL and the M-URL certainly belong together.
func paired(p *seenPage) bool { return p.OK() && p.CURL != "" && p.Disputed() != p.CURL }

// manifestOf returns the M-URL patterns in the site's manifest. If there is no manifest, it returns
// false.
func manifestOf(ctx context.Context, s *siteContext) (patterns []*regexp.Regexp, ok bool, err error) {
	resp, err := s.Get(ctx, in(folderOf(s), manifestName))
	if err != nil {
		return nil, false, err
	}
	m := kit.Object(kit.TrimBOM(resp.Body))
	if !resp.OK() || m == nil {
		return nil, false, nil
	}
	list := kit.Array(m["patterns"])
	for _, raw := range list[:min(len(list), 100)] {
		var p struct {
			MURL string `json:"mUrl"`
		}
		if json.Unmarshal(raw, &p) == nil && p.MURL != "" {
			if re, err := templateOf(p.MURL); err == nil {
				patterns = append(patterns, re)
			}
		}
	}
	return patterns, true, nil
}

var variable = regexp.MustCompile(`\{[^{}]*\}`)

// templateOf returns a regular expression that matches the expansions of a URI template.
func templateOf(template string) (*regexp.Regexp, error) {
	var b strings.Builder
	at := 0
	for _, v := range variable.FindAllStringIndex(template, -1) {
		b.WriteString(regexp.QuoteMeta(template[at:v[0]]) + ".*")
		at = v[1]
	}
	return regexp.Compile("^" + b.String() + regexp.QuoteMeta(template[at:]) + "$")
}

func checkPattern(ctx context.Context, s *siteContext, fail check.Fail) error {
	most, some := patternOfMost(s), false
	for _, p := range s.Pages {
		at := patternOf(p.CURL, p.MURL)
		if !paired(p) || at == "" {
			continue
		}
		some = true
		if at == most {
			continue
		}
		named, _, err := manifestOf(ctx, s)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(named, func(re *regexp.Regexp) bool { return re.MatchString(p.MURL) }) {
			fail(p.MURL, "an M-URL for "+p.CURL+" with a different pattern", cmp.Or(most, recommended)+", or a manifest that names the pattern")
		}
	}
	return check.Applied(some)
}

func checkManifest(ctx context.Context, s *siteContext, fail check.Fail) error {
	for _, p := range s.Pages {
		at := patternOf(p.CURL, p.MURL)
		if !paired(p) || at == "" || at == recommended {
			continue
		}
		_, ok, err := manifestOf(ctx, s)
		if err != nil {
			return err
		}
		if !ok {
			fail(in(folderOf(s), manifestName), "no manifest, although "+p.CURL+" has "+p.MURL, "a JSON object that documents the pattern")
		}
		return nil
	}
	return check.ErrNotApplicable
}

// isArchive reports whether a URL has the form of one of the draft's archives
// (3.4): /category/technology/, /tag/x/, /author/john/, /2025/10/, /search/?q=x.
func isArchive(u string) bool {
	path, query := docname.CutQuery(strings.TrimPrefix(u, canon.Origin(u)))
	parts := strings.Split(strings.Trim(strings.ToLower(path), "/"), "/")
	last := parts[len(parts)-1]
	if len(parts) > 1 && slices.Contains([]string{"category", "tag", "author"}, parts[len(parts)-2]) || last == "search" && query != "" {
		return true
	}
	if len(parts) > 3 || len(parts[0]) != 4 || parts[0] < "1990" || parts[0] > "2100" {
		return false
	}
	return !slices.ContainsFunc(parts[1:], func(p string) bool { return len(p) != 2 || p < "01" || p > "31" }) &&
		strings.Trim(strings.Join(parts, ""), "0123456789") == ""
}

func checkContentPages(_ context.Context, s *siteContext, fail check.Fail) error {
	return s.OnItems(func(l *seenList, i int, it *seenItem) {
		if u, err := canon.URL(it.CURL); err == nil && isArchive(u) {
			fail(l.URL, fmt.Sprintf("items/%d/cUrl: %s", i, it.CURL), "only content pages")
		}
	})
}

// maxArchives is the maximum number of archives that are requested.
const maxArchives = 3

func checkNoArchives(ctx context.Context, s *siteContext, fail check.Fail) error {
	home, err := homeOf00(ctx, s)
	if err != nil {
		return err
	}
	base, err := url.Parse(home.URL)
	if err != nil || home.Status != http.StatusOK || !weblink.IsHTML(home.Header) {
		return check.ErrNotApplicable
	}
	pattern := cmp.Or(patternOfMost(s), recommended)
	asked := map[string]bool{}
	for _, to := range anchors(home.Body, base) {
		path, query := docname.CutQuery(strings.TrimPrefix(to, canon.Origin(to)))
		if !isArchive(to) || canon.Origin(to) != canon.Origin(home.URL) || !strings.Contains(pattern, "{path}") {
			continue
		}
		murl := strings.Replace(pattern, "{path}", strings.TrimSuffix(path, "/"), 1)
		if strings.HasPrefix(murl, "/") {
			murl = canon.Origin(to) + murl
		}
		if !strings.Contains(murl, "?") {
			murl += query
		}
		if asked[murl] || len(asked) == maxArchives || !s.HasHost(murl) {
			continue
		}
		asked[murl] = true
		resp, err := s.Get(ctx, murl)
		if err != nil {
			return err
		}
		if resp.Status != http.StatusNotFound && resp.Status != http.StatusGone {
			fail(murl, resp.StatusText()+" for an archive", "404")
		}
	}
	return check.Applied(len(asked) > 0)
}

// anchors returns the targets of the anchors in an HTML document.
func anchors(doc []byte, base *url.URL) []string {
	var out []string
	z := html.NewTokenizer(bytes.NewReader(doc))
	for tt := z.Next(); tt != html.ErrorToken; tt = z.Next() {
		if tt != html.StartTagToken {
			continue
		}
		tok := z.Token()
		if tok.DataAtom != atom.A {
			continue
		}
		for _, a := range tok.Attr {
			if u, err := canon.Resolve(base, a.Val); a.Key == "href" && err == nil {
				out = append(out, u)
			}
		}
	}
	return out
}
