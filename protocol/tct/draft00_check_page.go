package tct

import (
	"bytes"
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/check"

	"github.com/millrace/millrace/internal/weblink"
)

func checkAlternate00(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	page, err := s.Page(ctx, p)
	if err != nil || page == nil || page.Status != http.StatusOK || !p.OK() || !saysHTML(page) {
		return false, err
	}
	base, err := url.Parse(page.URL)
	if err != nil {
		return false, err
	}
	got := "no such element"
	for _, l := range weblink.HTML(bytes.NewReader(page.Body), base).Links {
		if !l.Is("alternate", mediaType) {
			continue
		}
		if l.URL == p.MURL {
			return true, nil
		}
		got = l.URL
	}
	fail(p.CURL, got, `<link rel="alternate" type="application/json" href="`+p.MURL+`">`)
	return true, nil
}

func checkContentType00(p *seenPage, fail check.Fail) bool {
	if !p.OK() {
		return false
	}
	got := p.Resp.Header.Get("Content-Type")
	if typ, _, err := mime.ParseMediaType(got); err != nil || typ != mediaType {
		fail(p.MURL, "Content-Type: "+got, "Content-Type: "+contentType)
	}
	return true
}

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

func checkVary00(p *seenPage, fail check.Fail) bool {
	if !p.OK() {
		return false
	}
	got := strings.Join(p.Resp.Header.Values("Vary"), ", ")
	if !slices.ContainsFunc(strings.Split(got, ","), func(name string) bool {
		name = strings.TrimSpace(name)
		return name == "*" || strings.EqualFold(name, "Accept")
	}) {
		fail(p.MURL, "Vary: "+got, "Vary: Accept")
	}
	return true
}

func checkObject00(p *seenPage, fail check.Fail) bool {
	if !p.OK() {
		return false
	}
	var v json.RawMessage
	switch err := json.Unmarshal(p.Body, &v); {
	case err != nil:
		fail(p.MURL, err.Error(), "one JSON object")
	case p.Fields == nil:
		fail(p.MURL, shortened(string(p.Body)), "an object")
	}
	return true
}

func checkParity00(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	if p.Item == nil || !p.OK() || !isHash(p.Item.Tag) || !isHash(p.Tag) {
		return false, nil
	}
	if strings.EqualFold(p.Tag, p.Item.Tag) {
		return true, nil
	}
	return true, checkParity(ctx, s, p, fail)
}

func checkNotModifiedFields00(ctx context.Context, s *siteContext, p *seenPage, fail check.Fail) (bool, error) {
	resp, err := s.Unmodified(ctx, p, fail)
	if resp == nil {
		return false, err
	}
	for _, name := range []string{"Last-Modified", "Cache-Control"} {
		if resp.Header.Get(name) == "" {
			fail(p.MURL, "304 without "+name, strings.TrimSuffix(name+": "+p.Resp.Header.Get(name), ": "))
		}
	}
	return true, nil
}
