package tct

import (
	"strconv"
	"strings"

	"github.com/millrace/millrace/check"
)

// directives gives the directives of a Cache-Control field, by name.
func directives(r *check.Response) map[string]string {
	out := make(map[string]string)
	for d := range strings.SplitSeq(strings.ToLower(strings.Join(r.Header.Values("Cache-Control"), ",")), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(d), "=")
		out[name] = strings.Trim(value, `"`)
	}
	return out
}

func checkCacheControl00(p *seenPage, fail check.Fail) bool {
	if !p.OK() {
		return false
	}
	said := directives(p.Resp)
	_, again := said["must-revalidate"]
	_, private := said["private"]
	age, err := strconv.Atoi(said["max-age"])
	if !again || !private && (err != nil || age != 0) {
		fail(p.MURL, "Cache-Control: "+strings.Join(p.Resp.Header.Values("Cache-Control"), ", "), "must-revalidate, and max-age=0 or private")
	}
	return true
}
