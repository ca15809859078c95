package scp

import (
	"fmt"
	"strconv"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

// maxAge returns the max-age of a response in seconds, or -1 if it is absent or invalid.
func maxAge(r *check.Response) int {
	if n, err := strconv.Atoi(kit.Directives(r)["max-age"]); err == nil {
		return n
	}
	return -1
}

func checkPublic(_ *siteContext, c *seenFile, fail check.Fail) bool {
	d := kit.Directives(c.resp)
	if _, ok := d["public"]; d != nil && !ok {
		fail(c.ref.url, "Cache-Control: "+c.resp.Header.Get("Cache-Control"), "public")
	}
	return d != nil
}

// interval returns the length of an update interval in seconds, or 0 if the frequency is unknown. A
// month is counted as four weeks.
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

func checkMaxAge(s *siteContext, c *seenFile, fail check.Fail) bool {
	if c.ref.delta || kit.Directives(c.resp) == nil {
		return false
	}
	for _, e := range s.list.elements {
		if e.name != "section" || e.attr["name"] != c.ref.section || interval(e.attr["updateFreq"]) == 0 {
			continue
		}
		if least := interval(e.attr["updateFreq"]); maxAge(c.resp) < least {
			fail(c.ref.url, "Cache-Control: "+c.resp.Header.Get("Cache-Control"), fmt.Sprintf("max-age=%d or more, because updateFreq is %s", least, e.attr["updateFreq"]))
		}
		return true
	}
	return false
}

func checkDeltaMaxAge(s *siteContext, c *seenFile, fail check.Fail) bool {
	if !c.ref.delta || kit.Directives(c.resp) == nil {
		return false
	}
	for _, f := range s.files {
		if f.ref.delta || !f.ok() || maxAge(f.resp) < 0 {
			continue
		}
		if age := maxAge(c.resp); age < 0 || age >= maxAge(f.resp) {
			fail(c.ref.url, "Cache-Control: "+c.resp.Header.Get("Cache-Control"), fmt.Sprintf("max-age below that of the snapshot, %d", maxAge(f.resp)))
		}
		return true
	}
	return false
}

func checkMustRevalidate(_ *siteContext, c *seenFile, fail check.Fail) bool {
	d := kit.Directives(c.resp)
	if !c.ref.delta || d == nil {
		return false
	}
	if _, ok := d["must-revalidate"]; !ok {
		fail(c.ref.url, "Cache-Control: "+c.resp.Header.Get("Cache-Control"), "must-revalidate")
	}
	return true
}
