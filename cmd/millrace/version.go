package main

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

type versionCommand struct {
	common
}

// versionReport is the report of `millrace version --json`.
type versionReport struct {
	Version  string `json:"version"`            // version of millrace
	Revision string `json:"revision,omitempty"` // revision of the source
	Go       string `json:"go"`                 // version of Go
	Platform string `json:"platform"`           // operating system and architecture
}

// Run prints the version of the build.
func (c *versionCommand) Run(p *process) error {
	r := versionReport{Version: buildVersion(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				r.Revision = s.Value
			}
		}
	}
	return p.report(r, func(w *bytes.Buffer) {
		fmt.Fprintln(w, strings.Join(strings.Fields("millrace "+r.Version+" "+r.Revision+" "+r.Go+" "+r.Platform), " "))
	})
}

// buildVersion returns the version of the build.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
