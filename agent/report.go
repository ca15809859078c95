package agent

import (
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
)

// Report is the result of one pull of one site. Its JSON form is the output of `millrace pull
// --json`.
type Report struct {
	Site                 string           `json:"site"`
	Via                  string           `json:"via,omitempty"`                   // name of the protocol by which the pages were read
	Ways                 []Way            `json:"ways"`                            // ways that were tried
	Why                  string           `json:"why,omitempty"`                   // why the way was chosen; absent if the user named it
	Added                int              `json:"added"`                           // number of new pages
	Updated              int              `json:"updated"`                         // number of changed pages
	Deleted              int              `json:"deleted"`                         // number of deleted pages
	Unchanged            int              `json:"unchanged"`                       // number of unchanged pages
	UnconfirmedDeletions int              `json:"unconfirmed_deletions,omitempty"` // pages that were absent for the first time; the next pull deletes them if they are still absent
	Unavailable          int              `json:"unavailable,omitempty"`           // pages that were temporarily unavailable
	Unconfirmed          int              `json:"unconfirmed,omitempty"`           // fetched pages that did not match their hash
	Skipped              []mirror.Skip    `json:"skipped"`                         // pages that were skipped
	Notes                []Note           `json:"notes,omitempty"`                 // violations that did not stop the pull
	Requests             int64            `json:"requests"`                        // number of requests
	BytesReceived        int64            `json:"bytes_received"`                  // bytes received, with header fields
	BytesSaved           int64            `json:"bytes_saved"`                     // bytes saved compared with fetching HTML
	TokensSaved          int64            `json:"tokens_saved"`                    // tokens saved compared with fetching HTML
	Savings              *Savings         `json:"savings,omitempty"`               // costs and savings of the pull
	Summary              string           `json:"savings_summary,omitempty"`       // the savings as a sentence
	Seconds              float64          `json:"seconds"`
	Purpose              millrace.Purpose `json:"purpose"`                  // intended use of the content
	Policy               *Policy          `json:"policy,omitempty"`         // policy of the site; absent if the site has none
	PolicyIgnored        bool             `json:"policy_ignored,omitempty"` // the policy was not obeyed
	ContinueAfter        *time.Time       `json:"continue_after,omitempty"` // time until which the site accepts no more requests
	Quota                string           `json:"quota,omitempty"`          // limit that ended the pull; the next pull continues
	Signed               *VerifyCounts    `json:"signed,omitempty"`         // results of verifying the site's signatures; absent if the site signs nothing
	Error                string           `json:"error,omitempty"`
	Code                 string           `json:"code,omitempty"`

	Err      error `json:"-"` // error that ended the pull; nil = success
	SkippedN int   `json:"-"` // number of skipped pages; Skipped lists the first of them
}

// Way is one protocol that was tried for a part of a site.
type Way struct {
	Protocol string `json:"protocol"`
	Part     string `json:"part"` // part of the site for which the protocol was used, such as "all"
	Pages    int    `json:"pages"`
	Error    string `json:"error,omitempty"`
	Code     string `json:"code,omitempty"`

	Absent bool `json:"-"` // the site does not have the protocol
}

// Note is a violation of a specification that did not stop the pull.
type Note struct {
	Rule string `json:"rule"` // ID of the violated rule
	URL  string `json:"url"`
	Text string `json:"text"` // what is wrong
}

const maxNotes = 1000

// Progress describes the progress of one way in the pull of one site.
type Progress struct {
	Site string
	Via  string // name of a protocol, or Crawl
	// Done is the number of finished pages, and Found the number of pages found so far. Both only
	// grow.
	Done, Found int
	// Expected is the expected minimum number of pages of the site, or 0 if unknown.
	Expected int
	Ended    bool // reading has ended; no more progress follows

	received func() int64
}

// Received returns the number of bytes that the pull has received so far.
func (p Progress) Received() int64 { return p.received() }
