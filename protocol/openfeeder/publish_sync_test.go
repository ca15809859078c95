package openfeeder

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/store"
)

// shop is a site in a store. Tests set its clock.
type shop struct {
	t      *testing.T
	mu     sync.Mutex
	now    time.Time
	site   *protocoltest.Stored
	stores map[string]*protocoltest.Stored
	pub    *publisher

	draft bool // changes are not published until publish is called
}

func openShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{t: t, now: day(1), stores: map[string]*protocoltest.Stored{}}
	s.open("one.db")
	return s
}

func (s *shop) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *shop) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// open opens a store and starts a publisher with empty caches.
func (s *shop) open(name string) {
	s.t.Helper()
	if s.stores[name] == nil {
		s.stores[name] = protocoltest.Open(s.t, store.Config{Base: base, Taggers: []millrace.Tagger{Protocol().Tagger}}, s.clock)
	}
	s.site = s.stores[name]
	s.restart()
}

func (s *shop) restart() {
	s.pub = NewPublisher(nil).(*publisher)
	s.pub.most = 7
}

// view returns the last published view, or publishes the store.
func (s *shop) view() millrace.View {
	s.t.Helper()
	v, _, err := s.site.Pub.Published(context.WithoutCancel(s.t.Context()))
	if errors.Is(err, millrace.ErrNotFound) {
		v, err = protocoltest.Publish(context.WithoutCancel(s.t.Context()), s.site.Pub)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// apply applies a batch: "+/a" writes the page /a with its own text, "*/a" makes it an
// archive, "-/a" deletes it.
func (s *shop) apply(text string, edits ...string) {
	s.t.Helper()
	var batch []millrace.Change
	for _, e := range edits {
		c := millrace.Change{Ref: millrace.Ref{URL: e[1:]}}
		if e[0] == '-' {
			c.Kind = millrace.Delete
		} else {
			c.Page = &millrace.Page{
				URL: e[1:], Title: "Page " + e[1:], Summary: text, Blocks: millrace.TextBlocks(text),
				Known: millrace.FieldTitle | millrace.FieldSummary | millrace.FieldContent, Detail: millrace.DetailBlocks,
			}
			if e[0] == '*' {
				c.Page.Kind = millrace.Archive
				c.Page.Known |= millrace.FieldKind
			}
		}
		batch = append(batch, c)
	}
	if _, err := s.site.Apply(context.WithoutCancel(s.t.Context()), "source", batch); err != nil {
		s.t.Fatal(err)
	}
	if !s.draft {
		s.publish()
	}
}

// publish publishes an edition of the store.
func (s *shop) publish() {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	for err := millrace.ErrConflict; errors.Is(err, millrace.ErrConflict); { // another writer was faster
		if _, err = protocoltest.Publish(ctx, s.site.Pub); err != nil && !errors.Is(err, millrace.ErrConflict) {
			s.t.Fatal(err)
		}
	}
}

// ask requests a sync reply. An error is the error of the request.
func (s *shop) ask(target string) (*changes, error) {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	d, err := s.pub.Find(ctx, s.view(), httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil))
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	if err := d.Write(ctx, &b); err != nil {
		return nil, err
	}
	c, err := decodeChanges([]byte(b.String()))
	if err != nil {
		s.t.Fatalf("%s: %v: %s", target, err, b.String())
	}
	if n := len(c.Added) + len(c.Updated) + len(c.Deleted); d.PageCount != int64(n) {
		s.t.Errorf("%s: %d results for %d changes", target, d.PageCount, n)
	}
	return c, nil
}

// all requests all pages of a reply. It returns their changes in short form, and the last
// token.
func (s *shop) all(query string) (text, token string) {
	s.t.Helper()
	var out []string
	for target := endpoint + query; target != ""; {
		c, err := s.ask(target)
		if err != nil {
			return err.Error(), ""
		}
		for _, list := range []struct {
			mark  string
			items []item
		}{{"+", c.Added}, {"*", c.Updated}} {
			for _, it := range list.items {
				out = append(out, list.mark+relative(base, it.URL))
			}
		}
		for _, gone := range c.Deleted {
			out = append(out, "-"+relative(base, gone.URL))
		}
		if c.Sync.DeletedTracking != nil && !*c.Sync.DeletedTracking && c.Sync.Next == "" {
			out = append(out, "gap")
		}
		target, token = c.Sync.Next, c.Sync.SyncToken
	}
	slices.Sort(out)
	return strings.Join(out, " "), token
}

func (s *shop) want(query, want string) (token string) {
	s.t.Helper()
	got, token := s.all(query)
	if got != want {
		s.t.Errorf("%s: %s, want %s", query, got, want)
	}
	return token
}

func at(t time.Time) string { return t.Format(time.RFC3339) }

// Sync replies for tokens and dates, on a site that changes.
func TestSync(t *testing.T) {
	s := openShop(t)
	s.apply("one", "+/a", "+/b", "+/c")
	token := s.want("?since="+at(day(-30)), "+/a +/b +/c")
	s.want("?since="+token, "")
	s.want("?since=0001-01-01T00:00:00Z", "+/a +/b +/c") // the minimum date of some clients
	s.want("?until=0001-01-01T00:00:00Z", "")
	s.pass(24 * time.Hour)
	s.apply("two", "+/a", "-/b", "+/d", "+/e")
	s.pass(time.Hour)
	s.apply("three", "+/a", "-/e", "+/f")
	s.want("?since="+token, "*/a +/d +/f -/b -/e")      // e was added and deleted; clients may have received it
	s.want("?since="+token+"&until="+at(day(1)), "+/c") // by the date of publication or change
	s.want("?since="+at(day(2)), "*/a +/d +/f -/b -/e")
	s.want("?since="+at(day(2).Add(time.Second)), "*/a +/f -/e")
	s.want("?until="+at(day(1)), "*/c")
	s.want("?until="+at(day(9)), "*/a */c */d */f")
	s.want("?since="+at(day(2))+"&until="+at(day(2)), "+/d -/b")
	s.want("?since="+at(day(9)), "")
	// The as_of time of a window is the present, and its token continues after the window.
	window := "?since=" + at(day(1)) + "&until=" + at(day(2))
	reply, err := s.ask("/openfeeder" + window)
	if err != nil || reply.Sync.AsOf != at(day(2).Add(time.Hour)) {
		t.Fatalf("%+v, %v", reply, err)
	}
	tok, _, err := parseToken(reply.Sync.SyncToken)
	if err != nil || tok.T != reply.Sync.AsOf {
		t.Errorf("token %+v, %v", tok, err)
	}
	s.want("?since="+reply.Sync.SyncToken, "*/a +/f -/e")
	if got := s.want("?since="+token, "*/a +/d +/f -/b -/e"); got == token {
		t.Error("the token did not change")
	} else {
		s.want("?since="+got, "")
	}
	// A token without a sequence number is treated as a date, in any alphabet, padded or not.
	plain := token2(t, token)
	for _, form := range []string{plain, strings.TrimRight(plain, "="), strings.NewReplacer("+", "-", "/", "_").Replace(plain)} {
		s.want("?since="+strings.ReplaceAll(form, "+", "%2B"), "+/a +/c +/d +/f -/b -/e")
	}
}

// A page that has become an archive is listed as deleted, even for a token from before the
// page existed: an earlier sync may have stopped half way.
func TestSyncArchives(t *testing.T) {
	s := openShop(t)
	s.apply("one", "+/a", "+/b")
	token := s.want("?since="+at(day(-30)), "+/a +/b")
	s.pass(time.Minute)
	s.apply("two", "+/c")
	s.want("?since="+token, "+/c")
	s.pass(time.Minute)
	s.apply("three", "*/b", "*/c")
	s.want("?since="+token, "-/b -/c")
	s.want("?since="+at(day(1).Add(time.Minute)), "-/b -/c")
}

// A page that was added and deleted between two editions was never public: neither a reply nor
// an event names it.
func TestSyncUnseen(t *testing.T) {
	s := openShop(t)
	s.apply("one", "+/a", "+/b")
	v := s.view()
	token := s.want("?since="+at(day(-30)), "+/a +/b")
	s.draft = true
	for i, edits := range [][]string{{"+/unseen", "+/retired"}, {"-/unseen", "*/retired", "-/b"}, {"-/a", "*/archive"}} {
		s.pass(time.Minute)
		s.apply(fmt.Sprint("draft ", i), edits...)
	}
	s.publish()
	s.want("?since="+token, "-/a -/b")
	s.want("?since="+at(day(1).Add(time.Second)), "-/a -/b")
	var frames []byte
	for c, err := range s.pub.commits(t.Context(), s.view(), v.Site().Seq, asOf(v.Site())) {
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, c.frames...)
	}
	if n := strings.Count(string(frames), "event: deleted"); n != 2 || strings.Contains(string(frames), "event: added") {
		t.Errorf("events:\n%s", frames)
	}
}

