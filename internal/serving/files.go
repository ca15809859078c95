package serving

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/static"
)

// Build reads the source once, publishes it, and writes the folder of the edition with
// the given files of the site.
func (s *Service) Build(ctx context.Context, own []static.Item, b *static.Build) error {
	if _, err := s.o.Origin.Sync(ctx, s.o.Site); err != nil {
		return err
	}
	if _, err := s.Press.Publish(ctx); err != nil {
		return err
	}
	return Write(ctx, s.Press, s.o.Protocols, own, b, func(int, int) {})
}

// Write writes every document of the edition of a press, and the given files of the
// site, and finishes the build.
func Write(ctx context.Context, press *edition.Press, published []edition.Room, own []static.Item, b *static.Build, progress func(done, total int)) error {
	n, done := len(own), 0
	if err := documents(ctx, press, published, func(static.Item) error { n++; return nil }); err != nil {
		return err
	}
	add := func(it static.Item) error {
		done++
		progress(done, n)
		return b.Add(ctx, it)
	}
	if err := documents(ctx, press, published, add); err != nil {
		return err
	}
	for _, it := range own {
		if err := add(it); err != nil {
			return err
		}
	}
	return b.Finish(ctx)
}

// documents names every document and file of an edition.
func documents(ctx context.Context, press *edition.Press, published []edition.Room, add func(static.Item) error) error {
	ed := press.Current()
	for _, large := range ed.Large() {
		if err := add(static.Item{Path: large, Room: ed.Room(large)}); err != nil {
			return err
		}
	}
	for _, file := range ed.Files() {
		if err := add(static.Item{Path: file, Room: ed.Room(file), Fixed: true}); err != nil {
			return err
		}
	}
	for _, room := range published {
		for d, err := range room.Publisher.All(ctx, ed.View) {
			if err != nil {
				return fmt.Errorf("documents of %s: %w", room.Name, err)
			}
			if d.Large {
				continue
			}
			if err := add(static.Item{Path: d.Path, Room: room.Name}); err != nil {
				return err
			}
		}
	}
	return nil
}
