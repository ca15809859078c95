package folder

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/tree"
)

// maxSample is how many pages a walk remembers to learn from.
const maxSample = 50

// Correct sets the rules of extraction, from the next Changes on. Where they
// have another fingerprint, every page has another version.
func (f *Folder) Correct(rules *extract.Rules) { f.correct.Store(rules) }

// Sample gives up to n pages, and no more than 50, to learn from, in the order
// of their URLs: nearly the same ones from call to call. They are of the last
// walk, or of one for the purpose if there was none. A version is that of the
// file alone, whatever the rules.
func (f *Folder) Sample(ctx context.Context, n int) ([]millrace.Ref, error) {
	n = min(n, maxSample)
	sample := extract.Sample{Size: n}
	if chosen := f.chosen.Load(); chosen != nil {
		for _, ref := range *chosen {
			sample.Add(ref)
		}
		return sample.Refs(), nil
	}
	for e := range f.pages(ctx, f.present.Load()) {
		sample.Add(state(e, f.now()))
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("folder %s: sample: %w", f.dir, err)
	}
	return sample.Refs(), nil
}

// Original gives the HTML of a page, and how it is extracted but for rules.
// Errors are those of Page.
func (f *Folder) Original(_ context.Context, ref millrace.Ref) ([]byte, *extract.Options, error) {
	t := f.present.Load()
	file, ok := f.source(t, ref.URL)
	if !ok {
		return nil, nil, fmt.Errorf("original of %s: %w: no page has such a URL", ref.URL, millrace.ErrNotFound)
	}
	data, _, err := f.read(t, file)
	if err != nil {
		return nil, nil, fmt.Errorf("original of %s: %w", ref.URL, err)
	}
	return data, &extract.Options{Base: t.base, MaxBytes: int(f.max)}, nil
}

// state names a page and the state of its file.
func state(e tree.Entry, now time.Time) millrace.Ref {
	return millrace.Ref{URL: e.URL, Version: tree.Version("", e.Info, now)}
}
