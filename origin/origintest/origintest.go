// Package origintest tests the contract of an origin. Every [millrace.Source] that reads a site
// must pass the suite, wherever the site is stored.
//
//	func TestOrigin(t *testing.T) { origintest.Run(t, origintest.Origin{New: newSite, Open: open}) }
//
// The suite creates sites, changes them, and copies them to a store with package mirror, as
// the command does. It checks:
//
//   - the contract of [millrace.Source]: streams end with a checkpoint, and a
//     cursor resumes. Pages can be fetched by their URLs in the stream, also
//     conditionally and concurrently. Errors wrap a sentinel;
//   - two runs over one state: they yield the same pages, and the second one writes
//     no pages, refs or cursor;
//   - edits, additions, deletions and renames: one run applies them, and an updated
//     copy equals a new one;
//   - interruptions: a consumer that stops, a context that ends, a killed process,
//     a page or site that fails temporarily, and a site that changes during a run.
//     No page is lost, deleted or invented.
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
	// Address identifies the site for [Origin.Open], even in another process. The address is a
	// folder or a URL.
	Address() string
	// Base is the base URL of the identities of the site's pages. It is absolute and ends in "/".
	Base() string
	// URL returns the identity or the C-URL of the page with the given name. The page need not exist.
	URL(name string) string
	// Put creates or changes a page. The page gets this title and this text, which is one paragraph
	// without markup. The page may contain more text. A name consists of lower-case letters, digits
	// and dashes.
	Put(name, title, text string) error
	// Delete removes a page.
	Delete(name string) error
}

// Breakable is a [Site] whose pages can fail temporarily and individually.
type Breakable interface {
	// Break makes a page unavailable without deleting it. The origin must report the page as
	// unavailable.
	Break(name string) error
	// Repair restores the page.
	Repair(name string) error
}

// Trouble is a failure of a whole site.
type Trouble int

// The failures of sites.
const (
	Working Trouble = iota // the site works
	Down                   // the site is missing, or reports a failure
	Hung                   // the site accepts requests and never responds
)

// Troubled is a [Site] that can fail as a whole.
type Troubled interface {
	// Trouble makes the site fail in the given way. If this kind of site cannot fail in that way,
	// Trouble returns [errors.ErrUnsupported].
	Trouble(Trouble) error
}

// Unreadable is a [Site] that can contain entries that look like pages but are not pages.
type Unreadable interface {
	// Unreadable adds such entries to the site. It returns the URLs that the origin must report in a
	// [*millrace.SkipError].
	Unreadable() (urls []string, err error)
}

// KnownRefs returns the refs of the source that the sink has stored, like
// [millrace.SyncState.KnownRefs]: the refs of the given URLs, or all refs if no URL is given.
type KnownRefs func(ctx context.Context, urls ...string) iter.Seq2[millrace.Ref, error]

// Origin creates sites and opens them with the origin under test.
type Origin struct {
	// New creates a site without pages of the suite. If every site of this kind has other pages,
	// such as a home page, they exist from the start.
	New func(t testing.TB) Site
	// Open opens the site at an address, as a new process would. Some origins need knownRefs.
	Open func(t testing.TB, address string, knownRefs KnownRefs) (millrace.Source, error)
}

// testCase is one rule of the contract.
type testCase struct {
	name string
	run  func(f *fixture)
}

// Run runs the suite. Each case uses a new site.
func Run(t *testing.T, o Origin) {
	for _, c := range cases() {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) { c.run(newFixture(t, o)) })
	}
}

func cases() []testCase {
	return []testCase{
		{"a stream ends with a checkpoint", streamEnds},
		{"pages can be fetched", pagesAsked},
		{"pages can be fetched concurrently", pagesAtOnce},
		{"a cursor resumes", cursorResumes},
		{"an invalid cursor loses no page", cursorGarbled},
		{"mirroring an unchanged site writes nothing", unchanged},
		{"changes are mirrored", followed},
		{"the loss of all pages needs confirmation", lostAll},
		{"entries that are not pages are reported", unreadable},
		{"an unavailable page is kept", pageFails},
		{"an unavailable site is kept", siteFails},
		{"a site may change during a run", meanwhile},
		{"a consumer may stop anywhere", stopped},
		{"a stream ends with its context", streamCanceled},
		{"a fetch ends with its context", pageCanceled},
		{"a canceled run resumes", runCanceled},
		{"an interrupted run resumes", runBroken},
		{"a killed run resumes", runKilled},
	}
}
