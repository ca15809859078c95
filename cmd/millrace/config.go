package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/millrace/millrace/internal/config"
	"github.com/millrace/millrace/internal/ingest"
)

// configCommand shows the configuration of a command.
type configCommand struct {
	commonFlags
	Command []string `arg:"" optional:"" help:"Command to show, such as pull or keys add (default: serve)."`
}

// secrets lists the environment variables that have no flag.
var secrets = []string{"MILLRACE_KEY", "MILLRACE_WEBHOOK_SECRET"}

// Run shows the configuration. If the command would reject it, Run returns an error.
func (c *configCommand) Run(_ context.Context, p *process, k *kong.Context) error {
	if len(c.Command) == 0 {
		c.Command = []string{"serve"}
	}
	node, err := commandNamed(k.Model.Node, c.Command)
	if err != nil {
		return err
	}
	_, conf, err := p.again()
	if err != nil {
		return usageError(err.Error())
	}
	r := &config.Report{Command: strings.Join(c.Command, " "), File: conf.Path, Values: []config.Value{}, Policy: []config.Value{}, Other: []config.Value{}}
	mine := flagsOf(node)
	for _, f := range mine {
		v, err := parsedValue(conf, node, f)
		if err != nil {
			return usageError(explain(conf, err).Error())
		}
		r.Values = append(r.Values, v)
	}
	byKey := func(a, b config.Value) int { return strings.Compare(a.Key, b.Key) }
	slices.SortFunc(r.Values, byKey)
	for _, name := range secrets {
		if v, ok := p.lookup(name); ok && v != "" {
			r.Values = append(r.Values, config.Secret(name))
		}
	}
	if mine["exclude"] != nil { // the command publishes
		r.Policy = append(r.Policy, conf.PolicyValues...)
	} else {
		r.Other = append(r.Other, conf.PolicyValues...)
	}
	for v := range conf.Values() {
		if mine[v.Key] == nil {
			r.Other = append(r.Other, v)
		}
	}
	slices.SortFunc(r.Other, byKey)
	if r.Command == "serve" {
		if err := c.rejection(p); err != nil {
			return err
		}
	}
	return p.report(r, func(w *bytes.Buffer) { _ = r.WriteText(w) })
}

// commandNamed finds a command by its name.
func commandNamed(node *kong.Node, words []string) (*kong.Node, error) {
	at := node
	for _, word := range words {
		i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == word })
		if i < 0 {
			return nil, usageError(fmt.Sprintf("unknown command %q; run millrace help", strings.Join(words, " ")))
		}
		at = at.Children[i]
	}
	if len(at.Children) > 0 {
		var names []string
		for _, n := range at.Children {
			names = append(names, n.Name)
		}
		return nil, usageError(fmt.Sprintf("%s needs a subcommand; use one of %s", at.Name, strings.Join(names, ", ")))
	}
	return at, nil
}

// rejection returns the error with which serve would reject the configuration, or nil. It does not
// read the source.
func (c *configCommand) rejection(p *process) error {
	args := []string{"serve"}
	if c.Config != "" {
		args = append(args, "--config="+c.Config)
	}
	line, conf, _, err := p.parse(args)
	if err != nil {
		return usageError(err.Error())
	}
	s := &line.Serve
	for _, check := range []func() error{
		s.validate,
		func() error { return s.checkPolicy(conf.Policy) },
		func() error { return s.checkNotifications(conf.Policy) },
		func() error {
			if s.Source == "" {
				return nil
			}
			_, err := s.kind()
			return err
		},
	} {
		if err := check(); err != nil {
			return explain(conf, err)
		}
	}
	return nil
}

