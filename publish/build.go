package publish

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/static"
)

// Build reads a source once, and writes the machine documents of its site to a
// folder for a static host, with configurations of usual hosts beside them. The
// folder is what Options.BaseURL names; it is made if need be. A folder that no
// build has made is refused with ErrInvalid, and so are options that need a server:
// Next, RequireKey, Rate and Proxies.
func Build(ctx context.Context, source millrace.Source, dir string, o *Options) (err error) {
	if o != nil && (o.Next != nil || o.RequireKey || o.Rate != 0 || o.Proxies != nil) {
		return fmt.Errorf("publish: build: %w: Next, RequireKey, Rate and Proxies need a server", millrace.ErrInvalid)
	}
	s, err := newServer(ctx, source, o, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.now.Close(), s.release()) }()
	defer s.stop()
	base, err := s.o.base()
	if err != nil {
		return err
	}
	b, err := static.Open(dir, base, s.now.Gateway, nil)
	if err != nil {
		return fmt.Errorf("publish: build: %w", err)
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	u, err := url.Parse(base)
	if err != nil {
		return err
	}
	home := static.Item{Path: "/", Name: "index.html", Ask: strings.TrimSuffix(u.EscapedPath(), "/") + "/"}
	b.Reserve(home)
	if err := s.now.Build(ctx, []static.Item{home}, b); err != nil {
		return fmt.Errorf("publish: build: %w", err)
	}
	return nil
}
