package protocoltest

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace"
)

// parts are the parts of one document in one view.
type parts struct {
	site   millrace.Site
	of     *millrace.Parts
	bodies map[string]string // bodies of the parts by key
}

// checkParts checks that the [millrace.Parts] of a document satisfy their contract, compared with
// the parts in the previous view.
func (s *Server) checkParts(ctx context.Context, v millrace.View, name string, p *millrace.Parts) error {
	now := &parts{site: v.Site(), of: p, bodies: map[string]string{}}
	last := ""
	var keys []string
	for part, err := range p.After(ctx, "") {
		if err != nil {
			return err
		}
		if part.Key <= last {
			return fmt.Errorf("part %q of %s comes after %q", part.Key, name, last)
		}
		last = part.Key
		keys = append(keys, last)
		now.bodies[last] = string(part.Body)
	}
	for _, i := range []int{0, len(keys) / 2, len(keys) - 1} {
		if i < 0 || i >= len(keys) {
			continue
		}
		next := ""
		for part, err := range p.After(ctx, keys[i]) {
			if err != nil {
				return err
			}
			next = part.Key
			break
		}
		want := ""
		if i+1 < len(keys) {
			want = keys[i+1]
		}
		if next != want {
			return fmt.Errorf("after part %q of %s comes %q, not %q", keys[i], name, next, want)
		}
	}
	before := s.parts[name]
	if s.parts == nil {
		s.parts = map[string]*parts{}
	}
	s.parts[name] = now
	if before == nil || before.of.Version != p.Version || now.site.Seq <= before.site.Seq { // the parts belong to another log
		return nil
	}
	changed := map[string]bool{}
	for c, err := range v.Changes(ctx, before.site.At(before.site.Seq)) {
		if errors.Is(err, millrace.ErrConflict) {
			return nil
		}
		if err != nil {
			return err
		}
		if c.Kind == millrace.KindCheckpoint {
			continue
		}
		for _, key := range p.Changed(c.URL) {
			changed[key] = true
		}
	}
	for key, body := range before.bodies {
		if now.bodies[key] != body && !changed[key] {
			return fmt.Errorf("part %q of %s changed without a change of a page: %q, previously %q", key, name, now.bodies[key], body)
		}
	}
	for key := range now.bodies {
		if _, had := before.bodies[key]; !had && !changed[key] {
			return fmt.Errorf("part %q of %s is new without a change of a page", key, name)
		}
	}
	return nil
}
