package web

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"unicode/utf8"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
)

// seenLLMs is the site's llms.txt. doc is nil if the document has no title.
type seenLLMs struct {
	resp *check.Response
	doc  *llmsDoc
}

func checkLLMsTitle(l *seenLLMs, fail check.Fail) {
	if l.doc == nil {
		fail(l.resp.URL, "no title", "# and the name of the site, before any other text")
	}
}

// problems returns the function of a rule that reports the problems of one kind.
func problems(kind, want string) func(l *seenLLMs, fail check.Fail) {
	return func(l *seenLLMs, fail check.Fail) {
		if l.doc == nil {
			return
		}
		for _, p := range l.doc.Problems {
			if p.Rule == kind {
				fail(l.resp.URL, fmt.Sprintf("line %d: %s", p.Line, p.Text), want)
			}
		}
	}
}

func checkLLMsText(l *seenLLMs, fail check.Fail) {
	mt, _, _ := mime.ParseMediaType(l.resp.Header.Get("Content-Type"))
	switch {
	case mt != "text/plain" && mt != "text/markdown":
		fail(l.resp.URL, "Content-Type: "+l.resp.Header.Get("Content-Type"), "text/plain or text/markdown")
	case !utf8.Valid(l.resp.Body):
		fail(l.resp.URL, "bytes that are not UTF-8", "UTF-8")
	}
}

func checkLLMsSize(l *seenLLMs, fail check.Fail) {
	if n := utf8.RuneCount(l.resp.Body); n >= maxLLMs {
		fail(l.resp.URL, fmt.Sprintf("%d characters", n), "fewer than 50,000; list parts of the site in further files")
	}
}

func checkLLMsLinks(ctx context.Context, s *siteContext, fail check.Fail) error {
	if s.llms == nil || s.llms.doc == nil || len(s.llms.doc.Links) == 0 {
		return check.ErrNotApplicable
	}
	base, err := url.Parse(s.llms.resp.URL)
	if err != nil {
		return err
	}
	for _, l := range check.Sample(s.Target, s.llms.doc.Links) {
		u, err := canon.Resolve(base, l.URL)
		if err != nil {
			fail(s.llms.resp.URL, fmt.Sprintf("line %d: %s", l.Line, kit.Short(l.URL)), "the URL of a document")
			continue
		}
		if !s.HasHost(u) {
			continue
		}
		resp, err := s.Target.Get(ctx, u)
		switch {
		case check.IsInconclusive(err), ctx.Err() != nil:
			return err
		case err != nil:
			fail(s.llms.resp.URL, fmt.Sprintf("line %d: %s: %v", l.Line, u, err), "a document")
		case resp.Status == http.StatusNotFound || resp.Status == http.StatusGone:
			fail(s.llms.resp.URL, fmt.Sprintf("line %d: %s returns %s", l.Line, u, resp.StatusText()), "a document")
		}
	}
	return nil
}
