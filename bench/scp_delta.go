package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"time"

	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/scp"
	"github.com/millrace/millrace/store/sqlite"
)

var (
	snapshotURL = regexp.MustCompile(`<scp:collection [^>]*url="([^"]+\.zst)"`)
	deltaPages  = regexp.MustCompile(`<scp:delta [^>]*url="[^"]+\.zst"[^>]* pages="(\d+)"`)
)

// scpDeltas measures editions after parts of n pages have changed, on one core
// and in all codings: whether the deltas take time as what has changed, and
// whether the snapshot stays until it is its turn.
func (b *bench) scpDeltas(ctx context.Context, a *author, n int) error {
	now := scpTime
	site, _, stop, err := scpStore(ctx, filepath.Join(b.dir, "scp-deltas.db"), a, n, &sqlite.Options{Now: func() time.Time { return now }})
	if err != nil {
		return err
	}
	defer stop()
	room := edition.Room{Name: scp.Name, Publisher: scp.NewPublisher(&protocol.PublisherOptions{Sections: []string{}})}
	press, err := edition.NewPress(site, []edition.Room{room}, filepath.Join(b.dir, "scp-files"),
		&edition.Options{Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	snapshots := map[string]bool{}
	publish := func() (seconds float64, pages string, err error) {
		seconds, _, err = measure(func() error {
			_, err := press.Publish(ctx)
			return err
		})
		if err != nil {
			return 0, "", err
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/sitemap.xml", nil)
		if done, err := press.Serve(w, r); err != nil || !done {
			return 0, "", fmt.Errorf("the sitemap: %t, %w", done, err)
		}
		text := w.Body.String()
		m := snapshotURL.FindStringSubmatch(text)
		if m == nil {
			return 0, "", fmt.Errorf("the sitemap names no snapshot")
		}
		snapshots[m[1]] = true
		if d := deltaPages.FindStringSubmatch(text); d != nil {
			pages = d[1]
		}
		return seconds, pages, nil
	}
	first, _, err := publish()
	if err != nil {
		return err
	}
	// One edition of the next day has the snapshot; what follows within twenty
	// times as long as that took has deltas.
	now = now.AddDate(0, 0, 1)
	editions := 0
	took := map[int]float64{}
	clear(snapshots)
	for i, changed := range []int{1, 2, 3, 4, n / 1000, n / 100, n / 10} {
		now = now.Add(time.Second)
		if err := put(ctx, site, a, changed, i+1); err != nil {
			return err
		}
		now = now.Add(time.Second)
		seconds, pages, err := publish()
		if err != nil {
			return err
		}
		if pages != fmt.Sprint(changed) {
			return fmt.Errorf("the delta has %s pages of %d", pages, changed)
		}
		editions++
		took[changed] = seconds
	}
	base := median([]float64{took[2], took[3], took[4]})
	each := func(changed int) float64 { return (took[changed] - base) / float64(changed) }
	for _, changed := range []int{n / 1000, n / 100, n / 10} {
		r := row{
			what:  fmt.Sprintf("edition after %d of %d pages changed", changed, n),
			limit: fmt.Sprintf("%.2f s (three pages; with a snapshot %.1f s)", base, first),
			ours:  fmt.Sprintf("%.2f s: %.2f ms more for each", took[changed], each(changed)*1e3), ratio: fmt.Sprintf("%.2f", took[changed]/base),
		}
		if changed == n/10 { // ten times the change, ten times the time
			r.limit += fmt.Sprintf("; %.2f ms for each of %d", each(n/100)*1e3, n/100)
			r.ratio = fmt.Sprintf("%.2f", each(changed)/each(n/100))
			r.reach, r.good = "at most 1.5", each(changed) < 1.5*each(n/100)
		}
		b.add(r)
	}
	b.add(row{
		what: fmt.Sprintf("snapshots in %d editions within one publish interval", editions), limit: "1",
		ours: fmt.Sprint(len(snapshots)), ratio: fmt.Sprint(len(snapshots)), reach: "at most 1", good: len(snapshots) <= 1,
	})
	return nil
}
