package tct

import (
	"strconv"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/protocol/kit"
)

func checkCacheControl00(p *seenPage, fail check.Fail) bool {
	if !p.OK() {
		return false
	}
	said := kit.Directives(p.Resp)
	_, again := said["must-revalidate"]
	_, private := said["private"]
	age, err := strconv.Atoi(said["max-age"])
	if !again || !private && (err != nil || age != 0) {
		fail(p.MURL, "Cache-Control: "+p.Resp.Field("Cache-Control"), "must-revalidate, and max-age=0 or private")
	}
	return true
}
