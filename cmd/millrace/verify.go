package main

import (
	"bytes"
	"context"
	"errors"
	"os"

	artifacts "github.com/millrace/millrace/artifact/all"
	"github.com/millrace/millrace/internal/verify"
	"github.com/millrace/millrace/store"
)

type verifyCommand struct {
	common
	Path      string `arg:"" help:"Store of a site or of mirrors, or folder that build has written."`
	Artifacts string `placeholder:"DIR|URL" help:"Value of --artifacts for serve, if any."`
	Repair    bool   `help:"Remove damaged data, so that a server builds it and a pull fetches it again. Files of a folder are written again by build."`
}

// Run verifies a store or a folder. Damage that is not repaired counts as a failure.
func (c *verifyCommand) Run(ctx context.Context, p *process) error {
	r, err := verify.Run(ctx, c.Path, c.Repair, func(ctx context.Context, dsn string) (store.Store, artifacts.Store, error) {
		st, err := p.openToRead(ctx, dsn)
		if err != nil {
			return nil, nil, err
		}
		path, _, err := p.companionPath(dsn)
		var files artifacts.Store
		if _, absent := os.Stat(path + "-files"); err == nil && (c.Artifacts != "" || absent == nil) { // without them, all are missing
			files, err = p.openArtifacts(ctx, c.Artifacts, path, st)
		}
		if err != nil {
			return nil, nil, errors.Join(err, st.Close())
		}
		return st, files, nil
	})
	if err == nil {
		err = p.report(r, func(w *bytes.Buffer) { _ = r.WriteText(w) })
	}
	if err == nil && r.Damaged > r.Repaired {
		err = errReported
	}
	return err
}
