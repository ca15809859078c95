package config

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/replace"
)

// Changes are changes to a configuration file.
type Changes struct {
	Lists map[string][]string // new lists by key
	// Policy has members of the policy by their dotted names, such as "purposes.search". A value is
	// a bool or a string; nil removes the member.
	Policy map[string]any
}

// Save changes the file and calls use, which reads the file again. It keeps everything else in the
// file, including comments and order. After an error, the file is unchanged. Save returns
// ErrConflict if the file has changed since it was read, ErrForbidden if another source sets the
// key or the file cannot be written, and ErrInvalid if a value is invalid.
func (c *Config) Save(changes Changes, use func() error) error {
	path, err := filepath.EvalSymlinks(c.Path)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	was, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if sha256.Sum256(was) != c.sum {
		return fmt.Errorf("%s: %w: the file has changed since the service read it; send SIGHUP to reload it first", c.Path, millrace.ErrConflict)
	}
	is, err := c.edit(was, changes)
	if err != nil || bytes.Equal(is, was) {
		return err
	}
	if err := c.put(path, was, is); err != nil {
		return err
	}
	if err := use(); err != nil {
		return errors.Join(fmt.Errorf("use new configuration: %w", err), c.put(path, is, was))
	}
	return nil
}

// put replaces the content of a file with is, if the content is still was.
func (c *Config) put(path string, was, is []byte) error {
	now, err := os.ReadFile(path)
	switch {
	case err != nil:
		return fmt.Errorf("configuration: %w", err)
	case !bytes.Equal(now, was):
		return fmt.Errorf("%s: %w: another process is writing the file", c.Path, millrace.ErrConflict)
	}
	if err := replace.File(path, func(w io.Writer) error { _, err := w.Write(is); return err }); err != nil {
		return fmt.Errorf("%s: %w: write failed: %w", c.Path, millrace.ErrForbidden, err)
	}
	return nil
}

// edit returns the text of the file with the changes. It parses the result and checks that
// nothing else differs.
func (c *Config) edit(was []byte, changes Changes) ([]byte, error) {
	is, lists := was, changes.Lists
	for _, key := range slices.Sorted(maps.Keys(lists)) {
		if slices.Equal(lists[key], c.list(key)) && !c.elsewhere(key) {
			continue
		}
		if err := c.decides(key); err != nil {
			return nil, err
		}
		var err error
		if is, err = setList(is, key, lists[key]); err != nil {
			return nil, fmt.Errorf("%s: %w: key %q: %w", c.Path, millrace.ErrForbidden, key, err)
		}
	}
	members := c.members()
	for _, name := range slices.Sorted(maps.Keys(changes.Policy)) {
		value := changes.Policy[name]
		if members[name] == value {
			continue
		}
		var text string
		switch v := value.(type) {
		case nil:
		case string:
			var err error
			if text, err = Quote(v); err != nil {
				return nil, fmt.Errorf("policy %s: %w: %w", name, millrace.ErrInvalid, err)
			}
		default:
			text = fmt.Sprint(v)
		}
		var err error
		if is, err = setScalar(is, append([]string{policyKey}, strings.Split(name, ".")...), text); err != nil {
			return nil, fmt.Errorf("%s: %w: policy %s: %w", c.Path, millrace.ErrForbidden, name, err)
		}
		if members[name] = value; value == nil {
			delete(members, name)
		}
	}
	next := &Config{lookup: c.lookup, Path: c.Path, known: c.known}
	switch err := next.read(is); {
	case err != nil && len(changes.Policy) > 0:
		return nil, fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w: %w", millrace.ErrForbidden, errForm, err)
	}
	for key := range lists {
		if !slices.Equal(next.list(key), lists[key]) {
			return nil, fmt.Errorf("%s: %w: key %q: %w", c.Path, millrace.ErrForbidden, key, errForm)
		}
	}
	if !reflect.DeepEqual(next.others(lists), c.others(lists)) || !reflect.DeepEqual(next.members(), members) {
		return nil, fmt.Errorf("%s: %w: %w", c.Path, millrace.ErrForbidden, errForm)
	}
	return is, nil
}

// list returns the values of a key.
func (c *Config) list(key string) []string {
	switch v := c.keys[key].value.(type) {
	case string:
		return []string{v}
	case []any:
		out := make([]string, len(v))
		for i, e := range v {
			out[i] = fmt.Sprint(e)
		}
		return out
	}
	return nil
}

// others returns the values of all keys that are not in but.
func (c *Config) others(but map[string][]string) map[string]any {
	out := map[string]any{}
	for key, s := range c.keys {
		if _, ok := but[key]; !ok {
			out[key] = s.value
		}
	}
	return out
}

// elsewhere reports whether a source other than the file sets a flag.
func (c *Config) elsewhere(key string) bool { return c.decides(key) != nil }

// decides returns an error that names the source that overrides the file for a flag, or nil.
func (c *Config) decides(key string) error {
	if v, ok := c.lookup(variable(key)); ok && v != "" {
		return fmt.Errorf("%w: the environment variable %s overrides %s", millrace.ErrForbidden, variable(key), c.Path)
	}
	if !c.asked[key] {
		return fmt.Errorf("%w: the flag --%s on the command line overrides %s", millrace.ErrForbidden, key, c.Path)
	}
	return nil
}

// members returns the members of the policy, keyed by their names without the prefix "policy.".
func (c *Config) members() map[string]any {
	out := map[string]any{}
	for _, v := range c.PolicyValues {
		out[strings.TrimPrefix(v.Key, policyKey+".")] = v.Value
	}
	return out
}
