package openfeeder

import (
	"encoding/base64"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"
	"github.com/millrace/millrace/internal/kit"
)

// mode is the kind of response that a query requests.
type mode uint8

const (
	indexMode mode = iota
	pageMode
	syncMode
	searchMode
)

// query contains the parameters of sections 3.1 and 3.4 that apply in the mode of the query.
type query struct {
	mode  mode
	url   string  // absolute canonical URL
	text  string  // value of q
	least float64 // value of min_score
	page  int     // page number, starting at 1
	limit int     // 1 to maxLimit

	since, until time.Time   // since: the date, or the time of the token; until: the date; zero = absent
	token        *token      // since, if it is a token with a sequence number, or nil
	at           resumePoint // position at which a reply continues
	raw          [2]string   // since and until in normalized form, or ""
}

const (
	maxQuery = 65536   // maximum number of bytes of the whole query
	maxPage  = 1 << 30 // maximum page number
)

// parseQuery parses the query of a request. If a parameter is repeated, the first value is used. An
// empty parameter counts as absent.
func parseQuery(site millrace.Site, text string) (query, error) {
	params, err := parameters(text)
	if err != nil {
		return query{}, err
	}
	q := query{
		page:  clamp(params["page"], 1, 1, maxPage),
		limit: clamp(params["limit"], defaultLimit, 1, maxLimit),
		text:  strings.TrimSpace(params["q"]),
	}
	switch {
	case q.text != "":
		q.mode = searchMode
		if q.least, err = parseScore(params["min_score"]); err != nil {
			return q, err
		}
	case params["since"] != "" || params["until"] != "":
		q.mode = syncMode
		return q, q.parseDates(params)
	case params["url"] != "":
		q.mode = pageMode
	}
	if params["url"] != "" {
		q.url, err = parseURL(site, params["url"])
	}
	return q, err
}

// parameters returns the first value of each parameter.
func parameters(text string) (map[string]string, error) {
	if len(text) > maxQuery {
		return nil, refuse(http.StatusBadRequest, invalidParam, fmt.Sprintf("The query is longer than %d bytes.", maxQuery))
	}
	out := map[string]string{}
	for pair := range strings.SplitSeq(text, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err == nil {
			value, err = url.QueryUnescape(value)
		}
		if err != nil || !utf8.ValidString(value) {
			return nil, refuse(http.StatusBadRequest, invalidParam, "The query is not percent-encoded UTF-8: "+kit.Short(pair))
		}
		if _, twice := out[name]; !twice {
			out[name] = value
		}
	}
	return out, nil
}

// clamp parses an integer and limits it to the range from low to high. If s is not an integer,
// clamp returns the parameter otherwise.
func clamp(s string, otherwise, low, high int) int {
	digits := strings.TrimPrefix(strings.TrimSpace(s), "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return otherwise
	}
	n, err := strconv.Atoi(digits)
	switch {
	case strings.Contains(s, "-"):
		return low
	case err != nil:
		return high
	}
	return min(max(n, low), high)
}

func parseScore(s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1 || strings.ContainsAny(s, "xX_") {
		return 0, refuse(http.StatusBadRequest, invalidParam, "min_score must be a number from 0.0 to 1.0, not "+quote(s)+".")
	}
	return f + 0, nil
}

func cutRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// parseURL returns the canonical URL of a page, given its path or its absolute URL on the site.
func parseURL(site millrace.Site, s string) (string, error) {
	wrong := func(why string) error {
		return refuse(http.StatusBadRequest, invalidURL, why+": "+quote(s)+". Send the path of a page, or its URL on "+canon.Origin(site.Base)+".")
	}
	switch {
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == '\\' }):
		return "", wrong("The URL contains an invalid character")
	case strings.HasPrefix(s, "//"):
		return "", wrong("The URL belongs to another site")
	case !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://"):
		if scheme, _, ok := strings.Cut(s, ":"); ok && !strings.ContainsAny(scheme, "/?#") {
			return "", wrong("The scheme of the URL is not http or https")
		}
		s = canon.Origin(site.Base) + "/" + strings.TrimPrefix(s, "/")
	}
	u, err := canon.URL(s)
	if err != nil {
		return "", wrong("The URL is invalid")
	}
	if hasDotSegment(s) {
		return "", wrong("The path contains dot segments")
	}
	switch _, host, _ := strings.Cut(canon.Origin(u), "://"); {
	case strings.HasSuffix(canon.Origin(site.Base), "://"+host):
		return canon.Origin(site.Base) + strings.TrimPrefix(u, canon.Origin(u)), nil
	case canon.Origin(u) == canon.Origin(site.EndpointBase):
		return canon.Absolute(site.Base, canon.Relative(site.EndpointBase, u)), nil
	}
	return "", wrong("The URL belongs to another site")
}

