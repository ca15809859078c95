package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/config"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/setup"
	"github.com/millrace/millrace/internal/setup/apply"
	"github.com/millrace/millrace/internal/sites"
	"github.com/millrace/millrace/internal/terminal"
)

// upCommand sets up millrace. Flags with the tag answer are not keys of the configuration.
type upCommand struct {
	commonFlags
	fetchFlags
	Source    string      `arg:"" optional:"" help:"URL or folder of your site (default: the key source of millrace.yaml)."`
	Place     sites.Place `enum:",alongside,front,standalone" default:"" placeholder:"PLACE" help:"Where millrace runs: alongside your web server, in front of it (with --origin), or standalone." answer:""`
	Origin    string      `placeholder:"URL" help:"URL of your own web server, if millrace runs in front of it." answer:""`
	BaseURL   string      `name:"base-url" placeholder:"URL" help:"Public URL of the pages of a folder." answer:""`
	Listen    string      `placeholder:"ADDRESS" help:"Address to listen on (default: 127.0.0.1:8080)." answer:""`
	Allow     []string    `name:"policy-allow" placeholder:"PURPOSE" help:"Permitted uses of the content: ai-train, ai-input or search." answer:""`
	Refuse    []string    `name:"policy-refuse" placeholder:"PURPOSE" help:"Refused uses of the content: ai-train, ai-input or search." answer:""`
	Dashboard string      `placeholder:"PATH" help:"Path of your dashboard, or none." answer:""`
	Yes       bool        `help:"Ask no questions; use the detected values." answer:""`
	Apply     []string    `enum:"nginx,caddy,systemd" placeholder:"PROGRAM" help:"Change the configuration of nginx, caddy or systemd, test it, reload it and check the site. If a step fails, all changes are undone." answer:""`
	Undo      bool        `help:"Undo the changes of --apply." answer:""`
	Root      string      `placeholder:"DIR" help:"With --apply or --undo: folder that holds etc/nginx, etc/caddy and etc/systemd (default: /)." hidden:"" answer:""`
}

// Run sets up a site and serves it.
func (c *upCommand) Run(ctx context.Context, p *process) (err error) {
	if c.Undo {
		return c.undo(ctx, p)
	}
	start := time.Now()
	file := c.Config
	if file == "" {
		file, _ = configPath(nil, p.lookup)
	}
	up := &apply.Report{Config: file, Applied: []string{}, Undone: []string{}, Next: []string{}}
	args := []string{"serve", "--config=" + file, "--log-level=" + c.LogLevel}
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		if err := c.write(ctx, p, up); err != nil {
			return err
		}
		defer func() {
			if err != nil && up.URL == "" { // up failed before a service ran
				err = errors.Join(err, os.Remove(file))
			}
		}()
	} else {
		p.log.Info("using the existing configuration without questions", "path", file)
		more, err := c.overrides(file)
		if err != nil {
			return err
		}
		args = append(args, more...)
	}
	p.again = func() (*commands, *config.Config, error) {
		line, conf, _, err := p.parse(args)
		return line, conf, err
	}
	line, conf, err := p.again()
	if err != nil {
		return usageError(err.Error())
	}
	s := &line.Serve
	s.commonFlags, p.conf, p.policy = c.commonFlags, conf, conf.Policy
	if err := s.validate(); err != nil {
		return explain(conf, err)
	}
	if s.AllowPrivate = s.AllowPrivate || c.AllowPrivate; s.Delay == nil {
		s.Delay = c.Delay
	}
	unlock := func() {}
	if len(c.Apply) > 0 {
		if unlock, err = apply.Lock(c.Root); err != nil {
			return err
		}
	}
	appliers, err := c.prepare(ctx, p, s, up)
	defer func() {
		defer unlock()
		for _, a := range appliers { // the changes that were not applied
			_, undo := a.Undo(context.WithoutCancel(ctx))
			err = errors.Join(err, undo)
		}
	}()
	if err != nil {
		return err
	}
	finish := func(endpointBase string) error {
		up.URL = endpointBase
		client := c.client(p, nil)
		defer client.CloseIdleConnections()
		for len(appliers) > 0 {
			a := appliers[0]
			appliers = appliers[1:]
			outside := func(ctx context.Context) error { return apply.Check(ctx, client.HTTP(), endpointBase) }
			if a.Program() == "systemd" {
				outside = func(ctx context.Context) error { return a.Started(ctx, s.Listen) }
			}
			if err := a.Apply(ctx, outside); err != nil {
				return err
			}
			up.Applied = append(up.Applied, a.Program())
		}
		unlock()
		up.Seconds = time.Since(start).Seconds()
		return c.done(p, s, up)
	}
	if slices.Contains(c.Apply, "systemd") { // the service runs instead of this process
		endpointBase, err := s.endpointBase(nil)
		if err != nil {
			return err
		}
		return finish(endpointBase)
	}
	s.onReady = finish
	return s.Run(ctx, p)
}

// overrides returns the flags of serve that the command line sets in addition to an existing
// configuration.
func (c *upCommand) overrides(file string) (args []string, err error) {
	for _, f := range []struct{ flag, value string }{
		{"place", string(c.Place)}, {"origin", c.Origin}, {"base-url", c.BaseURL}, {"listen", c.Listen},
	} {
		if f.value != "" {
			args = append(args, "--"+f.flag+"="+f.value)
		}
	}
	if len(c.Allow)+len(c.Refuse) > 0 || c.Dashboard != "" {
		return nil, usageError(fmt.Sprintf("--policy-allow, --policy-refuse, --dashboard: %s exists and sets these values; change them there", file))
	}
	if c.Source != "" {
		args = append(args, c.Source)
	}
	return args, nil
}

