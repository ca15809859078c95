package tct01

import (
	"context"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/tct"
)

// validator is a rule about conditional requests for the M-URLs that were there.
func validator(rule func(v *tct.Validator, ctx context.Context, fail check.Fail) (bool, error)) look {
	return askPages(func(ctx context.Context, s *survey, p *seenPage, fail check.Fail) (bool, error) {
		if !p.ok() {
			return false, nil
		}
		return rule(p.validator(s), ctx, fail)
	})
}

func (p *seenPage) validator(s *survey) *tct.Validator {
	return &tct.Validator{Target: s.t, URL: p.murl, Resp: p.resp, Tag: p.tag}
}

func checkNotModifiedFields(ctx context.Context, s *survey, p *seenPage, fail check.Fail) (bool, error) {
	if !p.ok() {
		return false, nil
	}
	resp, err := p.validator(s).Keeps(ctx, fail)
	if resp == nil {
		return false, err
	}
	for _, name := range []string{"Cache-Control", "Content-Location", "Expires", "Vary"} {
		if want := p.resp.Header.Get(name); want != "" && resp.Header.Get(name) == "" {
			fail(p.murl, "304 without "+name, name+": "+want)
		}
	}
	return true, nil
}
