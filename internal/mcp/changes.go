package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// Limits of a list of changes.
const (
	usualChanges = 50
	maxChanges   = 200
)

type changesIn struct {
	Site  string `json:"site"`
	Since string `json:"since"`
	Limit int    `json:"limit"`
}

// changesOut is a part of the list of changes.
type changesOut struct {
	Site    string    `json:"site"`
	Changes []change  `json:"changes" jsonschema:"the changes, oldest first, each page once with its last change; without since, every page in the order of the URLs"`
	More    bool      `json:"more" jsonschema:"whether more changes follow: call again with since = cursor"`
	Cursor  string    `json:"cursor" jsonschema:"store it and pass it as since to get later changes"`
	Terms   *TermsOut `json:"terms,omitempty" jsonschema:"the site's terms for the use of its content"`
}

type change struct {
	Kind  string `json:"kind" jsonschema:"added, updated or deleted"`
	URL   string `json:"url"`
	Title string `json:"title,omitempty"`
	Time  string `json:"time,omitempty" jsonschema:"RFC 3339: when this server learned of the change; without since, when the page last changed"`
}

func (s *Server) addChanges() {
	add(s, &sdk.Tool{
		Name: "list_changes", Title: "List changes",
		Description: "Lists the pages of a site that were added, updated or deleted since a cursor of an earlier call, or since a time. Without since, it lists every page. Long lists come in parts. Keep the last cursor: the next call with it lists the newer changes.",
	}, []argument{
		{name: "site", most: maxName, about: "The site's name from list_sites. Optional if there is only one site."},
		{name: "since", most: 8000, about: "A cursor of list_changes or list_sites, or a time such as 2026-01-31 or 2026-01-31T12:00:00Z."},
		{name: "limit", integer: true, least: 1, most: maxChanges, usual: usualChanges, about: "Maximum number of changes."},
	}, s.changes)
}

// mark is a position in the list of changes. A cursor is an encoded mark.
type mark struct {
	Site  string `json:"n"`           // sum of the site's name
	Epoch string `json:"e"`           // epoch of the log
	Seq   uint64 `json:"s"`           // sequence number up to which changes were sent, or are being sent
	All   bool   `json:"l,omitempty"` // every page is being sent, from a state that is not older than Seq
	After string `json:"a,omitempty"` // with All: the last URL that was sent
	Last  string `json:"u,omitempty"` // without All: sum of the last URL that was sent from the transaction after Seq
}

// markPrefix is the prefix of a cursor.
const markPrefix = "m1-"

func (m mark) String() string {
	b, err := json.Marshal(m)
	if err != nil {
		panic("mcp: encode plain values: " + err.Error())
	}
	return markPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// sum returns a short hash of a text.
func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:8])
}

// start returns the mark of the current state of a site.
func start(site *Site) mark {
	info := site.View.Site()
	return mark{Site: sum(site.Name), Epoch: info.Epoch, Seq: info.Seq}
}

// markOf returns the position for the argument since of list_changes: a cursor, a time, or "".
func markOf(ctx context.Context, site *Site, since string) (mark, error) {
	here := start(site)
	since = strings.TrimSpace(since)
	if since == "" {
		here.All = true
		return here, nil
	}
	if digits, ok := strings.CutPrefix(since, markPrefix); ok {
		var m mark
		b, err := base64.RawURLEncoding.DecodeString(digits)
		if err == nil {
			err = json.Unmarshal(b, &m)
		}
		switch {
		case err != nil:
			return m, advise("bad-cursor", "invalid cursor; pass it unchanged, or pass a time, or omit since to start over")
		case m.Site != here.Site:
			return m, advise("other-site", "the cursor belongs to another site; pass the site that returned it")
		case !site.View.Site().Has(m.Epoch, m.Seq) || m.Seq > here.Seq:
			return m, errOver
		}
		m.Epoch = here.Epoch
		return m, nil
	}
	var at time.Time
	err := errors.New("unknown time format")
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, time.DateOnly} {
		if at, err = time.Parse(form, since); err == nil {
			break
		}
	}
	if err != nil {
		return here, advise("bad-time", "since %q is neither a cursor nor a time; write a time such as 2026-01-31T12:00:00Z", short(since))
	}
	here.Seq, err = site.View.SeqAt(ctx, at.Add(-time.Nanosecond))
	return here, err
}

var errOver = advice{"conflict", "the cursor belongs to another state of the mirror, or is older than the log; omit since to list every page, and drop the pages that are not in that list"}

