package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/origin"
	"github.com/millrace/millrace/origin/all"
	"github.com/millrace/millrace/store"
)

// quick is the timeout for probing a site that was read before.
const quick = 2 * time.Second

// Choose returns the first of the origins that can read a site, or the last one if none
// can. If the site is down, Choose returns the origin that has read it before.
func Choose(ctx context.Context, origins []origin.Origin, client *http.Client, site store.Site, name string, log *slog.Logger) (origin.Origin, error) {
	last := origins[len(origins)-1]
	before := last
	known := false
	for _, way := range origins {
		was, err := IsPrimary(ctx, site, name+" "+way.Name)
		if err != nil {
			return last, err
		}
		if was {
			before, known = way, true
		}
	}
	for _, way := range origins {
		if way.Detect == nil {
			return way, nil
		}
		ask, done := context.WithCancel(ctx)
		if known {
			ask, done = context.WithTimeout(ctx, quick) // this process does not serve the site before Choose returns
		}
		home, err := way.Detect(ask, client, name)
		late := ask.Err() != nil
		done()
		switch {
		case ctx.Err() != nil:
			return last, err
		case err == nil && home == name:
			return way, nil
		case err == nil:
			log.Info("source is part of a site; reading the whole site is faster", "site", home, "protocol", way.Name)
		case late, errors.Is(err, millrace.ErrUnavailable):
			return before, nil //nolint:nilerr // use the origin that read the site before
		case errors.Is(err, millrace.ErrForbidden):
			// If the address is refused or the home page needs a login, every origin fails in the
			// same way, so return the error of the last one.
			if _, refused := errors.AsType[*fetch.AddressError](err); !refused {
				log.Warn("could not read site; trying the next protocol", "protocol", way.Name, "err", err)
			}
		}
	}
	return last, nil
}

// ChooseFolder returns the first of the origins that can read a folder, or the last one
// if none can. If the folder is the source of a site that was built in it, ChooseFolder
// returns the folder of the built site.
func ChooseFolder(ctx context.Context, origins []origin.Origin, dir string) (way origin.Origin, folder string) {
	for _, way := range origins {
		if way.Built != nil {
			if built, ok := way.Built(dir); ok {
				way, _ := ChooseFolder(ctx, origins, built)
				return way, built
			}
		}
		if way.Detect == nil {
			return way, dir
		}
		if _, err := way.Detect(ctx, nil, dir); err == nil {
			return way, dir
		}
	}
	return origins[len(origins)-1], dir
}

// Live is the kind of a live site that has not been probed.
const Live = "live"

// Detect returns the kind of a source: Mirror, the name of an origin, or Live. as is the kind that
// the user wants, or "". Detect also returns the source, or the folder of a site that was built in
// it. If the source cannot be read in the wanted way, the error is ErrInvalid.
func Detect(ctx context.Context, source, as string) (kind, found string, err error) {
	way := all.ByName(as)
	if strings.Contains(source, "://") {
		switch {
		case as == "":
			return Live, source, nil
		case way != nil && !way.Folder:
			return way.Name, source, nil
		}
		return "", "", fmt.Errorf("%s: %w: a live site can be read as %s", source, millrace.ErrInvalid, names(false))
	}
	info, err := os.Stat(source)
	if err != nil {
		return "", "", fmt.Errorf("source: %w", err)
	}
	page := slices.Contains([]string{".html", ".htm", ".xhtml", ".md"}, strings.ToLower(filepath.Ext(source)))
	switch {
	case info.IsDir() && as == "":
		way, built := ChooseFolder(ctx, all.Origins(true), source)
		return way.Name, built, nil
	case info.IsDir() && way != nil && way.Folder:
		return way.Name, source, nil
	case info.IsDir():
		return "", "", fmt.Errorf("%s: %w: a folder can be read as %s", source, millrace.ErrInvalid, names(true))
	case page:
		return "", "", fmt.Errorf("%s: %w: a page is not a source; name its folder, such as %s", source, millrace.ErrInvalid, filepath.Dir(source))
	case as == "" || as == Mirror:
		return Mirror, source, nil
	}
	return "", "", fmt.Errorf("%s: %w: a file can only be read as a mirror", source, millrace.ErrInvalid)
}

// names lists the origins that read a folder, or a live site.
func names(folder bool) string {
	var out []string
	for _, o := range all.Origins(folder) {
		out = append(out, o.Name)
	}
	return strings.Join(out, " or ")
}

// ErrTypes reports that ExcludeTypes is set for a source without page types.
var ErrTypes = fmt.Errorf("%w: page types are available only from the REST API of WordPress", millrace.ErrInvalid)

// Open opens the source: folder if the origin reads folders, else the site whose URL is Name. It
// uses the origin that Kind names or, if Kind names none, the first one that can read the site. Open
// sets Base, Logger and Progress of the options, and KnownRefs and Original for a site. For a
// mirror, or if there is a source already, it only stores SiteTitle. If the origin does not support
// ExcludeTypes, Open returns ErrTypes.
func (o *Origin) Open(ctx context.Context, site store.Site, folder string, options origin.Options) error {
	way := all.ByName(o.Kind)
	live := all.Origins(false)
	switch {
	case o.Source != nil || o.Kind == Mirror:
	case way == nil:
		found, err := Choose(ctx, live, options.Client, site, o.Name, o.Logger)
		if err != nil {
			return err
		}
		way = &found
	}
	if len(options.ExcludeTypes) > 0 && (way == nil || !way.Types) {
		return ErrTypes
	}
	if o.SiteTitle != "" {
		if err := o.saveTitle(ctx); err != nil {
			return err
		}
	}
	if o.Source != nil || o.Kind == Mirror {
		return nil
	}
	options.Base, options.Logger, options.Progress = o.Base, o.Logger, o.show
	open := func(way origin.Origin) error {
		source := folder
		if o.From = o.Name; !way.Folder {
			source, o.From = o.Name, o.Name+" "+way.Name
			known := ResumeOptions(site, o.From)
			options.KnownRefs, options.Original = known.KnownRefs, known.Original
		}
		s, err := way.Open(source, &options)
		if err == nil {
			o.Use(way, s)
		}
		return err
	}
	if !way.Folder && way.Detect != nil {
		o.Logger.Info("reading site", "site", o.Name, "protocol", way.Name)
		o.Fallback = func(err error) bool {
			if !errors.Is(err, millrace.ErrNotFound) && !errors.Is(err, millrace.ErrForbidden) || len(options.ExcludeTypes) > 0 {
				return false // other origins do not have page types
			}
			last := live[len(live)-1]
			o.Logger.Warn("could not read site; trying the next protocol", "protocol", way.Name, "next", last.Name, "err", err)
			o.Fallback = nil
			return open(last) == nil
		}
	}
	return open(*way)
}

// Close closes the source.
func (o *Origin) Close() error {
	if o.close == nil {
		return nil
	}
	return o.close()
}

// Use sets the source and the origin that opened it.
func (o *Origin) Use(way origin.Origin, s *origin.Source) {
	o.Kind, o.way, o.Files = way.Name, way, s.Files
	o.Source, o.Watch, o.Next, o.Complete, o.siteTitle, o.close = s.Source, s.Watch, s.Next, s.Complete, s.SiteTitle, s.Close
}
