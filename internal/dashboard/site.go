package dashboard

import (
	"context"
	"net/http"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
)

// Site is what the dashboard shows, and what it may change. What is nil is not
// there, and the pages say so.
type Site struct {
	Name string // of the site in the store
	Base string // base URL of the site's pages
	Docs string // base URL of the machine documents
	// ExternalPages: another server answers for the pages, and passes on what machines ask
	// for.
	ExternalPages bool

	Pages store.Site  // the site in its store
	Usage store.Usage // what machines have asked for; nil = nothing is recorded
	Press *edition.Press
	// Gateway returns what answers as machines are answered, in this process,
	// and Key what opens there what needs a key. Neither is asked before the
	// first request.
	Gateway   func() http.Handler
	Key       func() string
	Protocols []protocol.Protocol // those that publish, in the order of the press
	Off       []Off               // those that do not
	Access    *AccessSettings     // who is let in; nil = it is not said

	// Computed returns the last look at the source; nil = there was none yet.
	LastScan func() *SourceScan
	// Dropped returns the number of events that could not be recorded since the
	// start; it may be nil.
	Dropped func() uint64
	// Lags returns the lag of each receiver of events; it may be nil.
	Lags func(context.Context) []analytics.Lag
	// Original returns the HTML that a page was made of, with what extraction
	// was told; nil = the source has no HTML.
	Original func(ctx context.Context, ref millrace.Ref) ([]byte, *extract.Options, error)
	// Rules are those that the pages are extracted by; nil = none.
	Rules *extract.RulesOptions
	// SaveRules writes other selectors into the configuration file, and has the
	// server read it again; nil = there is no such file.
	SaveRules func(ctx context.Context, keep, drop []string) error

	Policy       *millrace.Policy // nil = none
	Keys         store.Keys
	Coefficients savings.Coefficients // zero = those of [savings.Default]
}

// SourceScan is one scan of the source of the site.
type SourceScan struct {
	Time      time.Time // when it was over
	As        string    // how the source was read: folder, crawl, …
	Tally     millrace.Counts
	Requested int           // pages that were asked of the source
	Skipped   []mirror.Skip // at most as many as a report keeps
	SkippedN  int           // all of them
	Err       error         // nil = the whole source could be read
}
