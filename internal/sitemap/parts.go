package sitemap

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// Parts returns sitemap i, counted from 0, of the pages that have a tag of a protocol. head is XML
// before the pages, with elements of the given namespaces. If there are no pages, the first
// sitemap lists the site's base, because sitemaps.org requires an entry.
func Parts(v millrace.View, proto string, i, shards int, head string, in ...Namespace) *millrace.Parts {
	site := v.Site()
	p := &millrace.Parts{
		Version: fmt.Sprintf("%s %d of %d", site.Base, i, shards), Head: begin("urlset", head, in), Tail: end("urlset"),
		After: func(ctx context.Context, key string) iter.Seq2[millrace.Part, error] {
			return func(yield func(millrace.Part, error) bool) {
				var entry []byte
				for t, err := range v.Tags(ctx, proto, key) {
					if err != nil {
						yield(millrace.Part{}, err)
						return
					}
					if ShardOf(t.URL, shards) != i {
						continue
					}
					entry = appendEntry(entry[:0], "url", canon.Absolute(site.Base, t.URL), t.Modified)
					if !yield(millrace.Part{Key: canon.Relative(site.Base, t.URL), Body: entry}, nil) {
						return
					}
				}
			}
		},
		Changed: func(u string) []string {
			if ShardOf(u, shards) != i {
				return nil
			}
			return []string{canon.Relative(site.Base, u)}
		},
	}
	if i == 0 {
		p.Empty = append(appendEntry(bytes.Clone(p.Head), "url", site.Base, site.Time), p.Tail...)
	}
	return p
}

// Index returns the index of a site's sitemaps.
func Index(site millrace.Site, shards int) *millrace.Parts {
	docs := strings.TrimSuffix(site.EndpointBase, "/")
	b := begin("sitemapindex", "", nil)
	for i := range shards {
		b = appendEntry(b, "sitemap", docs+ShardName(i, shards), time.Time{})
	}
	b = append(b, end("sitemapindex")...)
	return millrace.SinglePart(string(b), func(_ context.Context, w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}
