package main

import (
	"bytes"
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

type versionCommand struct {
	commonFlags
}

// versionReport is the report of `millrace version --json`.
type versionReport struct {
	Version  string `json:"version"`          // version of millrace
	Commit   string `json:"commit,omitempty"` // commit of the source
	Date     string `json:"date,omitempty"`   // time of the commit
	Go       string `json:"go"`               // version of Go
	Platform string `json:"platform"`         // operating system and architecture
}

// The linker sets these in a release. Otherwise they are empty, and Go's own build information
// is used.
var version, commit, date string

// Run prints the version of the build.
func (c *versionCommand) Run(p *process) error {
	r := versionReport{buildVersion(), commit, date, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				r.Commit = cmp.Or(commit, s.Value)
			case "vcs.time":
				r.Date = cmp.Or(date, s.Value)
			}
		}
	}
	return p.report(r, func(w *bytes.Buffer) {
		fmt.Fprintln(w, strings.Join(strings.Fields("millrace "+r.Version+" "+r.Commit+" "+r.Date+" "+r.Go+" "+r.Platform), " "))
	})
}

// buildVersion returns the version of the build.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	switch {
	case version != "":
		return version
	case ok && info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	}
	return "devel"
}
