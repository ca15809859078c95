package arc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/policy"
)

// head contains the members of a list other than its pages (E.3.1, E.7). "" means that the member
// is absent.
type head struct {
	Version   string // arc_sitemap_version
	Site      string
	Generated string // generated_at, RFC 3339
	Rate      string // crawl_rate, such as "1/s"
	Contact   string // ai-crawl-contact

	Nulls []string // optional members of a received list that were null or of the wrong type
}

// append appends the head as JSON, up to the first page.
func (h *head) append(dst []byte) []byte {
	dst = canon.AppendMember(append(dst, '{'), "arc_sitemap_version", h.Version)
	for _, m := range h.members() {
		dst = canon.AppendMember(append(dst, ','), m[0], m[1])
	}
	return append(dst, `,"pages":[`...)
}

// members returns the names and values of the present members, except the version.
func (h *head) members() (out [][2]string) {
	for _, m := range [][2]string{
		{"site", h.Site}, {"generated_at", h.Generated}, {"crawl_rate", h.Rate}, {"ai-crawl-contact", h.Contact},
	} {
		if m[1] != "" {
			out = append(out, m)
		}
	}
	return out
}

// listTail is the text after the last page of a list.
const listTail = "]}"

// errVersion is the error for a list of an unknown version.
var errVersion = millrace.Coded("unknown-version", errors.New("unknown list version"))

// errNoList is the error for a document that is not an ARC sitemap.
var errNoList = errors.New("not an ARC sitemap")

// scanList reads a list of at most size bytes in constant memory. For each page it calls visit with
// the index, and with the entry and the names of its null members, or with an error. visit may stop
// the scan by returning false. The visited pages are valid only if scanList returns nil, because
// the version may come after the pages. The returned head is nil if visit stopped the scan, and
// after an error. Errors wrap errNoList, errVersion, ErrTooLarge or a [*millrace.FormatError]
// without the list's URL.
func scanList(r io.Reader, size int64, visit func(i int, e *entry, nulls []string, err error) bool) (*head, error) {
	in := jsonio.NewReader(r, &jsonio.Limits{Size: size, Value: maxEntry, Depth: maxDepth + 8})
	raw := map[string]jsonio.Raw{}
	pages, stopped, err := walkList(in, raw, visit)
	if stopped {
		return nil, nil //nolint:nilnil // a caller that stopped the scan needs no head
	}
	if err != nil {
		if !pages && raw["arc_sitemap_version"] == nil && !errors.Is(err, millrace.ErrTooLarge) {
			return nil, fmt.Errorf("%w: %w", errNoList, formatError(err, "", "E.9"))
		}
		return nil, formatError(err, "", "E.9")
	}
	return checkHead(raw, pages)
}

func walkList(
	r *jsonio.Reader, raw map[string]jsonio.Raw, visit func(i int, e *entry, nulls []string, err error) bool,
) (pages, stopped bool, err error) {
	for name, err := range r.Members() {
		if err != nil {
			return pages, false, err
		}
		switch name {
		case "arc_sitemap_version", "site", "generated_at", "crawl_rate", "ai-crawl-contact":
			if raw[name], err = r.Raw(); err != nil {
				return pages, false, err
			}
			if name == "arc_sitemap_version" {
				if _, err := checkVersion(raw[name]); err != nil {
					return pages, false, err
				}
			}
		case "pages":
			pages = true
			for i, err := range r.Elements() {
				if err != nil {
					return pages, false, err
				}
				value, err := r.Raw()
				if err != nil && !errors.Is(err, millrace.ErrTooLarge) {
					return pages, false, err
				}
				var e *entry
				var nulls []string
				if err == nil {
					e, nulls, err = decodeEntry(value)
				} else {
					e = &entry{URL: overlong(r, value)}
				}
				if !visit(i, e, nulls, err) {
					return pages, true, nil
				}
			}
		}
	}
	return pages, false, nil
}

// overlong returns the URL of an entry that is too long: from its bytes if they were read, else
// from the pending value. If the entry has no URL, it returns "".
func overlong(r *jsonio.Reader, value jsonio.Raw) (u string) {
	if value != nil {
		r = jsonio.NewReader(bytes.NewReader(value), &jsonio.Limits{Depth: maxDepth + 8})
	}
	for name, err := range r.Members() {
		if err != nil {
			return ""
		}
		if name == "url" {
			if raw, err := r.Raw(); err == nil && raw.Kind() == '"' && take(raw, &u, "") == nil {
				return u
			}
			return ""
		}
	}
	return ""
}

// checkVersion returns the version of a list. Only the major number is checked (E.8).
func checkVersion(raw jsonio.Raw) (string, error) {
	var v string
	if raw.Kind() != '"' || take(raw, &v, "") != nil {
		return "", invalid("/arc_sitemap_version", "E.9", "got "+kit.Short(string(raw))+", want a string")
	}
	major, _, _ := strings.Cut(v, ".")
	if major != majorVersion {
		return "", fmt.Errorf("%w: %q, want %s", errVersion, kit.Short(v), version)
	}
	return v, nil
}

// checkHead checks the members of a list other than its pages (E.9).
func checkHead(raw map[string]jsonio.Raw, pages bool) (*head, error) {
	h := new(head)
	if raw["arc_sitemap_version"] == nil && !pages {
		return nil, errNoList
	}
	for _, m := range []struct {
		name     string
		into     *string
		required bool
		is       func(string) bool
		want     string
	}{
		{"arc_sitemap_version", &h.Version, true, nil, ""},
		{"site", &h.Site, true, isURI, "an absolute URI"},
		{"generated_at", &h.Generated, true, isDateTime, "a date-time (RFC 3339)"},
		{"crawl_rate", &h.Rate, false, nil, ""},
		{"ai-crawl-contact", &h.Contact, false, nil, ""},
	} {
		v := raw[m.name]
		switch {
		case v == nil && m.required:
			return nil, invalid("/"+m.name, "E.9", "the member is required")
		case v == nil:
			continue
		case v.Kind() != '"' && !m.required:
			h.Nulls = append(h.Nulls, m.name) // a value that is not a string counts as absent
			continue
		}
		var err error
		if m.is == nil {
			err = take(v, m.into, "a string")
		} else {
			err = takeFormat(v, m.into, m.is, m.want)
		}
		if v.Kind() != '"' {
			err = fmt.Errorf("got %s, want a string", kit.Short(string(v)))
		}
		if err != nil {
			return nil, invalid("/"+m.name, "E.9", err.Error())
		}
	}
	if !pages {
		return nil, invalid("/pages", "E.9", "the member is required")
	}
	return h, nil
}

// parseRate parses a rate (E.7), such as "1/s" or "30/min". It returns the minimum time between two
// requests, or false if the rate is invalid or below one request a year.
func parseRate(s string) (time.Duration, bool) {
	n, ok := policy.ReadARCRate(s)
	if gap := float64(time.Second) / n; ok && gap <= float64(365*24*time.Hour) {
		return time.Duration(gap), true
	}
	return 0, false
}
