package main

import (
	"fmt"

	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/ingest"
)

// extractFlags holds the flags of commands that extract pages.
type extractFlags struct {
	Keep     []string `placeholder:"SELECTOR" sep:"none" help:"CSS selector of elements that are content, whatever the extractor decides. May be given several times."`
	Drop     []string `placeholder:"SELECTOR" sep:"none" help:"CSS selector of elements that are not content. May be given several times."`
	Comments bool     `help:"Also keep readers' comments on pages that are not forums." hidden:""`
}

// Validate checks the selectors. kong calls it, so that errors name the origin of the selector,
// such as the line of a file.
func (c *extractFlags) Validate() error {
	for i, s := range append(c.Keep[:len(c.Keep):len(c.Keep)], c.Drop...) {
		flag := "--drop"
		if i < len(c.Keep) {
			flag = "--keep"
		}
		if err := extract.CheckSelector(s); err != nil {
			return fmt.Errorf("%s: %.200q is not a supported CSS selector: %w", flag, s, err)
		}
	}
	return nil
}

// rules compiles the flags.
func (c *extractFlags) rules() (*extract.Rules, error) {
	r, err := ingest.Rules(*c).Compile()
	if err != nil {
		return nil, usageError("--keep, --drop: " + err.Error())
	}
	return r, nil
}
