package record

import (
	"bytes"
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// Compact keeps unused objects for these times.
const (
	DropAfter       = 400 * 24 * time.Hour // publications, and tombstones of a site
	DropForkedAfter = 24 * time.Hour       // generations from which another one was forked
)

// Continues reports whether a log was forked from the log with the given epoch, at the sequence
// number seq or later. Then it accepts all cursors of that log up to seq.
func Continues(earlier []millrace.Epoch, epoch string, seq uint64) bool {
	return slices.ContainsFunc(earlier, func(e millrace.Epoch) bool { return e.Name == epoch && e.Last >= seq })
}

// Options returns o with its defaults set. o may be nil.
func Options(o *store.Options) store.Options {
	if o == nil {
		o = new(store.Options)
	}
	out := *o
	if out.Logger == nil {
		out.Logger = slog.New(slog.DiscardHandler)
	}
	return out
}

// CheckSwap returns the error of [store.State].Swap if a name is empty, or if is, the current value of
// the key, is not old.
func CheckSwap(namespace, key string, is, old []byte) error {
	if namespace == "" || key == "" {
		return millrace.Coded("state-name", fmt.Errorf("%w: the namespace or the key is empty", millrace.ErrInvalid))
	} else if !bytes.Equal(is, old) {
		return fmt.Errorf("%w: the current value is different", millrace.ErrConflict)
	}
	return nil
}

// Rank returns the sort key for the order by publication date: the newest pages first, and
// pages without a date last.
func (e *Entry) Rank() int64 {
	if e.Published == 0 {
		return 1 << 60
	}
	return -e.Published
}

// MaxRedirects is the maximum number of redirects from "/" to a home page.
const MaxRedirects = 5

// Describe completes the description of a view. It sets the numbers of pages by section and by
// protocol, and the fields from the home page. home is the path of the home page, or "" if the view
// has none. meta is the stored metadata of the home page. title is the value of store.TitleKey.
func Describe(info *millrace.Site, pages, tagged map[string]int, home string, meta, title []byte) error {
	if maps.DeleteFunc(tagged, func(_ string, n int) bool { return n == 0 }); len(tagged) > 0 {
		info.Tagged = tagged
	}
	for name, n := range pages {
		if info.Pages += n; name != "" && n > 0 {
			info.Sections = append(info.Sections, millrace.Section{Name: name, Pages: n})
		}
	}
	slices.SortFunc(info.Sections, func(a, b millrace.Section) int { return strings.Compare(a.Name, b.Name) })
	if u, err := url.Parse(info.Base); err == nil {
		info.Title = cmp.Or(string(title), u.Host)
	}
	if home == "" {
		return nil
	}
	p, err := Decode(meta, nil)
	if err == nil {
		info.Home, info.Title, info.Language = home, cmp.Or(string(title), p.Title, info.Title), p.Language
	}
	return err
}

// Tags returns the tags of a page by protocol. If a tagger fails, Tags logs the error and
// omits the tag.
func Tags(c *store.Config, p *millrace.Page, log *slog.Logger) map[string]string {
	tags := make(map[string]string)
	for _, t := range c.Taggers {
		value, err := t.Tag(millrace.Site{Base: c.Base, EndpointBase: c.EndpointBase}, p)
		if err != nil {
			log.Warn("could not compute tag of page", "protocol", t.Protocol, "url", p.URL, "err", err)
		} else if value != "" {
			tags[t.Protocol] = value
		}
	}
	return tags
}
