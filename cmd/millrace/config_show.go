package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"
	"github.com/millrace/millrace/internal/humanize"
)

// configCommand shows what a command works with.
type configCommand struct {
	common
	Command []string `arg:"" optional:"" help:"The command that it is for, such as pull, or keys add (default: serve)."`
}

// configReport is what `millrace config --json` prints.
type configReport struct {
	Command string        `json:"command"`
	File    string        `json:"file"`   // the configuration file; "" = there is none
	Values  []configValue `json:"values"` // every flag of the command
	Policy  []configValue `json:"policy"` // every member that the policy has
	Other   []configValue `json:"other"`  // keys of the file that are other commands' flags
}

// configValue is one value with the place that it comes from.
type configValue struct {
	Key   string `json:"key"`
	Value any    `json:"value"` // as the flag has it; null = nothing is set
	From  string `json:"from"`  // FILE:LINE:COLUMN, an environment variable, or "default"
	// Hidden: the value is a secret, or has one in it, which is left out.
	Hidden bool `json:"hidden,omitempty"`
}

const (
	fromDefault = "default"
	hiddenText  = "(hidden)"
)

// secrets are the environment variables that are no flags.
var secrets = []string{"MILLRACE_KEY", "MILLRACE_WEBHOOK_SECRET"}

// Run shows the configuration. One that the command would refuse is an error.
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
	r := &configReport{Command: strings.Join(c.Command, " "), File: conf.path, Values: []configValue{}, Policy: []configValue{}, Other: []configValue{}}
	mine := map[string]bool{}
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			if f.Name == "help" || f.Name == "config" {
				continue
			}
			mine[f.Name] = true
			v, err := conf.value(node, f)
			if err != nil {
				return usageError(conf.explain(err).Error())
			}
			r.Values = append(r.Values, v)
		}
	}
	slices.SortFunc(r.Values, func(a, b configValue) int { return strings.Compare(a.Key, b.Key) })
	for _, name := range secrets {
		if v, ok := p.lookup(name); ok && v != "" {
			r.Values = append(r.Values, configValue{Key: name, Value: hiddenText, From: "environment variable " + name, Hidden: true})
		}
	}
	if mine["exclude"] { // it publishes
		r.Policy = append(r.Policy, conf.said...)
	} else {
		r.Other = append(r.Other, conf.said...)
	}
	for key, s := range conf.keys {
		if !mine[key] {
			v := configValue{Key: key, Value: s.value, From: s.place}
			v.hide(placeholderOf(k.Model.Node, key))
			r.Other = append(r.Other, v)
		}
	}
	slices.SortFunc(r.Other, func(a, b configValue) int { return strings.Compare(a.Key, b.Key) })
	if r.Command == "serve" {
		if err := c.refuses(p); err != nil {
			return err
		}
	}
	return p.report(r, r.text)
}

// commandNamed finds a command by its words.
func commandNamed(node *kong.Node, words []string) (*kong.Node, error) {
	at := node
	for _, word := range words {
		i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == word })
		if i < 0 {
			return nil, usageError(fmt.Sprintf("there is no command %q; run millrace help", strings.Join(words, " ")))
		}
		at = at.Children[i]
	}
	if len(at.Children) > 0 {
		var names []string
		for _, n := range at.Children {
			names = append(names, n.Name)
		}
		return nil, usageError(fmt.Sprintf("%s has commands of its own: name one of %s", at.Name, strings.Join(names, ", ")))
	}
	return at, nil
}

// refuses gives what serve itself would refuse of the configuration, whatever
// its source is.
func (c *configCommand) refuses(p *process) error {
	args := []string{"serve", "."}
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
		func() error { return s.agree(conf.policy) },
		func() error { return s.sound(conf.policy) },
	} {
		if err := check(); err != nil {
			return conf.explain(err)
		}
	}
	return nil
}

