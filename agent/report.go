package agent

import (
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/webauth"
	"github.com/millrace/millrace/mirror"
)

// Report is the result of one pull of one site. In JSON it is what
// `millrace pull --json` prints.
type Report struct {
	Site          string           `json:"site"`
	Via           string           `json:"via,omitempty"`
	Ways          []Way            `json:"ways"`
	Why           string           `json:"why,omitempty"` // that the way was chosen; "" = it was named
	Added         int              `json:"added"`
	Updated       int              `json:"updated"`
	Deleted       int              `json:"deleted"`
	Unchanged     int              `json:"unchanged"`
	Doubted       int              `json:"doubted,omitempty"`     // Absent, not believed yet
	Missed        int              `json:"missed,omitempty"`      // could not be had for now
	Unconfirmed   int              `json:"unconfirmed,omitempty"` // pages of this pull that do not match the hash that they came with
	Skipped       []mirror.Skip    `json:"skipped"`
	Notes         []Note           `json:"notes,omitempty"` // violations that did not stop the pull
	Requests      int64            `json:"requests"`
	BytesReceived int64            `json:"bytes_received"`
	BytesSaved    int64            `json:"bytes_saved"`
	TokensSaved   int64            `json:"tokens_saved"`
	Savings       *Savings         `json:"savings,omitempty"`
	Summary       string           `json:"savings_summary,omitempty"` // of Savings, in words
	Seconds       float64          `json:"seconds"`
	Purpose       millrace.Purpose `json:"purpose"`
	Policy        *Policy          `json:"policy,omitempty"` // nil = the site has none, or it was not asked for
	PolicyIgnored bool             `json:"policy_ignored,omitempty"`
	GoOn          *time.Time       `json:"go_on_after,omitempty"` // when the site wants no more requests before
	Quota         string           `json:"quota,omitempty"`       // that has ended it; the next pull goes on
	Signed        *webauth.VerifyCounts  `json:"signed,omitempty"`      // nil = the site signs nothing
	Error         string           `json:"error,omitempty"`
	Code          string           `json:"code,omitempty"` // of the error, as millrace.ErrorCode has it

	Err      error `json:"-"` // that the pull ended with; nil = none
	SkippedN int   `json:"-"` // all pages that were skipped; Skipped has the first of them
}

// Way is one protocol that was tried for a part of a site.
type Way struct {
	Protocol string `json:"protocol"`
	Part     string `json:"part"`
	Pages    int    `json:"pages"`
	Error    string `json:"error,omitempty"`
	Code     string `json:"code,omitempty"`

	Absent bool `json:"-"` // the site does not have the protocol
}

// Note is a violation of a specification that did not stop the pull.
type Note struct {
	Rule string `json:"rule"`
	URL  string `json:"url"`
	Text string `json:"text"`
}

const maxNotes = 1000

// Progress is how far one way of the pull of one site has come.
type Progress struct {
	Site string
	Via  string // protocol, or Crawl
	// Done is how many pages are done of the Named ones. Named grows.
	Done, Named int
	// Expected is how many pages the site is expected to have at least, 0 if
	// that is unknown.
	Expected int
	Ended    bool // nothing follows

	received func() int64
}

// Received returns how many bytes the pull has received by now.
func (p Progress) Received() int64 { return p.received() }
