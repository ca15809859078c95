package origintest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
)

func unchanged(f *fixture) {
	path := f.newStore()
	f.sync(path)
	before, pages := f.readStore(path)
	f.checkContent(pages, "after the first run")
	for range 2 {
		report := f.sync(path)
		after, _ := f.readStore(path)
		if diff := cmp.Diff(before, after); diff != "" || report.Added+report.Updated+report.Deleted > 0 {
			f.Fatalf("a run without changes wrote to the store: %+v (-before +after):\n%s", report.Counts, diff)
		}
	}
	f.check(path, "after runs without changes")
}

func followed(f *fixture) {
	path := f.newStore()
	f.sync(path)
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"an edit", func() { f.put("page-05") }},
		{"an edit of only the title", func() {
			f.write("page-06", words{f.next("page-06").title, f.model["page-06"].text})
			f.history["page-06"] = append(f.history["page-06"], f.model["page-06"])
		}},
		{"an edit that is reverted", func() {
			w := f.model["page-07"]
			f.put("page-07")
			f.sync(path)
			f.write("page-07", w)
		}},
		{"two new pages", func() { f.put("first-new"); f.put("second-new") }},
		{"a deletion", func() { f.remove("page-09") }},
		{"a restored page", func() { f.put("page-09") }},
		{"a rename", func() { f.rename("page-10", "page-10-moved") }},
		{"a page in place of another", func() { f.remove("page-12"); f.rename("page-13", "page-12") }},
		{"all changes at once", f.alter},
	} {
		step.do()
		f.sync(path)
		f.check(path, "after "+step.name)
	}
}

// lostAll uses one process, because an origin may refuse to open a site without pages in a new
// process.
func lostAll(f *fixture) {
	path := f.newStore()
	p := f.start(path)
	run := func() *mirror.Report {
		f.Helper()
		report, err := mirror.Sync(f.Context(), from, p.src, p.site, nil)
		f.must(err)
		return report
	}
	run()
	model := f.model
	f.model = map[string]words{}
	for name := range model {
		f.must(f.site.Delete(name))
	}
	report := run()
	_, pages := f.readStore(path)
	if report.UnconfirmedDeletions < size || report.Deleted > 0 || len(pages) != size {
		f.Fatalf("first run without pages: %d pages unconfirmed, %d deleted, %d left; want no deletion",
			report.UnconfirmedDeletions, report.Deleted, len(pages))
	}
	run()
	if _, pages = f.readStore(path); len(pages) > 0 {
		f.Fatalf("second run without pages: %d pages left", len(pages))
	}
	for name := range model {
		f.put(name)
	}
	run()
	f.check(path, "after all pages were deleted and restored")
}

func unreadable(f *fixture) {
	lister, ok := f.site.(Unreadable)
	if !ok {
		return
	}
	path := f.newStore()
	f.sync(path)
	urls, err := lister.Unreadable()
	f.must(err)
	f.put("page-04")
	n := newRefStore(nil)
	s := n.read(f.Context(), f.source(n.knownRefs), "")
	f.checkStream(s, "the stream with entries that are not pages")
	for _, u := range urls {
		if !slices.ContainsFunc(s.skips, func(skip *millrace.SkipError) bool { return skip.URL == u }) {
			f.Errorf("%s is not a page, and the stream does not report it", u)
		}
	}
	report := f.sync(path)
	for _, u := range urls {
		if !slices.ContainsFunc(report.Skipped, func(skip mirror.Skip) bool { return skip.URL == u }) {
			f.Errorf("%s is not a page, and the run does not report it", u)
		}
	}
	f.check(path, "after entries that are not pages")
}

