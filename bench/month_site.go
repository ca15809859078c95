package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// changingSite is the site of a month.
type changingSite interface {
	next(day int) (monthDay, error) // makes the changes of a day, from 1
	state() (siteState, error)
}

// siteState is a site on one day. A page's name is the name of its HTML file on a static web server.
type siteState struct {
	files map[string]string // files of the folder that millrace serves, by path
	html  map[string]string // pages as browsers get them, by name
	words map[string]string // the owner's own content of each page, without the template, by name
}

// monthDay is the changes of a day.
type monthDay struct {
	edited, added, removed []string // names of pages
	look                   bool     // the template also changes
}

// changed returns the names of the pages with new content.
func (d *monthDay) changed() []string { return slices.Concat(d.edited, d.added) }

// write makes the folder that millrace serves equal to files, and reports whether that changed the
// folder. Changed files get the given time.
func (m *month) write(files map[string]string, at time.Time) (changed bool, err error) {
	for name, text := range files {
		if m.written[name] == text {
			continue
		}
		changed = true
		file := filepath.Join(m.folder, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600))
		if err == nil {
			err = os.Chtimes(file, at, at)
		}
		if err != nil {
			return changed, err
		}
	}
	for name := range m.written {
		if _, there := files[name]; there {
			continue
		}
		changed = true
		if err := os.Remove(filepath.Join(m.folder, name)); err != nil {
			return changed, err
		}
	}
	m.written = files
	return changed, nil
}
