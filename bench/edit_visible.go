package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// seriesEdits is the number of edits in a series, one a second.
const seriesEdits = 60

// lags are the delays of edits until they are visible in every protocol.
type lags struct {
	edits  int
	delays                   // delays until the last document shows an edit
	kinds  map[string]delays // delays by kind of document
	latest map[string]int    // how often a kind of document was the last to show an edit
}

// delays is a sorted list of delays.
type delays []time.Duration

func (d delays) at(part float64) time.Duration { return d[int(part*float64(len(d)-1)+0.5)] }

// last returns the kind of document that was most often the last to show an edit.
func (l *lags) last() (name string) {
	for n, times := range l.latest {
		if name == "" || times > l.latest[name] {
			name = n
		}
	}
	return name
}

// seriesEdit is one edit of a series.
type seriesEdit struct {
	page      int
	sentence  string
	committed time.Time
	before    map[string]string    // the page's entries in lists before the edit, by kind of document
	seen      map[string]time.Time // when the edit was first seen, by kind of document
}

// pageEdit is an edit with the path of a document of its page, and the text that the document then
// contains.
type pageEdit struct {
	edit       *seriesEdit
	path, text string
}

// series is a run of edits, one a second, watched in every protocol.
type series struct {
	*editing
	length int           // number of edits
	every  time.Duration // interval between two requests for a list
	mu     sync.Mutex
	edits  []*seriesEdit
	kinds  map[string][]*watched // watched lists, by kind
	errs   []error
}

var (
	shardLink = regexp.MustCompile(`<([^>]+)>; rel="index"`)
	llmsLink  = regexp.MustCompile(`\((http[^)\s]*llms[^)\s/]*\.txt)\)`)
	mapLink   = regexp.MustCompile(`<loc>([^<]*sitemap[^<]*\.xml)</loc>`)
)

// everySecond edits a page a second, for a number of edits, and waits until every protocol shows all
// edits. It polls each list with its ETag, and compares the page's entry with the entry before the
// edit. Above 100,000 pages it leaves out lists that are one document for the whole site, because
// reading them takes longer than a second.
func (e *editing) everySecond(ctx context.Context, edits int, every time.Duration) (*lags, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if _, err := quiet(ctx, e.pid); err != nil {
		return nil, err
	}
	s := &series{editing: e, length: edits, every: every}
	if err := s.find(ctx); err != nil {
		return nil, err
	}
	var asking, pages sync.WaitGroup
	for kind, docs := range s.kinds {
		for _, d := range docs {
			asking.Go(func() { s.watch(ctx, kind, d) })
		}
	}
	// One request at a time waits for the documents of pages of a kind, because the requests must
	// not become a load that grows with the delay.
	next := make(map[string]chan pageEdit)
	end := sync.OnceFunc(func() {
		for _, c := range next {
			close(c)
		}
	})
	defer end()
	for kind := range s.documents(0) {
		c := make(chan pageEdit, edits)
		next[kind] = c
		pages.Go(func() {
			for p := range c {
				err := visible(ctx, e.url+p.path, p.text, s.every/2)
				s.note(p.edit, kind, time.Now(), err)
			}
		})
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for range edits {
		<-tick.C
		page, edited, sentence := e.next()
		x := &seriesEdit{page: page, sentence: sentence, seen: map[string]time.Time{}}
		x.before = s.entries(page)
		if err := e.commit(ctx, edited); err != nil {
			return nil, err
		}
		x.committed = time.Now()
		s.mu.Lock()
		s.edits = append(s.edits, x)
		s.mu.Unlock()
		for kind, of := range s.documents(page) {
			next[kind] <- pageEdit{x, of, cmp.Or(map[string]string{"OpenFeeder's index": edited.Title}[kind], sentence)}
		}
	}
	end()
	for range 60 {
		if s.missing() == "" {
			break
		}
		time.Sleep(time.Second)
	}
	cancel()
	pages.Wait()
	asking.Wait()
	if missing := s.missing(); missing != "" {
		return nil, errors.Join(append(s.errs, fmt.Errorf("a minute after the last edit, %s", missing))...)
	}
	return s.lags(), errors.Join(s.errs...)
}

// find fetches every list once. If a list has several parts, find keeps the parts that contain a page
// of the series.
func (s *series) find(ctx context.Context) error {
	header, _, err := fetch(ctx, s.url)
	if err != nil {
		return err
	}
	s.kinds = map[string][]*watched{}
	for _, m := range shardLink.FindAllStringSubmatch(strings.Join(header.Values("Link"), ", "), -1) {
		s.kinds["draft-01's list"] = append(s.kinds["draft-01's list"], &watched{url: s.url + strings.TrimPrefix(m[1], "/")})
	}
	since, err := s.since(ctx)
	if err != nil {
		return err
	}
	for kind, at := range map[string]string{openFeederSince: since, "feed.atom": s.url + "feed.atom", "feed.json": s.url + "feed.json"} {
		s.kinds[kind] = []*watched{{url: at}}
	}
	if s.pages <= 100_000 {
		s.kinds["draft-00's list"] = []*watched{{url: s.url + "llm-sitemap.json"}}
		s.kinds["ARC's list"] = []*watched{{url: s.url + "arc-sitemap.json"}}
	}
	sitemaps := "sitemap.xml"
	if s.pages >= 50_000 {
		sitemaps = "sitemap-index.xml"
	}
	for _, l := range []struct {
		kind, path string
		link       *regexp.Regexp
	}{{"llms.txt", "llms.txt", llmsLink}, {"sitemap.xml", sitemaps, mapLink}} {
		if s.kinds[l.kind], err = follow(ctx, s.url+l.path, l.link); err != nil {
			return err
		}
	}
	for kind, docs := range s.kinds {
		for _, d := range docs {
			if d.body != "" {
				continue
			}
			if _, err := d.ask(ctx); err != nil {
				return err
			}
		}
		if len(docs) > 1 {
			s.kinds[kind] = slices.DeleteFunc(docs, s.unconcerned)
		}
	}
	return nil
}

// openFeederSince is the kind of OpenFeeder's lists of changes since a token.
const openFeederSince = "OpenFeeder's since"

// since returns the URL of OpenFeeder's list of changes from now on.
func (s *series) since(ctx context.Context) (string, error) {
	token, err := syncToken(ctx, s.url)
	return s.url + "openfeeder?since=" + url.QueryEscape(token), err
}

// unconcerned reports whether a list contains no page of the series.
func (s *series) unconcerned(d *watched) bool {
	for i := range min(s.length, s.pages) {
		if entry(d.body, s.number(s.count+1+i)) != "" {
			return false
		}
	}
	return true
}

// follow returns the document at the first URL and all documents that can be reached from it by links.
func follow(ctx context.Context, first string, link *regexp.Regexp) (docs []*watched, err error) {
	for todo := []string{first}; len(todo) > 0; todo = todo[1:] {
		if slices.ContainsFunc(docs, func(d *watched) bool { return d.url == todo[0] }) {
			continue
		}
		d := &watched{url: todo[0]}
		if _, err := d.ask(ctx); err != nil {
			return nil, err
		}
		docs = append(docs, d)
		for _, m := range link.FindAllStringSubmatch(d.body, -1) {
			todo = append(todo, m[1])
		}
	}
	return docs, nil
}

// entry returns a list's entry for a page, or "" if absent.
func entry(body string, page int) string {
	at := strings.Index(body, fmt.Sprintf("/p/%d/", page))
	if at < 0 {
		return ""
	}
	from := max(strings.LastIndexByte(body[:at], '\n'), strings.LastIndexByte(body[:at], '{'), 0)
	to := min(at+2000, len(body))
	for _, end := range []string{"}", "</url>", "</entry>", "\n- "} {
		if i := strings.Index(body[at:to], end); i >= 0 {
			to = at + i
		}
	}
	return body[from:to]
}

// entries returns a page's entries in the lists, by kind of list.
func (s *series) entries(page int) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]string{}
	for kind, docs := range s.kinds {
		for _, d := range docs {
			if e := entry(d.body, page); e != "" {
				found[kind] = e
			}
		}
	}
	return found
}

