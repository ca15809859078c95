package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/serving"
	"github.com/millrace/millrace/internal/static"
)

// Build reads a source once, and writes the machine documents of its site to a folder for a static
// host, with the configuration files for Options.Host. dir is the folder for Options.BaseURL. Build
// creates it if it does not exist. If dir exists but was not created by Build, or if an option
// needs a server (Next, RequireKey, Rate and Proxies), the error is ErrInvalid.
func Build(ctx context.Context, source millrace.Source, dir string, o *Options) (err error) {
	if o != nil && (o.Next != nil || o.RequireKey || o.Rate != 0 || o.Proxies != nil) {
		return fmt.Errorf("publish: build: %w: Next, RequireKey, Rate and Proxies need a server", millrace.ErrInvalid)
	}
	s, v, err := newServer(ctx, source, o, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close(), s.release()) }()
	base, err := s.o.base()
	if err != nil {
		return err
	}
	b, err := static.Open(dir, base, v.Gateway, &static.Options{Host: s.host(base)})
	if err != nil {
		return fmt.Errorf("publish: build: %w", err)
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := v.Build(ctx, b, new(serving.BuildReport), &serving.BuildOptions{}); err != nil {
		return fmt.Errorf("publish: build: %w", err)
	}
	return nil
}

// host returns the name of the static host for a base URL.
func (s *Server) host(base string) string { return cmp.Or(s.o.Host, static.GuessHost(base, nil)) }

// sendsNoLinks reports whether the static host sends no Link fields.
func (s *Server) sendsNoLinks(base string) bool { return !static.SendsLinks(s.host(base)) }
