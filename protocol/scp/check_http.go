package scp

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
)

// onFiles returns a check that runs f on every file with a complete response. f reports whether the
// rule applies to the file.
func onFiles(f func(s *siteContext, c *seenFile, fail check.Fail) bool) siteCheck {
	return askFiles(func(_ context.Context, s *siteContext, c *seenFile, fail check.Fail) (bool, error) {
		return f(s, c, fail), nil
	})
}

// askFiles is like onFiles, for rules that send requests. If one file cannot be examined, it
// continues with the others.
func askFiles(f func(ctx context.Context, s *siteContext, c *seenFile, fail check.Fail) (bool, error)) siteCheck {
	return check.Each(func(s *siteContext) []*seenFile { return s.files }, func(ctx context.Context, s *siteContext, c *seenFile, fail check.Fail) (bool, error) {
		if !c.ok() {
			return false, c.notFetched()
		}
		return f(ctx, s, c, fail)
	})
}

func checkContentType(_ *siteContext, c *seenFile, fail check.Fail) bool {
	kit.MediaType(c.ref.url, c.resp, contentType, fail)
	return true
}

func checkContentEncoding(_ *siteContext, c *seenFile, fail check.Fail) bool {
	if !c.suffix {
		return false
	}
	got := strings.ToLower(c.resp.Field("Content-Encoding"))
	if got != c.named && (got != "identity" || c.named != "") {
		want := "no Content-Encoding"
		if c.named != "" {
			want = "Content-Encoding: " + c.named
		}
		fail(c.ref.url, "Content-Encoding: "+got, want)
	}
	return true
}

func checkContentLength(_ *siteContext, c *seenFile, fail check.Fail) bool {
	if got := c.resp.Header.Get("Content-Length"); got != strconv.Itoa(len(c.resp.Coded)) {
		fail(c.ref.url, "Content-Length: "+got, "Content-Length: "+strconv.Itoa(len(c.resp.Coded)))
	}
	return true
}

// hasField returns a check that requires a header field.
func hasField(name, want string) siteCheck {
	return onFiles(func(_ *siteContext, c *seenFile, fail check.Fail) bool {
		if c.resp.Header.Get(name) == "" {
			fail(c.ref.url, "no "+name, name+": "+want)
		}
		return true
	})
}

func checkTagIsSum(_ *siteContext, c *seenFile, fail check.Fail) bool {
	got := c.resp.Header.Get("ETag")
	if c.content == nil || c.meta.Checksum == "" || got == "" {
		return false
	}
	if want := `"` + c.meta.Checksum + `"`; got != want {
		fail(c.ref.url, "ETag: "+got, "ETag: "+want)
	}
	return true
}

func checkLastModified(_ *siteContext, c *seenFile, fail check.Fail) bool {
	got := c.resp.Header.Get("Last-Modified")
	if c.content == nil || c.meta.Generated.IsZero() || got == "" {
		return false
	}
	if want := c.meta.Generated.UTC().Format(http.TimeFormat); got != want {
		fail(c.ref.url, "Last-Modified: "+got, "Last-Modified: "+want)
	}
	return true
}
