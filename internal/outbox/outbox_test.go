package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

const base = "https://example.com/"

// clock is a store's clock.
type clock struct{ now time.Time }

// opened is a site and the State of its store.
type opened struct {
	store.Site
	state store.State
}

// open returns a site of a new store, whose clock advances by a minute at each call.
func open(t *testing.T) (*opened, *clock) {
	t.Helper()
	c := &clock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	st := memory.New(&store.Options{Now: func() time.Time {
		c.now = c.now.Add(time.Minute)
		return c.now
	}})
	site, err := st.Site(t.Context(), base, base)
	if err != nil {
		t.Fatal(err)
	}
	return &opened{site, st.State()}, c
}

// apply applies changes as one commit: "/path=text" puts a page, "-/path"
// deletes one.
func apply(t *testing.T, site store.Site, changes ...string) {
	t.Helper()
	var batch []millrace.Change
	for _, c := range changes {
		if url, ok := strings.CutPrefix(c, "-"); ok {
			batch = append(batch, millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: url}})
			continue
		}
		url, text, _ := strings.Cut(c, "=")
		batch = append(batch, millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: url, Version: text}, Page: &millrace.Page{
			URL: url, Title: "Title of " + url, Blocks: millrace.TextBlocks(text), Detail: millrace.DetailText, Known: millrace.FieldTitle | millrace.FieldContent,
		}})
	}
	if _, err := site.Apply(t.Context(), "test", batch); err != nil {
		t.Fatal(err)
	}
}

// receiver records the events it receives.
type receiver struct {
	got   []string // events, such as "added /a"
	parts []int    // number of events of each delivery
	fail  error    // error to return instead
	after int      // with fail: number of deliveries that succeed first
}

func (r *receiver) deliver(_ context.Context, lines [][]byte) error {
	if r.fail != nil && r.after == 0 {
		return r.fail
	}
	r.after--
	r.parts = append(r.parts, len(lines))
	for _, line := range lines {
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		r.got = append(r.got, strings.TrimSpace(e.Change+" "+strings.TrimPrefix(e.URL, "https://example.com")))
	}
	return nil
}

func (r *receiver) want(t *testing.T, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, r.got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	r.got, r.parts = nil, nil
}

func flush(t *testing.T, o *Outbox) {
	t.Helper()
	if _, err := o.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// visible is a site that shows only public pages.
type visible struct{ *opened }

func (v visible) Head(ctx context.Context) (millrace.View, error) {
	head, err := v.opened.Head(ctx)
	if err != nil {
		return nil, err
	}
	return store.Visible(head), nil
}

// A page that becomes hidden is sent as deleted to a receiver that has it.
func TestFlushHidden(t *testing.T) {
	site, _ := open(t)
	r := &receiver{}
	o := &Outbox{Site: visible{site}, State: site.state, Name: base, Receiver: "test", Deliver: r.deliver}
	flush(t, o)
	hide := func(url string) millrace.Change {
		return millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: url}, Page: &millrace.Page{
			URL: url, Title: "Hidden", Access: millrace.Access{NoIndex: true}, Known: millrace.FieldTitle | millrace.FieldAccess,
		}}
	}
	apply(t, site, "/a=1")
	flush(t, o)
	r.want(t, "added /a")
	if _, err := site.Apply(t.Context(), "test", []millrace.Change{hide("/a"), hide("/b")}); err != nil {
		t.Fatal(err)
	}
	apply(t, site, "/c=1")
	flush(t, o)
	r.want(t, "deleted /a", "added /c")
}

// Each change is sent once, in order.
func TestFlush(t *testing.T) {
	site, _ := open(t)
	r := &receiver{}
	o := &Outbox{Site: site, State: site.state, Name: base, Receiver: "test", Deliver: r.deliver}
	flush(t, o)
	r.want(t)
	apply(t, site, "/a=1", "/b=1")
	apply(t, site, "/c=1")
	flush(t, o)
	r.want(t, "added /a", "added /b", "added /c")
	flush(t, o)
	r.want(t)
	apply(t, site, "/b=2")
	apply(t, site, "-/a")
	apply(t, site, "/b=3", "/d=1")
	flush(t, o)
	r.want(t, "deleted /a", "updated /b", "added /d")
	apply(t, site, "/e=1")
	apply(t, site, "-/e")
	flush(t, o)
	r.want(t, "deleted /e") // an earlier process may have sent the page
}

