package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/millrace/millrace/internal/setup"
)

// systemd installs the service of millrace. live starts it.
type systemd struct {
	*Applier
	live bool
}

func (s *systemd) unit() string { return s.path("etc/systemd/system/millrace.service") }

// group may read the configuration. The unit names it, too.
const group = "millrace-config"

func (s *systemd) plan(context.Context) ([]change, error) {
	for _, name := range []string{s.unit(), s.path("etc/millrace/millrace.yaml")} {
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w; another set-up made it; remove it or keep that one", name, fs.ErrExist)
		}
	}
	text, err := setup.Snippet("systemd", &setup.SnippetOptions{Source: s.o.Source, Listen: s.o.Listen, Base: s.o.Base, Exec: s.o.Exec})
	if err != nil {
		return nil, err
	}
	return []change{
		{File: s.path("etc/millrace/millrace.yaml"), data: s.o.Config, mode: 0o640},
		{File: s.unit(), data: []byte(text), mode: 0o644},
	}, nil
}

func (s *systemd) test(ctx context.Context) error {
	return s.run(ctx, "systemd-analyze", "verify", "--man=no", "--recursive-errors=no", s.unit())
}

// reload starts the service if its unit exists.
func (s *systemd) reload(ctx context.Context) error {
	if !s.live {
		return nil
	}
	if _, err := os.Stat(s.unit()); errors.Is(err, fs.ErrNotExist) {
		return s.run(ctx, "systemctl", "daemon-reload")
	}
	for _, args := range [][]string{
		{"groupadd", "--system", "--force", group},
		{"chgrp", group, s.path("etc/millrace/millrace.yaml")},
		{"systemctl", "daemon-reload"},
		{"systemctl", "enable", "--now", "millrace"},
	} {
		if err := s.run(ctx, args[0], args[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// stop stops the service, and removes its group.
func (s *systemd) stop(ctx context.Context) error {
	if !s.live {
		return nil
	}
	return errors.Join(s.run(ctx, "systemctl", "disable", "--now", "millrace"), s.run(ctx, "groupdel", group))
}