// hasDotSegment reports whether the path of a URL contains a dot segment, in any encoding.
func hasDotSegment(s string) bool {
	_, rest, _ := strings.Cut(s, "://")
	rest, _, _ = strings.Cut(rest, "?")
	rest, _, _ = strings.Cut(rest, "#")
	for segment := range strings.SplitSeq(rest, "/") {
		for range 2 {
			if plain, err := url.PathUnescape(segment); err == nil {
				segment = plain
			}
		}
		if segment == "." || segment == ".." || strings.Contains(segment, "../") {
			return true
		}
	}
	return false
}

// parseDates parses since, until and cursor (3.4).
func (q *query) parseDates(params map[string]string) (err error) {
	if s := params["since"]; s != "" {
		if q.since, err = parseInstant(restorePlus(s)); err == nil {
			q.since = clampTime(q.since)
			q.raw[0] = q.since.Format(time.RFC3339Nano)
		} else {
			t, at, err := parseToken(s)
			if err != nil {
				return refuse(http.StatusBadRequest, invalidParam,
					"since must be an RFC 3339 date and time, such as 2026-02-20T00:00:00Z, or a sync_token, not "+quote(s)+".")
			}
			q.since, q.raw[0] = clampTime(at), t.String()
			if t.N != nil {
				q.token = &t
			}
		}
	}
	if s := params["until"]; s != "" {
		if q.until, err = parseInstant(restorePlus(s)); err != nil {
			return refuse(http.StatusBadRequest, invalidParam,
				"until must be an RFC 3339 date and time, such as 2026-02-15T00:00:00Z, not "+quote(s)+".")
		}
		q.until = clampTime(q.until)
		q.raw[1] = q.until.Format(time.RFC3339Nano)
		if !q.since.IsZero() && q.until.Before(q.since) {
			return refuse(http.StatusBadRequest, invalidParam, "until is before since.")
		}
	}
	if s := params["cursor"]; s != "" {
		if q.at, err = parsePlace(s); err != nil {
			return refuse(http.StatusBadRequest, invalidParam, "cursor is not from a reply of this site: "+quote(s)+".")
		}
	}
	return nil
}

// clampTime returns t, or one second after the zero time if t is earlier, because the zero time
// means absent. Some clients send their minimum date.
func clampTime(t time.Time) time.Time {
	if first := (time.Time{}).Add(time.Second); t.Before(first) {
		return first
	}
	return t
}

// restorePlus repairs a date in whose zone a "+" was not percent-encoded.
func restorePlus(s string) string {
	if i := strings.LastIndexByte(s, ' '); i > len("2006-01-02T") {
		return s[:i] + "+" + s[i+1:]
	}
	return s
}

func quote(s string) string { return strconv.Quote(kit.Short(s)) }

// resumePoint is the position at which a sync reply continues.
type resumePoint struct {
	Epoch   string `json:"e"`
	Time    string `json:"t"` // commit time of the edition
	Edition uint64 `json:"p"` // sequence number of the reply's edition; 0 = start of the reply
	Seq     uint64 `json:"n"` // sequence number up to which all changes were sent
	// Scan reports whether the changes of the log were sent, so that the list of pages continues
	// after After.
	Scan  bool   `json:"s,omitempty"`
	After string `json:"a,omitempty"`
}

func (p resumePoint) String() string {
	b := append([]byte(nil), '{')
	b = member(b, "e", p.Epoch)
	b = member(b, "t", p.Time)
	b = strconv.AppendUint(key(b, "p"), p.Edition, 10)
	b = strconv.AppendUint(key(b, "n"), p.Seq, 10)
	b = strconv.AppendBool(key(b, "s"), p.Scan)
	b = append(member(b, "a", p.After), '}')
	return base64.RawURLEncoding.EncodeToString(b)
}

func parsePlace(s string) (p resumePoint, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = jsonio.Unmarshal(raw, &jsonio.Limits{Size: 2 * canon.MaxURL, Depth: 4}, &p)
	}
	if err == nil && (p.Edition == 0 || p.Edition > math.MaxInt64 || p.Seq > math.MaxInt64) {
		err = errToken
	}
	return p, err
}

// path returns the canonical path of the document that the query requests.
func (q *query) path(site millrace.Site) string {
	var b strings.Builder
	add := func(name, value string) {
		if value == "" {
			return
		}
		sep := byte('&')
		if b.Len() == 0 {
			sep = '?'
		}
		b.WriteByte(sep)
		b.WriteString(name + "=" + url.QueryEscape(value))
	}
	add("q", q.text)
	if q.url != "" {
		add("url", relative(site.Base, q.url))
	}
	add("since", q.raw[0])
	add("until", q.raw[1])
	if q.at.Edition > 0 {
		add("cursor", q.at.String())
	}
	if q.least > 0 {
		add("min_score", strconv.FormatFloat(q.least, 'g', -1, 64))
	}
	if q.limit != defaultLimit && q.mode != syncMode {
		add("limit", strconv.Itoa(q.limit))
	}
	if q.page != 1 && q.mode != syncMode {
		add("page", strconv.Itoa(q.page))
	}
	return endpoint + b.String()
}
