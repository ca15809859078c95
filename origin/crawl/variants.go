package crawl

import (
	"net/url"
	"path"
	"strings"
)

// isDefault reports whether a path belongs to a directory's default document, and returns the path
// of the directory.
func isDefault(p string) (string, bool) {
	i := strings.LastIndexByte(p, '/')
	switch strings.ToLower(p[i+1:]) {
	case "index.html", "index.htm", "index.xhtml", "index.shtml", "index.php", "index.asp", "index.aspx", "index.jsp",
		"default.html", "default.htm", "default.asp", "default.aspx":
		return p[:i+1], true
	}
	return p, false
}

// variants returns the other addresses under which servers return the same page: the address with
// or without a final slash, and the default document of a directory.
func (s *scope) variants(u string) []string {
	p, query, asks := strings.Cut(u, "?")
	if asks {
		query = "?" + query
	}
	dir, ok := isDefault(p)
	switch {
	case ok && asks:
		return nil
	case ok:
		return []string{dir, strings.TrimSuffix(dir, "/")}
	case !strings.HasSuffix(p, "/"):
		return []string{p + "/" + query, p + "/index.html"}
	case len(p) == len(s.origin)+1:
		return []string{p + "index.html" + query, p + "index.htm", p + "index.php"}
	}
	return []string{p[:len(p)-1] + query, p + "index.html" + query, p + "index.htm", p + "index.php"}
}

// wantsLogin reports whether the parameters of an address request the login form.
func wantsLogin(u string) bool {
	_, query, asks := strings.Cut(strings.ToLower(u), "?")
	query = "&" + query + "&"
	return asks && (strings.Contains(query, "=special:userlogin&") || strings.Contains(query, "=special%3auserlogin&") || strings.Contains(query, "&action=login&"))
}

// isLogin reports whether an address may be a login form, according to its name. It may also be a
// page about logins.
func isLogin(u string) bool {
	parsed, err := url.Parse(u)
	if err != nil {
		return false
	}
	for segment := range strings.SplitSeq(strings.ToLower(parsed.Path), "/") {
		segment = strings.TrimSuffix(segment, path.Ext(segment))
		switch segment {
		case "login", "log-in", "log_in", "signin", "sign-in", "sign_in", "wp-login", "logon", "sso", "userlogin", "special:userlogin":
			return true
		}
	}
	return false
}
