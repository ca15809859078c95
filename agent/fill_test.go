package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
)

// summaries is a source of summaries.
type summaries struct{ pages []*millrace.Page }

func (s summaries) Changes(context.Context, millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		for _, p := range s.pages {
			if !yield(millrace.Change{Ref: millrace.Ref{URL: p.URL, Version: "1"}, Page: p}, nil) {
				return
			}
		}
		yield(millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Complete: true}}, nil)
	}
}

func (summaries) Page(_ context.Context, have millrace.Ref) (*millrace.Page, error) {
	return nil, fmt.Errorf("page %s: %w", have.URL, millrace.ErrNotFound)
}

// The fields of the source are combined with the content from elsewhere. If no way has the content,
// the summary is stored. Personal parts are not added again.
func TestFilled(t *testing.T) {
	t.Parallel()
	summary := func(url, snapshot string) *millrace.Page {
		return &millrace.Page{
			URL: url, Title: "Said", Summary: "A summary.", Known: millrace.FieldTitle | millrace.FieldSummary | millrace.FieldContent | millrace.FieldExtra,
			Extra: map[string]json.RawMessage{"arc": json.RawMessage(snapshot)},
		}
	}
	src := summaries{[]*millrace.Page{
		summary("/good", `{"page":"article"}`), summary("/none", `{"page":"article"}`), summary("/down", `{"page":"article"}`),
		summary("/personal", `{"page":"article","sections":[{"context":"personal","heading":"x"}]}`),
	}}
	var asked []string
	f := &filled{Source: src, fill: func(_ context.Context, ref millrace.Ref) (*millrace.Page, string, error) {
		asked = append(asked, ref.URL)
		switch ref.URL {
		case "/none":
			return nil, "", millrace.ErrNotFound
		case "/down":
			return nil, "", millrace.ErrUnavailable
		}
		return &millrace.Page{
			URL: "/elsewhere", Title: "Of HTML", Known: millrace.FieldTitle | millrace.FieldContent, Detail: millrace.DetailBlocks,
			Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: "The content."}}, Version: "x", Original: []byte("<p>"),
		}, "crawl", nil
	}}
	into := new(mirror.Pages)
	for i, want := range []string{"/good /none /down", "/down"} {
		rep, err := mirror.Sync(t.Context(), "test", f, into, &mirror.Options{Concurrency: 1})
		if err != nil || rep.Unavailable != 1 {
			t.Errorf("run %d: %+v %v", i, rep, err)
		}
		if got := strings.Join(asked, " "); got != want {
			t.Errorf("run %d asks for %s, want %s", i, got, want)
		}
		asked = nil
	}
	for url, text := range map[string]string{"/good": "The content.", "/none": "", "/personal": ""} {
		p := into.Page(url)
		if p == nil || p.Title != "Said" || p.Summary != "A summary." || p.Text() != text || p.URL != url {
			t.Errorf("%s: %+v", url, p)
		}
	}
	if f.by["crawl"] != 1 {
		t.Errorf("%v", f.by)
	}
}
