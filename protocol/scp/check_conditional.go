package scp

import (
	"context"
	"net/http"
	"time"

	"github.com/millrace/millrace/check"
)

// otherTag is a tag of the right form that no collection has.
const otherTag = `"` + hashPrefix + noSum + `"`

// longAgo is before any collection.
const longAgo = "Sun, 06 Nov 1994 08:49:37 GMT"

// conditional asks for a file under conditions.
func (s *survey) conditional(ctx context.Context, f *seenFile, fields ...string) (*check.Response, error) {
	h := f.header.Clone()
	for i := 0; i < len(fields); i += 2 {
		h.Set(fields[i], fields[i+1])
	}
	return s.Do(ctx, http.MethodGet, f.ref.url, h)
}

// unchanged checks that conditions give 304. plain: that they do is what other
// rules build on.
func (s *survey) unchanged(ctx context.Context, f *seenFile, fail check.Fail, fields ...string) (bool, error) {
	resp, err := s.conditional(ctx, f, fields...)
	if err != nil {
		return false, err
	}
	if resp.Status == http.StatusOK && (resp.Header.Get("ETag") != f.resp.Header.Get("ETag") || resp.Header.Get("Last-Modified") != f.resp.Header.Get("Last-Modified")) {
		return false, nil // the file has changed since
	}
	if resp.Status != http.StatusNotModified {
		said := ""
		for i := 0; i < len(fields); i += 2 {
			said += " " + fields[i] + ": " + fields[i+1]
		}
		fail(f.ref.url, resp.Said()+" to"+said, "304 Not Modified")
	}
	return true, nil
}

// validators gives those of a file.
func (f *seenFile) validators() (tag, modified string) {
	return f.resp.Header.Get("ETag"), f.resp.Header.Get("Last-Modified")
}

// asks reports whether both conditions work alone.
func (s *survey) asks(ctx context.Context, f *seenFile, names ...string) (bool, error) {
	for _, name := range names {
		tag, modified := f.validators()
		value := map[string]string{"If-None-Match": tag, "If-Modified-Since": modified}[name]
		if value == "" {
			return false, nil
		}
		resp, err := s.conditional(ctx, f, name, value)
		if err != nil || resp.Status != http.StatusNotModified {
			return false, err
		}
	}
	return true, nil
}

func checkNoneMatch(ctx context.Context, s *survey, f *seenFile, fail check.Fail) (bool, error) {
	tag, _ := f.validators()
	if tag == "" {
		return false, nil
	}
	return s.unchanged(ctx, f, fail, "If-None-Match", tag)
}

func checkModifiedSince(ctx context.Context, s *survey, f *seenFile, fail check.Fail) (bool, error) {
	_, modified := f.validators()
	if modified == "" {
		return false, nil
	}
	return s.unchanged(ctx, f, fail, "If-Modified-Since", modified)
}

func checkBoth(ctx context.Context, s *survey, f *seenFile, fail check.Fail) (bool, error) {
	if ok, err := s.asks(ctx, f, "If-None-Match", "If-Modified-Since"); !ok {
		return false, err
	}
	tag, modified := f.validators()
	return s.unchanged(ctx, f, fail, "If-None-Match", tag, "If-Modified-Since", modified)
}

// checkForms asks with other forms of a condition that holds (RFC 7232,
// section 3.2).
func checkForms(ctx context.Context, s *survey, f *seenFile, fail check.Fail) (bool, error) {
	if ok, err := s.asks(ctx, f, "If-None-Match"); !ok || f != s.smallest() {
		return false, err
	}
	tag, _ := f.validators()
	for _, value := range []string{otherTag + ", " + tag, "W/" + tag, "*"} {
		if tag[0] != '"' && value[0] == 'W' {
			continue // it is weak as it is
		}
		if ok, err := s.unchanged(ctx, f, fail, "If-None-Match", value); !ok {
			return false, err
		}
	}
	return true, nil
}

func checkNotModifiedFields(ctx context.Context, s *survey, f *seenFile, fail check.Fail) (bool, error) {
	if ok, err := s.asks(ctx, f, "If-None-Match"); !ok {
		return false, err
	}
	tag, _ := f.validators()
	resp, err := s.conditional(ctx, f, "If-None-Match", tag)
	if err != nil {
		return false, err
	}
	for _, name := range []string{"Cache-Control", "Content-Location", "ETag", "Expires", "Vary"} {
		if want := f.resp.Header.Get(name); want != "" && resp.Header.Get(name) == "" {
			fail(f.ref.url, "304 without "+name, name+": "+want)
		}
	}
	return true, nil
}

// checkChanged asks as somebody does who has another state. The file comes
// again, so that the smallest one has to do.
func checkChanged(ctx context.Context, s *survey, f *seenFile, fail check.Fail) (bool, error) {
	if f != s.smallest() {
		return false, nil
	}
	tag, modified := f.validators()
	some := false
	for _, c := range []struct{ name, value, has string }{{"If-None-Match", otherTag, tag}, {"If-Modified-Since", longAgo, modified}} {
		if c.has == "" {
			continue
		}
		some = true
		resp, err := s.conditional(ctx, f, c.name, c.value)
		if err != nil {
			return false, err
		}
		if resp.Status != http.StatusOK {
			fail(f.ref.url, resp.Said()+" to "+c.name+": "+c.value, "200 OK and the file")
		}
	}
	return some, nil
}

// checkPrecedence wants the tag to decide (RFC 7232, section 6).
func checkPrecedence(ctx context.Context, s *survey, f *seenFile, fail check.Fail) (bool, error) {
	if f != s.smallest() {
		return false, nil
	}
	if ok, err := s.asks(ctx, f, "If-None-Match", "If-Modified-Since"); !ok {
		return false, err
	}
	if resp, err := s.conditional(ctx, f, "If-None-Match", otherTag); err != nil || resp.Status != http.StatusOK {
		return false, err // changed
	}
	_, modified := f.validators()
	if t, err := http.ParseTime(modified); err == nil {
		modified = t.Add(time.Second).Format(http.TimeFormat)
	}
	resp, err := s.conditional(ctx, f, "If-None-Match", otherTag, "If-Modified-Since", modified)
	if err != nil {
		return false, err
	}
	if resp.Status != http.StatusOK {
		fail(f.ref.url, resp.Said()+" to another tag with If-Modified-Since: "+modified, "200 OK: the tag decides")
	}
	return true, nil
}

// smallest gives the file that may come several times, nil if there is none.
func (s *survey) smallest() (best *seenFile) {
	for _, f := range s.files {
		if f.ok() && (best == nil || len(f.resp.Coded) < len(best.resp.Coded)) {
			best = f
		}
	}
	return best
}