// write probes the site, asks the owner and writes the configuration.
func (c *upCommand) write(ctx context.Context, p *process, up *apply.Report) error {
	answers := setup.Answers{Place: c.Place, Origin: c.Origin, BaseURL: c.BaseURL, Dashboard: c.Dashboard, Purposes: map[millrace.Purpose]bool{}}
	for allowed, list := range map[bool][]string{true: c.Allow, false: c.Refuse} {
		for _, name := range list {
			purpose := millrace.Purpose(name)
			if !slices.Contains([]millrace.Purpose{millrace.AITrain, millrace.AIInput, millrace.Search}, purpose) {
				return usageError(fmt.Sprintf("--policy-allow, --policy-refuse: unknown purpose %q; use ai-train, ai-input or search", name))
			}
			if _, ok := answers.Purposes[purpose]; ok {
				return usageError(fmt.Sprintf("--policy-allow, --policy-refuse: %s is in both", name))
			}
			answers.Purposes[purpose] = allowed
		}
	}
	r, err := c.probe(ctx, p, c.Source, c.BaseURL, up.Config)
	if err != nil {
		return err
	}
	if r.Listen = cmp.Or(c.Listen, r.Listen); r.Listen != "" {
		ln, err := listen(ctx, "--listen", r.Listen) // must fail before anything is written
		if err != nil {
			return err
		}
		if err := ln.Close(); err != nil {
			return err
		}
	}
	if slices.Contains(c.Apply, "caddy") {
		r.Use("caddy")
	}
	var in io.Reader
	if !c.Yes && p.interactive() {
		in = p.stdin
	}
	if !c.Quiet {
		fmt.Fprintln(p.stderr, r.Summary())
	}
	if err := r.Decide(answers, in, p.stderr, func(flag, guess string) { p.log.Info("guessed", "flag", flag, "value", guess) }); err != nil {
		return usageError(err.Error())
	}
	if err := writeConfig(r); err != nil {
		return err
	}
	up.Password = r.Password
	p.log.Info("configuration written", "path", up.Config)
	return nil
}

// interactive reports whether a person can answer questions.
func (p *process) interactive() bool {
	f, ok := p.stdin.(*os.File)
	if !ok || !terminal.Is(f, p.lookup) {
		return false
	}
	info, err := f.Stat()
	null, none := os.Stat(os.DevNull)
	return err == nil && (none != nil || !os.SameFile(info, null))
}

// prepare prepares the changes that --apply names. It returns those that are not applied yet.
func (c *upCommand) prepare(ctx context.Context, p *process, s *serveCommand, up *apply.Report) (list []*apply.Applier, err error) {
	if len(c.Apply) == 0 {
		return nil, nil
	}
	place := s.place()
	text, err := os.ReadFile(up.Config)
	if err != nil {
		return nil, err
	}
	exec, err := os.Executable()
	if err != nil {
		return nil, err
	}
	o := &apply.Options{Root: c.Root, Base: s.BaseURL, Listen: s.Listen, Exec: exec, Config: text, Logger: p.log}
	for _, program := range apply.Programs() { // start with the service
		if !slices.Contains(c.Apply, program) {
			continue
		}
		if program != "systemd" && place != sites.Alongside {
			return list, usageError(fmt.Sprintf("--apply %s: the place is %s; only alongside changes another server", program, place))
		}
		if program != "systemd" && s.BaseURL == "" {
			return list, usageError(fmt.Sprintf("--base-url: --apply %s needs the public address of the site; set base-url in %s", program, up.Config))
		}
		if program == "systemd" && p.conf.Resolve("source") == nil {
			return list, usageError(fmt.Sprintf("--apply systemd: the service needs the key source in %s", up.Config))
		}
		a := apply.New(program, o)
		applied, err := a.Prepare(ctx)
		if err != nil {
			return list, err
		}
		if applied {
			p.log.Info("already applied; millrace up --undo removes it", "program", program)
			up.Applied = append(up.Applied, program)
			continue
		}
		list = append(list, a)
	}
	return list, nil
}

// done prints the report.
func (c *upCommand) done(p *process, s *serveCommand, up *apply.Report) error {
	up.Site = cmp.Or(s.BaseURL, up.URL)
	if s.Dashboard != "" {
		at := up.URL
		if s.place() == sites.Alongside && !slices.ContainsFunc(up.Applied, func(a string) bool { return a != "systemd" }) {
			at = s.own(s.Listen)
			up.Next = append(up.Next, "millrace up --apply nginx   # or caddy")
		}
		up.Dashboard = s.dashboardAt(at)
	}
	check := "millrace check " + up.URL
	if u, err := url.Parse(up.URL); err == nil && fetch.IsLoopback(u.Hostname()) {
		check += " --allow-private"
	}
	up.Next = append(up.Next, check)
	return c.print(p, up)
}

func (c *upCommand) print(p *process, r *apply.Report) error { return p.report(r, r.WriteText) }

// undo undoes all changes that --apply has made.
func (c *upCommand) undo(ctx context.Context, p *process) error {
	unlock, err := apply.Lock(c.Root)
	if err != nil {
		return err
	}
	defer unlock()
	r := &apply.Report{Applied: []string{}, Undone: []string{}, Next: []string{}}
	var failed error
	for _, program := range slices.Backward(apply.Programs()) {
		a := apply.New(program, &apply.Options{Root: c.Root, Logger: p.log})
		done, err := a.Undo(ctx)
		if done {
			r.Undone = append(r.Undone, a.Changes()...)
		}
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return failed
	}
	return c.print(p, r)
}
