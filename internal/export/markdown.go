package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/protocol/web"
)

// Tree is the target of [Markdown] and [Atom].
type Tree struct {
	Dir string // created if absent
	// Folders maps the base of a site to its folder: see [Folders].
	Folders map[string]string
	// Part means that the export does not contain all sites. It then keeps the files of other
	// sites, which it otherwise removes.
	Part bool
}

// Markdown writes each page as a file, in a folder for each site. It does not touch files with
// unchanged bytes. It removes files of earlier exports that are not in this one. Each file is
// complete at any time. If an export is killed, the next export completes the folder.
//
// Markdown returns ErrInvalid if the folder is neither empty nor from an export. It returns
// ErrConflict if another export is writing to the folder, or if a file that no export has written
// has a needed name. Markdown never changes such files.
func Markdown(ctx context.Context, to Tree, sites []Site, o *Options) (Counts, error) {
	return to.export(sites, ".md", func(out *output, c *Counts) error {
		var of *Site
		var terms *policy.Merged
		var b []byte
		return each(ctx, sites, true, o, func(e entry) error {
			if e.site != of {
				of, terms = e.site, policy.Merge(e.site.Terms)
			}
			c.Pages++
			b = appendMarkdown(b[:0], e.base, e.page, terms)
			return out.write(to.Folders[e.base]+"/"+fileName(e.base, e.page.URL), e.page.URL, b)
		})
	})
}

// Atom writes a feed of the newest changes of each site to the file feed.atom in the site's folder.
// It replaces and removes files by the rules of [Markdown].
func Atom(ctx context.Context, to Tree, sites []Site, o *Options) (Counts, error) {
	return to.export(sites, ".atom", func(out *output, c *Counts) error {
		var b bytes.Buffer
		for i := range sites {
			base := sites[i].View.Site().Base
			b.Reset()
			n, err := web.WriteAtom(ctx, &b, sites[i].View)
			if err == nil {
				err = out.write(to.Folders[base]+"/feed.atom", base, b.Bytes())
			}
			if err != nil {
				return fmt.Errorf("export %s: %w", base, err)
			}
			if c.Pages += n; o != nil && o.Progress != nil {
				o.Progress(c.Pages)
			}
		}
		return nil
	})
}

// export calls write for the files of sites, and then removes files of earlier exports.
func (to Tree) export(sites []Site, ext string, write func(out *output, c *Counts) error) (c Counts, err error) {
	if err := os.MkdirAll(to.Dir, 0o777); err != nil {
		return c, err // the error names the folder
	}
	out, err := openFolder(to.Dir, ext)
	if err != nil {
		return c, fmt.Errorf("export into %s: %w", to.Dir, err)
	}
	defer func() {
		if closing := out.close(); closing != nil {
			err = errors.Join(err, fmt.Errorf("export into %s: %w", to.Dir, closing))
		}
	}()
	err = write(out, &c)
	exported := make(map[string]bool)
	for i := range sites {
		exported[to.Folders[sites[i].View.Site().Base]] = true
	}
	if err == nil {
		err = out.finish(func(site string) bool { return to.Part && !exported[site] })
		if err != nil {
			err = fmt.Errorf("export into %s: %w", to.Dir, err)
		}
	}
	c.Bytes, c.Files, c.Unchanged, c.Removed, c.KeptFiles = out.bytes, out.files, out.unchanged, out.removed, out.keptFiles
	return c, err
}
