package main

import (
	"bytes"
	"context"
	"errors"
	"os"

	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/internal/verify"
)

type verifyCommand struct {
	commonFlags
	Path      string `arg:"" help:"Store of a site or of mirrors, or folder that build has written."`
	Artifacts string `placeholder:"DIR|URL" help:"Value of --artifacts for serve, if any."`
	Repair    bool   `help:"Remove damaged data. A server then rebuilds it, or a pull fetches it again. build rewrites the files of a folder."`
}

// Run verifies a store or a folder. Damage that is not removed counts as a failure.
func (c *verifyCommand) Run(ctx context.Context, p *process) error {
	r, err := verify.Run(ctx, c.Path, c.Repair, func(ctx context.Context, dsn string) (o *verify.Opened, err error) {
		o = new(verify.Opened)
		if o.Store, err = p.openToRead(ctx, dsn); err != nil {
			return nil, err
		}
		path, _, err := p.companionPath(dsn)
		if _, absent := os.Stat(path + "-files"); err == nil && (c.Artifacts != "" || absent == nil) { // without a folder, every artifact would be reported as missing
			o.Artifacts, err = p.openArtifacts(ctx, c.Artifacts, path, o.Store)
		}
		if err == nil {
			o.Indexes, err = index.Files(path)
		}
		if err != nil {
			return nil, errors.Join(err, o.Store.Close())
		}
		return o, nil
	})
	if err == nil {
		err = p.report(r, func(w *bytes.Buffer) { _ = r.WriteText(w) })
	}
	if err == nil && r.Damaged > r.Removed {
		err = errReported
	}
	return err
}
