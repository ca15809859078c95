package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/millrace/millrace/protocol/all"
)

// month keeps mirrors of a changing site for a month of daily rounds. Each mirror reads the site
// in a different way.
type month struct {
	*bench
	name string // name of the site in the reports
	as   string // how millrace reads the folder
	site changingSite
	days int

	binary  string            // path of a millrace binary with a patched clock
	folder  string            // folder of the site, which millrace serves
	written map[string]string // text of the files in folder, by path
	store   string            // file of the server's store
	seq     int64             // sequence number of the last edition
	base    string            // URL of the site, for all clients
	wires   *relay
	html    *pageServer
	pages   string // address of html
	ways    []*monthWay
	minimum monthMinimum
	looks   map[int]bool // days on which the template changes
}

// monthMinimum is the minimum number of bytes to transfer: each page with new content, compressed
// separately.
type monthMinimum struct {
	was                     map[string][sha256.Size]byte // hash of the previous day's content, by URL
	pages                   int64
	content, text, document int64 // bytes of the content as JSON, as Markdown, and as HTML
}

// monthWay is one way to keep a mirror up to date.
type monthWay struct {
	name   string
	choice bool // pull chooses the way
	lean   bool // fetches HTML pages only, from the ideal server
	sync   func(ctx context.Context, at time.Time) error
	check  func(ctx context.Context, truth *monthState) (wrong int, left []string, err error)

	first     *carried
	rest      carried
	days      []*carried
	wrong     int               // stale or lost pages, summed over days
	lingered  int               // deleted pages that the mirror still had, summed over days
	since     map[string]int    // deleted pages that the mirror still has, with the day of deletion
	worst     int               // maximum number of days that a deleted page stayed in the mirror
	via       string            // the last choice of pull
	level     string            // the first choice of pull, which determines the mirror's content
	unequal   map[string]string // how the mirror's page differed, by URL
	wrongDays []int
}

const monthDays = 30

// run runs the month and prints the results.
func (m *month) run(ctx context.Context) (err error) {
	debug.SetGCPercent(100)
	debug.SetMemoryLimit(1 << 30) // the site is in memory; the bench measures only bytes in this process
	m.folder, m.store = filepath.Join(m.dir, "month"), filepath.Join(m.dir, "month.db")
	m.html, m.looks = new(pageServer), map[int]bool{}
	if m.binary, err = m.buildClocked(ctx); err != nil {
		return err
	}
	if m.wires, err = newRelay(ctx); err != nil {
		return err
	}
	defer func() { _ = m.wires.listener.Close() }()
	m.base = "http://" + m.wires.listener.Addr().String() + "/"
	m.html.base = m.base
	address, stop, err := serveHTML(ctx, m.html)
	if err != nil {
		return err
	}
	defer stop()
	m.pages = address
	m.chooseWays()
	// The month starts in the future, after the times of all files.
	noon := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 3).Add(12 * time.Hour)
	for day := range m.days + 1 {
		// Start a minute later each day, so that records with a lifetime of 24 hours expire.
		if err := m.day(ctx, day, noon.AddDate(0, 0, day).Add(time.Duration(day)*time.Minute)); err != nil {
			return fmt.Errorf("day %d: %w", day, err)
		}
	}
	m.end()
	return nil
}

// chooseWays sets the ways to compare.
func (m *month) chooseWays() {
	for _, peer := range []struct {
		name    string
		crawler pageCrawler
	}{
		{"HTML, every page again", pageCrawler{}},
		{"HTML, conditional requests", pageCrawler{conditional: true}},
		{"HTML, pages that sitemap.xml lists as changed", pageCrawler{conditional: true, sitemap: true}},
	} {
		c := &peer.crawler
		c.base = m.base
		m.ways = append(m.ways, &monthWay{
			name: peer.name, lean: true,
			sync: func(ctx context.Context, _ time.Time) error { return c.round(ctx) },
			check: func(context.Context, *monthState) (int, []string, error) {
				wrong, left := c.compare(m.html)
				return wrong, left, nil
			},
		})
	}
	via := []string{"crawl"}
	for _, proto := range all.Protocols() {
		if !proto.OnRequest {
			via = append(via, proto.Name)
		}
	}
	for _, name := range append(via, "") {
		w := &monthWay{name: "`pull --via " + name + "`", lean: name == "crawl"}
		file, args := "by-"+name+".db", []string{"--via", name}
		if w.choice = name == ""; w.choice {
			w.name, file, args = "`pull`", "chosen.db", nil
		}
		file = filepath.Join(m.dir, file)
		w.sync = func(ctx context.Context, at time.Time) error {
			r, err := m.pull(ctx, at, file, args...)
			w.via = r.Via
			if w.level == "" {
				w.level = r.Via
			}
			return err
		}
		w.check = func(ctx context.Context, truth *monthState) (int, []string, error) {
			got, err := m.open(ctx, file, m.base)
			if err != nil {
				return 0, nil, err
			}
			defer got.close()
			if w.lean {
				if truth, err = m.crawled(ctx, truth); err != nil {
					return 0, nil, err
				}
			}
			return w.compare(ctx, truth, got)
		}
		m.ways = append(m.ways, w)
	}
}

