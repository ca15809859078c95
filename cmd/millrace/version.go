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

// versionReport is what `millrace version --json` prints.
type versionReport struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Run prints the version that was built in.
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

// buildVersion gives the version that was built in.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