// token2 returns a token without its sequence number.
func token2(t *testing.T, s string) string {
	t.Helper()
	tok, _, err := parseToken(s)
	if err != nil {
		t.Fatal(err)
	}
	tok.N = nil
	return tok.String()
}

// A token from before the horizon gets a 410. The replies to an older date and to a token of
// another store report that deletions are missing.
func TestSyncGaps(t *testing.T) {
	s := openShop(t)
	s.apply("one", "+/a", "+/b")
	old := s.want("?since="+at(day(-1)), "+/a +/b")
	s.pass(24 * time.Hour)
	s.apply("two", "-/a", "+/c")
	s.pass(48 * time.Hour)
	s.apply("three", "+/c")
	if err := s.site.Compact(t.Context(), time.Hour, time.Hour); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.all("?since=" + old); !strings.HasPrefix(got, resyncRequired) {
		t.Errorf("a token from before the horizon: %s", got)
	}
	if _, err := s.ask("/openfeeder?since=" + old); millrace.Status(err) != http.StatusGone {
		t.Errorf("a token from before the horizon: %v", err)
	}
	s.want("?since="+at(day(-1)), "+/b +/c gap")
	s.open("two.db")
	s.apply("four", "+/x", "+/y")
	s.want("?since="+s.want("?since="+old, "+/x +/y gap"), "")
	// A token that is ahead of this server is treated as a date.
	tok, _, err := parseToken(old)
	if err != nil {
		t.Fatal(err)
	}
	ahead := uint64(1 << 40)
	tok.N, tok.E = &ahead, s.view().Site().Epoch
	s.want("?since="+tok.String(), "+/x +/y")
}

