package static

import "github.com/millrace/millrace"

// Report says what a build has done.
type Report struct {
	Written   int   `json:"written"`   // files that are new or others than before
	Unchanged int   `json:"unchanged"` // files that were there
	Removed   int   `json:"removed"`   // files of the last build that are gone
	Bytes     int64 `json:"bytes"`     // of all files
	// The names of the files, the first thousand of each kind.
	WrittenFiles []string `json:"written_files"`
	RemovedFiles []string `json:"removed_files"`
	LeftOut      []Left   `json:"left_out"` // what no file could be made of, the first thousand
	LeftOutCount int      `json:"left_out_count"`
	Separate     int      `json:"separate"` // documents that only a server with rules of its own finds
	// Rules counts those of the _headers file.
	Rules int `json:"header_rules"`
	// Unsaid counts the documents of which the _headers file does not say all
	// that should be said, because it has no place for it.
	Unsaid int `json:"headers_unsaid"`
}

// NewReport gives the report of a build that has done nothing.
func NewReport() Report {
	return Report{WrittenFiles: []string{}, RemovedFiles: []string{}, LeftOut: []Left{}}
}

// Left is something that is not in the folder, or not as it should be.
type Left struct {
	Path     string `json:"url"`                // from the root of the base
	Protocol string `json:"protocol,omitempty"` // "" = the site's own
	Code     string `json:"code"`               // of the reason
	Reason   string `json:"reason"`
}

// most is how many names of one kind are in a report.
const most = 1000

func some(names []string, name string) []string {
	if len(names) < most {
		names = append(names, name)
	}
	return names
}

// Leave reports something of the site's own that is not to be added.
func (r *Report) Leave(path string, err error) {
	r.leave(path, "", millrace.ErrorCode(err), err.Error())
}

func (r *Report) leave(path, proto, code, reason string) {
	if r.LeftOutCount++; r.LeftOutCount <= most {
		r.LeftOut = append(r.LeftOut, Left{path, proto, code, reason})
	}
}

func (r *Report) count(name string, size int64, changed bool) {
	r.Bytes += size
	if !changed {
		r.Unchanged++
		return
	}
	r.Written++
	r.WrittenFiles = some(r.WrittenFiles, name)
}
