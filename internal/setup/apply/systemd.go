package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/millrace/millrace/internal/setup"
)

// systemd installs the service of millrace. If live is set, it also starts the service.
type systemd struct {
	*Applier
	live bool
}

func (s *systemd) unit() string { return s.path("etc/systemd/system/millrace.service") }

func (s *systemd) settings() string { return s.path("etc/millrace/millrace.yaml") }

// packaged reports whether a package has installed the unit and its user.
func (s *systemd) packaged() bool {
	_, err := os.Stat(s.path("usr/lib/systemd/system/millrace.service"))
	return err == nil
}

// configured reports whether the configuration contains more than the comments that a package
// installs.
func (s *systemd) configured() bool {
	text, err := os.ReadFile(s.settings())
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return true
		}
	}
	return err != nil && !errors.Is(err, fs.ErrNotExist)
}

func (s *systemd) plan(context.Context) ([]change, error) {
	exists := ""
	if _, err := os.Lstat(s.unit()); !errors.Is(err, fs.ErrNotExist) {
		exists = s.unit()
	} else if s.configured() {
		exists = s.settings()
	}
	if exists != "" {
		return nil, fmt.Errorf("%s: %w; another setup has created it; remove the file or keep that setup", exists, fs.ErrExist)
	}
	settings := change{File: s.settings(), data: s.o.Config, mode: 0o640}
	if s.packaged() {
		return []change{settings}, nil
	}
	text, err := setup.Snippet("systemd", &setup.SnippetOptions{Listen: s.o.Listen, Exec: s.o.Exec})
	if err != nil {
		return nil, err
	}
	return []change{settings, {File: s.unit(), data: []byte(text), mode: 0o644}}, nil
}

func (s *systemd) test(ctx context.Context) error {
	if s.packaged() {
		return nil
	}
	return s.run(ctx, "systemd-analyze", "verify", "--man=no", "--recursive-errors=no", s.unit())
}

// reload starts the service if it is configured.
func (s *systemd) reload(ctx context.Context) error {
	switch {
	case !s.live:
		return nil
	case !s.configured():
		return s.run(ctx, "systemctl", "daemon-reload")
	}
	for _, args := range [][]string{
		{"systemd-sysusers", "--inline", "u millrace - millrace /var/lib/millrace"},
		{"chgrp", "millrace", s.settings()},
		{"systemctl", "daemon-reload"},
		{"systemctl", "enable", "--now", "millrace"},
	} {
		if err := s.run(ctx, args[0], args[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// stop stops the service. It removes the user unless a package has created it.
func (s *systemd) stop(ctx context.Context) error {
	if !s.live {
		return nil
	}
	err := s.run(ctx, "systemctl", "disable", "--now", "millrace")
	if !s.packaged() {
		err = errors.Join(err, s.run(ctx, "userdel", "millrace"))
	}
	return err
}
