package web

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

// seenAtom is the site's Atom feed. feed is nil if the document could not be parsed.
type seenAtom struct {
	resp    *check.Response
	feed    *node
	why     string // why the document could not be parsed
	entries []*node
	gone    []*node
}

func seeAtom(resp *check.Response) *seenAtom {
	a := &seenAtom{resp: resp}
	root, err := parseXML(resp.Body, maxNodes)
	switch {
	case err != nil:
		a.why = err.Error()
	case !root.is(atomSpace, "feed"):
		a.why = fmt.Sprintf("root element <%s> in namespace %q", root.name.Local, root.name.Space)
	default:
		a.feed, a.entries, a.gone = root, root.all(atomSpace, "entry"), root.all(tombstoneSpace, "deleted-entry")
	}
	return a
}

func checkAtomXML(a *seenAtom, fail check.Fail) {
	if a.feed == nil {
		fail(a.resp.URL, a.why, "XML with the root feed")
	}
}

func checkAtomType(a *seenAtom, fail check.Fail) {
	kit.MediaType(a.resp.URL, a.resp, atomType, fail)
}

// one reports a finding unless an element has exactly one child with the given name, and returns
// that child.
func (a *seenAtom) one(in *node, name string, fail check.Fail) *node {
	is := in.all(atomSpace, name)
	if len(is) != 1 {
		fail(a.resp.URL, fmt.Sprintf("line %d: %d %s elements", in.line, len(is), name), "one")
		return nil
	}
	return is[0]
}

// id reports a finding unless an element has exactly one id, an absolute IRI.
func (a *seenAtom) id(in *node, fail check.Fail) {
	id := a.one(in, "id", fail)
	if id == nil {
		return
	}
	if u, err := url.Parse(id.text); err != nil || u.Scheme == "" {
		fail(a.resp.URL, fmt.Sprintf("line %d: id %q", id.line, kit.Short(id.text)), "an absolute IRI")
	}
}

func checkFeedID(a *seenAtom, fail check.Fail)      { a.id(a.feed, fail) }
func checkFeedTitle(a *seenAtom, fail check.Fail)   { a.one(a.feed, "title", fail) }
func checkFeedUpdated(a *seenAtom, fail check.Fail) { a.one(a.feed, "updated", fail) }

func checkFeedAuthor(a *seenAtom, fail check.Fail) {
	if len(a.feed.all(atomSpace, "author")) > 0 {
		return
	}
	for _, e := range a.entries {
		if len(e.all(atomSpace, "author")) == 0 {
			fail(a.resp.URL, fmt.Sprintf("line %d: an entry without an author, in a feed without one", e.line), "author")
		}
	}
}

// links reports whether an element has a link with the given relation.
func (n *node) links(rel string) bool {
	for _, l := range n.all(atomSpace, "link") {
		is, ok := l.attr("rel")
		if !ok {
			is = "alternate"
		}
		if href, _ := l.attr("href"); strings.EqualFold(is, rel) && href != "" {
			return true
		}
	}
	return false
}

func checkFeedSelf(a *seenAtom, fail check.Fail) {
	if !a.feed.links("self") {
		fail(a.resp.URL, "no link with rel=self", `<link rel="self" href="`+a.resp.URL+`"/>`)
	}
}

func checkSameEntry(a *seenAtom, fail check.Fail) {
	seen := map[string]bool{}
	for _, e := range a.entries {
		id, updated := e.all(atomSpace, "id"), e.all(atomSpace, "updated")
		if len(id) != 1 || len(updated) != 1 {
			continue
		}
		key := id[0].text + " " + updated[0].text
		if seen[key] {
			fail(a.resp.URL, fmt.Sprintf("line %d: duplicate id %s with the same time, %s", e.line, kit.Short(id[0].text), updated[0].text), "different times, or one entry")
		}
		seen[key] = true
	}
}

// each calls f for every entry.
func (a *seenAtom) each(f func(e *node)) {
	for _, e := range a.entries {
		f(e)
	}
}

func checkEntryID(a *seenAtom, fail check.Fail)    { a.each(func(e *node) { a.id(e, fail) }) }
func checkEntryTitle(a *seenAtom, fail check.Fail) { a.each(func(e *node) { a.one(e, "title", fail) }) }

func checkEntryUpdated(a *seenAtom, fail check.Fail) {
	a.each(func(e *node) { a.one(e, "updated", fail) })
}

func checkEntryLink(a *seenAtom, fail check.Fail) {
	a.each(func(e *node) {
		if len(e.all(atomSpace, "content")) == 0 && !e.links("alternate") {
			fail(a.resp.URL, fmt.Sprintf("line %d: neither content nor a link with rel=alternate", e.line), "one of them")
		}
	})
}

// rfc3339 matches a time as in RFC 4287, section 3.3, with T and Z in upper case.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

// isDate reports whether s is a date and time.
func isDate(s string) bool {
	_, err := time.Parse(time.RFC3339, s)
	return err == nil && rfc3339.MatchString(s)
}

func checkFeedDates(a *seenAtom, fail check.Fail) {
	for _, in := range append([]*node{a.feed}, a.entries...) {
		for _, name := range []string{"updated", "published"} {
			for _, n := range in.all(atomSpace, name) {
				if !isDate(n.text) {
					fail(a.resp.URL, fmt.Sprintf("line %d: %s %q", n.line, name, kit.Short(n.text)), "a time such as 2026-01-02T03:04:05Z")
				}
			}
		}
	}
}

func checkTombstoneRef(a *seenAtom, fail check.Fail) {
	for _, g := range a.gone {
		ref, _ := g.attr("ref")
		if u, err := url.Parse(strings.TrimSpace(ref)); err != nil || u.Scheme == "" {
			fail(a.resp.URL, fmt.Sprintf("line %d: ref %q", g.line, kit.Short(ref)), "the id of an entry")
		}
	}
}

func checkTombstoneWhen(a *seenAtom, fail check.Fail) {
	for _, g := range a.gone {
		if when, _ := g.attr("when"); !isDate(when) {
			fail(a.resp.URL, fmt.Sprintf("line %d: when %q", g.line, kit.Short(when)), "a time such as 2026-01-02T03:04:05Z")
		}
	}
}
