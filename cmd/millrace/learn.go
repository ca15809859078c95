package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/snapshot"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/store"
)

// correcting are the flags of every command that extracts pages.
type correcting struct {
	Keep     []string `placeholder:"SELECTOR" sep:"none" help:"CSS selector of elements that are content, whatever they look like; may be given several times."`
	Drop     []string `placeholder:"SELECTOR" sep:"none" help:"CSS selector of elements that are no content; may be given several times."`
	Comments bool     `help:"Keep the comments of readers, on pages other than those of forums, too."`
}

// Validate is called by kong for the command line, so that an error says where
// a selector was written.
func (c *correcting) Validate() error {
	for i, s := range append(c.Keep[:len(c.Keep):len(c.Keep)], c.Drop...) {
		flag := "--drop"
		if i < len(c.Keep) {
			flag = "--keep"
		}
		if err := extract.CheckSelector(s); err != nil {
			return fmt.Errorf("%s: %.200q is no CSS selector that is supported: %w", flag, s, err)
		}
	}
	return nil
}

// rules compiles the flags, together with what was learned of the site. They
// have the snapshot of every page made, for ARC.
func (c *correcting) rules(t *extract.Template) (*extract.Rules, error) {
	r, err := extract.NewRules(&extract.RulesOptions{Keep: c.Keep, Drop: c.Drop, Comments: c.Comments, Template: t, Extra: snapshot.Extra()})
	if err != nil {
		return nil, usageError("--keep, --drop: " + err.Error())
	}
	return r, nil
}

// learning are the flags of every command that reads whole sites.
type learning struct {
	correcting
	Learn bool `negatable:"" default:"true" help:"Learn from the pages of a site what they have in common, and leave it out (default: yes)."`
}

// learner is an origin that can be learned from.
type learner interface {
	Sample(ctx context.Context, n int) ([]millrace.Ref, error)
	Original(ctx context.Context, ref millrace.Ref) ([]byte, *extract.Options, error)
	Correct(rules *extract.Rules)
}

// lesson is what is kept of learning.
type lesson struct {
	Extractor int               `json:"extractor"`       // extract.Version
	Rules     string            `json:"rules,omitempty"` // fingerprint of what the owner has corrected
	Sample    map[string]string `json:"sample"`          // versions by URL of the pages that were looked at
	Template  *extract.Template `json:"template"`        // nil = there were too few
}

// A template is learned from so many pages.
const (
	minSample = 10
	maxSample = 50
)

// school sees to it that a site's pages are extracted by what was learned of
// it. The lesson is kept in the memory of the site.
type school struct {
	stored state.JSON[*lesson]
	flags  learning
	log    *slog.Logger

	pupil learner
	fixed *extract.Rules // those of the owner alone
	held  *lesson        // nil = none yet
	tried bool           // the rules of the owner were, on pages
}

// attend prepares an origin: it gets the rules that are known, and where
// nothing is, what can be learned of it before it is read.
func attend(ctx context.Context, st store.State, site, from string, flags learning, log *slog.Logger, pupil learner) (*school, error) {
	s := &school{stored: lessonOf(st, site, from), flags: flags, log: log, pupil: pupil}
	var err error
	if s.fixed, err = flags.rules(nil); err != nil {
		return nil, err
	}
	if !flags.Learn {
		pupil.Correct(s.fixed)
		return s, s.try(ctx)
	}
	if s.held, err = s.stored.Load(ctx); err != nil {
		return nil, err
	}
	if _, err := s.correct(); err != nil {
		return nil, err
	}
	_, err = s.learn(ctx)
	return s, err
}

// The rules of an owner are tried on so many pages, to warn of those that can
// hardly be meant.
const (
	minTried = 3
	maxTried = 10
)

