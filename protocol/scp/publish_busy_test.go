package scp

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	artifactmemory "github.com/millrace/millrace/artifact/memory"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/store"
)

// A site with an edit a second does not fill the disk: its artifacts never take more than a fixed
// multiple of the newest snapshot, although each edit changes the snapshot and the delta of the
// hour, and they do not grow after half an hour.
func TestBusySite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pages = atOnce + 100
		p := &published{now: time.Now()}
		p.site = protocoltest.Open(t, store.Config{Base: "https://x.test/", Taggers: []millrace.Tagger{Protocol().Tagger}}, time.Now)
		artifacts := artifactmemory.New(&artifactmemory.Options{MaxBytes: 4 << 30})
		p.server = edition.NewServer(edition.Source{Store: p.site.Store, Site: p.site, Publication: p.site.Pub}, []edition.Protocol{{Name: Name, Publisher: NewPublisher(&protocol.PublisherOptions{Own: []any{&PublisherOptions{Sections: []string{}}}})}}, artifacts,
			&edition.Options{Logger: slog.New(slog.DiscardHandler)})
		rng := rand.New(rand.NewPCG(1, 2))
		edit := func(i int) []string {
			text := make([]byte, 300) // that cannot be compressed
			for j := range text {
				text[j] = byte(rng.Uint32())
			}
			return []string{fmt.Sprintf("https://x.test/p/%d", i*7%pages), hex.EncodeToString(text)}
		}
		var all []string
		for i := range pages {
			all = append(all, edit(i)...)
		}
		p.put(t, all...)
		time.Sleep(8 * 24 * time.Hour) // after a week, the site has hourly deltas
		p.publish(t)
		snapshot := bytesOf(t, artifacts)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { p.server.Run(ctx) })
		every := time.Duration(testkit.Size(5, 5, 1)) * time.Second
		edits := int(time.Duration(testkit.Size(10, 15, 60)) * time.Minute / every)
		var most [2]int64 // in each half
		for i := range edits {
			time.Sleep(every)
			p.put(t, edit(i)...)
			most[2*i/edits] = max(most[2*i/edits], bytesOf(t, artifacts))
		}
		edited := time.Now().UTC().Format(time.RFC3339)
		time.Sleep(2 * pace)
		sitemap := p.get(t, "/sitemap.xml")
		cancel()
		running.Wait()
		if c := elements(sitemap, "collection", "all"); len(c) != 1 || c[0]["generated"] != edited {
			t.Errorf("collections %v, the last edit was at %s", c, edited)
		}
		if most[1] > 70*snapshot || testkit.Soaking() && most[1] > most[0] {
			t.Errorf("%d bytes in the first half, then %d; the snapshot has %d", most[0], most[1], snapshot)
		}
	})
}

func bytesOf(t *testing.T, artifacts *artifactmemory.Store) (n int64) {
	t.Helper()
	for info, err := range artifacts.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size
	}
	return n
}
