package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/millrace/millrace"
)

const configFile = "millrace.yaml"

// config gives flags their values from the environment and, below it, from
// the configuration file. Its keys are the names of the flags, but for one: the
// policy, which has keys below it.
type config struct {
	lookup func(string) (string, bool)
	path   string
	keys   map[string]setting
	policy *millrace.Policy  // nil = the file has none
	said   []configValue     // members of the policy, with their places
	whole  bool              // all of the file has been read
	known  map[string]bool   // names of the flags that are keys; true = takes a list
	asked  map[string]bool   // flags that the command line does not set
	sum    [sha256.Size]byte // of the file
}

// setting is one value of the file, with its place.
type setting struct {
	value any
	place string // FILE:LINE:COLUMN
}

// Validate is part of kong's resolvers.
func (c *config) Validate(*kong.Application) error { return nil }

// Resolve gives the value of a flag that the command line does not set.
func (c *config) Resolve(_ *kong.Context, parent *kong.Path, flag *kong.Flag) (any, error) {
	if flag.Name == "config" || flag.Name == "help" || flag.Name == "listen" && isMCP(parent) {
		return nil, nil
	}
	if c.asked == nil {
		c.asked = map[string]bool{}
	}
	c.asked[flag.Name] = true
	if v, ok := c.lookup(variable(flag.Name)); ok && v != "" {
		return v, nil
	}
	if s, ok := c.keys[flag.Name]; ok {
		return s.value, nil
	}
	return nil, nil
}

// isMCP reports whether a flag is one of `millrace mcp`: where it listens, if it
// does, is not where serve does.
func isMCP(parent *kong.Path) bool { return parent.Command != nil && parent.Command.Name == "mcp" }

// variable gives the environment variable of a flag.
func variable(flag string) string {
	return "MILLRACE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// flagNames lists the flags of all commands; true are those that take a list.
func flagNames(k *kong.Kong) map[string]bool {
	names := map[string]bool{}
	for _, command := range k.Model.Leaves(false) {
		for _, group := range command.AllFlags(false) {
			for _, f := range group {
				names[f.Name] = f.IsSlice()
			}
		}
	}
	delete(names, "help")
	delete(names, "config")
	return names
}

// load reads the file that --config names, else millrace.yaml if there is
// one. A key that is no flag's name is an error with its place.
func (c *config) load(args []string, known map[string]bool) error {
	path, named := configPath(args, c.lookup)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil
	}
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	c.path, c.sum = path, sha256.Sum256(data)
	return c.read(data, known)
}

// read understands what the file says.
func (c *config) read(data []byte, known map[string]bool) error {
	c.keys, c.known = map[string]setting{}, known
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return c.yamlError(err)
	}
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType {
			continue
		}
		m, ok := doc.Body.(ast.MapNode)
		if !ok {
			return fmt.Errorf("%s: want lines of the form \"key: value\"", c.place(doc.Body))
		}
		for it := m.MapRange(); it.Next(); {
			if err := c.set(it.KeyValue(), known); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *config) set(kv *ast.MappingValueNode, known map[string]bool) error {
	key, place := kv.Key.GetToken().Value, c.place(kv.Key) // the token has no quotes
	if key == policyKey {
		return c.setPolicy(kv)
	}
	list, ok := known[key]
	if !ok {
		return fmt.Errorf("%s: unknown key %q; the keys are the names of the flags, such as base-url", place, key)
	}
	if _, ok := c.keys[key]; ok {
		return fmt.Errorf("%s: key %q is set twice", place, key)
	}
	var v any
	if err := yaml.NodeToValue(kv.Value, &v); err != nil {
		return c.yamlError(err)
	}
	switch v := v.(type) {
	case nil:
		return fmt.Errorf("%s: key %q has no value", place, key)
	case map[string]any:
		return fmt.Errorf("%s: key %q wants a value or a list, not keys below it", place, key)
	case []any:
		if !list {
			return fmt.Errorf("%s: key %q wants one value, not a list", place, key)
		}
		parts := make([]any, len(v))
		for i, e := range v {
			switch e.(type) {
			case nil, []any, map[string]any:
				return fmt.Errorf("%s: key %q wants a list of plain values", place, key)
			}
			parts[i] = fmt.Sprint(e)
		}
		c.keys[key] = setting{parts, place}
	default:
		c.keys[key] = setting{fmt.Sprint(v), place}
	}
	return nil
}

func (c *config) place(n ast.Node) string {
	pos := n.GetToken().Position
	return fmt.Sprintf("%s:%d:%d", c.path, pos.Line, pos.Column)
}

// yamlError gives an error of the YAML library the form of ours.
func (c *config) yamlError(err error) error {
	var where yaml.Error
	if !errors.As(err, &where) || where.GetToken() == nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	pos := where.GetToken().Position
	return fmt.Errorf("%s:%d:%d: %s", c.path, pos.Line, pos.Column, where.GetMessage())
}

// configPath finds --config before the rest of the line is understood,
// because what the file says is needed for that.
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
	return configFile, false
}

// flagName finds the flag that an error is about.
var flagName = regexp.MustCompile(`(?:^|\s)--([a-z0-9-]+)`)

// explain says where a bad value came from when it was not the command line.
func (c *config) explain(err error) error {
	m := flagName.FindStringSubmatch(err.Error())
	if m == nil || strings.HasPrefix(err.Error(), "unknown flag") {
		return err
	}
	if _, ok := c.lookup(variable(m[1])); ok {
		return fmt.Errorf("environment variable %s: %w", variable(m[1]), err)
	}
	if s, ok := c.keys[m[1]]; ok {
		return fmt.Errorf("%s: %w", s.place, err)
	}
	return err
}
