package scp

import (
	"cmp"
	"context"
	"fmt"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/check"
)

// onFiles runs f on every file with a whole answer; f reports whether the rule
// is about it.
func onFiles(f func(s *survey, c *seenFile, fail check.Fail) bool) look {
	return askFiles(func(_ context.Context, s *survey, c *seenFile, fail check.Fail) (bool, error) {
		return f(s, c, fail), nil
	})
}

// askFiles is onFiles for rules that send requests. A file that could not be
// looked at stops none of the others.
func askFiles(f func(ctx context.Context, s *survey, c *seenFile, fail check.Fail) (bool, error)) look {
	return func(ctx context.Context, s *survey, fail check.Fail) error {
		some := false
		var first error
		for _, c := range s.files {
			if !c.ok() {
				first = cmp.Or(first, c.unsure())
				continue
			}
			ok, err := f(ctx, s, c, fail)
			some, first = some || ok, cmp.Or(first, err)
		}
		if first == nil && !some {
			return check.ErrNotApplicable
		}
		return first
	}
}

// checkThere fetches nothing anew but what failed.
func checkThere(ctx context.Context, s *survey, fail check.Fail) error {
	some := false
	for _, f := range s.files {
		if err := f.unsure(); err != nil {
			return err
		}
		some = true
		var got string
		switch {
		case f.err != nil:
			got = f.err.Error()
		case f.resp.Status != http.StatusOK:
			got = status(f.resp)
		case f.resp.CutErr != nil:
			got = "a body that breaks off: " + f.resp.CutErr.Error()
		default:
			continue
		}
		still, err := s.still(ctx, f.ref)
		if err != nil {
			return err
		}
		if still {
			fail(f.ref.url, got, "200 OK and the file")
		}
	}
	if !some {
		return check.ErrNotApplicable
	}
	return nil
}

// asSaid compares what the sitemap says of a file with what it is. f gives
// both, "" for what cannot be compared.
func asSaid(f func(c *seenFile) (is, said string)) look {
	return askFiles(func(ctx context.Context, s *survey, c *seenFile, fail check.Fail) (bool, error) {
		if c.content == nil {
			return false, nil
		}
		is, said := f(c)
		switch {
		case is == "" || said == "":
			return false, nil
		case is == said:
			return true, nil
		}
		still, err := s.still(ctx, c.ref)
		if err == nil && still {
			fail(c.ref.url, "the sitemap says "+said+", it has "+is, is)
		}
		return true, err
	})
}

// instantText gives a time in whole seconds, as sitemaps have it.
func instantText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Truncate(time.Second).Format(time.RFC3339)
}

func sizeSaid(c *seenFile) (is, said string) {
	if c.ref.size < 0 || c.coding != c.named {
		return "", ""
	}
	return strconv.Itoa(len(c.resp.Coded)) + " bytes", strconv.FormatInt(c.ref.size, 10) + " bytes"
}

func pagesSaid(c *seenFile) (is, said string) {
	if c.ref.pages < 0 || !c.whole {
		return "", ""
	}
	return strconv.Itoa(c.lines) + " pages", strconv.FormatInt(c.ref.pages, 10) + " pages"
}

func sectionSaid(c *seenFile) (is, said string) { return c.section, c.ref.section }

func kindSaid(c *seenFile) (is, said string) {
	said = "snapshot"
	if c.ref.delta {
		said = "delta"
	}
	return c.kind, said
}

func generatedSaid(c *seenFile) (is, said string) {
	return instantText(c.generated), instantText(c.ref.generated)
}

func sinceSaid(c *seenFile) (is, said string) {
	return instantText(c.since), instantText(c.ref.since)
}

// checkUniqueID wants one collection for each id.
func checkUniqueID(_ context.Context, s *survey, fail check.Fail) error {
	first := map[string]*seenFile{}
	for _, f := range s.files {
		if f.content == nil || f.id == "" {
			continue
		}
		other := first[f.id]
		if other != nil && other.sum != f.sum && other.ref.group() != f.ref.group() {
			fail(f.ref.url, fmt.Sprintf("id %q, as %s has", f.id, other.ref.url), "an id of its own")
		}
		if other == nil {
			first[f.id] = f
		}
	}
	if len(first) == 0 {
		return check.ErrNotApplicable
	}
	return nil
}