// watch polls a list until the context ends.
func (s *series) watch(ctx context.Context, kind string, d *watched) {
	next := watched{url: d.url, tag: d.tag}
	for turn := 1; ctx.Err() == nil; turn++ {
		time.Sleep(s.every)
		asked := next
		if kind == openFeederSince && time.Duration(turn)*s.every%(30*time.Second) == 0 {
			at, err := s.since(ctx) // get it before the last request for the old URL, so that no change is missed
			if err != nil {
				s.note(nil, "", time.Time{}, err)
				continue
			}
			next = watched{url: at}
		}
		changed, err := asked.ask(ctx)
		if asked.url == next.url {
			next = asked
		}
		if err != nil || !changed {
			s.note(nil, "", time.Time{}, err)
			continue
		}
		s.mu.Lock()
		d.body = asked.body
		var found []*seriesEdit
		for _, x := range s.edits {
			if _, seen := x.seen[kind]; seen {
				continue
			}
			if e := entry(d.body, x.page); e != "" && e != x.before[kind] {
				found = append(found, x)
			}
		}
		s.mu.Unlock()
		for _, x := range found {
			s.note(x, kind, asked.at, nil)
		}
	}
}

// note records that an edit was seen, or an error other than [context.Canceled].
func (s *series) note(x *seriesEdit, kind string, at time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil && !errors.Is(err, context.Canceled):
		s.errs = append(s.errs, err)
	case err == nil && x != nil:
		x.seen[kind] = at
	}
}

// documents returns the paths of the documents of a page, by kind.
func (s *series) documents(page int) map[string]string {
	return map[string]string{
		"M-URL": fmt.Sprintf("p/%d/llm.json", page), "M-URL of draft-00": fmt.Sprintf("p/%d/llm/", page), "Markdown": fmt.Sprintf("p/%d/index.md", page),
		"OpenFeeder's page": fmt.Sprintf("openfeeder?url=%%2Fp%%2F%d%%2F", page),
		// Each part of the index lists ten pages; the newest pages are first.
		"OpenFeeder's index": fmt.Sprintf("openfeeder?page=%d", (s.pages-1-page)/10+1),
	}
}

// missing describes an edit that is not visible in some document, or returns "" if all edits are
// visible in all documents.
func (s *series) missing() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, x := range s.edits {
		for _, kind := range slices.Concat(slices.Collect(maps.Keys(s.kinds)), slices.Collect(maps.Keys(s.documents(x.page)))) {
			if _, seen := x.seen[kind]; !seen {
				return fmt.Sprintf("edit %d, of page %d, is not visible in %s", i+1, x.page, kind)
			}
		}
	}
	return ""
}

func (s *series) lags() *lags {
	l := &lags{edits: len(s.edits), kinds: map[string]delays{}, latest: map[string]int{}}
	for _, x := range s.edits {
		last := ""
		for kind, at := range x.seen {
			l.kinds[kind] = append(l.kinds[kind], at.Sub(x.committed))
			if last == "" || at.After(x.seen[last]) {
				last = kind
			}
		}
		l.latest[last]++
		l.delays = append(l.delays, x.seen[last].Sub(x.committed))
	}
	slices.Sort(l.delays)
	for _, d := range l.kinds {
		slices.Sort(d)
	}
	return l
}