// day runs one day of the site, and updates every mirror at the end of the day. The first sync is
// on day 0.
func (m *month) day(ctx context.Context, day int, at time.Time) error {
	was := at.AddDate(0, 0, -1)
	var d monthDay
	if day > 0 {
		var err error
		if d, err = m.site.next(day); err != nil {
			return err
		}
		was, m.looks[day] = at, d.look
	}
	s, err := m.site.state()
	if err != nil {
		return err
	}
	changed, err := m.write(s.files, was)
	if err != nil {
		return err
	}
	if err := m.html.take(s.html, s.words, was); err != nil {
		return err
	}
	p, err := m.publish(ctx, at, changed)
	if err != nil {
		return err
	}
	defer p.stop()
	truth, err := m.open(ctx, m.store, "")
	if err != nil {
		return err
	}
	defer truth.close()
	if err := truth.read(ctx); err != nil {
		return err
	}
	if err := m.minimum.add(m.base, &d, truth, s.html); err != nil {
		return err
	}
	for _, w := range m.ways {
		to := p.address
		if w.lean {
			to = m.pages
		}
		c, err := m.wires.during(to, func() error { return w.sync(ctx, at.Add(time.Hour)) })
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if day == 0 {
			w.first, w.rest = c, carried{parts: map[string]*carriedPart{}, fields: map[string]int64{}}
		} else {
			w.rest.plus(c)
			w.days = append(w.days, c)
		}
		wrong, left, err := w.check(ctx, truth)
		if err != nil {
			return fmt.Errorf("the mirror of %s: %w", w.name, err)
		}
		w.judge(day, wrong, left)
		fmt.Fprintf(os.Stderr, "%s: day %d, %d edited, %d added, %d removed, template %v: %s: %d requests, %d bytes of bodies, %d of headers, %.1f s; %d wrong, %d left\n",
			time.Now().Format(time.TimeOnly), day, len(d.edited), len(d.added), len(d.removed), d.look, w.name, c.requests, c.bodies, c.headers, c.took.Seconds(), wrong, len(left))
	}
	return nil
}

// judge records the faults of a mirror at the end of a day.
func (w *monthWay) judge(day, wrong int, left []string) {
	if w.since == nil {
		w.since = map[string]int{}
	}
	if wrong > 0 || len(left) > 0 {
		w.wrongDays = append(w.wrongDays, day)
	}
	w.wrong, w.lingered = w.wrong+wrong, w.lingered+len(left)
	for _, u := range left {
		if _, known := w.since[u]; !known {
			w.since[u] = day
		}
		w.worst = max(w.worst, day-w.since[u]+1)
	}
	maps.DeleteFunc(w.since, func(u string, _ int) bool { return !slices.Contains(left, u) })
}

// add adds the changes of a day to the minimum.
func (l *monthMinimum) add(base string, d *monthDay, truth *monthState, html map[string]string) error {
	now := truth.carry("")
	for _, name := range d.changed() {
		u := base + pathOf(name)[1:]
		p := truth.pages[u]
		if p == nil {
			return fmt.Errorf("%s is not published", name)
		}
		if l.was[u] == now[u] {
			continue // only a comment or the layout of the file was edited
		}
		l.pages++
		for _, f := range []struct {
			plain []byte
			into  *int64
		}{{p.Canonical(), &l.content}, {[]byte("# " + p.Title + "\n\n" + p.Markdown()), &l.text}, {[]byte(html[name]), &l.document}} {
			coded, err := compressed(f.plain)
			if err != nil {
				return err
			}
			*f.into += int64(len(coded))
		}
	}
	l.was = now
	return nil
}
