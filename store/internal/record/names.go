package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/store"
)

// ownBase replaces the caller's base in the stored URLs of a site without a URL.
const ownBase = "http://site.invalid/"

// Names converts between the URLs that callers use and the stored URLs of a site.
type Names struct {
	Base string // base of the caller's URLs
	// Volatile means that publications show only dates that the source has set.
	Volatile bool
	own      bool // the site has a URL, so its stored URLs are complete
}

// NewNames returns the Names of a site for callers with a base. If base is not an absolute URL that
// ends with "/", it returns ErrInvalid.
func NewNames(site, base string) (Names, error) {
	if u, err := url.Parse(base); err != nil || u.Host == "" || !strings.HasSuffix(base, "/") {
		return Names{}, millrace.Coded("bad-base", fmt.Errorf("base %q: %w: not an absolute URL that ends with /", base, millrace.ErrInvalid))
	}
	return Names{Base: base, own: IsURL(site)}, nil
}

// IsURL reports whether the name of a site is its URL.
func IsURL(site string) bool { return strings.Contains(site, "://") }

// Path returns the path of a page's URL, relative to the base. url may be a path already.
func (n Names) Path(url string) string { return canon.Relative(n.Base, url) }

// Absolute is the inverse of Path.
func (n Names) Absolute(path string) string { return canon.Absolute(n.Base, path) }

// Store converts encoded meta or blocks to their stored form.
func (n Names) Store(b []byte) []byte { return n.replace(b, n.Base, ownBase) }

// Show is the inverse of Store, for the caller's base.
func (n Names) Show(b []byte) []byte { return n.replace(b, ownBase, n.Base) }

// replace replaces the prefix from with the prefix to in all JSON strings.
func (n Names) replace(b []byte, from, to string) []byte {
	if n.own {
		return b
	}
	old := []byte(`"` + from)
	i := bytes.Index(b, old)
	if i < 0 {
		return b
	}
	out := make([]byte, 0, len(b)+len(b)/8)
	for ; i >= 0; i = bytes.Index(b, old) {
		out = append(append(append(out, b[:i]...), '"'), to...)
		b = b[i+len(old):]
	}
	return append(out, b...)
}

// Generation returns the name of a publication and the fingerprint of its generation. The
// fingerprint covers everything that affects the published bytes, except the site.
func Generation(c store.Config) (name, fingerprint string) {
	type format struct {
		Protocol string
		Format   int
	}
	var formats []format
	for _, t := range c.Taggers {
		formats = append(formats, format{t.Protocol, t.Format})
	}
	slices.SortFunc(formats, func(a, b format) int { return strings.Compare(a.Protocol, b.Protocol) })
	b, err := json.Marshal([]any{Format, c.Visibility.Fingerprint(), formats})
	if err != nil {
		panic("record: encode strings: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return c.Base + " " + c.EndpointBase, hex.EncodeToString(sum[:16])
}

// Complete validates a configuration and sets its defaults.
func Complete(site string, c store.Config) (store.Config, Names, error) {
	if c.EndpointBase == "" {
		c.EndpointBase = c.Base
	}
	names, err := NewNames(site, c.Base)
	if err == nil {
		_, err = NewNames(site, c.EndpointBase)
	}
	if err != nil {
		return c, names, err
	}
	protocols := make(map[string]bool)
	for _, t := range c.Taggers {
		if t.Protocol == "" || strings.ContainsAny(t.Protocol, " ") || protocols[t.Protocol] || t.Tag == nil {
			return c, names, millrace.Coded("bad-tagger", fmt.Errorf("tagger %q: %w: incomplete or duplicate", t.Protocol, millrace.ErrInvalid))
		}
		protocols[t.Protocol] = true
	}
	return c, names, nil
}
