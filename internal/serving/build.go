package serving

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/internal/static"
	"github.com/millrace/millrace/internal/tree"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/store"
)

// BuildOptions configure [Service.Build]. The zero value is valid.
type BuildOptions struct {
	// Folder contains the site's own files. If it is empty, another server serves the pages, and
	// the folder gets a home page with links to the documents.
	Folder string
	// Progress is called with the number of written files and of all files. May be nil.
	Progress func(done, total int)
}

// Build reads the source once, publishes it, and writes the edition to the folder of b. It adds the
// counts of read pages and written files to the report, even after an error.
func (s *Service) Build(ctx context.Context, b *static.Build, r *BuildReport, o *BuildOptions) error {
	defer func() {
		if now := s.Server.Current(); now != nil {
			site := now.View.Site()
			r.Site, r.As, r.Pages = site.Base, s.o.Origin.Kind, site.Pages
		}
	}()
	report, err := s.once(ctx)
	if report != nil {
		r.Skipped = append(r.Skipped, report.Skipped...)
	}
	if err != nil {
		return err
	}
	if _, err := s.Server.Publish(ctx); err != nil {
		return err
	}
	own, err := s.own(ctx, o.Folder, b, r)
	if err != nil {
		return err
	}
	err = s.write(ctx, own, b, o.Progress)
	r.Report = b.Report
	return err
}

// once reads the source once, even while another process reads it continuously, because
// that process may not have stored all pages yet. The report is nil without a source.
func (s *Service) once(ctx context.Context) (report *mirror.Report, err error) {
	o := s.o.Origin
	if o.Source == nil {
		return nil, nil //nolint:nilnil // the site has no source
	}
	acquired := false
	err = lease.Hold(ctx, o.Store.Leases(), o.Lease(), func(ctx context.Context, l store.Lease) error {
		acquired = true
		report, err = o.SyncAny(ctx, s.o.Site.Fenced(l))
		return err
	})
	if !acquired && errors.Is(err, millrace.ErrConflict) {
		report, err = o.SyncAny(ctx, s.o.Site)
	}
	if err != nil {
		return nil, err
	}
	if report.SkippedN > 0 && report.Added+report.Updated+report.Unchanged == 0 {
		return report, ingest.NoPagesError(report.SkippedN)
	}
	if report.UnconfirmedDeletions > 0 {
		s.log.Warn("many pages are missing from the source; keeping them until the next run also misses them", "pages", report.UnconfirmedDeletions)
	}
	return report, nil
}

// own reserves the names of the site's own files, and returns the files. If another server serves
// the pages, the only file is a home page with links to the documents. own adds the composed
// site-wide files, unless they would replace those of the site's host. It counts the HTML in the
// report.
func (s *Service) own(ctx context.Context, folder string, b *static.Build, r *BuildReport) ([]static.Item, error) {
	base, err := url.Parse(s.o.Config.Base)
	if err != nil {
		return nil, err
	}
	home := static.Item{Path: "/", Name: "index.html", Ask: strings.TrimSuffix(base.EscapedPath(), "/") + "/"}
	if folder == "" {
		b.Reserve(home)
		items := []static.Item{home}
		if docs, err := url.Parse(s.o.Config.EndpointBase); err == nil && docs.Host != "" && docs.Host != base.Host {
			items = s.addSiteWide(ctx, b, items) // the folder replaces no files of the site's host
		}
		return items, nil
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var items []static.Item
	for e := range (&tree.Walker{Root: root, Max: math.MaxInt64, Name: siteFile}).Walk(ctx, ".") {
		if e.Err != nil {
			if info, err := root.Stat(e.File); err != nil || !info.Mode().IsRegular() {
				b.Report.LeaveOut(e.URL, e.Err)
				continue
			}
		}
		it := static.Item{Path: e.URL, Name: e.File}
		if ext := strings.ToLower(path.Ext(e.File)); ext == ".html" || ext == ".htm" {
			if info, err := root.Stat(e.File); err == nil {
				r.HTML += info.Size()
			}
		}
		if strings.HasSuffix(it.Path, "/") {
			it.Name = path.Join(path.Dir(it.Name), "index.html") // the only index file that every host supports
		}
		if b.Reserve(it) {
			items = append(items, it)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if !slices.ContainsFunc(items, func(it static.Item) bool { return it.Path == "/" }) {
		b.Reserve(home)
		items = append(items, home)
	}
	return s.addSiteWide(ctx, b, items), nil
}

// siteFile returns the URL segment of a public file in a folder; see [tree.Walker]. It names pages
// and other files as a web server does.
func siteFile(name string, folder bool, list []fs.DirEntry) (key string, use bool, err error) {
	name = path.Base(name)
	has := func(name string) bool {
		return slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() == name && !e.IsDir() })
	}
	if !folder && (name == "index.html" || name == "index.htm" && !has("index.html")) {
		return "", true, nil
	}
	return tree.Escape(name), true, nil
}

// addSiteWide adds the site-wide files that the gateway composes, such as robots.txt.
func (s *Service) addSiteWide(ctx context.Context, b *static.Build, items []static.Item) []static.Item {
	for _, path := range s.Gateway.SiteWidePaths(ctx) {
		it := static.Item{Path: path, Protocol: access.SiteProtocol, Name: strings.TrimPrefix(path, "/")}
		if !slices.ContainsFunc(items, func(have static.Item) bool { return have.Path == path }) && b.Reserve(it) {
			items = append(items, it)
		}
	}
	return items
}

// write writes all documents of the edition and the given files of the site, and
// finishes the build.
func (s *Service) write(ctx context.Context, own []static.Item, b *static.Build, progress func(done, total int)) error {
	n, done := len(own), 0
	if err := s.documents(ctx, func(static.Item) error { n++; return nil }); err != nil {
		return err
	}
	add := func(it static.Item) error {
		if done++; progress != nil {
			progress(done, n)
		}
		return b.Add(ctx, it)
	}
	if err := s.documents(ctx, add); err != nil {
		return err
	}
	for _, it := range own {
		if err := add(it); err != nil {
			return err
		}
	}
	return b.Finish(ctx)
}

// documents calls add for every document and artifact of the current edition.
func (s *Service) documents(ctx context.Context, add func(static.Item) error) error {
	ed := s.Server.Current()
	for _, large := range ed.Large() {
		if err := add(static.Item{Path: large, Protocol: ed.Protocol(large)}); err != nil {
			return err
		}
	}
	for _, file := range ed.ArtifactPaths() {
		if err := add(static.Item{Path: file, Protocol: ed.Protocol(file), Immutable: true}); err != nil {
			return err
		}
	}
	for _, proto := range s.Protocols {
		for d, err := range proto.Publisher.All(ctx, ed.View) {
			if err != nil {
				return fmt.Errorf("documents of %s: %w", proto.Name, err)
			}
			if d.Large {
				continue
			}
			if err := add(static.Item{Path: d.Path, Protocol: proto.Name}); err != nil {
				return err
			}
		}
	}
	return nil
}
