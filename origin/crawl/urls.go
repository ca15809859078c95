package crawl

import (
	"path"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/canon"
)

// Limits of an address in a link. Longer addresses are usually generated and endless. Sitemaps
// allow 2,048 bytes.
const (
	maxAddress    = 2048
	maxSegments   = 24
	maxParameters = 8
	maxRepeats    = 2 // maximum number of occurrences of one segment in a path
)

// scope is the extent of a site: all URLs in the folder of its root.
type scope struct {
	base   string // canonical URL of the root's folder, ending with "/"
	origin string // origin of base, without a final "/"
	other  string // the same host with the other scheme (http or https). If empty, no URL with the other scheme belongs to the site.
}

// newScope returns the scope of the folder that contains root.
func newScope(root string) (scope, error) {
	c, err := canon.URL(root)
	if err != nil {
		return scope{}, err
	}
	c, _, _ = strings.Cut(c, "?")
	if last := c[strings.LastIndexByte(c, '/')+1:]; strings.Contains(last, ".") {
		c = strings.TrimSuffix(c, last)
	} else if last != "" {
		c += "/"
	}
	scheme, rest, _ := strings.Cut(c, "://")
	host, _, _ := strings.Cut(rest, "/")
	s := scope{base: c, origin: scheme + "://" + host}
	if i := strings.LastIndexByte(host, ':'); i < 0 || strings.HasSuffix(host, "]") {
		s.other = map[string]string{"http": "https://", "https": "http://"}[scheme] + host
	}
	return s, nil
}

// urlClass determines how an address is handled.
type urlClass uint8

const (
	inside     urlClass = iota // may be a page
	outside                    // not on the site
	resource                   // an image, a script or an archive, never a page
	repetitive                 // too long or repetitive, so probably generated
)

// clean returns the form in which the crawl fetches a canonical URL, and the class of the URL.
// Addresses on the same host with the other scheme (http or https) belong to the site, because old
// links contain them.
func (s *scope) clean(abs string) (string, urlClass) {
	if !strings.HasPrefix(abs, s.origin) || len(abs) == len(s.origin) || abs[len(s.origin)] != '/' {
		rest, ok := strings.CutPrefix(abs, s.other)
		if s.other == "" || !ok || !strings.HasPrefix(rest, "/") {
			return "", outside
		}
		abs = s.origin + rest
	}
	if !strings.HasPrefix(abs, s.base) && !s.isBaseWithoutSlash(abs) {
		return "", outside
	}
	p, query, asks := strings.Cut(abs[len(s.origin):], "?")
	if strings.ContainsAny(p, ";(") {
		if q := cleanPath(p); q != p {
			p = q
			abs = s.origin + p
			if asks {
				abs += "?" + query
			}
			if !strings.HasPrefix(abs, s.base) && !s.isBaseWithoutSlash(abs) {
				return "", outside
			}
		}
	}
	if asks {
		if q := cleanQuery(query); q == "" {
			abs = s.origin + p
		} else if q != query {
			abs, query = s.origin+p+"?"+q, q
		}
	}
	switch {
	case isResource(p):
		return "", resource
	case len(abs) > maxAddress, asks && strings.Count(query, "&") >= maxParameters, isRepetitive(p):
		return abs, repetitive
	}
	return abs, inside
}

// isBaseWithoutSlash reports whether a URL is the base without its final slash.
func (s *scope) isBaseWithoutSlash(abs string) bool {
	p, _, _ := strings.Cut(abs, "?")
	return len(s.base) > len(s.origin)+1 && p == s.base[:len(s.base)-1]
}

// cleanPath removes session IDs from a path: ";jsessionid=…" of Java, and "/(S(…))" of
// ASP.NET.
func cleanPath(p string) string {
	for {
		lower := strings.ToLower(p)
		i := strings.Index(lower, ";jsessionid=")
		if i < 0 {
			i = strings.Index(lower, ";phpsessid=")
		}
		if i < 0 {
			break
		}
		end := i + 1
		for end < len(p) && p[end] != '/' && p[end] != ';' {
			end++
		}
		p = p[:i] + p[end:]
	}
	if i := strings.Index(p, "/(S("); i >= 0 {
		if n := strings.Index(p[i:], "))"); n > 0 && strings.IndexByte(p[i+1:i+n], '/') < 0 {
			if p = p[:i] + p[i+n+2:]; p == "" || p[0] != '/' {
				p = "/" + p
			}
		}
	}
	return p
}