// The pages of a long reply show one edition, despite changes meanwhile. Its last token
// continues at the end of that edition.
func TestSyncPages(t *testing.T) {
	s := openShop(t)
	s.apply("start", "+/0")
	token := s.want("?since="+at(day(-1)), "+/0")
	var want []string
	for i := range 40 {
		s.pass(time.Second)
		s.apply("x", fmt.Sprintf("+/%02d", i))
		want = append(want, fmt.Sprintf("+/%02d", i))
	}
	for _, query := range []string{"?since=" + token, "?since=" + at(day(-1))} {
		var got []string
		n, target, last := 0, endpoint+query, ""
		for target != "" {
			c, err := s.ask(target)
			if err != nil {
				t.Fatal(err)
			}
			n++
			for _, it := range c.Added {
				got = append(got, "+"+relative(base, it.URL))
			}
			for _, gone := range c.Deleted {
				if n > 1 || !strings.Contains(gone.URL, "/99") { // deleted in the previous round
					t.Errorf("page %d of %s contains the deletion %v", n, query, gone)
				}
			}
			if len(c.Updated) > 0 {
				t.Errorf("page %d of %s contains the update %v", n, query, c.Updated)
			}
			if n == 2 {
				s.pass(time.Second)
				s.apply("later", "+/99"+query[7:9], "-/39", "+/00")
			}
			target, last = c.Sync.Next, c.Sync.SyncToken
		}
		slices.Sort(got)
		got = slices.DeleteFunc(got, func(u string) bool { return u == "+/0" })
		if diff := cmp.Diff(want, got); diff != "" || n < 5 {
			t.Errorf("%s in %d pages (-want +got):\n%s", query, n, diff)
		}
		s.want("?since="+last, "*/00 +/99"+query[7:9]+" -/39")
		s.pass(time.Second)
		s.apply("x", "+/39", "+/00", "-/99"+query[7:9])
		s.pass(time.Second)
	}
}

// copied is a client that uses only tokens.
type copied struct {
	s     *shop
	rng   *rand.Rand
	token string
	pages map[string]string // revisions by URL
}

// resync reads the index.
func (c *copied) resync() {
	c.s.t.Helper()
	v := c.s.view()
	c.pages = map[string]string{}
	for page, pages := 1, 1; page <= pages; page++ {
		ctx := context.WithoutCancel(c.s.t.Context())
		d, err := c.s.pub.Find(ctx, v, httptest.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("/openfeeder?limit=50&page=%d", page), nil))
		if err != nil {
			c.s.t.Fatal(err)
		}
		var b strings.Builder
		if err := d.Write(ctx, &b); err != nil {
			c.s.t.Fatal(err)
		}
		x, err := decodeIndex([]byte(b.String()))
		if err != nil {
			c.s.t.Fatal(err)
		}
		pages, c.token = x.TotalPages, x.SyncToken
		for _, it := range x.Items {
			c.pages[relative(base, it.URL)] = it.Revision
		}
	}
}