// parsedValue returns the value of a flag as the command would parse it.
func parsedValue(conf *config.Config, command *kong.Node, f *kong.Flag) (config.Value, error) {
	var given any
	from := config.FromDefault
	if !onCommandLine(command, f) {
		if v, place := conf.Lookup(f.Name); v != nil {
			given, from = v, place
		}
	}
	switch {
	case given != nil:
	case f.HasDefault:
		given = f.Default
	case f.IsBool():
		return conf.Show(f.Name, false, from), nil
	default:
		return conf.Show(f.Name, nil, from), nil
	}
	target := reflect.New(f.Target.Type()).Elem()
	if err := f.Parse(kong.Scan().PushTyped(given, kong.FlagValueToken), target); err != nil {
		return config.Value{}, err
	}
	if target.Kind() == reflect.Pointer {
		target = target.Elem()
	}
	v := target.Interface()
	if f.Enum != "" && !slices.Contains(f.EnumSlice(), fmt.Sprint(v)) {
		return config.Value{}, fmt.Errorf("--%s must be one of %s but got %q", f.Name, strings.Join(slices.DeleteFunc(f.EnumSlice(), func(v string) bool { return v == "" }), ", "), fmt.Sprint(v))
	}
	if s, ok := v.(fmt.Stringer); ok {
		v = s.String() // a duration
	}
	return conf.Show(f.Name, v, from), nil
}

// onCommandLine reports whether a flag can be set only on the command line. This includes --listen
// of `millrace mcp`, because the listen key is the address of serve.
func onCommandLine(command *kong.Node, f *kong.Flag) bool {
	return f.Tag.Has("answer") || f.Name == "listen" && command != nil && command.Name == "mcp" || f.Name == "config" || f.Name == "help"
}

// flagsOf returns the flags of commands that a configuration may set.
func flagsOf(commands ...*kong.Node) map[string]*kong.Flag {
	flags := map[string]*kong.Flag{}
	for _, command := range commands {
		for _, group := range command.AllFlags(false) {
			for _, f := range group {
				if f.Name != "help" && f.Name != "config" && !f.Tag.Has("answer") {
					flags[f.Name] = f
				}
			}
		}
		if arg := argument(command); arg != nil {
			flags[sourceKey] = &kong.Flag{Value: arg, PlaceHolder: "SOURCE"}
		}
	}
	return flags
}

// sourceKey is the key that sets SOURCE, the only argument that the configuration can set.
const sourceKey = "source"

// argument returns the argument SOURCE of a command, or nil.
func argument(command *kong.Node) *kong.Value {
	if i := slices.IndexFunc(command.Positional, func(v *kong.Value) bool { return v.Name == sourceKey && v.Target.Kind() == reflect.String }); i >= 0 {
		return command.Positional[i]
	}
	return nil
}

// setSource completes the SOURCE of a command.
func setSource(conf *config.Config, command *kong.Node) {
	if arg := argument(command); arg != nil {
		s := arg.Target.String()
		if s == "" {
			s, _ = conf.Resolve(sourceKey).(string)
		}
		arg.Target.SetString(ingest.Source(s))
	}
}

// load reads the file that --config names, or millrace.yaml if it exists.
func load(conf *config.Config, args []string, env func(string) (string, bool), k *kong.Kong) error {
	known := map[string]config.Flag{}
	for name, f := range flagsOf(k.Model.Leaves(false)...) {
		known[name] = config.Flag{List: f.IsSlice(), Placeholder: f.PlaceHolder}
	}
	path, named := configPath(args, env)
	if len(args) > 0 && args[0] == "up" {
		named = false // up writes the file
	}
	if err := conf.Load(path, known); named || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// configPath finds the value of --config or MILLRACE_CONFIG. It runs before the command line
// is parsed, because parsing needs the file.
func configPath(args []string, lookup func(string) (string, bool)) (path string, named bool) {
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, "--config="); ok {
			return v, true
		}
		if a == "--config" && i+1 < len(args) {
			return args[i+1], true
		}
		if a == "--" {
			break
		}
	}
	if v, ok := lookup("MILLRACE_CONFIG"); ok {
		return v, true
	}
	return config.FileName, false
}

// flagName matches the flag in the text of an error.
var flagName = regexp.MustCompile(`(?:^|\s)--([a-z0-9-]+)`)

// explain adds the origin of an invalid value to an error, unless the value is from the
// command line. It removes the empty value from the values of a flag without a default.
func explain(conf *config.Config, err error) error {
	if text := err.Error(); strings.Contains(text, `one of "",`) {
		err = errors.New(strings.Replace(text, `one of "",`, "one of ", 1))
	}
	m := flagName.FindStringSubmatch(err.Error())
	if m == nil || strings.HasPrefix(err.Error(), "unknown flag") {
		return err
	}
	if _, from := conf.Lookup(m[1]); from != "" {
		return fmt.Errorf("%s: %w", from, err)
	}
	return err
}
