package agent

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/protocol/all"
)

// WriteText writes reports as text for people. If there are several, it adds their totals.
func WriteText(w io.Writer, reports []*Report) error {
	b := new(bytes.Buffer)
	for _, r := range reports {
		r.writeText(b)
	}
	if len(reports) > 1 {
		writeSums(b, reports)
	}
	_, err := b.WriteTo(w)
	return err
}

func (r *Report) writeText(w *bytes.Buffer) {
	via := ""
	if r.Via != "" {
		via = " via " + all.Label(r.Via)
	}
	interrupted := r.Code == "canceled"
	switch {
	case interrupted:
		via = " interrupted"
	case r.Error != "":
		via = " failed"
	}
	fmt.Fprintf(w, "%s%s: %d added, %d updated, %d deleted, %d unchanged, %d skipped\n", r.Site, via, r.Added, r.Updated, r.Deleted, r.Unchanged, r.SkippedN)
	fmt.Fprintf(w, "  %s, %s received, %.1f s\n", humanize.Quantity(r.Requests, "request"), humanize.Bytes(r.BytesReceived), r.Seconds)
	w.WriteString(r.Savings.Lines("  "))
	w.WriteString(policyText(r))
	w.WriteString(signedText(r))
	if interrupted {
		w.WriteString("  pages read so far are kept, and the next pull continues\n")
	}
	if r.Quota != "" {
		fmt.Fprintf(w, "  ended by %s: pages read so far are kept, and the next pull continues\n", r.Quota)
	}
	if r.UnconfirmedDeletions > 0 {
		fmt.Fprintf(w, "  %d pages are suddenly missing from the list; they are kept until the next pull confirms the loss\n", r.UnconfirmedDeletions)
	}
	if r.Unavailable > 0 && r.Error == "" && r.Quota == "" {
		fmt.Fprintf(w, "  %d pages could not be fetched; pull again\n", r.Unavailable)
	}
	if r.Unconfirmed > 0 {
		fmt.Fprintf(w, "  %s unconfirmed: stored, although the hash or ETag of the site did not match in two fetches\n", humanize.Quantity(int64(r.Unconfirmed), "page"))
	}
	printed := r.Error == "" || interrupted
	for _, way := range r.Ways {
		if way.Error != "" && way.Code != "canceled" && (r.Error != "" || !way.Absent) {
			fmt.Fprintf(w, "  %s, %s: %d pages: %s\n", all.Label(way.Protocol), way.Part, way.Pages, way.Error)
			printed = printed || way.Error == r.Error
		}
	}
	if !printed {
		fmt.Fprintf(w, "  failed: %s\n", r.Error)
	}
	for _, g := range ingest.GroupSkips(r.Skipped) {
		fmt.Fprintf(w, "  %s\n", g.Text("skipped", "pages"))
	}
	if n := len(r.Notes); n > 0 {
		fmt.Fprintf(w, "  %s did not stop the pull; the first: %s: %s (%s)\n", humanize.Quantity(int64(n), "violation"), r.Notes[0].URL, r.Notes[0].Text, r.Notes[0].Rule)
	}
}

// writeSums writes the totals of all sites.
func writeSums(w *bytes.Buffer, reports []*Report) {
	var sum Report
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
	fmt.Fprintf(w, "%d sites: %d added, %d updated, %d deleted, %d unchanged; %s, %s received", len(reports),
		sum.Added, sum.Updated, sum.Deleted, sum.Unchanged, humanize.Quantity(sum.Requests, "request"), humanize.Bytes(sum.BytesReceived))
	if ended > 0 {
		fmt.Fprintf(w, "; %d ended by a quota", ended)
	}
	if failed > 0 {
		fmt.Fprintf(w, "; %d failed", failed)
	}
	w.WriteByte('\n')
}

// policyText returns a line about the parts of the policy that a user must know, or "".
func policyText(r *Report) string {
	if r.PolicyIgnored {
		return "  the site's policy and robots.txt were ignored, because Options.IgnorePolicy is set\n"
	}
	if r.Policy == nil || r.Error != "" {
		return ""
	}
	var asked []string
	if n := len(r.Policy.Requirements); n > 0 {
		asked = append(asked, strings.Join(r.Policy.Requirements, ", ")+" from users of the content")
	}
	if r.Policy.Retention > 0 {
		asked = append(asked, "deletion of copies after "+retentionText(r.Policy.Retention)+" at the latest")
	}
	if r.Policy.Terms != "" {
		asked = append(asked, "compliance with its terms: "+r.Policy.Terms)
	}
	if len(asked) == 0 {
		return ""
	}
	return "  the site asks for " + strings.Join(asked, "; ") + " (" + strings.Join(r.Policy.Documents, ", ") + ")\n"
}

// signedText returns a line about the verified signatures of the site, or "".
func signedText(r *Report) string {
	if r.Signed == nil {
		return ""
	}
	text := fmt.Sprintf("  %s with a valid signature of the site", humanize.Quantity(r.Signed.Verified, "response"))
	if n := r.Signed.Invalid; n > 0 {
		text += fmt.Sprintf("; %d rejected for an invalid signature", n)
	}
	if n := r.Signed.Unverified; n > 0 {
		text += fmt.Sprintf("; %d by a key that the site does not publish", n)
	}
	return text + "\n"
}

// retentionText formats a number of seconds as days if possible.
func retentionText(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d == 24*time.Hour:
		return "a day"
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return d.String()
}
