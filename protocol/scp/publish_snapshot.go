package scp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"net/http"
	"slices"

	"github.com/millrace/millrace"
)

const contentType = "application/scp"

// snapshots generates the snapshots of the selected sections, in one pass over the site.
func (pl *plan) snapshots(ctx context.Context, which func(*section) bool) error {
	var made []*collection
	defer func() {
		for _, c := range made {
			c.artifactWriter.Discard()
		}
	}()
	for _, s := range pl.sections {
		if !which(s) {
			continue
		}
		at := pl.generated(s.newest.Time, &note{Section: s.name}, pl.site.Seq)
		c, err := pl.start(&note{
			ID: s.name + "-snapshot-" + stamp(at), Section: s.name, Generated: at, At: moment{pl.site.Seq, pl.site.Time},
		})
		if err != nil {
			return err
		}
		made = append(made, c)
		s.snapshot = &c.group
	}
	if len(made) == 0 {
		return nil
	}
	if err := pl.pages(ctx, made); err != nil {
		return err
	}
	for _, c := range made {
		if err := pl.finish(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// pages writes each page of the view to the snapshots of its sections.
func (pl *plan) pages(ctx context.Context, to []*collection) error {
	open := map[string]*collection{}
	for _, c := range to {
		open[c.Section] = c
	}
	var line []byte
	for p, err := range pl.view.Scan(ctx, millrace.Scan{WithBlocks: true}) {
		if err != nil {
			return err
		}
		w := pageOf(pl.site, p)
		if w == nil {
			continue
		}
		line = appendPage(line[:0], w)
		for _, s := range pl.in(p.URL) {
			if c := open[s.name]; c != nil {
				if err := c.add(line); err != nil {
					return err
				}
			}
		}
		if cap(line) > maxReusedLine {
			line = nil
		}
	}
	return nil
}

// maxReusedLine is the maximum size of a buffer that is reused for the next page.
const maxReusedLine = 4 << 20

// collection is an SCP file that is being written.
type collection struct {
	group
	artifactWriter millrace.ArtifactWriter
	head           Metadata
	sum            hash.Hash
}

// start starts writing a collection.
func (pl *plan) start(n *note) (*collection, error) {
	n.Key, n.Made, n.Expires = pl.key, pl.now, pl.period.after().end
	m := Metadata{ID: n.ID, Section: n.Section, Type: "snapshot", Generated: n.Generated, Since: n.Since, Version: version}
	if n.delta() {
		m.Type = "delta"
	}
	d, err := pl.artifacts.Create()
	if err != nil {
		return nil, err
	}
	c := &collection{group: group{note: *n}, artifactWriter: d, head: m, sum: sha256.New()}
	line, _ := m.line(pl.own.NoChecksum)
	c.sum.Write(cutChecksum(line))
	return c, nil
}

// add appends the line of one page.
func (c *collection) add(line []byte) error {
	c.Pages++
	c.sum.Write(line)
	_, err := c.artifactWriter.Write(line)
	return err
}

// finish writes the files of a collection.
func (pl *plan) finish(ctx context.Context, c *collection) error {
	tag := "" // if empty, each coding has its own tag
	head, digits := c.head.line(pl.own.NoChecksum)
	if digits > 0 {
		sum := hex.EncodeToString(c.sum.Sum(nil))
		copy(head[digits:], sum)
		tag = hashPrefix + sum
	}
	slices.Sort(c.Holds)
	raw, err := json.Marshal(c.note)
	if err != nil {
		return err
	}
	versions := ""
	if !c.note.delta() {
		versions = "/scp/" + c.Section + "-*.scp" // pattern of later snapshots and deltas of the section
	}
	c.files, err = c.artifactWriter.Finish(ctx, head, millrace.Artifact{
		ETag: tag, Modified: c.Generated, PageCount: int64(c.Pages), Note: raw,
		Header: pl.header(&c.note), Versions: versions,
	}, pl.codings(), func(coding, sum string) string {
		return "/scp/" + c.Section + "-" + sum[:16] + suffixes[coding]
	})
	pl.used[&c.group] = true
	return err
}

// header returns the header fields of a collection. Like the sitemap's elements, they depend on the
// current period.
func (pl *plan) header(n *note) http.Header {
	cache := "public, max-age=3600, must-revalidate"
	if !n.delta() {
		cache = fmt.Sprintf("public, max-age=%d, stale-while-revalidate=3600", pl.period.cacheAge())
	}
	return http.Header{"Content-Type": {contentType}, "Cache-Control": {cache}}
}

// suffixes are the file name suffixes of the codings (File Format, Structure).
var suffixes = map[string]string{"zstd": ".scp.zst", "gzip": ".scp.gz", "": ".scp"}
