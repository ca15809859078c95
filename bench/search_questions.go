package main

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/index"
	stores "github.com/millrace/millrace/store/all"
)

// ownQuestions contains questions in the words of users, with the pages that answer them.
//
//go:embed testdata/questions.txt
var ownQuestions string

// searchOwn adds the rows for our own questions about two manuals.
func (b *bench) searchOwn(ctx context.Context) error {
	file := filepath.Join(b.dir, "questions.db")
	if _, err := manuals(ctx, file, "python3.11-doc", "postgresql-doc-15"); err != nil {
		return err
	}
	st, err := stores.Open(ctx, file, nil)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	site, err := st.Site(ctx, searchBase, searchBase)
	if err != nil {
		return err
	}
	head, err := site.Head(ctx)
	if err != nil {
		return err
	}
	x, err := index.Open(ctx, index.File(file, "questions"), nil)
	if err != nil {
		return err
	}
	defer func() { _ = x.Close() }()
	if err := x.Update(ctx, head, nil); err != nil {
		return err
	}
	if err := x.Fit(ctx, nil); err != nil {
		return err
	}
	var right, wrong []float64 // relevance of the first hits
	answered, ranks := 0, 0.0
	for line := range strings.Lines(ownQuestions) {
		question, answers, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			continue // a line without a tab is a comment
		}
		found, err := x.Search(ctx, head, millrace.Query{Text: question, Limit: 20, PerPage: 1})
		if err != nil {
			return fmt.Errorf("%q: %w", question, err)
		}
		pages := strings.Fields(answers)
		rank := 1 + slices.IndexFunc(found.Hits, func(h millrace.Hit) bool {
			return slices.Contains(pages, strings.TrimPrefix(h.URL, searchBase))
		})
		if answers != "-" {
			answered++
		}
		if rank > 0 {
			ranks += 1 / float64(rank)
		}
		switch {
		case len(found.Hits) == 0:
			wrong = append(wrong, 0)
		case rank == 1:
			right = append(right, found.Hits[0].Relevance)
		default:
			wrong = append(wrong, found.Hits[0].Relevance)
		}
	}
	above := 0.0
	for _, r := range right {
		for _, w := range wrong {
			switch {
			case r > w:
				above++
			case r == w:
				above += 0.5
			}
		}
	}
	auc := above / float64(len(right)*len(wrong))
	what := fmt.Sprintf("%d of our own questions about two manuals, %d with an answer", len(right)+len(wrong), answered)
	b.add(row{what: what + ": number with a correct page first; mean of 1/rank", ours: fmt.Sprintf("%d; %.3f", len(right), ranks/float64(answered))})
	b.add(row{
		what: what + ": AUC of the relevance of the first hit, correct against wrong", limit: "1", ours: fmt.Sprintf("%.3f", auc),
		ratio: fmt.Sprintf("%.2f", auc), reach: "0.75", good: auc >= 0.75,
	})
	return nil
}
