package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/replace"
	"github.com/millrace/millrace/internal/yamledit"
)

// reloading is how long somebody waits for the service to have read its
// configuration again.
const reloading = 30 * time.Second

// saveRules gives what writes the rules of extraction into the configuration
// file and has the service work by them; nil = there is no such file. What it
// gives leaves the file as it was whenever it fails, and says why: ErrInvalid
// for rules that are none, ErrConflict if the file is not as the service has
// read it, ErrForbidden if it does not decide, or may not be written.
func (s *service) saveRules() func(ctx context.Context, keep, drop []string) error {
	conf, p := s.p.conf, s.p
	if conf == nil || conf.path == "" || p.wishes == nil {
		return nil
	}
	return func(ctx context.Context, keep, drop []string) error {
		// Whoever has begun to save does not leave it half done.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reloading)
		defer cancel()
		if _, err := extract.NewRules(&extract.RulesOptions{Keep: keep, Drop: drop}); err != nil {
			return err
		}
		return conf.save(map[string][]string{"keep": keep, "drop": drop}, func() error {
			done := make(chan error, 1)
			select {
			case p.wishes <- done:
			case <-ctx.Done():
				return fmt.Errorf("configuration: %w: the service does not read it again", millrace.ErrUnavailable)
			}
			return <-done
		})
	}
}

// save sets keys of the file that are lists, and has the file used. What it says
// otherwise stays, with its comments and its order. The file is as it was before
// when there is an error.
func (c *config) save(lists map[string][]string, use func() error) error {
	path, err := filepath.EvalSymlinks(c.path)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	was, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if sha256.Sum256(was) != c.sum {
		return fmt.Errorf("%s: %w: it is not as the service at work has read it; have it read again first, by SIGHUP", c.path, millrace.ErrConflict)
	}
	is, err := c.edit(was, lists)
	if err != nil || bytes.Equal(is, was) {
		return err
	}
	if err := c.put(path, was, is); err != nil {
		return err
	}
	if err := use(); err != nil {
		return errors.Join(fmt.Errorf("the rules cannot be used: %w", err), c.put(path, is, was))
	}
	return nil
}

// put writes a file anew if it still is what it was.
func (c *config) put(path string, was, is []byte) error {
	now, err := os.ReadFile(path)
	switch {
	case err != nil:
		return fmt.Errorf("configuration: %w", err)
	case !bytes.Equal(now, was):
		return fmt.Errorf("%s: %w: somebody else writes to it", c.path, millrace.ErrConflict)
	}
	if err := replace.File(path, func(w io.Writer) error { _, err := w.Write(is); return err }); err != nil {
		return fmt.Errorf("%s: %w: it cannot be written: %w", c.path, millrace.ErrForbidden, err)
	}
	return nil
}

// edit gives the text of the file with its lists set. The text is read before
// it is given: it says what the one before says, but for the lists.
func (c *config) edit(was []byte, lists map[string][]string) ([]byte, error) {
	is := was
	for _, key := range slices.Sorted(maps.Keys(lists)) {
		if slices.Equal(lists[key], c.list(key)) && !c.elsewhere(key) {
			continue
		}
		if err := c.decides(key); err != nil {
			return nil, err
		}
		var err error
		if is, err = yamledit.SetList(is, key, lists[key]); err != nil {
			return nil, fmt.Errorf("%s: %w: key %q: %w", c.path, millrace.ErrForbidden, key, err)
		}
	}
	next := &config{lookup: c.lookup, path: c.path}
	if err := next.read(is, c.known); err != nil {
		return nil, fmt.Errorf("%w: %w: %w", millrace.ErrForbidden, yamledit.ErrForm, err)
	}
	for key := range lists {
		if !slices.Equal(next.list(key), lists[key]) {
			return nil, fmt.Errorf("%s: %w: key %q: %w", c.path, millrace.ErrForbidden, key, yamledit.ErrForm)
		}
	}
	if !reflect.DeepEqual(next.others(lists), c.others(lists)) || !reflect.DeepEqual(next.policy, c.policy) {
		return nil, fmt.Errorf("%s: %w: %w", c.path, millrace.ErrForbidden, yamledit.ErrForm)
	}
	return is, nil
}

// list gives the values of a key.
func (c *config) list(key string) []string {
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

// others gives the values of all keys but some.
func (c *config) others(but map[string][]string) map[string]any {
	out := map[string]any{}
	for key, s := range c.keys {
		if _, ok := but[key]; !ok {
			out[key] = s.value
		}
	}
	return out
}

// elsewhere reports whether something other than the file decides about a flag.
func (c *config) elsewhere(key string) bool { return c.decides(key) != nil }

// decides says why it is not the file that decides about a flag; nil = it is.
func (c *config) decides(key string) error {
	if v, ok := c.lookup(variable(key)); ok && v != "" {
		return fmt.Errorf("%w: the environment variable %s decides, and not %s", millrace.ErrForbidden, variable(key), c.path)
	}
	if !c.asked[key] {
		return fmt.Errorf("%w: the command line has --%s, which decides, and not %s", millrace.ErrForbidden, key, c.path)
	}
	return nil
}