// poll requests the changes once, and sometimes aborts in the middle. It calls between after
// each page of a reply but the last.
func (c *copied) poll(between func()) {
	c.s.t.Helper()
	target, listed, full := endpoint+"?since="+c.token, map[string]bool{}, false
	for target != "" {
		r, err := c.s.ask(target)
		if e, ok := errors.AsType[*millrace.RequestError](err); ok && e.Code == resyncRequired {
			c.resync()
			return
		}
		if err != nil {
			c.s.t.Fatal(err)
		}
		full = full || r.Sync.DeletedTracking != nil
		for _, it := range append(r.Added, r.Updated...) {
			u := relative(base, it.URL)
			if listed[u] {
				c.s.t.Errorf("one reply contains %s twice", u)
			}
			if listed[u] = true; c.pages[u] == it.Revision && !full {
				c.s.t.Errorf("%s is listed as %s twice", u, it.Revision)
			}
			c.pages[u] = it.Revision
		}
		for _, gone := range r.Deleted {
			delete(c.pages, relative(base, gone.URL))
		}
		target = r.Sync.Next
		if target == "" || !full && c.rng.IntN(8) == 0 {
			c.token = r.Sync.SyncToken
			break
		}
		between()
	}
	if full && target == "" {
		maps.DeleteFunc(c.pages, func(u, _ string) bool { return !listed[u] })
	}
}

// Clients that poll with tokens get every change exactly once, in any order of writes,
// restarts, compaction and new stores.
func TestSyncProperty(t *testing.T) {
	seeds := uint64(testkit.Size(3, 3, 24))
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := openShop(t)
			rng := rand.New(rand.NewPCG(seed, 1))
			write := func() {
				var batch []string
				for range 1 + rng.IntN(9) {
					batch = append(batch, string("+++-"[rng.IntN(4)])+fmt.Sprintf("/%d", rng.IntN(40)))
				}
				slices.SortStableFunc(batch, func(a, b string) int { return strings.Compare(a[1:], b[1:]) })
				batch = slices.CompactFunc(batch, func(a, b string) bool { return a[1:] == b[1:] })
				s.pass(time.Duration(rng.IntN(3000)) * time.Millisecond)
				s.apply(fmt.Sprint(rng.IntN(1000)), batch...)
			}
			write()
			clients := []*copied{{s: s, rng: rng}, {s: s, rng: rng}}
			for _, c := range clients {
				c.resync()
			}
			for step := range 120 {
				switch n := rng.IntN(40); {
				case n == 0:
					s.open("one.db")
				case n == 1:
					if err := s.site.Compact(t.Context(), 5*time.Second, 10*time.Second); err != nil {
						t.Fatal(err)
					}
				case n == 2 && step > 60:
					s.open(fmt.Sprintf("store%d.db", step))
					write()
				case n < 24:
					write()
				default:
					clients[n%len(clients)].poll(func() {
						if rng.IntN(4) == 0 {
							write()
						}
					})
				}
			}
			for range 20 { // some polls abort in the middle
				for _, c := range clients {
					c.poll(func() {})
				}
			}
			want := map[string]string{}
			for p, err := range s.view().Scan(t.Context(), millrace.Scan{}) {
				if err != nil {
					t.Fatal(err)
				}
				want[relative(base, p.URL)] = p.Version
			}
			for i, c := range clients {
				if diff := cmp.Diff(want, c.pages); diff != "" {
					t.Errorf("client %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// A client that polls during concurrent writes loses no change.
func TestSyncConcurrent(t *testing.T) {
	s := openShop(t)
	s.apply("start", "+/0")
	c := &copied{s: s, rng: rand.New(rand.NewPCG(1, 2))}
	c.resync()
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 3))
			for range 60 {
				s.pass(time.Millisecond)
				s.apply(fmt.Sprint(rng.Uint32()), fmt.Sprintf("%c/%d-%d", "++-"[rng.IntN(3)], w, rng.IntN(12)))
			}
		})
	}
	done := make(chan struct{})
	go func() {
		writers.Wait()
		close(done)
	}()
	for more := true; more; {
		select {
		case <-done:
			more = false
		default:
		}
		c.poll(func() {})
	}
	for range 20 {
		c.poll(func() {})
	}
	want := map[string]string{}
	for p, err := range s.view().Scan(t.Context(), millrace.Scan{}) {
		if err != nil {
			t.Fatal(err)
		}
		want[relative(base, p.URL)] = p.Version
	}
	if diff := cmp.Diff(want, c.pages); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
