package main

import (
	"bytes"
	"context"

	"github.com/millrace/millrace/internal/verify"
)

type verifyCommand struct {
	common
	Path   string `arg:"" help:"Store of a site or of mirrors, or folder that build has written."`
	Repair bool   `help:"Remove what is damaged, so that a server builds it and a pull fetches it again. Files of a folder are written again by build."`
}

// Run verifies a store or a folder. Damage that is not repaired is a failure.
func (c *verifyCommand) Run(ctx context.Context, p *process) error {
	r, err := verify.Run(ctx, c.Path, c.Repair, p.openToRead)
	if err == nil {
		err = p.report(r, func(w *bytes.Buffer) { _ = r.WriteText(w) })
	}
	if err == nil && r.Damaged > r.Repaired {
		err = errReported
	}
	return err
}
