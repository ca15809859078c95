package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/origin/crawl"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/sqlite"
)

type pullCommand struct {
	common
	remote
	crawling
	learning
	keyed
	listing
	coefficients
	URL     []string `arg:"" name:"url" help:"Sites to mirror."`
	Store   string   `placeholder:"FILE" help:"Mirror to write (default: a file under the user's state folder, named after the first site)."`
	Via     string   `placeholder:"PROTOCOL" help:"Use this protocol only, or crawl for the plain web."`
	Purpose string   `enum:"ai-input,ai-train,search" default:"ai-input" help:"What the content is for: ${enum}."`

	KeyFile string `placeholder:"FILE" help:"File with the key that the site has given, in its first line. It is sent to the site's own address alone. Without it the key is in the environment, as MILLRACE_KEY, if there is one."`

	IgnorePolicy bool `help:"Take what the site's policy and robots.txt do not allow, too, and as often as --delay lets it."`
}

// pullReport is what `millrace pull --json` prints of one site.
type pullReport struct {
	Site          string           `json:"site"`
	Via           string           `json:"via,omitempty"`
	Ways          []way            `json:"ways"`
	Added         int              `json:"added"`
	Updated       int              `json:"updated"`
	Deleted       int              `json:"deleted"`
	Unchanged     int              `json:"unchanged"`
	Doubted       int              `json:"doubted,omitempty"` // absent, not believed yet
	Missed        int              `json:"missed,omitempty"`  // could not be had for now
	Skipped       []mirror.Skip    `json:"skipped"`
	Notes         []protocolNote   `json:"notes,omitempty"` // what was odd but no reason to stop
	Requests      int64            `json:"requests"`
	BytesReceived int64            `json:"bytes_received"`
	BytesSaved    int64            `json:"bytes_saved"`
	TokensSaved   int64            `json:"tokens_saved"`
	Savings       *savings.Saved   `json:"savings,omitempty"`
	Seconds       float64          `json:"seconds"`
	Purpose       millrace.Purpose `json:"purpose"`
	Policy        *policyReport    `json:"policy,omitempty"`         // nil = the site has none, or it was not asked for
	PolicyIgnored bool             `json:"policy_ignored,omitempty"` // --ignore-policy
	GoOn          *time.Time       `json:"go_on_after,omitempty"`    // when the site wants no more requests before
	Error         string           `json:"error,omitempty"`

	skipped int    // all, also those that the report leaves out
	meter   *meter // while it is pulled
}

// way is one protocol that was tried for a part of a site.
type way struct {
	Protocol string `json:"protocol"`
	Part     string `json:"part"`
	Pages    int    `json:"pages"`
	Error    string `json:"error,omitempty"`

	absent bool // the site does not have the protocol
}

type protocolNote struct {
	Rule string `json:"rule"`
	URL  string `json:"url"`
	Text string `json:"text"`
}

const maxNotes = 1000