func checkSum(_ *survey, c *seenFile, fail check.Fail) bool {
	if c.content == nil || c.checksum == "" || c.checksum == "none" {
		return false
	}
	if c.checksum == "bad" {
		fail(c.ref.url, "checksum "+c.claimed+", which holds in no reading: over the file without the member, with an empty value, with zeros, without the first line", "the SHA-256 of the uncompressed file")
	}
	return true
}

func checkReading(_ *survey, c *seenFile, fail check.Fail) bool {
	if c.content == nil || c.checksum == "" || c.checksum == "none" || c.checksum == "bad" {
		return false
	}
	reading := map[string]string{"empty": "with an empty value", "zeros": "with 64 zeros as its value", "pages-only": "after the first line, which it does not protect"}[c.checksum]
	if reading != "" {
		fail(c.ref.url, "the checksum is that of the file "+reading, "that of the file without the member checksum and its comma")
	}
	return true
}

func checkSuffix(_ *survey, r *reference) (string, bool) {
	if _, ok := suffixOf(r.url); !ok && r.url != "" {
		return "another end of the name", true
	}
	return "", r.url != ""
}

func checkContentType(_ *survey, c *seenFile, fail check.Fail) bool {
	got := c.resp.Header.Get("Content-Type")
	if typ, _, err := mime.ParseMediaType(got); err != nil || typ != contentType {
		fail(c.ref.url, "Content-Type: "+got, "Content-Type: "+contentType)
	}
	return true
}

func checkContentEncoding(_ *survey, c *seenFile, fail check.Fail) bool {
	if !c.suffix {
		return false
	}
	got := strings.ToLower(strings.Join(c.resp.Header.Values("Content-Encoding"), ", "))
	if got != c.named && (got != "identity" || c.named != "") {
		want := "no Content-Encoding"
		if c.named != "" {
			want = "Content-Encoding: " + c.named
		}
		fail(c.ref.url, "Content-Encoding: "+got, want)
	}
	return true
}

func checkContentLength(_ *survey, c *seenFile, fail check.Fail) bool {
	if got := c.resp.Header.Get("Content-Length"); got != strconv.Itoa(len(c.resp.Coded)) {
		fail(c.ref.url, "Content-Length: "+got, "Content-Length: "+strconv.Itoa(len(c.resp.Coded)))
	}
	return true
}

// hasField is a rule that wants a header field.
func hasField(name, want string) look {
	return onFiles(func(_ *survey, c *seenFile, fail check.Fail) bool {
		if c.resp.Header.Get(name) == "" {
			fail(c.ref.url, "no "+name, name+": "+want)
		}
		return true
	})
}

func checkTagIsSum(_ *survey, c *seenFile, fail check.Fail) bool {
	got := c.resp.Header.Get("ETag")
	if c.content == nil || c.claimed == "" || got == "" {
		return false
	}
	if want := `"` + c.claimed + `"`; got != want {
		fail(c.ref.url, "ETag: "+got, "ETag: "+want)
	}
	return true
}

func checkLastModified(_ *survey, c *seenFile, fail check.Fail) bool {
	got := c.resp.Header.Get("Last-Modified")
	if c.content == nil || c.generated.IsZero() || got == "" {
		return false
	}
	if want := c.generated.UTC().Format(http.TimeFormat); got != want {
		fail(c.ref.url, "Last-Modified: "+got, "Last-Modified: "+want)
	}
	return true
}

// directives gives those of Cache-Control, nil if there are none.
func directives(r *check.Response) map[string]string {
	var out map[string]string
	for d := range strings.SplitSeq(strings.ToLower(strings.Join(r.Header.Values("Cache-Control"), ",")), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(d), "=")
		if name == "" {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[name] = strings.Trim(value, `"`)
	}
	return out
}

// maxAge gives seconds, -1 if there is no max-age.
func maxAge(r *check.Response) int {
	if n, err := strconv.Atoi(directives(r)["max-age"]); err == nil {
		return n
	}
	return -1
}

