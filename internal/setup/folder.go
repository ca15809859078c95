package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/sites"
	"github.com/millrace/millrace/origin"
	origins "github.com/millrace/millrace/origin/all"
	"github.com/millrace/millrace/protocol/all"
)

// ProbeFolder probes a folder of HTML or Markdown. base is the public URL of its pages, or "" if
// unknown.
func ProbeFolder(ctx context.Context, dir, base string, o *Options) (*Report, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	way, folder := ingest.ChooseFolder(ctx, origins.Origins(true), dir)
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r := &Report{
		Source: dir, Site: base, File: o.File, As: way.Name, Place: sites.Standalone, Listen: defaultListen, Dashboard: dashboardPath,
		Has: []string{}, Hides: []Hidden{}, Reasons: []string{}, Purposes: map[millrace.Purpose]bool{},
	}
	at := cmp.Or(base, "http://"+r.Listen+"/")
	source, err := way.Open(folder, &origin.Options{Base: at, Logger: log})
	if err != nil {
		return nil, err
	}
	if source.Close != nil {
		defer func() { _ = source.Close() }() // the folder was only read
	}
	for c, err := range source.Changes(ctx, "") {
		var skip *millrace.SkipError
		if err != nil && !errors.As(err, &skip) {
			return nil, err
		}
		if err != nil || c.Kind != millrace.Put {
			continue
		}
		if r.Pages, r.Seen = r.Pages+1, r.Seen+1; (millrace.Visibility{}).Excluded(strings.TrimPrefix(c.URL, at)) {
			r.Hides = append(r.Hides, Hidden{c.URL, "exclude"})
		}
	}
	if r.Pages == 0 {
		return nil, millrace.Coded("no-page", fmt.Errorf("%s: %w: the folder has no pages; name the folder of the site's .html or .md files", dir, millrace.ErrNotFound))
	}
	for _, proto := range all.Published(nil) {
		r.Serves = append(r.Serves, Served{Protocol: proto.Name, Title: proto.Title, Entry: at + strings.TrimPrefix(proto.Home, "/"), label: proto.Label})
	}
	r.Next = r.follow()
	return r, nil
}
