package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/dcz"
)

// dictionary measures documents that are coded as dcz, with the client's version as the dictionary:
// their size after a hundredth of n pages changed, the rate at which the cache serves them, and the
// speed of encoding.
func (b *bench) dictionary(ctx context.Context, n int) error {
	dir := filepath.Join(b.dir, "versions")
	for i := range n {
		if err := writePage(dir, i, generate(i, n, 3)); err != nil {
			return err
		}
	}
	s, err := b.startServer(ctx, dir, "--store", filepath.Join(b.dir, "versions.db"))
	if err != nil {
		return err
	}
	defer s.stop()
	if _, err := quiet(ctx, s.pid); err != nil { // wait until the snapshot is built
		return err
	}
	paths := []string{"llm-sitemap.json", "llm-pages.json", "llms.txt", "sitemap.xml", "openfeeder", snapshotPath}
	held := make(map[string][]byte)
	accept := http.Header{"Accept-Encoding": {"gzip, dcz"}}
	for _, p := range paths {
		at, err := snapshotAt(ctx, s.url, p)
		if err != nil {
			return err
		}
		if _, _, err := get(ctx, plainClient, s.url+at, accept); err != nil {
			return err
		}
		if _, held[p], err = fetch(ctx, s.url+at); err != nil {
			return err
		}
	}
	if _, err := quiet(ctx, s.pid); err != nil { // wait until the versions are stored as dictionaries
		return err
	}
	edited := n / 100
	for i := range edited {
		k := i * 100
		if err := writePage(dir, k, strings.Replace(generate(k, n, 3), "<p>", "<p>Edited today: ", 1)); err != nil {
			return err
		}
	}
	time.Sleep(10 * time.Second)
	if _, err := quiet(ctx, s.pid); err != nil { // wait until the snapshot is built
		return err
	}
	for _, p := range paths {
		if err := b.versionBytes(ctx, s, p, held[p], fmt.Sprintf("%s after %d of %d pages changed", p, edited, n)); err != nil {
			return err
		}
	}
	return b.versionRates(ctx, s, paths[0], held)
}

// snapshotPath is a placeholder for the path of the uncompressed snapshot, which changes with its
// bytes.
const snapshotPath = "SCP snapshot"

var uncompressed = regexp.MustCompile(`scp/all-[0-9a-f]+\.scp[<"]`)

func snapshotAt(ctx context.Context, url, path string) (string, error) {
	if path != snapshotPath {
		return path, nil
	}
	_, body, err := fetch(ctx, url+"sitemap.xml")
	if err != nil {
		return "", err
	}
	at := uncompressed.FindString(string(body))
	if at == "" {
		return "", fmt.Errorf("%ssitemap.xml names no snapshot", url)
	}
	return at[:len(at)-1], nil
}

// versionBytes compares the size of a document that is coded with the client's version as the
// dictionary with its size in gzip.
func (b *bench) versionBytes(ctx context.Context, s *server, path string, held []byte, what string) error {
	at, err := snapshotAt(ctx, s.url, path)
	if err != nil {
		return err
	}
	_, plain, err := fetch(ctx, s.url+at)
	if err != nil {
		return err
	}
	_, zipped, err := get(ctx, plainClient, s.url+at, http.Header{"Accept-Encoding": {"gzip"}})
	if err != nil {
		return err
	}
	id := dcz.Sum(held)
	start := time.Now()
	h, coded, err := get(ctx, plainClient, s.url+at, http.Header{"Accept-Encoding": {"gzip, dcz"}, dcz.Available: {id.Field()}})
	if err != nil {
		return err
	}
	took := time.Since(start)
	if h.Get("Content-Encoding") != dcz.Name {
		return fmt.Errorf("%s: %v", at, h)
	}
	r, err := dcz.NewReader(bytes.NewReader(coded), held, id)
	if err != nil {
		return err
	}
	defer r.Close()
	if back, err := io.ReadAll(r); err != nil || !bytes.Equal(back, plain) {
		return fmt.Errorf("%s: decoded %d of %d bytes: %w", at, len(back), len(plain), err)
	}
	goal, reach, good := "", "", false
	if path == "llm-sitemap.json" || path == "llm-pages.json" {
		goal, reach, good = fmt.Sprintf("%.2f", float64(len(coded))/8000), "at most 8 kB", len(coded) <= 8000
	}
	b.add(row{
		what: what + ", against the previous version", limit: fmt.Sprintf("%d bytes in gzip, %d without coding", len(zipped), len(plain)),
		ours: fmt.Sprintf("%d bytes, the first after %d ms", len(coded), took.Milliseconds()), ratio: goal, reach: reach, good: good,
	})
	return nil
}

// versionRates compares the rates at which the cache serves an M-URL as dcz and as gzip. It also
// measures the speed of dcz encoding for the document at path and for the snapshot.
func (b *bench) versionRates(ctx context.Context, s *server, path string, held map[string][]byte) error {
	zipped, _, err := b.warm(ctx, s, []string{"p/100/llm.json"}, http.Header{"Accept-Encoding": {"gzip"}}, http.StatusOK)
	if err != nil {
		return err
	}
	_, page, err := fetch(ctx, s.url+"p/100/llm.json")
	if err != nil {
		return err
	}
	if _, _, err := get(ctx, plainClient, s.url+"p/100/llm.json", http.Header{"Accept-Encoding": {"dcz"}}); err != nil {
		return err
	}
	if _, err := quiet(ctx, s.pid); err != nil {
		return err
	}
	with := http.Header{"Accept-Encoding": {"gzip, dcz"}, dcz.Available: {dcz.Sum(page).Field()}}
	coded, sample, err := b.warm(ctx, s, []string{"p/100/llm.json"}, with, http.StatusOK)
	if err != nil {
		return err
	}
	if sample.Header.Get("Content-Encoding") != dcz.Name {
		return fmt.Errorf("p/100/llm.json: %v", sample.Header)
	}
	found, err := duel(ctx, b.turns, zipped.of(s), coded.of(s))
	if err != nil {
		return err
	}
	b.add(found.row("M-URL in dcz, from the cache, wrk -t1 -c16", "requests", "the same in gzip", 0.9))
	for _, p := range []string{path, snapshotPath} {
		before := held[p]
		at, err := snapshotAt(ctx, s.url, p)
		if err != nil {
			return err
		}
		_, after, err := fetch(ctx, s.url+at)
		if err != nil {
			return err
		}
		var e dcz.Encoder
		start, err := processorOf(os.Getpid())
		if err != nil {
			return err
		}
		const times = 10
		for range times {
			if _, err := e.Encode(before, dcz.Sum(before), after); err != nil {
				return err
			}
		}
		end, err := processorOf(os.Getpid())
		if err != nil {
			return err
		}
		rate := float64(times*(len(before)+len(after))) / 1e6 / (end - start).Seconds()
		b.add(row{
			what: fmt.Sprintf("coding %s, %.1f MB of dictionary and %.1f MB of document", p, float64(len(before))/1e6, float64(len(after))/1e6), limit: "25 MB per second of processor time",
			ours: fmt.Sprintf("%.0f MB", rate), ratio: fmt.Sprintf("%.2f", rate/25), reach: "at least 1", good: rate >= 25,
		})
	}
	return nil
}