func checkPublic(_ *survey, c *seenFile, fail check.Fail) bool {
	d := directives(c.resp)
	if _, ok := d["public"]; d != nil && !ok {
		fail(c.ref.url, "Cache-Control: "+c.resp.Header.Get("Cache-Control"), "public")
	}
	return d != nil
}

// intervals are the update frequencies in seconds. A month has four weeks.
func interval(frequency string) int {
	switch frequency {
	case hourly:
		return 3600
	case daily:
		return 86400
	case weekly:
		return 7 * 86400
	case monthly:
		return 28 * 86400
	}
	return 0
}

func checkMaxAge(s *survey, c *seenFile, fail check.Fail) bool {
	if c.ref.delta || directives(c.resp) == nil {
		return false
	}
	for _, e := range s.list.elements {
		if e.name != "section" || e.attr["name"] != c.ref.section || interval(e.attr["updateFreq"]) == 0 {
			continue
		}
		if least := interval(e.attr["updateFreq"]); maxAge(c.resp) < least {
			fail(c.ref.url, "Cache-Control: "+c.resp.Header.Get("Cache-Control"), fmt.Sprintf("max-age=%d or more, since it is updated %s", least, e.attr["updateFreq"]))
		}
		return true
	}
	return false
}

func checkDeltaMaxAge(s *survey, c *seenFile, fail check.Fail) bool {
	if !c.ref.delta || directives(c.resp) == nil {
		return false
	}
	for _, f := range s.files {
		if f.ref.delta || !f.ok() || maxAge(f.resp) < 0 {
			continue
		}
		if age := maxAge(c.resp); age < 0 || age >= maxAge(f.resp) {
			fail(c.ref.url, "Cache-Control: "+c.resp.Header.Get("Cache-Control"), fmt.Sprintf("a max-age below %d, that of the snapshot", maxAge(f.resp)))
		}
		return true
	}
	return false
}

func checkMustRevalidate(_ *survey, c *seenFile, fail check.Fail) bool {
	d := directives(c.resp)
	if !c.ref.delta || d == nil {
		return false
	}
	if _, ok := d["must-revalidate"]; !ok {
		fail(c.ref.url, "Cache-Control: "+c.resp.Header.Get("Cache-Control"), "must-revalidate")
	}
	return true
}

// checkHTTPS is about what the sitemap names, whether it is fetched or not.
func checkHTTPS(_ context.Context, s *survey, fail check.Fail) error {
	some := false
	for _, r := range s.refs {
		if r.url == "" || loopback(r.url) {
			continue
		}
		some = true
		if strings.HasPrefix(r.url, "http:") {
			fail(r.url, "served over http", "https")
		}
	}
	for _, f := range s.files {
		if f.err == nil && strings.HasPrefix(f.ref.url, "https:") && !f.resp.TLS && !loopback(f.ref.url) {
			fail(f.ref.url, "a redirect to "+f.resp.URL, "https")
		}
	}
	if !some {
		return check.ErrNotApplicable
	}
	return nil
}

func checkSitemapHTTPS(_ context.Context, s *survey, fail check.Fail) error {
	if loopback(s.list.resp.URL) {
		return check.ErrNotApplicable
	}
	if !s.list.resp.TLS {
		fail(s.list.url, "served over http", "https")
	}
	return nil
}

// loopback reports whether a URL is of this machine, where there is no https
// to ask for.
func loopback(u string) bool {
	host := hostOf(u)
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// checkAccess asks for some of the pages as anybody would.
func checkAccess(ctx context.Context, s *survey, fail check.Fail) error {
	some := false
	for _, f := range s.files {
		if f.content == nil || f.ref.delta {
			continue
		}
		for _, u := range check.Sample(s.t, f.public) {
			if !s.near(u) {
				continue
			}
			resp, err := s.t.Get(ctx, u)
			if unsure(err) || ctx.Err() != nil {
				return err
			}
			if err != nil {
				continue
			}
			some = true
			if resp.Status == http.StatusUnauthorized {
				fail(u, "it is in "+f.ref.url+", and answers "+status(resp), "pages that anybody may have")
			}
		}
		break
	}
	if !some {
		return check.ErrNotApplicable
	}
	return nil
}