// value gives what a flag has, as the command itself would take it.
func (c *config) value(node *kong.Node, f *kong.Flag) (configValue, error) {
	v := configValue{Key: f.Name, From: fromDefault}
	given, err := c.Resolve(nil, &kong.Path{Command: node}, f)
	if err != nil {
		return v, err
	}
	switch {
	case given != nil:
		if _, ok := c.lookup(variable(f.Name)); ok {
			v.From = "environment variable " + variable(f.Name)
		} else {
			v.From = c.keys[f.Name].place
		}
	case f.HasDefault:
		given = f.Default
	case f.IsBool():
		v.Value = false
		return v, nil
	default:
		return v, nil
	}
	target := reflect.New(f.Target.Type()).Elem()
	if err := f.Parse(kong.Scan().PushTyped(given, kong.FlagValueToken), target); err != nil {
		return v, err
	}
	if target.Kind() == reflect.Pointer {
		target = target.Elem()
	}
	v.Value = target.Interface()
	if f.Enum != "" && !slices.Contains(f.EnumSlice(), fmt.Sprint(v.Value)) {
		return v, fmt.Errorf("--%s must be one of %s but got %q", f.Name, strings.Join(f.EnumSlice(), ","), fmt.Sprint(v.Value))
	}
	if s, ok := v.Value.(fmt.Stringer); ok {
		v.Value = s.String() // a duration
	}
	v.hide(f.PlaceHolder)
	return v, nil
}

// placeholderOf gives what a flag wants, whichever command it is one of.
func placeholderOf(node *kong.Node, name string) string {
	for _, command := range node.Leaves(false) {
		for _, group := range command.AllFlags(false) {
			for _, f := range group {
				if f.Name == name {
					return f.PlaceHolder
				}
			}
		}
	}
	return ""
}

// hide takes the secrets out of a value: of a key all, of a URL its user and its
// query, and of a webhook its path; of a target of events all but the host.
func (v *configValue) hide(placeholder string) {
	each := func(s string) string {
		if placeholder == "KEY" && s != "" {
			v.Hidden = true
			return hiddenText
		}
		if placeholder == "KIND=URL" && s != "" {
			v.Hidden = true
			return targetText(s)
		}
		if !strings.Contains(s, "://") {
			if placeholder == "URL" && strings.ContainsAny(s, "@?") {
				v.Hidden = true // a URL that is not right
				return hiddenText
			}
			return s
		}
		u, err := url.Parse(s)
		switch {
		case err != nil:
			v.Hidden = true
			return hiddenText
		case u.User == nil && u.RawQuery == "" && v.Key != "webhook":
			return s
		}
		v.Hidden = true
		shown := u.Scheme + "://"
		if u.User != nil {
			shown += hiddenText + "@"
		}
		if shown += u.Host; v.Key == "webhook" {
			return shown + "/" + hiddenText
		}
		shown += u.EscapedPath()
		if u.RawQuery != "" {
			shown += "?" + hiddenText
		}
		return shown
	}
	switch value := v.Value.(type) {
	case string:
		v.Value = each(value)
	case []string:
		out := make([]string, len(value))
		for i, s := range value {
			out[i] = each(s)
		}
		v.Value = out
	case []any: // of the file
		out := make([]any, len(value))
		for i, s := range value {
			out[i] = each(fmt.Sprint(s))
		}
		v.Value = out
	}
}

// text prints the report for a person: what nobody has set, and has no default, is
// left out.
func (r *configReport) text(b *bytes.Buffer) {
	file := r.File
	if file == "" {
		file = "no configuration file"
	}
	fmt.Fprintf(b, "millrace %s, with %s\n\n", r.Command, humanize.Printable(file))
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = io.WriteString(t, "KEY\tVALUE\tFROM\n")
	left := 0
	for _, list := range [][]configValue{r.Values, r.Policy} {
		for _, v := range list {
			if v.From == fromDefault && (v.Value == nil || reflect.ValueOf(v.Value).IsZero()) {
				left++
				continue
			}
			fmt.Fprintf(t, "%s\t%s\t%s\n", v.Key, humanize.Printable(shorten(valueText(v.Value))), humanize.Printable(v.From))
		}
	}
	_ = t.Flush()
	fmt.Fprintf(b, "\n%s not set; see millrace help %s\n", humanize.Quantity(int64(left), "other flag"), r.Command)
	for _, v := range r.Other {
		fmt.Fprintf(b, "%s, %s: for other commands\n", humanize.Printable(v.From), v.Key)
	}
}

// shorten cuts what would make a column too wide; --json has all of it.
func shorten(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// valueText gives a value in one line.
func valueText(v any) string {
	switch v := v.(type) {
	case []string:
		return strings.Join(v, ", ")
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, fmt.Sprint(e))
		}
		return strings.Join(parts, ", ")
	}
	return strings.ReplaceAll(fmt.Sprint(v), "\n", " ")
}
