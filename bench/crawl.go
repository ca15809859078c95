package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// crawl compares millrace's crawls of generated pages and of the PostgreSQL manual with
// wget --mirror. Then it measures the memory of a crawl of many generated pages.
func (b *bench) crawl(ctx context.Context, pages int) error {
	manual, err := filepath.EvalSymlinks(b.manual)
	if err != nil {
		return fmt.Errorf("%w; install Debian's postgresql-doc-15, or give its folder with -manual", err)
	}
	if err := b.versusWget(ctx, peerTask{Generated: 1000}, "1000 generated pages of 4 kB", 0); err != nil {
		return err
	}
	if err := b.versusWget(ctx, peerTask{Folder: manual}, "postgresql-doc-15", 0.4); err != nil {
		return err
	}
	site, err := startPeer(ctx, peerTask{Generated: pages})
	if err != nil {
		return err
	}
	defer site.stop()
	r, _, rss, err := b.pull(ctx, site.url, filepath.Join(b.dir, "generated.db"))
	if err != nil {
		return err
	}
	if r.Added != pages {
		return fmt.Errorf("found %d of %d generated pages", r.Added, pages)
	}
	b.add(row{
		what:  fmt.Sprintf("peak resident memory of a crawl of %d generated pages", pages),
		limit: "150 MB", ours: fmt.Sprintf("%.0f MB", rss),
		ratio: fmt.Sprintf("%.2f", rss/150), reach: "at most 1", good: rss <= 150,
	})
	return nil
}

// crawls is the number of times that each crawler crawls the site.
const crawls = 3

// versusWget crawls a site alternately with wget and millrace. Then it crawls the site once more with
// millrace, and serves the mirror.
func (b *bench) versusWget(ctx context.Context, site peerTask, name string, reach float64) error {
	s, err := startPeer(ctx, site)
	if err != nil {
		return err
	}
	defer s.stop()
	wget := func(ctx context.Context) (w work, err error) {
		dir, err := os.MkdirTemp(b.dir, "wget-")
		if err != nil {
			return w, err
		}
		w, err = ended(exec.CommandContext(ctx, "wget", "--mirror", "--no-parent", "-q", "-P", dir, s.url))
		if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 8) { // 8: the server sent an error, as for a dead link
			return w, fmt.Errorf("wget: %w", err)
		}
		err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && (filepath.Ext(name) == ".html" || filepath.Ext(name) == "") {
				w.units++
			}
			return err
		})
		return w, err
	}
	n, store := 0, ""
	var first pullReport
	ours := func(ctx context.Context) (w work, err error) {
		n++
		store = filepath.Join(b.dir, fmt.Sprintf("crawl-%d-%d.db", n, site.Generated))
		first, w, _, err = b.pull(ctx, s.url, store)
		w.units = float64(first.Added)
		return w, err
	}
	found, err := duel(ctx, crawls, wget, ours)
	if err != nil {
		return err
	}
	b.add(found.row(fmt.Sprintf("crawl of %s, %d pages on loopback, --delay 0", name, first.Added), "pages", "wget --mirror, without extraction", reach))
	second, _, _, err := b.pull(ctx, s.url, store)
	if err != nil {
		return err
	}
	if second.Added+second.Updated+second.Deleted > 0 {
		return fmt.Errorf("the second crawl of an unchanged site found changes: %+v", second)
	}
	serving, err := b.startServer(ctx, store)
	if err != nil {
		return err
	}
	serving.stop()
	alone := time.Duration(found.Ours.Each * float64(first.Added) * 1e9)
	b.add(row{
		what: "the same, followed by serve until its first edition", limit: short(alone).String() + " of processor time (pull alone)",
		ours: short(alone + serving.spent).String(), ratio: fmt.Sprintf("%.2f", (alone+serving.spent).Seconds()/alone.Seconds()),
	})
	each := float64(second.BytesReceived) / float64(first.Added)
	b.add(row{
		what:  fmt.Sprintf("second crawl of the same site: %d requests for %d pages", second.Requests, first.Added),
		limit: "400 bytes a page", ours: fmt.Sprintf("%.0f bytes a page", each),
		ratio: fmt.Sprintf("%.2f", each/400), reach: "at most 1",
		// The extra requests are for robots.txt and two sitemaps, all absent.
		good: each <= 400 && second.Requests <= int64(first.Added)+5,
	})
	return nil
}

// pullReport is the part of a pull's report that the bench reads.
type pullReport struct {
	Added, Updated, Deleted, Unchanged int
	Requests                           int64
	BytesReceived                      int64 `json:"bytes_received"`
}

// pull crawls a site into a store. It returns the report, the work with units unset, and the peak
// memory of the process in MB.
func (b *bench) pull(ctx context.Context, url, store string) (r pullReport, w work, rss float64, err error) {
	c := exec.CommandContext(ctx, b.binary, "pull", url, "--via", "crawl", "--allow-private", "--delay", "0", "--store", store, "--json", "--quiet")
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if w, err = ended(c); err != nil {
		return r, w, 0, fmt.Errorf("millrace pull: %w\n%s%s", err, &out, &errs)
	}
	return r, w, maxMemory(c), json.Unmarshal(out.Bytes(), &r)
}

// generated serves n pages of 4 kB of text: / and /p/1 to /p/n-1. Each page links to up to ten others,
// so every page can be reached by a few links.
func generated(n int) http.Handler {
	modified := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// Generate up to 5000 pages in advance, so that serving them costs little.
	var made []string
	for i := range min(n, 5000) {
		made = append(made, generate(i, n, 6))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := 0
		if r.URL.Path != "/" {
			var err error
			if i, err = strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/p/")); err != nil || i < 1 || i >= n {
				http.NotFound(w, r)
				return
			}
		}
		var page string
		if i < len(made) {
			page = made[i]
		} else {
			page = generate(i, n, 6)
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		http.ServeContent(w, r, "", modified, strings.NewReader(page))
	})
}

// generate returns page i of n, with paragraphs of about 600 bytes.
func generate(i, n, paragraphs int) string {
	var s strings.Builder
	fmt.Fprintf(&s, "<!doctype html><html lang=en><head><title>Page %d of the generated site</title></head><body><nav><ul>", i)
	for k := i*10 + 1; k <= i*10+10 && k < n; k++ {
		fmt.Fprintf(&s, `<li><a href="/p/%d">Page %d</a></li>`, k, k)
	}
	fmt.Fprintf(&s, "</ul></nav><main><h1>Page %d of the generated site</h1>", i)
	rng := rand.New(rand.NewPCG(uint64(i), 7))
	for range paragraphs {
		s.WriteString("<p>")
		for range 100 {
			s.WriteString(words[rng.IntN(len(words))])
			s.WriteByte(' ')
		}
		s.WriteString("</p>")
	}
	s.WriteString("</main></body></html>")
	return s.String()
}
