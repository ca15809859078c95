package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/config"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/store"
)

// keysCommand has the commands for access keys and signing keys.
type keysCommand struct {
	Add       keysAddCommand       `cmd:"" help:"Create a key and print it once."`
	List      keysListCommand      `cmd:"" help:"List the names, scopes and dates of the keys."`
	Revoke    keysRevokeCommand    `cmd:"" help:"Revoke a key."`
	Sign      keysSignCommand      `cmd:"" help:"Create a key that signs requests or responses."`
	Password  keysPasswordCommand  `cmd:"" help:"Create a dashboard password and print it once."`
	Directory keysDirectoryCommand `cmd:"" help:"Write a directory of signing keys for publication."`
}

// keyStore holds the flags that select the store of the keys.
type keyStore struct {
	common
	Source string `arg:"" optional:"" help:"SOURCE of serve, whose store has the keys."`
	As     string `enum:",${origins},mirror" default:"" placeholder:"KIND" help:"Value of --as that serve uses, if any."`
	Store  string `placeholder:"FILE|URL" help:"Value of --store that serve uses, if any."`
}

// file returns the store that serve would use.
func (c *keyStore) file(p *process) (string, error) {
	if c.Store != "" {
		return c.Store, nil
	}
	if c.Source == "" {
		return "", usageError("no store selected; name the SOURCE that is served, or its store with --store FILE")
	}
	s := serveCommand{Source: c.Source, As: c.As}
	kind, err := s.kind()
	if err != nil {
		return "", err
	}
	if kind == ingest.Mirror {
		return c.Source, nil
	}
	name, err := s.storeName(kind)
	if err != nil {
		return "", err
	}
	return p.storePath(name)
}

// open opens the store. It creates the store only if create is set.
func (c *keyStore) open(ctx context.Context, p *process, create bool) (store.Store, error) {
	path, err := c.file(p)
	if err != nil {
		return nil, err
	}
	if !create {
		if err := p.exists(ctx, path); err != nil {
			return nil, err
		}
	}
	return p.openStore(ctx, path)
}

// keyReport is the report of `millrace keys --json` for a key.
type keyReport struct {
	Name    string           `json:"name"`              // name of the key
	Scopes  []millrace.Scope `json:"scopes"`            // scopes of the key
	Created *time.Time       `json:"created,omitempty"` // when it was created
	Expires *time.Time       `json:"expires,omitempty"` // when it expires; absent if never
	Revoked *time.Time       `json:"revoked,omitempty"` // when it was revoked
	Holds   bool             `json:"valid"`             // the key is accepted now
	Key     string           `json:"key,omitempty"`     // the key, only when it is created
}

func reportOf(k store.Key, now time.Time) keyReport {
	date := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	return keyReport{k.Name, k.Scopes, date(k.Created), date(k.Expires), date(k.Revoked), k.Holds(now), ""}
}

type keysAddCommand struct {
	Name string `arg:"" help:"Name of the key's holder."`
	keyStore
	Scope   []string `default:"read" placeholder:"SCOPE" help:"Scopes of the key: read content, update changed pages (default: ${default})."`
	KeyFile string   `placeholder:"FILE" help:"File with your own key in its first line, at least 32 random characters; - is standard input (default: a new key)."`
	Expires string   `placeholder:"WHEN" help:"When the key expires: after a time, such as 90d or 12h, or on a day, such as 2027-01-31 (default: never)."`
}

