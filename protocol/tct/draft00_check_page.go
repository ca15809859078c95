package tct

import (
	"strconv"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

func checkCacheControl00(p *seenPage, fail check.Fail) bool {
	if !p.OK() {
		return false
	}
	directives := kit.Directives(p.Resp)
	_, again := directives["must-revalidate"]
	_, private := directives["private"]
	age, err := strconv.Atoi(directives["max-age"])
	if !again || !private && (err != nil || age != 0) {
		fail(p.MURL, "Cache-Control: "+p.Resp.Field("Cache-Control"), "must-revalidate, and max-age=0 or private")
	}
	return true
}
