package main

import (
	"fmt"
	"io"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/internal/webauth"
	"github.com/millrace/millrace/mirror"
)

// pullReport is what `millrace pull --json` prints of one site.
type pullReport struct {
	Site          string           `json:"site"`
	Via           string           `json:"via,omitempty"`
	Ways          []way            `json:"ways"`
	Why           string           `json:"why,omitempty"` // that the way was chosen; "" = it was named
	Added         int              `json:"added"`
	Updated       int              `json:"updated"`
	Deleted       int              `json:"deleted"`
	Unchanged     int              `json:"unchanged"`
	Doubted       int              `json:"doubted,omitempty"`     // absent, not believed yet
	Missed        int              `json:"missed,omitempty"`      // could not be had for now
	Unconfirmed   int              `json:"unconfirmed,omitempty"` // pages of this pull that do not match the hash that they came with
	Skipped       []mirror.Skip    `json:"skipped"`
	Notes         []protocolNote   `json:"notes,omitempty"` // what was odd but no reason to stop
	Requests      int64            `json:"requests"`
	BytesReceived int64            `json:"bytes_received"`
	BytesSaved    int64            `json:"bytes_saved"`
	TokensSaved   int64            `json:"tokens_saved"`
	Savings       *savings.Saved   `json:"savings,omitempty"`
	Summary       string           `json:"savings_summary,omitempty"` // of Savings, in words
	Seconds       float64          `json:"seconds"`
	Purpose       millrace.Purpose `json:"purpose"`
	Policy        *policyReport    `json:"policy,omitempty"`         // nil = the site has none, or it was not asked for
	PolicyIgnored bool             `json:"policy_ignored,omitempty"` // --ignore-policy
	GoOn          *time.Time       `json:"go_on_after,omitempty"`    // when the site wants no more requests before
	Quota         string           `json:"quota,omitempty"`          // that has ended it; the next pull goes on
	Signed        *webauth.Sealed  `json:"signed,omitempty"`         // nil = the site signs nothing
	Error         string           `json:"error,omitempty"`
	Code          string           `json:"code,omitempty"` // of the error, as millrace.ErrorCode has it

	skipped int    // all, also those that the report leaves out
	meter   *meter // while it is pulled
}

// way is one protocol that was tried for a part of a site.
type way struct {
	Protocol string `json:"protocol"`
	Part     string `json:"part"`
	Pages    int    `json:"pages"`
	Error    string `json:"error,omitempty"`
	Code     string `json:"code,omitempty"`

	absent bool // the site does not have the protocol
}

type protocolNote struct {
	Rule string `json:"rule"`
	URL  string `json:"url"`
	Text string `json:"text"`
}

const maxNotes = 1000

// printPull prints reports for a person.
func printPull(w io.Writer, reports []*pullReport) error {
	var b []byte
	for _, r := range reports {
		b = r.appendText(b)
	}
	if len(reports) > 1 {
		b = appendSums(b, reports)
	}
	_, err := w.Write(b)
	return err
}

func (r *pullReport) appendText(b []byte) []byte {
	via := ""
	if r.Via != "" {
		via = " by " + label(r.Via)
	}
	if r.Error != "" {
		via = " failed"
	}
	b = fmt.Appendf(b, "%s%s: %d added, %d updated, %d deleted, %d unchanged, %d skipped\n", r.Site, via, r.Added, r.Updated, r.Deleted, r.Unchanged, r.skipped)
	b = fmt.Appendf(b, "  %s, %s received, %.1f s\n", humanize.Quantity(r.Requests, "request"), humanize.Bytes(r.BytesReceived), r.Seconds)
	b = appendSaved(b, "  ", r.Savings)
	b = append(b, r.policyText()...)
	b = append(b, r.signedText()...)
	if r.Quota != "" {
		b = fmt.Appendf(b, "  ended by %s: what was taken is kept, and the next pull goes on\n", r.Quota)
	}
	if r.Doubted > 0 {
		b = fmt.Appendf(b, "  %d pages are suddenly missing from the list; they are kept until the next pull says the same\n", r.Doubted)
	}
	if r.Missed > 0 && r.Error == "" && r.Quota == "" {
		b = fmt.Appendf(b, "  %d pages could not be had; pull again\n", r.Missed)
	}
	if r.Unconfirmed > 0 {
		b = fmt.Appendf(b, "  %s unconfirmed: accepted, though not matching the hash or ETag that the site gives, twice\n", humanize.Quantity(int64(r.Unconfirmed), "page"))
	}
	said := r.Error == ""
	for _, way := range r.Ways {
		if way.Error != "" && (r.Error != "" || !way.absent) {
			b = fmt.Appendf(b, "  %s, %s: %d pages: %s\n", label(way.Protocol), way.Part, way.Pages, way.Error)
			said = said || way.Error == r.Error
		}
	}
	if !said {
		b = fmt.Appendf(b, "  failed: %s\n", r.Error)
	}
	for _, g := range ingest.GroupSkips(r.Skipped) {
		b = fmt.Appendf(b, "  %s\n", g.Text("skipped", "pages"))
	}
	if n := len(r.Notes); n > 0 {
		b = fmt.Appendf(b, "  %d things were odd but no reason to stop, the first: %s: %s (%s)\n", n, r.Notes[0].URL, r.Notes[0].Text, r.Notes[0].Rule)
	}
	return b
}

// appendSums adds what all sites have come to.
func appendSums(b []byte, reports []*pullReport) []byte {
	var sum pullReport
	failed, ended := 0, 0
	for _, r := range reports {
		sum.Added, sum.Updated, sum.Deleted, sum.Unchanged = sum.Added+r.Added, sum.Updated+r.Updated, sum.Deleted+r.Deleted, sum.Unchanged+r.Unchanged
		sum.Requests, sum.BytesReceived = sum.Requests+r.Requests, sum.BytesReceived+r.BytesReceived
		if r.Error != "" {
			failed++
		}
		if r.Quota != "" {
			ended++
		}
	}
	b = fmt.Appendf(b, "%d sites: %d added, %d updated, %d deleted, %d unchanged; %s, %s received", len(reports),
		sum.Added, sum.Updated, sum.Deleted, sum.Unchanged, humanize.Quantity(sum.Requests, "request"), humanize.Bytes(sum.BytesReceived))
	if ended > 0 {
		b = fmt.Appendf(b, "; %d ended by a quota", ended)
	}
	if failed > 0 {
		b = fmt.Appendf(b, "; %d failed", failed)
	}
	return append(b, '\n')
}