// Run creates a key.
func (c *keysAddCommand) Run(ctx context.Context, p *process) (err error) {
	now := time.Now()
	k := store.Key{Name: c.Name}
	if k.Expires, err = parseExpiry(c.Expires, now); err != nil {
		return err
	}
	for _, r := range c.Scope {
		k.Scopes = append(k.Scopes, millrace.Scope(r))
	}
	key, own := "", c.KeyFile != ""
	if own {
		k.Hash, err = c.ownKey(p)
	} else {
		key, k.Hash = store.NewKey()
	}
	if err != nil {
		return err
	}
	if err := k.Validate(); err != nil {
		return usageError(err.Error())
	}
	s, err := c.open(ctx, p, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Keys().Add(ctx, k); err != nil {
		return err
	}
	k.Created = now.UTC().Truncate(time.Second)
	r := reportOf(k, now)
	r.Key = key
	return p.report(r, func(w *bytes.Buffer) {
		if own {
			fmt.Fprintf(w, "%s: the key of %s is valid\n", k.Name, c.KeyFile)
			return
		}
		if !c.Quiet {
			fmt.Fprintln(p.stderr, "This is the only time that the key is shown. Send it as the header field Authorization: Bearer KEY.")
		}
		fmt.Fprintln(w, key)
	})
}

// ownKey returns the hash of the key in --key-file. Errors do not contain the key.
func (c *keysAddCommand) ownKey(p *process) (store.KeyHash, error) {
	var b []byte
	var err error
	if c.KeyFile == "-" {
		b, err = io.ReadAll(io.LimitReader(p.stdin, maxKeyFile))
	} else {
		b, err = readStart(c.KeyFile, maxKeyFile)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	hash := store.KeyHash{}
	if err == nil {
		hash, err = store.ReadKey(strings.TrimSpace(line))
	}
	if err != nil {
		return hash, usageError("--key-file: " + err.Error())
	}
	return hash, nil
}

// parseExpiry parses a duration from now or a date. "" = never.
func parseExpiry(s string, now time.Time) (time.Time, error) {
	wrong := usageError(fmt.Sprintf("--expires %q: must be a duration, such as 90d or 12h, or a date, such as 2027-01-31", s))
	if s == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.DateOnly, s)
	if err != nil {
		d, ok := config.ParseSpan(s)
		if !ok || d < time.Second {
			return time.Time{}, wrong
		}
		at = now.Add(d)
	}
	if !at.After(now) {
		return time.Time{}, usageError(fmt.Sprintf("--expires %s: must be in the future", s))
	}
	return at.UTC().Truncate(time.Second), nil
}

type keysListCommand struct {
	keyStore
}

// Run lists the keys.
func (c *keysListCommand) Run(ctx context.Context, p *process) (err error) {
	s, err := c.open(ctx, p, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	keys, err := s.Keys().List(ctx)
	if err != nil {
		return err
	}
	reports := []keyReport{}
	for _, k := range keys {
		reports = append(reports, reportOf(k, time.Now()))
	}
	return p.report(reports, func(w *bytes.Buffer) {
		if len(keys) == 0 {
			fmt.Fprintln(w, "no keys")
			return
		}
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "NAME\tSCOPES\tCREATED\tEXPIRES\tSTATE")
		for i, k := range keys {
			scopes := make([]string, len(k.Scopes))
			for j, r := range k.Scopes {
				scopes[j] = string(r)
			}
			expires, state := "never", "valid"
			if !k.Expires.IsZero() {
				expires = k.Expires.Format("2006-01-02 15:04Z")
			}
			switch {
			case !k.Revoked.IsZero():
				state = "revoked " + k.Revoked.Format("2006-01-02 15:04Z")
			case !reports[i].Holds:
				state = "expired"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", k.Name, strings.Join(scopes, ","), k.Created.Format("2006-01-02 15:04Z"), expires, state)
		}
		_ = t.Flush()
	})
}

type keysRevokeCommand struct {
	Name string `arg:"" help:"Name of the key."`
	keyStore
}

// Run revokes a key.
func (c *keysRevokeCommand) Run(ctx context.Context, p *process) (err error) {
	if strings.Contains(c.Name, store.KeyPrefix) {
		// Do not repeat the argument: errors may be logged.
		return usageError("this looks like a key; use its name, which millrace keys list shows")
	}
	s, err := c.open(ctx, p, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Keys().Revoke(ctx, c.Name); err != nil {
		return err
	}
	return p.report(revokeReport{c.Name}, func(w *bytes.Buffer) {
		fmt.Fprintf(w, "%s is revoked; running servers reject it at once\n", c.Name)
	})
}

// revokeReport is the report of `millrace keys revoke --json`.
type revokeReport struct {
	Revoked string `json:"revoked"` // the name of the key
}
