package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/config"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/store"
)

// keysCommand contains the commands for access keys and signing keys.
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
	commonFlags
	Source string `arg:"" optional:"" help:"SOURCE of serve. The keys are in its store."`
	As     string `enum:",${origins},mirror" default:"" placeholder:"KIND" help:"Value of --as for serve, if any."`
	Store  string `placeholder:"FILE|URL" help:"Value of --store for serve, if any."`
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

type keysAddCommand struct {
	Name string `arg:"" help:"Name of the key's holder."`
	keyStore
	Scope   []string `default:"read" placeholder:"SCOPE" help:"Scopes of the key: read (read content) and update (report changed pages) (default: ${default})."`
	KeyFile string   `placeholder:"FILE" help:"File with your own key in its first line, at least 32 random characters; - is standard input (default: a new key)."`
	Expires string   `placeholder:"WHEN" help:"When the key expires: after a time, such as 90d or 12h, or on a day, such as 2027-01-31 (default: never)."`
}

// Run creates a key.
func (c *keysAddCommand) Run(ctx context.Context, p *process) (err error) {
	now := time.Now()
	k := store.Key{Name: c.Name}
	if k.Expires, err = config.ParseExpiry(c.Expires, now); err != nil {
		return usageError("--expires " + err.Error())
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
	r := access.ReportKeys([]store.Key{k}, now)[0]
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

type keysListCommand struct {
	keyStore
}

// Run lists the keys.
func (c *keysListCommand) Run(ctx context.Context, p *process) (err error) {
	path, err := c.file(p)
	if err != nil {
		return err
	}
	s, err := p.openToRead(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	keys, err := s.Keys().List(ctx)
	if err != nil {
		return err
	}
	reports := access.ReportKeys(keys, time.Now())
	return p.report(reports, func(w *bytes.Buffer) { access.WriteKeys(w, reports) })
}

type keysRevokeCommand struct {
	Name string `arg:"" help:"Name of the key."`
	keyStore
}

// Run revokes a key.
func (c *keysRevokeCommand) Run(ctx context.Context, p *process) (err error) {
	if strings.Contains(c.Name, store.KeyPrefix) {
		// Do not repeat the argument, because errors may be logged.
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
