package edition

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/millrace/millrace"
)

// pressKeyed completes next, of which everybody's form is there, with the form
// for requests with a key. d is nil if that was built before.
func (p *Press) pressKeyed(ctx context.Context, d *millrace.Document, next, last *large) error {
	if d != nil {
		keyed := *next
		next.Keyed = &keyed
		sum := sha256.New()
		if err := d.WriteKeyed(ctx, &stoppable{ctx, sum}); err != nil {
			return fmt.Errorf("building %s for those with a key: %w", d.Path, err)
		}
		if !bytes.Equal(sum.Sum(nil), next.Files[0].SHA256) {
			full := *d
			full.Write = d.WriteKeyed
			keyed.Files = nil
			if keyed.Own {
				keyed.ETag += "-keyed"
			}
			if err := p.press(ctx, &full, &keyed); err != nil {
				return err
			}
		}
	}
	keyed := *next.Keyed
	next.Keyed = &keyed
	if keyed.Modified = next.Modified; last != nil && last.Keyed != nil && last.Keyed.ETag != keyed.ETag {
		keyed.Modified = later(next.Modified, last.Keyed.Modified)
	}
	return nil
}

// name gives documents the further paths that they have.
func (m *manifest) name(all []roomDocument) error {
	for _, d := range all {
		if d.Same == "" {
			continue
		}
		i := slices.IndexFunc(m.Documents, func(l large) bool { return l.Path == d.Same && l.Room == d.room })
		if i < 0 {
			return millrace.Coded("same-as-nothing", fmt.Errorf("%s: there is no %s that it could be the same as", d.Path, d.Same))
		}
		same := m.Documents[i]
		same.Path = d.Path
		if same.Keyed != nil {
			keyed := *same.Keyed
			keyed.Path, same.Keyed = d.Path, &keyed
		}
		m.Documents = append(m.Documents, same)
	}
	return nil
}
