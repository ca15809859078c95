package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/replace"
	"github.com/millrace/millrace/internal/webauth"
)

// keysSignCommand creates a signing key.
type keysSignCommand struct {
	commonFlags
	File string `arg:"" help:"File to write the private key to, as PEM. It must not exist."`
}

// Run creates a signing key.
func (c *keysSignCommand) Run(_ context.Context, p *process) error {
	key, err := webauth.NewKey(nil)
	if err != nil {
		return err
	}
	text, err := key.PEM()
	if err != nil {
		return err
	}
	if err := replace.New(c.File, text, 0o600); errors.Is(err, fs.ErrExist) {
		return usageError(c.File + ": the file exists, and overwriting it would lose its key; name another file")
	} else if err != nil {
		return err
	}
	return p.report(signKeyReport{c.File, key.ID()}, func(w *bytes.Buffer) {
		if !c.Quiet {
			fmt.Fprintln(p.stderr, "Publish it with millrace keys directory, or millrace serve --sign-directory. Keep the file secret.")
		}
		fmt.Fprintln(w, key.ID())
	})
}

// signKeyReport is the report of `millrace keys sign --json`.
type signKeyReport struct {
	File string `json:"file"`  // the file of the private key
	ID   string `json:"keyid"` // the thumbprint of the public key, which signatures name
}

// keysDirectoryCommand writes a key directory.
type keysDirectoryCommand struct {
	commonFlags
	File    []string `arg:"" help:"Files with private or public signing keys."`
	Out     string   `placeholder:"FILE" help:"File to write the directory to (default: standard output)."`
	BaseURL string   `name:"base-url" placeholder:"URL" help:"Host that will publish the directory, such as https://bot.example.com. The command also prints header fields for the response: signatures of the directory for that host, valid for 90 days."`
}

// proofLife is the time for which the signatures of a directory are valid.
const proofLife = 90 * 24 * time.Hour

// directoryReport is the report of `millrace keys directory --json`.
type directoryReport struct {
	Path    string      `json:"path"`              // path at which to publish the directory
	Type    string      `json:"type"`              // media type of the directory
	Keys    []string    `json:"keys"`              // key IDs in the directory
	Header  http.Header `json:"header,omitempty"`  // header fields to send with the directory
	Expires *time.Time  `json:"expires,omitempty"` // when the signatures expire
	Body    string      `json:"body"`              // the directory
}

// Run writes a key directory.
func (c *keysDirectoryCommand) Run(_ context.Context, p *process) error {
	var set webauth.KeySet
	base, at := "https://localhost/", "https://YOUR-HOST"
	if c.BaseURL != "" {
		root, err := siteRoot(c.BaseURL)
		if err != nil {
			return usageError("--base-url: " + err.Error())
		}
		base, at = root, strings.TrimSuffix(root, "/")
	}
	r := directoryReport{Path: webauth.DirectoryPath, Type: webauth.DirectoryType}
	for _, file := range c.File {
		if err := set.Read(file); err != nil {
			return usageError(err.Error())
		}
	}
	d, err := webauth.NewDirectory(base, set.Signers, set.Public)
	if err != nil {
		return err
	}
	keys, err := webauth.ParseDirectory(d.Body())
	if err != nil {
		return err
	}
	for _, k := range keys {
		r.Keys = append(r.Keys, k.ID)
	}
	r.Body = string(d.Body())
	if c.BaseURL != "" {
		until := time.Now().Add(proofLife).UTC().Truncate(time.Second)
		if r.Header, err = d.Proof(proofLife); err != nil {
			return err
		}
		r.Header["Content-Type"], r.Expires = []string{r.Type}, &until
	}
	if c.Out != "" {
		if err := os.WriteFile(c.Out, d.Body(), 0o644); err != nil { //nolint:gosec // a public file
			return err
		}
	}
	return p.report(r, func(w *bytes.Buffer) {
		if !c.Quiet {
			fmt.Fprintf(p.stderr, "Publish this at %s%s, as %s.\n", at, r.Path, r.Type)
			for _, name := range slices.Sorted(maps.Keys(r.Header)) {
				fmt.Fprintf(p.stderr, "%s: %s\n", name, r.Header.Get(name))
			}
			if r.Expires != nil {
				fmt.Fprintf(p.stderr, "The signatures are valid until %s.\n", r.Expires.Format(time.DateOnly))
			}
		}
		if c.Out == "" {
			w.WriteString(r.Body) // the signatures cover these bytes, without a line end
		}
	})
}