// junk contains lower-case names of parameters that identify a visitor or a referrer, never a page.
// "ref" is not among them, because it often names a branch.
var junk = map[string]bool{
	"gclid": true, "gclsrc": true, "dclid": true, "gbraid": true, "wbraid": true, "fbclid": true, "msclkid": true,
	"mc_cid": true, "mc_eid": true, "igshid": true, "yclid": true, "ttclid": true, "twclid": true, "li_fat_id": true,
	"_ga": true, "_gl": true, "_hsenc": true, "_hsmi": true, "hsctatracking": true, "mkt_tok": true, "vero_id": true,
	"oly_anon_id": true, "oly_enc_id": true, "wt_mc": true, "ref_src": true, "replytocom": true,
	"phpsessid": true, "jsessionid": true, "oscsid": true, "xtcsid": true, "zenid": true, "cfid": true, "cftoken": true,
	"sessionid": true, "session_id": true, "sess_id": true,
}

// isJunk reports whether to remove a parameter.
func isJunk(key, value string) bool {
	key = strings.ToLower(key)
	switch {
	case key == "" && value == "", junk[key]:
		return true
	case strings.HasPrefix(key, "utm_"), strings.HasPrefix(key, "mtm_"), strings.HasPrefix(key, "pk_"), strings.HasPrefix(key, "aspsessionid"):
		return true
	case key == "sid", key == "s":
		// Short values are names of sections, servers or searches.
		return len(value) >= 26 && !strings.ContainsFunc(value, func(r rune) bool {
			return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
		})
	}
	return false
}

// cleanQuery removes junk parameters, and keeps the order of the others.
func cleanQuery(query string) string {
	dirty := false
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		dirty = dirty || isJunk(key, value)
	}
	if !dirty {
		return query
	}
	var pairs []string
	for pair := range strings.SplitSeq(query, "&") {
		if key, value, _ := strings.Cut(pair, "="); !isJunk(key, value) {
			pairs = append(pairs, pair)
		}
	}
	return strings.Join(pairs, "&")
}

// endings contains the extensions of files that are not pages.
var endings = func() map[string]bool {
	m := map[string]bool{}
	for e := range strings.FieldsSeq(`
		jpg jpeg png gif webp avif svg ico bmp tif tiff heic psd ai eps
		mp3 mp4 m4a m4v ogg oga ogv opus wav flac webm avi mov mkv wmv mpg mpeg
		zip gz tgz bz2 xz zst 7z rar tar jar war deb rpm apk dmg iso img exe msi bin
		woff woff2 ttf otf eot css js mjs map wasm
		pdf ps djvu epub mobi doc docx docm dot dotx xls xlsx xlsm ppt pptx pps ppsx odt ods odp rtf
		json rss atom ics vcf csv tsv torrent swf`) {
		m[e] = true
	}
	return m
}()

// isResource reports whether a path has the extension of a file that is not a page. It returns
// false for pages of wikis, which may be named after files, or after things such as Node.js.
func isResource(p string) bool {
	ext := path.Ext(p)
	if len(ext) < 3 || len(ext) > 8 || !endings[strings.ToLower(ext[1:])] {
		return false
	}
	return !strings.Contains(p, "/wiki/") && !strings.Contains(p[strings.LastIndexByte(p, '/'):], ":")
}

// isRepetitive reports whether a path is too deep or repetitive, such as /a/b/a/b/a/b.
func isRepetitive(p string) bool {
	if strings.Count(p, "/") <= maxRepeats {
		return false
	}
	segments := strings.Split(strings.Trim(p, "/"), "/")
	if len(segments) > maxSegments {
		return true
	}
	for i, s := range segments {
		if strings.Trim(s, "0123456789") == "" {
			continue // part of a date
		}
		n := 0
		for _, t := range segments[i:] {
			if s == t {
				n++
			}
		}
		if n > maxRepeats {
			return true
		}
	}
	return false
}

// key returns a hash of a URL for comparisons. It ignores the order of parameters. It returns the
// same hash in every process, because versions contain keys. The probability that any two of a
// million URLs collide is 3e-8. After a collision, the crawl misses one of the two.
func key(u string) uint64 {
	p, query, _ := strings.Cut(u, "?")
	h := hash(fnvStart, p)
	if strings.Contains(query, "&") {
		pairs := strings.Split(query, "&")
		if !slices.IsSorted(pairs) {
			slices.Sort(pairs)
			query = strings.Join(pairs, "&")
		}
	}
	if query != "" {
		h = hash(h*fnvPrime, query)
	}
	return mix(h)
}

// FNV-1a, 64 bits.
const (
	fnvStart uint64 = 14695981039346656037
	fnvPrime uint64 = 1099511628211
)

func hash(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

// mix distributes the bits of a hash evenly.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