func pageFails(f *fixture) {
	site, ok := f.site.(Breakable)
	if !ok {
		return
	}
	path := f.newStore()
	f.sync(path)
	f.must(site.Break("page-08"))
	f.put("page-14")
	for run := range 3 {
		report := f.sync(path)
		_, pages := f.readStore(path)
		f.checkContent(pages, fmt.Sprintf("in run %d with an unavailable page", run+1))
		if run == 0 && report.SkippedN == 0 {
			f.Error("the run does not report an unavailable page")
		}
	}
	f.must(site.Repair("page-08"))
	f.sync(path)
	f.check(path, "after the page was restored")
	f.must(site.Break("page-08"))
	f.sync(path)
	f.must(site.Repair("page-08"))
	f.put("page-08")
	f.sync(path)
	f.check(path, "after the page was restored with an edit")
}

func siteFails(f *fixture) {
	site, ok := f.site.(Troubled)
	if !ok {
		return
	}
	for trouble, name := range map[Trouble]string{Down: "down", Hung: "hung"} {
		path := f.newStore()
		f.sync(path)
		before, _ := f.readStore(path)
		p := f.start(path)
		if err := site.Trouble(trouble); errors.Is(err, errors.ErrUnsupported) {
			continue
		} else if err != nil {
			f.Fatal(err)
		}
		for run := range 3 {
			f.syncTroubled(p, fmt.Sprintf("run %d while the site is %s", run+1, name))
			if again, err := f.origin.Open(f.T, f.site.Address(), p.knownRefs); err == nil {
				f.syncTroubled(&process{site: p.site, src: again}, fmt.Sprintf("run %d of a process started while the site is %s", run+1, name))
			} else {
				f.checkSentinel(err, "opening the site while it is "+name)
			}
			after, _ := f.readStore(path)
			if diff := cmp.Diff(before.Pages, after.Pages); diff != "" {
				f.Fatalf("the site is %s, and stored pages have changed (-before +after):\n%s", name, diff)
			}
		}
		f.must(site.Trouble(Working))
		f.put("page-15")
		f.sync(path) // a new process, because the old one may delay requests after failures
		f.check(path, "after the site was "+name)
	}
}

// syncTroubled runs the origin while the site has failed. The run must return an error or report a
// skipped page, and must end when its context ends.
func (f *fixture) syncTroubled(p *process, when string) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 300*time.Millisecond)
	defer cancel()
	f.runWithTimeout(when, func() {
		report, err := mirror.Sync(ctx, from, p.src, p.site, nil)
		if err == nil && report.SkippedN == 0 {
			f.Errorf("%s: no error and no skipped page", when)
		}
		if err != nil {
			f.checkSentinel(err, when)
		}
	})
}

// runWithTimeout fails the test with all stacks if do does not return in time.
func (f *fixture) runWithTimeout(what string, do func()) {
	f.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(stopTimeout):
		f.Fatalf("%s does not end:\n%s", what, stacks())
	}
}

// meanwhile changes the site while the origin reads it.
func meanwhile(f *fixture) {
	path := f.newStore()
	rng := rand.New(rand.NewPCG(3, 5))
	for round := range 4 {
		ctx, cancel := context.WithCancel(f.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.churn(ctx, rng) }()
		p := f.start(path)
		_, err := mirror.Sync(f.Context(), from, p.src, p.site, nil)
		cancel()
		f.must(<-ended)
		if err != nil {
			f.Fatalf("run while the site changes: %v", err)
		}
		_, pages := f.readStore(path)
		f.checkInvented(pages, fmt.Sprintf("in round %d while the site changes", round+1))
		f.sync(path)
		f.check(path, "after the last change")
	}
}

// churn writes, deletes and restores pages until its context ends.
func (f *fixture) churn(ctx context.Context, rng *rand.Rand) error {
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for {
		name := fmt.Sprintf("page-%02d", rng.IntN(size))
		// At most two pages are missing at any time.
		if _, ok := f.model[name]; ok && len(f.model) > size-2 && rng.IntN(4) == 0 {
			delete(f.model, name)
			if err := f.site.Delete(name); err != nil {
				return err
			}
		} else {
			f.model[name] = f.next(name)
			if err := f.site.Put(name, f.model[name].title, f.model[name].text); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
