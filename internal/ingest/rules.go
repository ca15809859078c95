package ingest

import (
	"cmp"
	"context"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/snapshot"
	"github.com/millrace/millrace/store"
)

// Rules correct the extraction of a site's pages; see [extract.RulesOptions].
type Rules struct {
	Keep     []string
	Drop     []string
	Comments bool
}

// Compile compiles the rules. Extraction with the result also keeps the snapshot of each page, for
// ARC.
func (r Rules) Compile() (*extract.Rules, error) {
	return extract.NewRules(&extract.RulesOptions{Keep: r.Keep, Drop: r.Drop, Comments: r.Comments, Extra: snapshot.Extra()})
}

// Originals is an optional interface of a source that has the HTML of its pages.
type Originals interface {
	// Original returns the HTML of a page, and the options of its extraction.
	Original(ctx context.Context, ref millrace.Ref) ([]byte, *extract.Options, error)
}

// Numbers of pages on which rules are tested.
const (
	minTried = 3
	maxTried = 10
)

// Test tests the rules on a sample of pages. It logs a warning if no sampled page keeps any text, and
// for each rule that matches nothing. It reports whether the sample was large enough.
func (r Rules) Test(ctx context.Context, log *slog.Logger, site store.Site, from string, src Originals) (tried bool, err error) {
	if len(r.Keep)+len(r.Drop) == 0 {
		return true, nil
	}
	rules, err := r.Compile()
	if err != nil {
		return false, err
	}
	names, err := sample(ctx, site, from, 5*maxTried) // more than needed, because some names have no page
	if err != nil {
		return false, err
	}
	pages, emptied, reason := 0, 0, error(nil)
	idle := map[string]int{}
	for _, name := range names {
		data, o, err := src.Original(ctx, millrace.Ref{URL: name})
		if err != nil {
			continue // the next scan reports the page
		}
		alone, err := extract.HTML(ctx, data, name, o)
		if err != nil || alone.Reason != nil {
			continue
		}
		o.Rules = rules
		res, err := extract.HTML(ctx, data, name, o)
		if err != nil {
			continue
		}
		if res.Reason != nil {
			emptied, reason = emptied+1, res.Reason
		}
		for _, rule := range res.UnmatchedRules {
			idle[rule]++
		}
		if pages++; pages == maxTried {
			break
		}
	}
	if ctx.Err() != nil || pages < minTried {
		return false, ctx.Err()
	}
	if emptied == pages {
		log.Warn("extraction rules leave no text on sampled pages", "pages", pages, "reason", reason)
	}
	for _, rule := range slices.Sorted(maps.Keys(idle)) {
		if idle[rule] == pages {
			log.Warn("extraction rule matches nothing on the sampled pages", "pages", pages, "rule", rule)
		}
	}
	return true, nil
}

// sample returns up to n of the names that a source lists: those with the lowest hashes.
func sample(ctx context.Context, site store.Site, from string, n int) ([]string, error) {
	var names []string
	hashes := map[string]uint64{}
	lowest := func() {
		slices.SortFunc(names, func(a, b string) int { return cmp.Compare(hashes[a], hashes[b]) })
		for _, name := range names[min(n, len(names)):] {
			delete(hashes, name)
		}
		names = names[:min(n, len(names))]
	}
	for ref, err := range site.KnownRefs(ctx, from) {
		if err != nil {
			return nil, err
		}
		h := fnv.New64a()
		h.Write([]byte(ref.URL))
		names, hashes[ref.URL] = append(names, ref.URL), h.Sum64()
		if len(names) == 10*n {
			lowest()
		}
	}
	lowest()
	return names, nil
}