// try warns, once, of rules that leave nothing of any page, and of those that
// no page of a sample has an element for.
func (s *school) try(ctx context.Context) error {
	if s.tried || len(s.flags.Keep)+len(s.flags.Drop) == 0 {
		return nil
	}
	refs, err := s.pupil.Sample(ctx, maxTried)
	if err != nil || len(refs) < minTried {
		return err // there will be more pages
	}
	s.tried = true
	pages, emptied, reason := 0, 0, error(nil)
	idle := map[string]int{}
	for _, ref := range refs {
		data, o, err := s.pupil.Original(ctx, ref)
		if err != nil {
			continue // its own reading says more
		}
		alone, err := extract.HTML(ctx, data, ref.URL, o)
		if err != nil || alone.Reason != nil {
			continue
		}
		o.Rules = s.fixed
		res, err := extract.HTML(ctx, data, ref.URL, o)
		if err != nil {
			continue
		}
		pages++
		if res.Reason != nil {
			emptied, reason = emptied+1, res.Reason
		}
		for _, rule := range res.Idle {
			idle[rule]++
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if pages < minTried {
		return nil
	}
	if emptied == pages {
		s.log.Warn("the rules leave nothing of the pages that were looked at", "pages", pages, "reason", reason)
	}
	for _, rule := range slices.Sorted(maps.Keys(idle)) {
		if idle[rule] == pages {
			s.log.Warn("a rule matches nothing on the pages that were looked at", "pages", pages, "rule", rule)
		}
	}
	return nil
}

// lessonOf is where a site's State has what was learned of a source; nil =
// nothing.
func lessonOf(st store.State, site, from string) state.JSON[*lesson] {
	return state.JSON[*lesson]{State: st, Namespace: site, Key: from + "/template"}
}

// correct gives the origin its rules; the fingerprint is theirs.
func (s *school) correct() (fingerprint string, err error) {
	rules := s.fixed
	if s.held != nil && s.held.Template != nil {
		if rules, err = s.flags.rules(s.held.Template); err != nil {
			return "", err
		}
	}
	s.pupil.Correct(rules)
	return rules.Fingerprint(), nil
}

// learn looks at a sample of the site, if nothing was learned of it, or more
// than half of the sample is not what it was. It reports whether pages may be
// other ones by what it has found.
func (s *school) learn(ctx context.Context) (changed bool, err error) {
	if s == nil {
		return false, nil
	}
	if err := s.try(ctx); err != nil || !s.flags.Learn {
		return false, err
	}
	refs, err := s.pupil.Sample(ctx, maxSample)
	if err != nil || !s.due(refs) {
		return false, err
	}
	next := &lesson{Extractor: extract.Version, Rules: s.fixed.Fingerprint(), Sample: map[string]string{}}
	for _, ref := range refs {
		next.Sample[ref.URL] = ref.Version
	}
	if next.Template, err = s.study(ctx, refs); err != nil {
		return false, err
	}
	before, err := s.correct()
	if err != nil {
		return false, err
	}
	was := s.held
	s.held = next
	after, err := s.correct()
	if err == nil {
		err = s.save(ctx)
	}
	if err != nil {
		s.held = was
		_, again := s.correct()
		return false, errors.Join(err, again)
	}
	if before == after {
		return false, nil
	}
	if t := next.Template; t != nil {
		s.log.Info("learned what the pages of the site have in common; millrace extract --site shows it",
			"pages", t.Pages, "root", t.Root, "repeated", len(t.Repeated))
	}
	return true, nil
}

// due reports whether a sample asks for another lesson.
func (s *school) due(refs []millrace.Ref) bool {
	if s.held == nil || s.held.Extractor != extract.Version || s.held.Rules != s.fixed.Fingerprint() {
		return len(refs) >= minSample
	}
	other := 0
	for _, ref := range refs {
		// What has just been written has no version yet.
		if v, ok := s.held.Sample[ref.URL]; !ok || v != ref.Version || v == "" {
			other++
		}
	}
	return other*2 > len(refs)
}

// study learns from the originals of a sample.
func (s *school) study(ctx context.Context, refs []millrace.Ref) (*extract.Template, error) {
	var l extract.Learner
	for _, ref := range refs {
		data, o, err := s.pupil.Original(ctx, ref)
		if err == nil {
			o.Rules = s.fixed
			err = l.Add(ctx, data, ref.URL, o)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			s.log.Debug("not learned from", "url", ref.URL, "error", err) // its own reading says more
		}
	}
	return l.Template(), nil
}

func (s *school) save(ctx context.Context) error { return s.stored.Save(ctx, s.held) }

// reread applies the pages that a source has made again by itself.
func reread(ctx context.Context, site store.Site, from string, changes iter.Seq2[millrace.Change, error]) (millrace.Counts, error) {
	var tally millrace.Counts
	var batch []millrace.Change
	bytes := 0
	apply := func() error {
		if len(batch) == 0 {
			return nil
		}
		t, err := site.Apply(ctx, from, batch)
		tally.Add(t)
		batch, bytes = batch[:0], 0
		return err
	}
	for ch, err := range changes {
		if err != nil {
			return tally, errors.Join(fmt.Errorf("reading the pages of %s again: %w", from, err), apply())
		}
		batch = append(batch, ch)
		if ch.Page != nil {
			bytes += len(ch.Page.Original)
		}
		if len(batch) < 200 && bytes < 4<<20 {
			continue
		}
		if err := apply(); err != nil {
			return tally, err
		}
	}
	return tally, apply()
}
