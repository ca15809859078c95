package arc

import (
	"context"
	"encoding/json"
	"maps"
	"mime"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

// checkJSON checks the list, and the broken documents at locations that clients try before the
// location of the list.
func checkJSON(_ context.Context, s *siteContext, fail check.Fail) error {
	for _, l := range s.broken {
		fail(l.url, l.why, "one JSON object, with arc_sitemap_version and pages")
	}
	return nil
}

func checkContentType(_ context.Context, s *siteContext, fail check.Fail) error {
	if s.list.fields == nil || s.list.yaml {
		return check.ErrNotApplicable
	}
	contentType := s.list.resp.Header.Get("Content-Type")
	if mt, _, err := mime.ParseMediaType(contentType); err != nil || mt != "application/json" && !strings.HasSuffix(mt, "+json") {
		fail(s.list.url, "Content-Type: "+contentType, "Content-Type: application/json")
	}
	return nil
}

func checkVersionMember(l *seenList, fail check.Fail) {
	raw := l.fields["arc_sitemap_version"]
	if v, ok := check.JSONText(raw); string(raw) != "null" && (!ok || strings.SplitN(v, ".", 2)[0] != majorVersion) {
		fail(l.url, "arc_sitemap_version: "+kit.ShortJSON(raw), `"`+version+`"`)
	}
}

func checkSite(l *seenList, fail check.Fail) {
	raw := l.fields["site"]
	if v, ok := check.JSONText(raw); string(raw) != "null" && (!ok || !isURI(v)) {
		fail(l.url, "site: "+kit.ShortJSON(raw), "an absolute URI")
	}
}

func checkGenerated(l *seenList, fail check.Fail) {
	raw := l.fields["generated_at"]
	if v, ok := check.JSONText(raw); string(raw) != "null" && (!ok || !isDateTime(v)) {
		fail(l.url, "generated_at: "+kit.ShortJSON(raw), "a date-time, such as 2025-11-09T08:00:00Z")
	}
}

func checkPages(l *seenList, fail check.Fail) {
	raw := l.fields["pages"]
	var list []json.RawMessage
	if string(raw) != "null" && json.Unmarshal(raw, &list) != nil {
		fail(l.url, "pages: "+kit.ShortJSON(raw), "an array of objects")
	}
	for _, at := range l.strange {
		fail(l.url, at, "an object with url and ai_indexable")
	}
}

func checkNull(_ context.Context, s *siteContext, fail check.Fail) error {
	if s.list.fields == nil {
		return check.ErrNotApplicable
	}
	for _, name := range slices.Sorted(maps.Keys(s.list.fields)) {
		if string(s.list.fields[name]) == "null" {
			fail(s.list.url, name+": null", "a value, or no member")
		}
	}
	for _, e := range s.list.entries {
		for _, name := range slices.Sorted(maps.Keys(e.fields)) {
			if string(e.fields[name]) == "null" {
				fail(s.list.url, e.at+"/"+name+": null", "a value, or no member")
			}
		}
	}
	return nil
}

// memberType is the type of one member of a page in the schema.
type memberType struct {
	word, name string
	is         kit.Kind
}

// memberTypes are the types of the members of a page (E.9).
var memberTypes = []memberType{
	{"url", "url", kit.TextKind("an absolute URI", isURI)},
	{"lastmod", "lastmod", kit.TextKind("a date-time (RFC 3339)", isDateTime)},
	{"ai-indexable", "ai_indexable", kit.IsBool},
	{"ai-summary", "ai_summary", kit.IsText},
	{"ai-tags", "ai_tags", kit.IsTexts},
	{"ai-checksum", "ai_checksum", kit.IsText},
	{"ai-snapshot", "ai_snapshot", kit.IsObject},
	{"crawl-priority", "crawl_priority", kit.NumberKind("a number from 0 to 1", func(f float64) bool { return f >= 0 && f <= 1 })},
	{"auth-required", "auth_required", kit.IsBool},
	{"robots-directive", "robots_directive", kit.IsText},
}

// check checks the member of an entry. A null member is reported by another rule.
func (m memberType) check(e *seenEntry) (got, want string, about bool) {
	raw, there := e.fields[m.name]
	if !there || string(raw) == "null" {
		return "", "", false
	}
	if m.is.OK(raw) {
		return "", "", true
	}
	return m.name + ": " + kit.ShortJSON(raw), m.is.Want, true
}

// checkHas returns a check that requires a member in the entries for which about returns true, or
// in all entries if about is nil.
func checkHas(name string, about func(*seenEntry) bool) func(e *seenEntry) (got, want string, applies bool) {
	return func(e *seenEntry) (string, string, bool) {
		if about != nil && !about(e) {
			return "", "", false
		}
		if e.fields[name] == nil {
			return "no " + name, "the member in each page", true
		}
		return "", "", true
	}
}

func checkPast(_ context.Context, s *siteContext, fail check.Fail) error {
	generated := kit.Text(s.list.fields["generated_at"])
	made := parseTime(generated)
	if made.IsZero() {
		return check.ErrNotApplicable
	}
	about := false
	for _, e := range s.list.entries {
		t := parseTime(e.text("lastmod"))
		if about = about || !t.IsZero(); t.After(made) {
			fail(s.list.url, e.at+"/lastmod: "+e.text("lastmod"), "not after generated_at, "+generated)
		}
	}
	return check.Applied(about)
}

func checkSameSite(_ context.Context, s *siteContext, fail check.Fail) error {
	about := false
	for _, e := range s.list.entries {
		if u := e.text("url"); isURI(u) {
			about = true
			if e.url == "" || !s.HasHost(e.url) {
				fail(s.list.url, e.at+"/url: "+kit.Short(u), "a page of "+s.Target.Root())
			}
		}
	}
	return check.Applied(about)
}

func checkOnce(_ context.Context, s *siteContext, fail check.Fail) error {
	first := map[string]string{}
	for _, e := range s.list.entries {
		if e.url == "" {
			continue
		}
		if at := first[e.url]; at != "" {
			fail(s.list.url, e.at+"/url: "+kit.Short(e.url)+" is "+at, "one entry per page")
			continue
		}
		first[e.url] = e.at
	}
	return check.Applied(len(first) > 0)
}

func checkClosedSnapshot(e *seenEntry) (got, want string, about bool) {
	if !kit.IsBool.OK(e.fields["ai_indexable"]) || e.open() {
		return "", "", false
	}
	for _, name := range []string{"ai_summary", "ai_tags", "ai_snapshot"} {
		if e.fields[name] != nil {
			return name + " of a page that must not be indexed", "only URL and flags", true
		}
	}
	return "", "", true
}

func checkAuthSnapshot(e *seenEntry) (got, want string, about bool) {
	if string(e.fields["auth_required"]) != "true" {
		return "", "", false
	}
	if e.open() && e.fields["ai_snapshot"] != nil {
		return "ai_snapshot with auth_required: true", "no snapshot without a key", true
	}
	return "", "", true
}

func checkSensitive(e *seenEntry) (got, want string, about bool) {
	n := e.snapshot()
	if n == nil {
		return "", "", false
	}
	if found := n.sensitive(); len(found) > 0 {
		return "a snapshot with a node that is " + strings.Join(found, " and "), "an entry without a snapshot", true
	}
	return "", "", true
}

// shapes lists the members of a snapshot that are arrays of objects.
var shapes = []string{"sections", "groups", "subgroups", "blocks", "fields", "actions"}

func checkShape(e *seenEntry) (got, want string, about bool) {
	n := e.snapshot()
	if n == nil {
		return "", "", false
	}
	if n.text("page") == "" {
		return "a snapshot without page", `a name, such as "article"`, true
	}
	if at := wrongTypeAt(n, "ai_snapshot"); at != "" {
		return at, "an array of objects", true
	}
	return "", "", true
}

// wrongTypeAt returns the position of a member of the wrong type in a node or its descendants.
// Fields may be names only, as in the example of E.3.1.
func wrongTypeAt(n node, at string) string {
	for _, name := range shapes {
		v, there := n[name]
		if !there {
			continue
		}
		list, ok := v.([]any)
		if !ok {
			return at + "/" + name + " is not an array"
		}
		for _, e := range list {
			m, ok := e.(map[string]any)
			if _, text := e.(string); !ok && !(text && name == "fields") {
				return at + "/" + name + " has elements that are not objects"
			}
			if bad := wrongTypeAt(m, at+"/"+name); bad != "" {
				return bad
			}
		}
	}
	return ""
}

// mail and telephone match personal data in texts.
var (
	mail      = regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}`)
	telephone = regexp.MustCompile(`(?:^|[\s(:])\+[1-9][0-9]{0,2}[\s./(-]*(?:[0-9]{2,5}[\s./)-]+){2,4}[0-9]{2,}|\btel:\+?[0-9]{6,}`)
)

func checkPII(e *seenEntry) (got, want string, about bool) {
	for _, name := range []string{"ai_summary", "ai_tags", "ai_snapshot"} {
		raw := e.fields[name]
		about = about || raw != nil
		for _, found := range []string{mail.FindString(string(raw)), telephone.FindString(string(raw))} {
			if found != "" {
				return name + " has " + strings.TrimSpace(found), "no personal data", true
			}
		}
	}
	return "", "", about
}

func checkRate(l *seenList, fail check.Fail) {
	raw := l.fields["crawl_rate"]
	if s, ok := check.JSONText(raw); string(raw) != "null" && !ok {
		fail(l.url, "crawl_rate: "+kit.ShortJSON(raw), `a rate, such as "1/s"`)
	} else if _, is := parseRate(s); ok && !is {
		fail(l.url, "crawl_rate: "+kit.ShortJSON(raw), `a rate, such as "1/s"`)
	}
}

func checkContact(l *seenList, fail check.Fail) {
	raw := l.fields["ai-crawl-contact"]
	if s, ok := check.JSONText(raw); string(raw) != "null" && (!ok || strings.TrimSpace(s) == "") {
		fail(l.url, "ai-crawl-contact: "+kit.ShortJSON(raw), "a contact address")
	}
}

// generated returns the day on which a list was generated, or false if it is unknown.
func (l *seenList) generated() (time.Time, bool) {
	s := kit.Text(l.fields["generated_at"])
	t := parseTime(s)
	return t, !t.IsZero()
}