// changes runs the tool list_changes.
func (s *Server) changes(ctx context.Context, c *call, in changesIn) (*changesOut, string, error) {
	site, err := c.site(ctx, in.Site)
	if err != nil {
		return nil, "", err
	}
	m, err := markOf(ctx, site, in.Since)
	if err != nil {
		return nil, "", err
	}
	out := &changesOut{Site: canon.Visible(site.Name), Changes: []change{}, Terms: termsOf(site.Terms)}
	if m.All {
		err = out.every(ctx, site, m, in.Limit)
	} else {
		err = out.since(ctx, site, m, in.Limit)
	}
	if errors.Is(err, millrace.ErrConflict) {
		err = errOver
	}
	if err != nil {
		return nil, "", err
	}
	c.annotate(millrace.Subject{PageCount: int64(len(out.Changes))})
	return out, out.text(), nil
}

// every lists the next pages, in the order of their URLs. With the cursor of the last part, the
// next call lists the changes since the first part.
func (o *changesOut) every(ctx context.Context, site *Site, m mark, limit int) error {
	for p, err := range site.View.Scan(ctx, millrace.Scan{Order: millrace.ByURL, After: m.After, Limit: limit + 1}) {
		if err != nil {
			return err
		}
		if len(o.Changes) == limit {
			o.More = true
			break
		}
		o.Changes = append(o.Changes, change{Kind: "added", URL: address(p.URL), Title: line(p.Title), Time: date(p.Modified)})
		m.After = p.URL
	}
	if !o.More {
		m.All, m.After = false, ""
		o.More = m.Seq < site.View.Site().Seq // the site has changed since the first part
	}
	o.Cursor = m.String()
	return nil
}

// since lists the changes of the log after a position. Entries of one transaction have the same
// time, and views do not show their sequence numbers. A cursor inside a transaction therefore
// contains the last URL that was sent.
func (o *changesOut) since(ctx context.Context, site *Site, m mark, limit int) error {
	info := site.View.Site()
	skip, err := known(ctx, site, m)
	if err != nil {
		return err
	}
	var last string
	var at time.Time // time of the last entry
	for ch, err := range site.View.Changes(ctx, info.At(m.Seq)) {
		if err != nil {
			return err
		}
		if ch.Kind == millrace.KindCheckpoint {
			break
		}
		if skip {
			skip = sum(ch.URL) != m.Last
			last, at = ch.URL, ch.Time
			continue
		}
		if ch.Kind == millrace.Delete && ch.New {
			continue // added and deleted since the position
		}
		if len(o.Changes) == limit {
			o.More = true
			break
		}
		one := change{Kind: "updated", URL: address(ch.URL), Time: date(ch.Time)}
		switch {
		case ch.Kind == millrace.Delete:
			one.Kind = "deleted"
		case ch.New:
			one.Kind = "added"
		}
		o.Changes = append(o.Changes, one)
		last, at = ch.URL, ch.Time
	}
	if !o.More {
		o.Cursor = start(site).String()
		return nil
	}
	if m.Seq, err = site.View.SeqAt(ctx, at.Add(-time.Nanosecond)); err != nil {
		return err
	}
	m.Last = sum(last)
	o.Cursor = m.String()
	return nil
}

// known reports whether the last entry of a mark is still in the log. If so, that entry and the
// entries before it were sent. If its page has changed since, the entry is gone, and the whole
// transaction is sent again.
func known(ctx context.Context, site *Site, m mark) (bool, error) {
	if m.Last == "" {
		return false, nil
	}
	var first time.Time
	for ch, err := range site.View.Changes(ctx, site.View.Site().At(m.Seq)) {
		switch {
		case err != nil:
			return false, err
		case ch.Kind == millrace.KindCheckpoint:
			return false, nil
		case first.IsZero():
			first = ch.Time
		}
		if !ch.Time.Equal(first) {
			return false, nil
		}
		if sum(ch.URL) == m.Last {
			return true, nil
		}
	}
	return false, nil
}

// text returns the changes as text for a model.
func (o *changesOut) text() string {
	var head, in strings.Builder
	if len(o.Changes) == 0 {
		return fmt.Sprintf("Nothing has changed in %s since then. Keep the cursor for the next call: %s", o.Site, o.Cursor)
	}
	fmt.Fprintf(&head, "%d changes of %s. ", len(o.Changes), o.Site)
	if o.More {
		fmt.Fprintf(&head, "More changes follow: call list_changes with since %q. ", o.Cursor)
	} else {
		fmt.Fprintf(&head, "The list is complete. For later changes, keep the cursor %q and pass it as since. ", o.Cursor)
	}
	if says := o.Terms.sentence(); says != "" {
		head.WriteString(says + " ")
	}
	for _, ch := range o.Changes {
		fmt.Fprintf(&in, "%s %s %s", ch.Kind, ch.Time, ch.URL)
		if ch.Title != "" {
			in.WriteString(" " + ch.Title)
		}
		in.WriteByte('\n')
	}
	return fenced(strings.TrimSuffix(head.String(), " "), in.String())
}
