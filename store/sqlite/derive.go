package sqlite

import (
	"context"
)

// unsettle says that the pages are no longer all derived by one
// configuration: one was written under another than the rest.
func (w *work) unsettle() {
	w.state.fingerprint = ""
	if w.target != w.Site.fingerprint {
		w.target = ""
	}
}

// derivePages and deriveBytes bound one step of Derive, so that others get
// their turn to write.
const (
	derivePages = 200
	deriveBytes = 4 << 20
)

// Derive implements [store.Site].
func (s *Site) Derive(ctx context.Context, progress func(done, total int)) error {
	total := -1
	for {
		var done int
		var finished bool
		err := s.change(ctx, func(w *work) (err error) {
			w.deriving = true
			if w.state.fingerprint == s.fingerprint {
				finished = true
				return nil
			}
			if w.target != s.fingerprint {
				if err := w.startDerive(); err != nil {
					return err
				}
			}
			if total < 0 {
				if err := w.row("SELECT count(*) FROM raw WHERE site = ?", []any{s.id}, &total); err != nil {
					return err
				}
			}
			finished, err = w.deriveStep(ctx)
			done = w.done
			return err
		})
		if err != nil {
			return explain("derive the pages of site "+s.name, err)
		}
		if progress != nil && total >= 0 {
			progress(done, max(total, done))
		}
		if finished {
			return nil
		}
	}
}

// startDerive sets out for the site's configuration.
func (w *work) startDerive() error {
	w.state.fingerprint, w.target, w.after, w.done = "", w.Site.fingerprint, "", 0
	if w.seq == 0 {
		return nil // nothing was ever visible: there is nobody to tell
	}
	if err := w.configure(); err != nil {
		return err
	}
	w.start = w.seq
	return nil
}

// deriveStep derives the next pages. finished: there are no more.
func (w *work) deriveStep(ctx context.Context) (finished bool, err error) {
	type row struct {
		url string
		held
	}
	var rows []row
	size := 0
	err = w.rows(`SELECT url, hint, body, meta, (SELECT data FROM body WHERE id = raw.body) FROM raw
		WHERE site = ? AND url > ? ORDER BY url LIMIT ?`, []any{w.id, w.after, derivePages}, func(scan scanner) error {
		var r row
		if err := scan(&r.url, &r.hint, &r.body, &r.meta, &r.blocks); err != nil {
			return err
		}
		rows = append(rows, r)
		if size += len(r.meta) + len(r.blocks); size > deriveBytes {
			return errEnough
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	if len(rows) == 0 {
		w.state.fingerprint, w.target, w.after = w.Site.fingerprint, "", ""
		return true, nil
	}
	for _, r := range rows {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		p, err := r.page()
		if err != nil {
			return false, err
		}
		if _, err := w.show(p, r.blocks, r.body, false); err != nil {
			return false, err
		}
		w.after = r.url
		w.done++
	}
	return false, nil
}
