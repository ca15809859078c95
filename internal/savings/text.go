package savings

import (
	"fmt"
	"math"
	"strings"

	"github.com/millrace/millrace/internal/humanize"
)

// Text describes savings and extra costs, both as positive numbers. If requests is nil, Text
// omits them.
func Text(bytes, tokens, kwh Figure, requests *Figure) string {
	var saved, cost []string
	add := func(f Figure, text string) {
		if f.Saved < 0 {
			cost = append(cost, text)
		} else {
			saved = append(saved, text)
		}
	}
	add(bytes, humanize.Bytes(int64(math.Abs(bytes.Saved))))
	add(tokens, "about "+humanize.Count(math.Abs(tokens.Saved))+" tokens")
	add(kwh, humanize.Energy(math.Abs(kwh.Saved)))
	if requests != nil {
		add(*requests, humanize.Quantity(int64(math.Abs(requests.Saved)), "request"))
	}
	var out []string
	if len(cost) > 0 {
		out = append(out, "cost "+listText(cost)+" more")
	}
	if len(saved) > 0 {
		out = append(out, "saved "+listText(saved))
	}
	return strings.Join(out, ", ")
}

// listText joins words into a list, such as "a, b and c".
func listText(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// Text describes the savings in one line and the counts in another. If s has no pages, both
// are "".
func (s *Saved) Text() (saved, counted string) {
	if s.Pages == 0 {
		return "", ""
	}
	how := map[Origin]string{
		FromHTML:   ", measured",
		FromSample: ", estimated from some of them",
		FromText:   ", estimated from their text",
		FromNone:   ", of unknown size",
	}
	note := ", an estimate"
	if s.HTML != nil {
		note = how[s.HTML.From]
	} else if s.Bytes.Basis == Measured {
		note = how[FromHTML]
	}
	saved = fmt.Sprintf("%s compared with %s of HTML%s", Text(s.Bytes, s.Tokens, s.KWh, &s.Requests), humanize.Quantity(s.Pages, "page"), note)
	counted = fmt.Sprintf("%d pages fetched, %d unmodified, %d not requested%s", s.Fetched, s.Unmodified, s.Skipped, humanize.Rate(s.SkipRate))
	if s.Conditional > 0 {
		counted += fmt.Sprintf("; %d of %d conditional requests got a 304%s", s.NotModified, s.Conditional, humanize.Rate(s.NotModifiedRate))
	}
	return saved, counted
}

// Lines returns both texts as indented lines. If s has no pages, it returns "".
func (s *Saved) Lines(indent string) string {
	if s == nil || s.Pages == 0 {
		return ""
	}
	saved, counted := s.Text()
	return indent + saved + "\n" + indent + counted + "\n"
}
