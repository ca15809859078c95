package folder

import (
	"context"
	"net/url"
	"strings"

	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/tree"
)

// maxProbes is the maximum number of pages that are read to determine the home and the title of a
// folder.
const maxProbes = 8

// probe is a page that determined the home, with the state of its file at that time.
type probe struct {
	file  string
	stamp tree.Stamp
	sure  bool // whether any change to the file would change stamp
}

// learn determines the URL at which the folder is deployed, and the title of the site. The URL is
// derived from the canonical links of the first pages of a walk. If the page at "/" has a canonical
// link, this link decides. Otherwise, the majority of the other pages decides. The result depends
// only on the files, not on the order of requests.
func (f *Folder) learn(ctx context.Context, t *snapshot) error {
	votes, best, settled := map[string]int{}, "", false
	var names extract.SiteNames
	for e := range f.pages(ctx, t) {
		s, sure := tree.StampOf(e.Info, f.now())
		t.probes = append(t.probes, probe{e.File, s, sure})
		data, _, err := f.read(t, e.File)
		if err != nil {
			continue // Page reports the error
		}
		res, err := extract.HTML(ctx, data, e.URL, &extract.Options{Base: t.base})
		if err == nil {
			names.Add(res, e.URL == "/")
		}
		if err == nil && res.Canonical != "" && !settled {
			if h := t.homeBy(e.URL, res.Canonical); h != "" {
				if votes[h]++; votes[h] > votes[best] {
					best = h
				}
			}
		}
		settled = settled || e.URL == "/" && best != ""
		if len(t.probes) == maxProbes || settled && names.Name() != "" {
			break
		}
	}
	t.home, t.title = best, names.Name()
	return ctx.Err()
}

// unchanged reports whether the pages that determined the home are unchanged.
func (t *snapshot) unchanged() bool {
	for _, p := range t.probes {
		info, err := t.root.Stat(p.file)
		if err != nil || !p.sure {
			return false
		}
		if s, _ := tree.StampOf(info, info.ModTime()); s != p.stamp {
			return false
		}
	}
	return len(t.probes) > 0
}

// homeBy returns the home according to a page's canonical link, or "" if the link leads to another
// page.
func (t *snapshot) homeBy(own, canonical string) string {
	if _, ok := under(noBase, canonical); ok {
		return "" // the link has no host
	}
	if _, ok := under(t.base, canonical); ok {
		return t.base
	}
	u, err := url.Parse(canonical)
	if err != nil {
		return ""
	}
	p, origin := foldIndex(u.EscapedPath()), u.Scheme+"://"+u.Host
	if own != "/" {
		for _, form := range forms(own) {
			if prefix, ok := strings.CutSuffix(p, form); ok && u.RawQuery == "" {
				return origin + prefix + "/"
			}
		}
		return ""
	}
	// This is the home page of a folder that is deployed under a prefix, or a home page that
	// redirects to another page of the site, such as /en/.
	if _, _, err := t.find(p); err == nil || u.RawQuery != "" || isHTML(p) {
		return origin + "/"
	}
	return asBase(origin + p)
}

// nameOf returns the identity of a file's page. duplicate reports whether the page duplicates
// another file with that identity.
func (t *snapshot) nameOf(file, own, canonical string) (id string, duplicate bool) {
	if canonical == "" {
		return own, false
	}
	rel, ok := under(t.base, canonical)
	if !ok && t.home != "" {
		rel, ok = under(t.home, canonical)
	}
	if !ok {
		u, err := url.Parse(canonical)
		if err != nil {
			return own, false
		}
		if u.RawQuery != "" || !sameForm(own, u.EscapedPath()) {
			return canonical, false
		}
		rel = u.EscapedPath()
	}
	if rel == own {
		return own, false
	}
	p, query, _ := strings.Cut(rel, "?")
	if p = foldIndex(p); query != "" {
		return p + "?" + query, false // no file has a query, so this is not a page of the folder
	}
	if target := t.target(p); target != "" && target != file {
		return p, true
	}
	if strings.HasSuffix(own, "/") && sameForm(own, p) {
		return own, false
	}
	return p, false
}

// target returns the file with the page at a path of the folder, or "" if no page is there.
func (t *snapshot) target(p string) string {
	file, redirect, err := t.find(p)
	if redirect != "" {
		file, _, err = t.find(redirect)
	}
	if err != nil || !isHTML(file) {
		return ""
	}
	return file
}

// forms returns the paths at which deployments serve the page in a file: first the file's own path,
// then the paths without the slash or the extension.
func forms(own string) []string {
	if own == "/" {
		return []string{own}
	}
	if p, ok := strings.CutSuffix(own, "/"); ok {
		return []string{own, p}
	}
	stem := own
	if i := strings.LastIndexByte(own, '.'); i > strings.LastIndexByte(own, '/') {
		stem = own[:i]
	}
	return []string{own, stem, stem + "/"}
}

func sameForm(own, p string) bool {
	p = foldIndex(p)
	for _, form := range forms(own) {
		if p == form {
			return true
		}
	}
	return false
}

// foldIndex returns the path of the directory if a path leads to an index file. It returns other
// paths unchanged.
func foldIndex(p string) string {
	if i := strings.LastIndexByte(p, '/'); p[i+1:] == "index.html" || p[i+1:] == "index.htm" {
		return p[:i+1]
	}
	return p
}

// under returns the identity of a URL under a base. The schemes http and https are considered
// equal.
func under(base, abs string) (string, bool) {
	_, b, _ := strings.Cut(base, "://")
	_, a, _ := strings.Cut(abs, "://")
	rel := canon.Relative("//"+b, "//"+a)
	return rel, strings.HasPrefix(rel, "/") && !strings.HasPrefix(rel, "//")
}

func asBase(u string) string { return strings.TrimSuffix(u, "/") + "/" }
