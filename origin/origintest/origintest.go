// Package origintest is the contract of an origin as a suite: every
// [millrace.Source] that reads a site, whatever the site is kept in, passes it.
//
//	func TestOrigin(t *testing.T) { origintest.Run(t, origintest.Origin{New: newSite, Open: open}) }
//
// The suite makes sites, changes them, and keeps copies of them in a store
// with package mirror, as the command does. It wants of an origin:
//
//   - the law of [millrace.Source]: streams end with a mark, a cursor resumes,
//     pages can be asked for by what the stream calls them, also conditionally
//     and by many at once, and errors say what to do about them;
//   - two runs over one state give the same pages, and the second one writes
//     nothing: neither pages nor memory nor cursor;
//   - what is edited, added, deleted and renamed is followed in one run, so
//     that a copy that has lived through everything equals a new one;
//   - a consumer that stops, a context that ends, a process that is killed, a
//     page or a site that fails for a while, and a site that changes meanwhile
//     lose nothing, delete nothing and invent nothing.
package origintest

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

// Site is a site that the suite may change. Each change is atomic and visible
// at once. The suite never calls two methods at the same time, but calls them
// while other goroutines read the site.
type Site interface {
	// Address is what [Origin.Open] finds the site by, also in another process:
	// a folder, a URL.
	Address() string
	// Base is what the identities of its pages are under: absolute, ends in "/".
	Base() string
	// URL returns the identity or the C-URL of the page of a name, whether it
	// exists or not.
	URL(name string) string
	// Put makes a page, or says something new on it. The page has this title
	// and this text, which is one plain paragraph, perhaps with more around it.
	// A name consists of lower-case letters, digits and dashes.
	Put(name, title, text string) error
	// Delete removes a page.
	Delete(name string) error
}

// Fragile is a [Site] whose pages can fail for a while, one by one.
type Fragile interface {
	// Break makes a page one that its owner would not say is gone, and that
	// cannot be had: the origin reports it.
	Break(name string) error
	// Mend makes it what it was.
	Mend(name string) error
}

// Trouble is what a whole site may be in.
type Trouble int

// The troubles of sites.
const (
	Fine Trouble = iota // it works
	Down                // it is not there, or says that it does not work
	Hung                // it takes requests and never answers
)

// Troubled is a [Site] that can be in trouble.
type Troubled interface {
	// Trouble puts the site into a trouble. [errors.ErrUnsupported]: a site of
	// this kind never is in that one.
	Trouble(Trouble) error
}

// Unreadable is a [Site] that can have what looks like a page and is none.
type Unreadable interface {
	// Unreadable puts such things there. It returns the URLs by which the origin has
	// to report them, with a [*millrace.SkipError].
	Unreadable() (urls []string, err error)
}

// KnownRefs returns what the sink remembers of the source, as [millrace.SyncState]
// does: of the given URLs, or of all.
type KnownRefs func(ctx context.Context, urls ...string) iter.Seq2[millrace.Ref, error]

// Origin says how to get sites, and how to read them.
type Origin struct {
	// New makes a site with none of the suite's pages. What sites of its kind
	// have beside those, such as a home page, it has from the start.
	New func(t testing.TB) Site
	// Open opens the site at a place as a process does that has just started.
	// held is for origins that want it.
	Open func(t testing.TB, place string, knownRefs KnownRefs) (millrace.Source, error)
}

// testCase is one sentence of the contract.
type testCase struct {
	name string
	run  func(f *fixture)
}

// Run runs the suite, each case on a site of its own.
func Run(t *testing.T, o Origin) {
	for _, c := range cases() {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) { c.run(newFixture(t, o)) })
	}
}

func cases() []testCase {
	return []testCase{
		{"a stream ends with a mark", streamEnds},
		{"pages can be asked for", pagesAsked},
		{"pages can be asked for at once", pagesAtOnce},
		{"a cursor resumes", cursorResumes},
		{"a garbled cursor is not believed", cursorGarbled},
		{"an unchanged site writes nothing", unchanged},
		{"changes are followed", followed},
		{"the loss of everything is believed the second time", lostAll},
		{"what is no page is reported", unreadable},
		{"a page that fails stays", pageFails},
		{"a site that fails stays", siteFails},
		{"a site may change meanwhile", meanwhile},
		{"a consumer may stop anywhere", stopped},
		{"a stream ends with its context", streamCancelled},
		{"a page ends with its context", pageCancelled},
		{"a run that is cancelled goes on later", runCancelled},
		{"a run that is broken off goes on later", runBroken},
		{"a run that is killed goes on later", runKilled},
	}
}
