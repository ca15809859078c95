package main

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol/scp"
)

// scpFlags holds the flags of SCP.
type scpFlags struct {
	Sections    []string `placeholder:"PATH" help:"Paths that get their own collections (default: the first segments of all paths)." hidden:""`
	SCPChecksum bool     `name:"scp-checksum" negatable:"" default:"true" help:"Write the checksum into collections (default: yes). Strict readers accept only collections without it." hidden:""`
	FilesURL    string   `name:"files-url" placeholder:"URL" help:"Base URL of collections, such as a CDN (default: the base URL)." hidden:""`
}

func (c *scpFlags) validate() error {
	for _, path := range c.Sections {
		if !strings.HasPrefix(path, "/") || strings.Trim(path, "/") == "" {
			return usageError(fmt.Sprintf("--sections: %q is not a path; a path starts with /, such as /blog", path))
		}
	}
	if c.FilesURL == "" {
		return nil
	}
	u, err := canon.URL(c.FilesURL)
	if err != nil {
		return usageError("--files-url: " + err.Error())
	}
	if strings.Contains(u, "?") {
		return usageError("--files-url: a base URL must not have a query")
	}
	c.FilesURL = strings.TrimSuffix(u, "/")
	return nil
}

func (c *scpFlags) options() *scp.PublisherOptions {
	return &scp.PublisherOptions{Sections: c.Sections, FilesURL: c.FilesURL, NoChecksum: !c.SCPChecksum}
}
