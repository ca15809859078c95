package static

import (
	"slices"
	"strings"

	"github.com/millrace/millrace"
)

// Report is the result of a build.
type Report struct {
	Written           int               `json:"written"`            // files that are new or have changed
	Unchanged         int               `json:"unchanged"`          // files that have not changed
	Removed           int               `json:"removed"`            // files of the last build that were removed
	Bytes             int64             `json:"bytes"`              // size of all files
	Sizes             []Size            `json:"sizes"`              // size of the files by protocol; the site's own files are first
	WrittenFiles      []string          `json:"written_files"`      // names of written files, at most 1000
	RemovedFiles      []string          `json:"removed_files"`      // names of removed files, at most 1000
	LeftOut           []LeftOutDocument `json:"left_out"`           // documents without a file, at most 1000
	LeftOutCount      int               `json:"left_out_count"`     // number of documents without a file
	Separate          int               `json:"separate"`           // number of documents that a server finds only by an additional rule
	Rules             int               `json:"header_rules"`       // number of rules for header fields in the configuration for the host
	IncompleteHeaders int               `json:"incomplete_headers"` // number of documents for which these rules do not set every field
}

// NewReport returns an empty report.
func NewReport() Report {
	return Report{WrittenFiles: []string{}, RemovedFiles: []string{}, LeftOut: []LeftOutDocument{}, Sizes: []Size{}}
}

// Size is the number and size of one protocol's files.
type Size struct {
	Protocol string `json:"protocol,omitempty"` // absent for the site's own pages and other files
	Files    int    `json:"files"`              // number of files
	Bytes    int64  `json:"bytes"`              // size of the files
}

// LeftOutDocument is a path that has no file, or an incomplete one.
type LeftOutDocument struct {
	Path     string `json:"url"`                // path below the base URL
	Protocol string `json:"protocol,omitempty"` // protocol of the document; absent for the site's own pages
	Code     string `json:"code"`               // code of the reason
	Reason   string `json:"reason"`
}

// maxNames is the maximum number of names of one kind in a report.
const maxNames = 1000

func some(names []string, name string) []string {
	if len(names) < maxNames {
		names = append(names, name)
	}
	return names
}

// LeaveOut reports one of the site's own files that the build omits.
func (r *Report) LeaveOut(path string, err error) {
	r.leave(path, "", millrace.ErrorCode(err), err.Error())
}

func (r *Report) leave(path, proto, code, reason string) {
	if r.LeftOutCount++; r.LeftOutCount <= maxNames {
		r.LeftOut = append(r.LeftOut, LeftOutDocument{path, proto, code, reason})
	}
}

func (r *Report) count(name, proto string, size int64, changed bool) {
	r.Bytes += size
	i, found := slices.BinarySearchFunc(r.Sizes, proto, func(s Size, proto string) int { return strings.Compare(s.Protocol, proto) })
	if !found {
		r.Sizes = slices.Insert(r.Sizes, i, Size{Protocol: proto})
	}
	r.Sizes[i].Files++
	r.Sizes[i].Bytes += size
	if !changed {
		r.Unchanged++
		return
	}
	r.Written++
	r.WrittenFiles = some(r.WrittenFiles, name)
}
