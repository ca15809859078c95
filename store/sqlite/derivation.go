package sqlite

import "context"

// Derivation says by which configuration the pages of a site are derived.
type Derivation struct {
	// By is that of a [Site.Fingerprint]. "": nobody's, since changes were
	// applied under another one than the pages had been derived by.
	By string
	// UnderWay: not all pages are derived yet. Done are; it stands still when
	// whoever derives them is gone.
	UnderWay bool
	Done     int
}

// Fingerprint gives what stands for the site's configuration: of two sites
// of one name that differ in it, one alone has a [Site.Head].
func (s *Site) Fingerprint() string { return s.fingerprint }

// Derivation tells who has derived the pages of the site, or is at it: maybe
// another process, by a configuration of its own.
func (s *Site) Derivation(ctx context.Context) (Derivation, error) {
	var d Derivation
	err := s.store.read.snapshot(ctx, func(q querier) error {
		st, err := s.state(q)
		if d.By = st.fingerprint; d.By == "" && st.target != "" {
			d = Derivation{By: st.target, UnderWay: true, Done: st.done}
		}
		return err
	})
	if err != nil {
		return Derivation{}, explain("derivation of site "+s.name, err)
	}
	return d, nil
}
