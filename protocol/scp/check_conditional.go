package scp

import (
	"context"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

// otherTag is a well-formed ETag that no collection has.
const otherTag = `"` + hashPrefix + noSum + `"`

// askProbes returns a check that runs f on every file, or only on the smallest file if all is
// false.
func askProbes(all bool, f kit.Condition) siteCheck {
	return askFiles(func(ctx context.Context, s *siteContext, c *seenFile, fail check.Fail) (bool, error) {
		if !all && c != s.smallest() {
			return false, nil
		}
		return f(ctx, &kit.Probe{Target: s.Target, URL: c.ref.url, Header: c.header, First: c.resp, What: "file", Tag: c.resp.Header.Get("ETag"), Other: otherTag}, fail)
	})
}

// checkPrecedence checks precedence only if the server responds with 304 when both conditions are true.
// The rule conditional/both reports other servers.
func checkPrecedence(ctx context.Context, p *kit.Probe, fail check.Fail) (bool, error) {
	if resp, err := p.NotModified(ctx, "If-None-Match", p.Tag, "If-Modified-Since", p.Modified()); resp == nil {
		return false, err
	}
	return kit.Precedence(ctx, p, fail)
}

// smallest returns the smallest readable file, because the rules fetch it several times. If no file
// is readable, it returns nil.
func (s *siteContext) smallest() (best *seenFile) {
	for _, f := range s.files {
		if f.ok() && (best == nil || len(f.resp.Coded) < len(best.resp.Coded)) {
			best = f
		}
	}
	return best
}
