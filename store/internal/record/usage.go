package record

import (
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/store"
)

// Event returns an event in its stored form, without a number.
func Event(e store.Event) store.Event {
	e.Number, e.Time, e.Took = 0, e.Time.UTC().Truncate(time.Millisecond), max(e.Took, 0).Truncate(time.Microsecond)
	e.Identity, e.Endpoint = store.BotIdentity(text(string(e.Identity))), store.Endpoint(text(string(e.Endpoint)))
	for _, s := range []*string{&e.Bot, &e.Family, &e.Protocol, &e.Path, &e.Query, &e.Intent} {
		*s = text(*s)
	}
	e.Status = max(e.Status, 0)
	for _, n := range []*int64{&e.Results, &e.Bytes, &e.Size, &e.HTML, &e.Received} {
		*n = max(*n, 0)
	}
	return e
}

// text returns the stored form of a text in an event; see [store.Usage].
func text(s string) string {
	if len(s) <= store.MaxEventText && !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) }) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsControl(r) {
			r = utf8.RuneError
		}
		if b.Len()+utf8.RuneLen(r) > store.MaxEventText {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Count returns the counts of a stored event.
func Count(e *store.Event) store.Counts {
	c := store.Counts{Events: 1, Results: e.Results, Bytes: e.Bytes, Size: e.Size, HTML: e.HTML, Received: e.Received, Took: e.Took}
	if e.Cached {
		c.Cached = 1
	}
	if e.HTML > 0 {
		c.HTMLKnown = 1
	}
	if e.Received > 0 {
		c.HTMLWithReceived = e.HTML
	}
	return c
}

// Numbers returns pointers to all numbers of c. The first number is a duration in nanoseconds.
func Numbers(c *store.Counts) [10]*int64 {
	return [10]*int64{(*int64)(&c.Took), &c.Events, &c.Cached, &c.Results, &c.Bytes, &c.Size, &c.HTML, &c.Received, &c.HTMLKnown, &c.HTMLWithReceived}
}

// AddCounts adds c to sum. Each number is limited to the maximum of its type.
func AddCounts(sum *store.Counts, c store.Counts) {
	more := Numbers(&c)
	for i, n := range Numbers(sum) {
		Add(n, *more[i])
	}
}

// Add adds a nonnegative number to a sum. The sum is limited to the maximum int64.
func Add(sum *int64, n int64) { *sum = min(*sum, math.MaxInt64-n) + n }

// TopicOf returns the topic and the item of a stored event; see [store.TopItem]. If the event has
// no topic, of is "".
func TopicOf(e *store.Event) (of store.Topic, item store.TopItem) {
	outcome := store.OutcomeOf(e.Status)
	answered, empty := outcome == store.Sent || outcome == store.Unmodified, false
	item = store.TopItem{Name: e.Path, Events: 1, Bytes: e.Bytes, Last: e.Time}
	switch {
	case outcome == store.Missing:
		of = store.TopMissing
	case answered && e.Endpoint == store.EndpointFetch:
		of, empty = store.TopPages, outcome == store.Unmodified
	case answered && e.Endpoint == store.EndpointSearch:
		of, item.Name, empty = store.TopQueries, e.Query, outcome == store.Sent && e.Results == 0
	}
	if empty {
		item.Empty = 1
	}
	if item.Name == "" {
		of = ""
	}
	return of, item
}

// AddItem adds the counts of an item to the sum of items with the same name.
func AddItem(sum *store.TopItem, item store.TopItem) {
	sum.Name, sum.Events, sum.Empty = item.Name, sum.Events+item.Events, sum.Empty+item.Empty
	if Add(&sum.Bytes, item.Bytes); item.Last.After(sum.Last) {
		sum.Last = item.Last
	}
}
