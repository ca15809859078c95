package setup

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/sites"
)

// The owner answers on a terminal. An empty answer selects the guess. After an invalid answer, the
// question is repeated.
func TestDecide(t *testing.T) {
	t.Parallel()
	type result struct {
		Place              sites.Place
		Origin, Dash, Site string
		Purposes           map[millrace.Purpose]bool
		Guessed            []string
	}
	for _, tt := range []struct {
		source, typed string
		answers       Answers
		want          result
		invalid       bool
	}{
		{
			source: "https://example.com/", typed: "\n\nmaybe\nyes\nundecided\n/board\n",
			want: result{sites.Alongside, "", "/board", "https://example.com/", map[millrace.Purpose]bool{millrace.AITrain: false, millrace.AIInput: true}, nil},
		},
		{
			source: "https://example.com/", typed: "f\nnowhere\nhttp://127.0.0.1:81\ny\n\n\nnone\n",
			want: result{sites.Front, "http://127.0.0.1:81", "", "https://example.com/", map[millrace.Purpose]bool{millrace.AITrain: true, millrace.AIInput: true}, nil},
		},
		{
			source: "/srv/site", typed: "alongside\nhttps://www.example.com/\n", // then the input ends
			want: result{sites.Alongside, "", "/millrace", "https://www.example.com/", map[millrace.Purpose]bool{millrace.AITrain: false, millrace.AIInput: true}, []string{"policy ai-train=no", "policy ai-input=yes", "policy search=undecided", "dashboard=/millrace"}},
		},
		{
			source: "https://example.com/", typed: "-", answers: Answers{Dashboard: None, Purposes: map[millrace.Purpose]bool{millrace.Search: true}},
			want: result{sites.Alongside, "", "", "https://example.com/", map[millrace.Purpose]bool{millrace.AITrain: false, millrace.AIInput: true, millrace.Search: true}, []string{"place=alongside", "policy ai-train=no", "policy ai-input=yes"}},
		},
		{source: "https://example.com/", typed: "-", answers: Answers{Place: sites.Front}, invalid: true},
		{source: "/srv/site", typed: "-", answers: Answers{Place: sites.Alongside}, invalid: true},
	} {
		r := &Report{Source: tt.source, Purposes: map[millrace.Purpose]bool{millrace.AITrain: false, millrace.AIInput: true}}
		if !r.Folder() {
			r.Site = tt.source
		}
		var got result
		var out strings.Builder
		log := func(flag, guess string) { got.Guessed = append(got.Guessed, flag+"="+guess) }
		var err error
		if tt.typed == "-" { // no terminal
			err = r.Decide(tt.answers, nil, &out, log)
		} else {
			err = r.Decide(tt.answers, strings.NewReader(tt.typed), &out, log)
		}
		if (err != nil) != tt.invalid {
			t.Errorf("%q: %v\n%s", tt.typed, err, out.String())
		}
		if tt.invalid {
			continue
		}
		got.Place, got.Origin, got.Dash, got.Site, got.Purposes = r.Place, r.Origin, r.Dashboard, r.Site, r.Purposes
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s\n%s", tt.typed, d, out.String())
		}
	}
}
