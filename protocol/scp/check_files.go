package scp

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/millrace/millrace/check"
)

// checkThere checks that each file can be fetched. Before it reports a failure, it fetches the
// sitemap again, because the file may have been replaced.
func checkThere(ctx context.Context, s *siteContext, fail check.Fail) error {
	some := false
	for _, f := range s.files {
		if err := f.notFetched(); err != nil {
			return err
		}
		some = true
		var got string
		switch {
		case f.err != nil:
			got = f.err.Error()
		case f.resp.Status != http.StatusOK:
			got = f.resp.StatusText()
		case f.resp.CutErr != nil:
			got = "a truncated body: " + f.resp.CutErr.Error()
		default:
			continue
		}
		still, err := s.unchanged(ctx, f.ref)
		if err != nil {
			return err
		}
		if still {
			fail(f.ref.url, got, "200 OK and the file")
		}
	}
	return check.Applied(some)
}

// asDeclared returns a check that compares a property of each file with the declaration in the
// sitemap. f returns both values; "" means that they cannot be compared.
func asDeclared(f func(c *seenFile) (is, declared string)) siteCheck {
	return askFiles(func(ctx context.Context, s *siteContext, c *seenFile, fail check.Fail) (bool, error) {
		if c.content == nil {
			return false, nil
		}
		is, stated := f(c)
		switch {
		case is == "" || stated == "":
			return false, nil
		case is == stated:
			return true, nil
		}
		still, err := s.unchanged(ctx, c.ref)
		if err == nil && still {
			fail(c.ref.url, "the sitemap declares "+stated+", the file has "+is, is)
		}
		return true, err
	})
}

// instantText returns a time in whole seconds, in the format of sitemaps, or "" for the zero time.
func instantText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Truncate(time.Second).Format(time.RFC3339)
}

func declaredSize(c *seenFile) (is, declared string) {
	if c.ref.size < 0 || c.coding != c.named {
		return "", ""
	}
	return strconv.Itoa(len(c.resp.Coded)) + " bytes", strconv.FormatInt(c.ref.size, 10) + " bytes"
}

func declaredPages(c *seenFile) (is, declared string) {
	if c.ref.pages < 0 || !c.complete {
		return "", ""
	}
	return strconv.Itoa(c.lines) + " pages", strconv.FormatInt(c.ref.pages, 10) + " pages"
}

func declaredSection(c *seenFile) (is, declared string) { return c.meta.Section, c.ref.section }

func declaredKind(c *seenFile) (is, declared string) {
	declared = "snapshot"
	if c.ref.delta {
		declared = "delta"
	}
	return c.meta.Type, declared
}

func declaredGenerated(c *seenFile) (is, declared string) {
	return instantText(c.meta.Generated), instantText(c.ref.generated)
}

func declaredSince(c *seenFile) (is, declared string) {
	return instantText(c.meta.Since), instantText(c.ref.since)
}

// checkUniqueID checks that all collections have different IDs.
func checkUniqueID(_ context.Context, s *siteContext, fail check.Fail) error {
	first := map[string]*seenFile{}
	for _, f := range s.files {
		if f.content == nil || f.meta.ID == "" {
			continue
		}
		other := first[f.meta.ID]
		if other != nil && other.sum != f.sum && other.ref.group() != f.ref.group() {
			fail(f.ref.url, fmt.Sprintf("id %q is also that of %s", f.meta.ID, other.ref.url), "a unique id")
		}
		if other == nil {
			first[f.meta.ID] = f
		}
	}
	return check.Applied(len(first) > 0)
}

func checkSum(_ *siteContext, c *seenFile, fail check.Fail) bool {
	if c.content == nil || c.checksum == "" || c.checksum == "none" {
		return false
	}
	if c.checksum == "bad" {
		fail(c.ref.url, "checksum "+c.meta.Checksum+" is not the SHA-256 of the file with the member removed, empty or set to zeros, nor that of the pages alone", "the SHA-256 of the uncompressed file")
	}
	return true
}

func checkReading(_ *siteContext, c *seenFile, fail check.Fail) bool {
	if c.content == nil || c.checksum == "" || c.checksum == "none" || c.checksum == "bad" {
		return false
	}
	reading := map[string]string{"empty": "with an empty checksum", "zeros": "with 64 zeros as the checksum", "pages-only": "without the first line, which it does not protect"}[c.checksum]
	if reading != "" {
		fail(c.ref.url, "checksum covers the file "+reading, "the hash of the file without the member checksum and its comma")
	}
	return true
}

func checkSuffix(_ *siteContext, r *reference) (string, bool) {
	if _, ok := suffixOf(r.url); !ok && r.url != "" {
		return "another suffix", true
	}
	return "", r.url != ""
}