// Run pulls every site, one after the other; one that fails does not stop the
// others.
func (c *pullCommand) Run(ctx context.Context, p *process) error {
	p.start(&c.common)
	p.limitMemory()
	if err := errors.Join(c.remote.validate(), c.crawling.validate(), c.listing.validate(), c.coefficients.validate()); err != nil {
		return err
	}
	if _, err := c.rules(nil); err != nil {
		return err
	}
	var ways []protocol.Protocol
	if c.Via != webCrawl {
		var err error
		if ways, err = rooms(c.Via, webCrawl); err != nil {
			return err
		}
	}
	for _, u := range c.URL {
		if _, err := siteRoot(u); err != nil {
			return err
		}
	}
	if err := c.loadKey(p); err != nil {
		return err
	}
	path := c.Store
	if path == "" {
		root, err := siteRoot(c.URL[0])
		if err == nil {
			path, err = p.storePath(root)
		}
		if err != nil {
			return err
		}
	}
	st, err := sqlite.Open(ctx, path, &sqlite.Options{Logger: p.log})
	if err != nil {
		return err
	}
	var reports []*pullReport
	failed := false
	for _, u := range c.URL {
		r, err := c.pull(ctx, p, st, u, ways)
		reports = append(reports, r)
		if err != nil {
			failed, r.Error = true, err.Error()
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err := st.Close(); err != nil {
		return err
	}
	var out any = reports
	if len(c.URL) == 1 {
		out = reports[0]
	}
	if err := p.report(out, func(w io.Writer) error { return printPull(w, reports) }); err != nil {
		return err
	}
	if failed {
		return errReported
	}
	return nil
}

// pull mirrors the site that a URL is of, by the first protocol that it offers,
// else by crawling what is in the URL's folder.
func (c *pullCommand) pull(ctx context.Context, p *process, st *sqlite.Store, pageURL string, ways []protocol.Protocol) (r *pullReport, err error) {
	root, err := siteRoot(pageURL)
	r = &pullReport{Site: root, Ways: []way{}, Skipped: []mirror.Skip{}, Purpose: millrace.Purpose(c.Purpose), PolicyIgnored: c.IgnorePolicy}
	if err != nil {
		return r, err
	}
	folder, err := siteFolder(pageURL)
	if err != nil {
		return r, err
	}
	site, err := mirrored(ctx, st, root)
	if err != nil {
		return r, err
	}
	client := c.client(p, robotsMemory{site})
	if c.IgnorePolicy {
		client = c.client(p, nil)
	}
	start := time.Now()
	r.meter = measure(ctx, st, client, root, p.log, bookEvery)
	defer func() {
		c.settle(ctx, p, st, r, err != nil)
		stats := client.Stats()
		r.Requests, r.BytesReceived = stats.Requests, stats.Received()
		r.Seconds = time.Since(start).Round(time.Millisecond).Seconds()
	}()
	inner, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	g, err := c.gate(p, site, client, root, r, stop)
	if err != nil {
		return r, err
	}
	defer func() { g.close(context.WithoutCancel(ctx), r) }()
	if !c.IgnorePolicy {
		if err := g.open(inner, c.Via); err != nil {
			return r, err
		}
	}
	for _, room := range ways {
		err = c.by(inner, p, site, g, root, room, r)
		if no := g.ended(); no != nil {
			return r, no
		}
		if err == nil || ctx.Err() != nil {
			return r, err
		}
		// What a folder of a site needs is there even if its root is closed.
		if !errors.Is(err, millrace.ErrNotFound) && (folder == root && !refused(err) || c.Via != "") {
			return r, err
		}
	}
	if c.Via != "" && c.Via != webCrawl {
		return r, err
	}
	if r.Site = folder; folder != root {
		if site, err = mirrored(ctx, st, folder); err != nil {
			return r, err
		}
	}
	err = c.crawl(inner, p, site, client, folder, r)
	return r, cmp.Or(g.ended(), err)
}

// refused reports whether a site has a protocol, but nothing that can be taken:
// the next one may have it.
func refused(err error) bool {
	return errors.Is(err, millrace.ErrInvalid) || errors.Is(err, millrace.ErrTooLarge)
}

// mirrored opens a site of a mirror, which keeps what the site made public:
// nothing is hidden a second time.
func mirrored(ctx context.Context, st *sqlite.Store, name string) (store.Site, error) {
	site, err := st.Site(ctx, name, store.Config{Base: name, Visibility: millrace.Visibility{Exclude: []string{}}})
	if err != nil {
		return nil, err
	}
	return site, site.Derive(ctx, nil)
}

// crawl mirrors one site by its pages and their links.
func (c *pullCommand) crawl(ctx context.Context, p *process, site store.Site, client *fetch.Client, root string, r *pullReport) error {
	from := root + " " + webCrawl
	r.meter.begin(root, webCrawl)
	bar := p.progress("crawling " + root)
	o := c.options(p, site, from, bar.show)
	o.IgnoreRobots = c.IgnorePolicy
	src, err := crawl.New(c.showing(client), root, o)
	if err != nil {
		return err
	}
	school, err := attend(ctx, site, from, c.learning, p.log, src)
	if err != nil {
		return err
	}
	rep, err := mirror.Sync(ctx, from, src, site, &mirror.Options{Logger: p.log})
	bar.end()
	if err == nil {
		var changed bool
		if changed, err = school.learn(ctx); changed {
			var t millrace.Tally
			t, err = reread(ctx, site, from, src.Reread(ctx))
			rep.Updated, rep.Deleted = rep.Updated+t.Updated, rep.Deleted+t.Deleted
		}
	}
	return c.done(ctx, site, webCrawl, root, src.Complete(), r, rep, err)
}

// by mirrors one site by one protocol.
func (c *pullCommand) by(ctx context.Context, p *process, site store.Site, g *gate, root string, room protocol.Protocol, r *pullReport) error {
	reader := g.reader(room)
	r.meter.begin(root, room.Name)
	bar := p.progress("pulling " + root)
	rep, err := mirror.Sync(ctx, root+" "+room.Name, reader, site, &mirror.Options{
		Logger:   p.log,
		Progress: func(g mirror.Progress) { bar.show(g.Done, g.Named) },
		Fallback: func(ctx context.Context, ref millrace.Ref) (*millrace.Page, string, error) {
			pg, err := page(ctx, c.showing(g.client), root, ref.URL)
			return pg, "crawl", err
		},
	})
	bar.end()
	g.noting.Lock()
	defer g.noting.Unlock()
	err = c.done(ctx, site, room.Name, root, true, r, rep, err)
	for name, n := range rep.Fallbacks {
		r.Ways = append(r.Ways, way{Protocol: name, Part: "pages that " + room.Name + " did not give", Pages: n, Error: rep.Fallback.Error()})
	}
	slices.SortFunc(r.Notes, func(a, b protocolNote) int {
		return cmpStrings(a.Rule, b.Rule, a.URL, b.URL)
	})
	return err
}

// done enters into the report what one way has brought, and gives the error
// that the pull ends with. complete: it had a look at the whole site.
func (c *pullCommand) done(
	ctx context.Context, site store.Site, name, root string, complete bool, r *pullReport, rep *mirror.Report, err error,
) error {
	if err == nil && rep.SkippedN > 0 {
		err = barren(ctx, site, root+" "+name, rep.SkippedN)
	}
	if err == nil && rep.Doubted == 0 && rep.Missed == 0 && complete {
		gone, doubted, retireErr := retire(ctx, site, root+" "+name, rolls(root)...)
		rep.Deleted, rep.Doubted = rep.Deleted+gone, doubted
		err = retireErr
	}
	w := way{Protocol: name, Part: "all"}
	if v, headErr := site.Head(context.WithoutCancel(ctx)); headErr == nil && !errors.Is(err, millrace.ErrNotFound) {
		// A list that answers 304 names no page, and every page stands.
		w.Pages = v.Site().Pages
	}
	switch {
	case err != nil:
	case w.Pages == 0 && rep.SkippedN > 0:
		err = noneRead(rep.SkippedN)
	case rep.Missed > 0 && name != webCrawl: // on a site of many pages one is always broken
		err = fmt.Errorf("%w: %d pages could not be had; pull again", millrace.ErrUnavailable, rep.Missed)
	}
	if err != nil {
		w.Error, w.absent = err.Error(), errors.Is(err, millrace.ErrNotFound)
	} else {
		r.Via = name
	}
	r.Ways = append(r.Ways, w)
	known := max(0, w.Pages-rep.Doubted) // nobody vouches for those
	if err != nil || !complete {
		known = -1
	}
	r.meter.see(name, known, rep)
	r.Added, r.Updated, r.Deleted = r.Added+rep.Added, r.Updated+rep.Updated, r.Deleted+rep.Deleted
	if r.Unchanged = max(0, w.Pages-r.Added-r.Updated); err != nil {
		r.Unchanged = min(r.Unchanged, rep.Unchanged) // of the others nothing is known
	}
	r.Missed = rep.Missed
	r.Doubted, r.skipped = rep.Doubted, rep.SkippedN
	r.Skipped = append([]mirror.Skip{}, rep.Skipped...) // what the way before has skipped, this one may have taken
	return err
}

// cmpStrings compares pairs of strings in turn.
func cmpStrings(pairs ...string) int {
	for i := 0; i < len(pairs); i += 2 {
		switch a, b := pairs[i], pairs[i+1]; {
		case a < b:
			return -1
		case a > b:
			return 1
		}
	}
	return 0
}

// webCrawl is the way that is left when a site speaks no protocol.
const webCrawl = "crawl"

const shownSkips = 20

// printPull prints reports for a person.
func printPull(w io.Writer, reports []*pullReport) error {
	var b []byte
	for _, r := range reports {
		via := ""
		if r.Via != "" {
			via = " by " + r.Via
		}
		if r.Error != "" {
			via = " failed"
		}
		b = fmt.Appendf(b, "%s%s: %d added, %d updated, %d deleted, %d unchanged, %d skipped\n", r.Site, via, r.Added, r.Updated, r.Deleted, r.Unchanged, r.skipped)
		b = fmt.Appendf(b, "  %s, %s received, %.1f s\n", quantity(r.Requests, "request"), bytesText(r.BytesReceived), r.Seconds)
		b = append(b, r.savedText()...)
		b = append(b, r.policyText()...)
		if r.Doubted > 0 {
			b = fmt.Appendf(b, "  %d pages are suddenly missing from the list; they are kept until the next pull says the same\n", r.Doubted)
		}
		if r.Missed > 0 && r.Error == "" {
			b = fmt.Appendf(b, "  %d pages could not be had; pull again\n", r.Missed)
		}
		for _, way := range r.Ways {
			if way.Error != "" && (r.Error != "" || !way.absent) {
				b = fmt.Appendf(b, "  %s, %s: %d pages: %s\n", way.Protocol, way.Part, way.Pages, way.Error)
			}
		}
		for i, s := range r.Skipped {
			if i == shownSkips {
				b = fmt.Appendf(b, "  and %d more skipped; --json lists them\n", r.skipped-i)
				break
			}
			b = fmt.Appendf(b, "  skipped %s: %s\n", s.URL, s.Reason)
		}
		if n := len(r.Notes); n > 0 {
			b = fmt.Appendf(b, "  %d things were odd but no reason to stop, the first: %s: %s (%s)\n", n, r.Notes[0].URL, r.Notes[0].Text, r.Notes[0].Rule)
		}
		if r.Error != "" && len(r.Ways) == 0 {
			b = fmt.Appendf(b, "  failed: %s\n", r.Error)
		}
	}
	_, err := w.Write(b)
	return err
}

// quantity gives a count with its noun, such as "1 request" and "2 requests".
func quantity(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// bytesText gives a count of bytes for a person, such as "1.2 MB".
func bytesText(n int64) string {
	f := float64(n)
	for _, unit := range []string{"bytes", "kB", "MB", "GB"} {
		if f < 1000 || unit == "GB" {
			if unit == "bytes" {
				return fmt.Sprintf("%d bytes", n)
			}
			return fmt.Sprintf("%.1f %s", f, unit)
		}
		f /= 1000
	}
	return ""
}
