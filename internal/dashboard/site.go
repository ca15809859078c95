package dashboard

import (
	"context"
	"net/http"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/analytics"
	"github.com/millrace/millrace/internal/config"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/replica"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/internal/sitelist"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
)

// SiteOptions are the data sources of the dashboard and the functions that change the site.
// Pages of the dashboard omit nil values, or report them as missing.
type SiteOptions struct {
	Name         string // name of the site in the store
	Base         string // base URL of the site's pages
	EndpointBase string // endpoint base URL
	// ExternalPages reports that another server serves the pages and passes on the requests of
	// bots.
	ExternalPages bool

	Pages  store.Site  // the site in its store
	Usage  store.Usage // the recorded events. If nil, events are not recorded.
	Server *edition.Server
	// Gateway returns the handler of the site in this process, and Key a key for
	// it. Neither is called before the first request.
	Gateway func() http.Handler
	Key     func() string
	// Public configures the client for the site's public address. If nil, protocols are checked
	// only inside this process. OwnRequests returns a function that marks requests as the owner's,
	// and a function to call after the last of them.
	Public      *fetch.Options
	OwnRequests func() (mark func(http.Header), release func())
	Protocols   []protocol.Protocol // published protocols, in the order of the edition
	Off         []Off               // protocols that are off
	Access      *AccessSettings     // nil = unknown

	// LastScan returns the last scan of the source, or nil. Before the first scan of this process,
	// the result has only the pages that an earlier process skipped.
	LastScan func(context.Context) (*SourceScan, error)
	// Replicas returns the processes that serve the site; it may be nil.
	Replicas func(context.Context) ([]replica.Process, error)
	// Fleet returns the sites that watch --all pulls into the store. If nil, there are none.
	Fleet func(context.Context) (*sitelist.Summary, error)
	// Dropped returns the number of events lost since the start; it may be nil.
	Dropped func() uint64
	// Lags returns the backlog of each receiver of events; it may be nil.
	Lags func(context.Context) []analytics.Lag
	// Original returns the HTML of a page with its extraction options. If nil, the source has no
	// HTML.
	Original func(ctx context.Context, ref millrace.Ref) ([]byte, *extract.Options, error)
	// Rules are the extraction rules in use, or nil.
	Rules *extract.RulesOptions
	// Save changes the configuration file and reloads it. If nil, there is no file.
	Save func(context.Context, config.Changes) error

	Policy       *millrace.Policy // may be nil
	Keys         store.Keys
	Coefficients savings.Coefficients // zero = those of [savings.Default]
}

// SourceScan is the result of one scan of the source.
type SourceScan struct {
	Time      time.Time // end of the scan
	As        string    // kind of the source: folder, crawl, …
	Counts    millrace.Counts
	Requested int           // number of pages requested from the source
	Skipped   []mirror.Skip // skipped pages, up to the limit of a mirror.Report
	SkippedN  int           // total number of skipped pages
	Err       error         // If nil, the scan was complete.
}
