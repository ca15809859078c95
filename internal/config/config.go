// Package config reads millrace.yaml, edits its lists and policy without changing the rest, and
// shows values without their secrets.
package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/millrace/millrace"
)

// FileName is the default name of the configuration file.
const FileName = "millrace.yaml"

// Config sets flags from the environment and the configuration file. The environment takes
// precedence. The keys of the file are the names of the flags, except for the policy, which has its
// own keys.
type Config struct {
	// Path is the configuration file. If empty, no file is read.
	Path string
	// Policy is the policy of the file. If nil, the file has none.
	Policy *millrace.Policy
	// PolicyValues are the members of the policy, with their positions.
	PolicyValues []Value

	lookup func(string) (string, bool)
	keys   map[string]setting
	known  map[string]Flag   // flags by name
	asked  map[string]bool   // flags passed to Resolve, because the command line does not set them
	sum    [sha256.Size]byte // hash of the file
}

// Flag describes a flag for the configuration.
type Flag struct {
	List        bool   // the flag takes a list
	Placeholder string // shown in place of a value, such as FILE
}

// setting is one value of the file, with its position.
type setting struct {
	value any
	place string // FILE:LINE:COLUMN
}

// New returns a configuration without a file. lookup reads environment variables.
func New(lookup func(string) (string, bool)) *Config {
	return &Config{lookup: lookup, asked: map[string]bool{}}
}

// Resolve returns the value of a flag that is not set on the command line, or nil if the
// configuration does not set it either.
func (c *Config) Resolve(flag string) any {
	c.asked[flag] = true
	v, _ := c.Lookup(flag)
	return v
}

// Lookup returns the value of a flag and where it comes from: FILE:LINE:COLUMN or
// an environment variable.
func (c *Config) Lookup(flag string) (value any, from string) {
	if v, ok := c.lookup(variable(flag)); ok && v != "" {
		return v, "environment variable " + variable(flag)
	}
	s := c.keys[flag]
	return s.value, s.place
}

// variable returns the name of the environment variable for a flag.
func variable(flag string) string {
	return "MILLRACE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// maxFile is the maximum size of a configuration in bytes.
const maxFile = 4 << 20

// Load reads a file. known contains the flags of all commands by name. An unknown key is an error
// with its position.
func (c *Config) Load(path string, known map[string]Flag) error {
	c.known = known
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s: %w: more than %d bytes", path, millrace.ErrTooLarge, maxFile)
	}
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	c.Path, c.sum = path, sha256.Sum256(data)
	return c.read(data)
}

// read parses the file.
func (c *Config) read(data []byte) error {
	c.keys = map[string]setting{}
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
			return fmt.Errorf("%s: not a mapping; write lines of the form \"key: value\"", c.place(doc.Body))
		}
		for it := m.MapRange(); it.Next(); {
			if err := c.set(it.KeyValue()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Config) set(kv *ast.MappingValueNode) error {
	key, place := kv.Key.GetToken().Value, c.place(kv.Key) // the token has no quotes
	if key == policyKey {
		return c.setPolicy(kv)
	}
	flag, ok := c.known[key]
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
		return fmt.Errorf("%s: key %q requires a value or a list; it has nested keys", place, key)
	case []any:
		if !flag.List {
			return fmt.Errorf("%s: key %q requires a single value; it has a list", place, key)
		}
		parts := make([]any, len(v))
		for i, e := range v {
			switch e.(type) {
			case nil, []any, map[string]any:
				return fmt.Errorf("%s: key %q requires a list of plain values", place, key)
			}
			parts[i] = fmt.Sprint(e)
		}
		c.keys[key] = setting{parts, place}
	default:
		c.keys[key] = setting{fmt.Sprint(v), place}
	}
	return nil
}

func (c *Config) place(n ast.Node) string {
	pos := n.GetToken().Position
	return fmt.Sprintf("%s:%d:%d", c.Path, pos.Line, pos.Column)
}

// yamlError converts an error of the YAML library.
func (c *Config) yamlError(err error) error {
	var where yaml.Error
	if !errors.As(err, &where) || where.GetToken() == nil {
		return fmt.Errorf("%s: %w", c.Path, err)
	}
	pos := where.GetToken().Position
	return fmt.Errorf("%s:%d:%d: %s", c.Path, pos.Line, pos.Column, where.GetMessage())
}