// An event has the fields of the page and its position in the log.
func TestEvent(t *testing.T) {
	site, _ := open(t)
	apply(t, site, "/a=one <two>")
	apply(t, site, "/b=1")
	var got []string
	o := &Outbox{
		Site: site, State: site.state, Name: base, Receiver: "test", Content: (*millrace.Page).Text,
		Terms: func(context.Context) (json.RawMessage, error) { return json.RawMessage(`[{"document":"x"}]`), nil },
		Deliver: func(_ context.Context, lines [][]byte) error {
			for _, line := range lines {
				got = append(got, string(line))
			}
			return nil
		},
	}
	flush(t, o)
	apply(t, site, "-/a")
	flush(t, o)
	v, err := site.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := v.Page(t.Context(), millrace.Ref{URL: "/b"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`"change":"added","url":"https://example.com/a","title":"Title of /a","modified":"`,
		fmt.Sprintf(`"change":"added","url":"https://example.com/b","title":"Title of /b","modified":"%s","revision":"%s","seq":2,"content":"1","terms":[{"document":"x"}]}`+"\n",
			p.Modified.Format(time.RFC3339), p.Version),
		`"change":"deleted","url":"https://example.com/a","seq":3}` + "\n",
	}
	for i, w := range want {
		if len(got) != len(want) || !strings.Contains(got[i], w) || !strings.HasPrefix(got[i], `{"time":"2026-03-01T12:`) {
			t.Fatalf("told:\n%s\nwant\n%s", strings.Join(got, ""), strings.Join(want, "\n"))
		}
	}
	if !strings.Contains(got[0], `"seq":1,"content":"one <two>",`) {
		t.Errorf("told: %s", got[0])
	}
}

// If a flush is interrupted at any point, no event is lost. Only events without a saved
// position are sent twice.
func TestCutOff(t *testing.T) {
	site, _ := open(t)
	for i := range 10 {
		apply(t, site, fmt.Sprintf("/%da=1", i), fmt.Sprintf("/%db=1", i), fmt.Sprintf("/%dc=1", i))
	}
	down := errors.New("down")
	sent := map[string]int{}
	flushes := 0
	for done := false; !done; flushes++ {
		r := &receiver{fail: down, after: 3}
		o := &Outbox{Site: site, State: site.state, Name: base, Receiver: "test", Deliver: r.deliver, MaxEvents: 4}
		_, err := o.Flush(t.Context())
		if done = err == nil; !done && !errors.Is(err, down) {
			t.Fatal(err)
		}
		for _, e := range r.got {
			sent[e]++
		}
		if flushes > 20 {
			t.Fatalf("the position does not advance: %v", sent)
		}
	}
	again := 0
	for _, n := range sent {
		again += n - 1
	}
	if len(sent) != 30 || flushes < 2 || again > 3*flushes {
		t.Errorf("%d of 30 pages were sent in %d deliveries, %d of them repeated", len(sent), flushes, again)
	}
}

// A commit that is larger than one delivery is sent in parts.
func TestLargeCommit(t *testing.T) {
	site, _ := open(t)
	var batch []string
	for i := range 95 {
		batch = append(batch, fmt.Sprintf("/%02d=1", i))
	}
	apply(t, site, batch...)
	r := &receiver{}
	flush(t, &Outbox{Site: site, State: site.state, Name: base, Receiver: "test", Deliver: r.deliver, MaxEvents: 20})
	if d := cmp.Diff([]int{20, 20, 20, 20, 15}, r.parts); d != "" {
		t.Error(d)
	}
	r = &receiver{}
	flush(t, &Outbox{Site: site, State: site.state, Name: base, Receiver: "by size", Deliver: r.deliver, MaxBytes: 1000})
	if len(r.got) != 95 || len(r.parts) < 10 {
		t.Errorf("%d events in %d deliveries", len(r.got), len(r.parts))
	}
}

// Two receivers are independent. A receiver that starts with Skip gets no earlier changes.
func TestReceivers(t *testing.T) {
	site, _ := open(t)
	apply(t, site, "/a=1")
	one, two := &receiver{}, &receiver{}
	first := &Outbox{Site: site, State: site.state, Name: base, Receiver: "one", Deliver: one.deliver}
	second := &Outbox{Site: site, State: site.state, Name: base, Receiver: "two", Deliver: two.deliver}
	if err := second.Skip(t.Context()); err != nil {
		t.Fatal(err)
	}
	apply(t, site, "/b=1")
	if err := second.Skip(t.Context()); err != nil { // Skip does nothing for a receiver with a position
		t.Fatal(err)
	}
	flush(t, first)
	flush(t, second)
	one.want(t, "added /a", "added /b")
	two.want(t, "added /b")
}

// Two processes that send to the same receiver detect each other.
func TestTwice(t *testing.T) {
	site, _ := open(t)
	apply(t, site, "/a=1")
	r := &receiver{}
	other := &Outbox{Site: site, State: site.state, Name: base, Receiver: "test", Deliver: r.deliver}
	o := &Outbox{Site: site, State: site.state, Name: base, Receiver: "test", Deliver: func(ctx context.Context, lines [][]byte) error {
		flush(t, other)
		return r.deliver(ctx, lines)
	}}
	_, err := o.Flush(t.Context())
	if taken, ok := errors.AsType[*TakenError](err); !ok || !errors.Is(err, millrace.ErrConflict) || taken.Site != base {
		t.Error(err)
	}
	// This also holds if they send alternately, or if one has not sent yet.
	idle := &Outbox{Site: site, State: site.state, Name: base, Receiver: "test", Deliver: r.deliver}
	flush(t, idle)
	apply(t, site, "/b=1")
	flush(t, &Outbox{Site: site, State: site.state, Name: base, Receiver: "test", Deliver: r.deliver})
	for i, o := range []*Outbox{other, idle} {
		_, err := o.Flush(t.Context())
		if _, taken := errors.AsType[*TakenError](err); !taken {
			t.Errorf("%d: two processes send alternately to the same receiver: %v", i, err)
		}
	}
}

// behind is a site as another process still sees it.
type behind struct {
	*opened
	view millrace.View
}

func (b *behind) Head(context.Context) (millrace.View, error) { return b.view, nil }

// A process whose view is older than what another one has sent waits for a newer view.
func TestBehind(t *testing.T) {
	site, _ := open(t)
	apply(t, site, "/a=1")
	old, err := site.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{}
	apply(t, site, "/b=1")
	flush(t, &Outbox{Site: site, State: site.state, Name: base, Receiver: "test", Deliver: r.deliver})
	r.want(t, "added /a", "added /b")
	late := &behind{site, old}
	next := &Outbox{Site: late, State: site.state, Name: base, Receiver: "test", Deliver: r.deliver}
	flush(t, next)
	r.want(t)
	apply(t, site, "/c=1")
	if late.view, err = site.Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	flush(t, next)
	r.want(t, "added /c")
}

// A receiver whose position is older than the log gets a reset, then every page, even after an
// interruption.
func TestReset(t *testing.T) {
	site, c := open(t)
	apply(t, site, "/a=1", "/b=1", "/c=1", "/d=1")
	r := &receiver{}
	o := &Outbox{Site: site, State: site.state, Name: base, Receiver: "test", Deliver: r.deliver, MaxEvents: 2}
	flush(t, o)
	apply(t, site, "/b=2", "-/c")
	c.now = c.now.Add(1000 * time.Hour)
	apply(t, site, "/d=2")
	c.now = c.now.Add(1000 * time.Hour)
	if err := site.Compact(t.Context(), time.Hour, time.Hour); err != nil {
		t.Fatal(err)
	}
	r.got = nil
	r.fail, r.after = errors.New("down"), 1
	if _, err := o.Flush(t.Context()); !errors.Is(err, r.fail) {
		t.Fatal(err)
	}
	r.want(t, "reset", "added /a")
	apply(t, site, "/a=2", "/e=1")
	r.fail = nil
	flush(t, o)
	r.want(t, "added /b", "added /d", "added /e", "updated /a", "added /e")

	never := &receiver{}
	flush(t, &Outbox{Site: site, State: site.state, Name: base, Receiver: "new", Deliver: never.deliver})
	never.want(t, "added /a", "added /b", "added /d", "added /e")
}

// If a receiver refuses long messages, it gets shorter ones, and finally events without content.
func TestTooLarge(t *testing.T) {
	site, _ := open(t)
	apply(t, site, "/a=1", "/b=1", "/c="+strings.Repeat("long ", 1000), "/d=1", "/e=1")
	var got []string
	o := &Outbox{Site: site, State: site.state, Name: base, Receiver: "test", Content: (*millrace.Page).Text}
	o.Deliver = func(_ context.Context, lines [][]byte) error {
		size := 0
		for _, l := range lines {
			size += len(l)
		}
		if size > 1000 {
			return fmt.Errorf("%d bytes: %w", size, millrace.ErrTooLarge)
		}
		for _, l := range lines {
			var e Event
			if err := json.Unmarshal(l, &e); err != nil {
				return err
			}
			got = append(got, fmt.Sprint(strings.TrimPrefix(e.URL, base), e.Omitted, len(e.Content) > 0))
		}
		return nil
	}
	flush(t, o)
	want := []string{"afalse true", "bfalse true", "ctrue false", "dfalse true", "efalse true"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	o = &Outbox{Site: site, State: site.state, Name: base, Receiver: "none", Deliver: func(context.Context, [][]byte) error { return millrace.ErrTooLarge }}
	if _, err := o.Flush(t.Context()); !errors.Is(err, millrace.ErrTooLarge) {
		t.Error(err)
	}
}
