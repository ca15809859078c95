package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/weblink"
)

const (
	maxAlternate      = 32 << 20 // maximum number of bytes of one page's Markdown
	maxAlternateLinks = 4        // maximum number of links of a page that are tried
	maxHTML           = 1 << 20  // maximum number of bytes of an HTML page that are searched for links

	htmlTypes      = "text/html, */*;q=0.1" // like a browser, because the response may vary
	alternateTypes = "text/markdown, text/plain;q=0.5, */*;q=0.1"
	ownTypes       = "text/markdown, text/html;q=0.1" // for a page's own URL, which may return both
)

// errNoAlternate is the error for a response that is not Markdown, or that is the Markdown of another
// page.
var errNoAlternate = fmt.Errorf("not the page's Markdown: %w", millrace.ErrNotFound)

// Page fetches the Markdown of a page. It tries the last known URL, then the URL from the feed
// or from the rules of the site, then the links of the page itself.
func (r *reader) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	if r.Err != nil {
		return nil, r.Err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	root, err := url.Parse(r.Root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", Name, err, millrace.ErrInvalid)
	}
	name, err := canon.Resolve(root, have.URL)
	if err != nil {
		return nil, fmt.Errorf("%s: page: %w: %w", Name, err, millrace.ErrInvalid)
	}
	page := r.here(name)
	if page == "" {
		return nil, fmt.Errorf("%s: page %s does not belong to the site %s: %w", Name, name, r.Root, millrace.ErrNotFound)
	}
	was := parsePageState(have.Version)
	state, _ := r.listed.Take(name)
	if state != "" && state == was.Listed {
		return nil, fmt.Errorf("%s: page %s: the list entry has not changed: %w", Name, name, millrace.ErrUnmodified)
	}
	hint, _ := r.hinted.Take(name)
	var got *alternate
	if was.At != "" && (hint == "" || hint == was.At) {
		got, err = r.ask(ctx, was.At, page, was.Validators)
		if err == nil || errors.Is(err, millrace.ErrUnmodified) {
			r.learn(page, was.At, false)
		}
	}
	if was.At == "" || hint != "" && hint != was.At || err != nil && absent(err) {
		got, err = r.seek(ctx, page, hint, true)
	}
	if got != nil && older(state, was.Listed, got, err != nil) {
		r.recordOutdated(name, state, got)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: page: %w", Name, err)
	}
	p := got.page
	p.URL, p.Version = name, pageState{r.settled(state, got.modified), got.at, got.Validators}.encode()
	return p, nil
}

// pageState is the version of a page: its state in a list, and the URL and the validators of its
// Markdown. If the state in the list is unchanged, no request is needed. Otherwise, the request is
// conditional.
type pageState struct {
	Listed string `json:"listed,omitempty"`
	At     string `json:"at"`
	fetch.Validators
}

func (h pageState) encode() string {
	b, err := json.Marshal(h)
	if err != nil {
		panic("web: cannot encode page state: " + err.Error())
	}
	return string(b)
}

func parsePageState(version string) (h pageState) {
	if json.Unmarshal([]byte(version), &h) != nil {
		return pageState{}
	}
	return h
}

// older reports whether the fetched page is older than its state in a list. If both times are
// known, it compares them. Otherwise, the page is older if it did not change although its state in
// the list did. If it had no earlier state, the new state must come from a feed. A response without
// a time that was sent before the time in the list may be older, because a server whose clock is
// behind that of its store omits times in the future.
func older(state, was string, got *alternate, unmodified bool) bool {
	at, err := time.Parse(time.RFC3339Nano, state)
	if err == nil && !got.modified.IsZero() {
		return got.modified.Before(at.Truncate(time.Second))
	}
	if err == nil && at.After(got.sent) {
		return true
	}
	return unmodified && state != "" && (err != nil || was != "")
}

// slack is a margin: if a page is fetched within this time after its time in a list, another
// version of the page may have the same time.
const slack = 2 * time.Second

// settled returns the state of a page in a list, if the fetched page is not older. If another
// version could have the same time, it returns "".
func (r *reader) settled(state string, modified time.Time) string {
	at, err := time.Parse(time.RFC3339Nano, state)
	if err != nil || !modified.IsZero() && modified.Before(at.Truncate(time.Second)) {
		return ""
	}
	if at.Equal(at.Truncate(24 * time.Hour)) {
		at = at.Add(24 * time.Hour) // most likely a date without a time
	}
	if r.o.Now().Before(at.Add(slack)) {
		return ""
	}
	return state
}

// alternate is the fetched Markdown of a page.
type alternate struct {
	page *millrace.Page
	at   string
	fetch.Validators
	modified time.Time // zero = unknown
	sent     time.Time // time of the response
	size     int64     // transferred bytes
}

// counting counts the bytes that are read from a body.
type counting struct {
	io.ReadCloser
	n int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n += int64(n)
	return n, err
}

// seek finds the Markdown of a page. hint is the URL of the Markdown according to a feed. If guess
// is set and nothing is known about the site, seek also tries the usual names.
func (r *reader) seek(ctx context.Context, page, hint string, guess bool) (*alternate, error) {
	m := r.manner()
	tried := map[string]bool{}
	try := func(at string, guessed bool) (*alternate, error) {
		if at == "" || tried[at] || r.here(at) == "" {
			return nil, errNoAlternate
		}
		tried[at] = true
		got, err := r.ask(ctx, at, page, fetch.Validators{})
		if err == nil {
			r.learn(page, at, guessed)
		}
		return got, err
	}
	names := []string{hint, m.alternate(page)}
	if m.Guess && names[1] == "" && r.guesses(page) {
		names = append(names, usualNames(page)...)
	}
	for _, at := range names {
		if got, err := try(at, m.Guess); err == nil || !absent(err) {
			return got, err
		}
	}
	if m.Accept && len(m.Names) == 0 {
		return try(page, false)
	}
	links, err := r.links(ctx, page)
	switch {
	case err != nil && (!absent(err) || !m.known()):
		return nil, err
	case err != nil:
		links = &pageLinks{} // the page may have Markdown nevertheless
	}
	for _, l := range links.alternates {
		if got, err := try(l, false); err == nil || !absent(err) {
			return got, err
		}
	}
	if m.Accept || !m.known() {
		if got, err := try(page, false); err == nil || !absent(err) {
			return got, err
		}
	}
	_, _, form := splitPage(page)
	_, named := m.Names[form]
	if guess = guess && !m.known() || !named && r.guesses(page); guess {
		for _, at := range usualNames(page) {
			if got, err := try(at, true); err == nil || !absent(err) {
				return got, err
			}
		}
		r.guessed(page)
	}
	return nil, &htmlError{page, links.size}
}

// htmlError is the error for a page without Markdown.
type htmlError struct {
	page string
	size int64 // transferred bytes of the HTML that was read
}

// Error returns a text that names the page.
func (e *htmlError) Error() string {
	return e.page + " has no Markdown: " + millrace.ErrNotFound.Error()
}

// Unwrap returns [millrace.ErrNotFound].
func (e *htmlError) Unwrap() error { return millrace.ErrNotFound }

// pageLinks are the links in the response for a page's own URL.
type pageLinks struct {
	alternates, feeds []string // in feeds, Atom feeds come first
	canonical         string
	final             string
	size              int64 // transferred bytes that were read
}

// links fetches a page like a browser and returns its links.
func (r *reader) links(ctx context.Context, page string) (*pageLinks, error) {
	resp, err := r.Get(ctx, page, htmlTypes, fetch.Validators{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := fetch.CheckStatus(resp); err != nil {
		return nil, err
	}
	all := weblink.Header(resp.Header, resp.Request.URL)
	out := &pageLinks{}
	if weblink.IsHTML(resp.Header) {
		b, err := fetch.ReadBeginning(resp, maxHTML)
		if err != nil {
			return nil, err
		}
		out.size = b.Read
		all = append(all, weblink.HTML(strings.NewReader(string(b.Content)), resp.Request.URL).Links...)
	}
	if out.final, err = canon.URL(resp.Request.URL.String()); err != nil {
		return nil, fmt.Errorf("%w: %w", err, millrace.ErrInvalid)
	}
	var others []string
	for _, l := range all {
		switch {
		case l.Is("alternate", "text/markdown"), l.Is("alternate", "text/x-markdown"):
			if len(out.alternates) < maxAlternateLinks {
				out.alternates = append(out.alternates, l.URL)
			}
		case l.Is("alternate", atomType):
			out.feeds = append(out.feeds, l.URL)
		case l.Is("alternate", jsonFeedType):
			others = append(others, l.URL)
		case l.Is("canonical", "") && out.canonical == "":
			out.canonical = l.URL
		}
	}
	out.feeds = append(out.feeds, others...)
	return out, nil
}

// ask fetches the Markdown of a page. If the response is something else, the error is ErrNotFound.
func (r *reader) ask(ctx context.Context, at, page string, v fetch.Validators) (*alternate, error) {
	types := alternateTypes
	if at == page {
		types = ownTypes
	}
	resp, err := r.Get(ctx, at, types, v)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	final, err := canon.URL(resp.Request.URL.String())
	if err != nil || r.here(final) == "" {
		return nil, fmt.Errorf("%s redirects to another site, %s: %w", at, canon.Origin(final), errNoAlternate)
	}
	if resp.StatusCode == http.StatusNotModified && v == (fetch.Validators{}) {
		return nil, fmt.Errorf("%s: 304 for an unconditional request: %w", at, millrace.ErrInvalid)
	}
	t := &alternate{at: at, sent: r.o.Now(), Validators: fetch.ValidatorsOf(resp)}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		t.sent = date
	}
	if m, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil {
		t.modified = m
	}
	if err := fetch.CheckStatus(resp); errors.Is(err, millrace.ErrUnmodified) {
		return t, err
	} else if err != nil {
		return nil, err
	}
	kind := resp.Header.Get("Content-Type")
	if plain := strings.HasPrefix(strings.ToLower(kind), "text/plain") && at != page; !plain && !isMarkdownType(kind) {
		return nil, fmt.Errorf("%s is %.60q: %w", at, kind, errNoAlternate)
	}
	if v.ETag != "" && resp.Header.Get("ETag") == v.ETag {
		r.Note("rfc9110-13.1.2/if-none-match", at, "full response although the validator matches")
		return t, fmt.Errorf("%s: %w", at, millrace.ErrUnmodified)
	}
	for _, l := range weblink.Header(resp.Header, resp.Request.URL) {
		if to := r.here(l.URL); l.Is("canonical", "") && (to == "" || !samePage(to, page)) {
			return nil, fmt.Errorf("%s is the Markdown of %s: %w", at, l.URL, errNoAlternate)
		}
	}
	count := &counting{ReadCloser: resp.Body}
	resp.Body = count
	body, err := fetch.ReadBody(resp, maxAlternate)
	if err != nil {
		return nil, err
	}
	p, err := decodeMarkdown(ctx, body, at)
	if err != nil {
		return nil, kit.FormatURL(err, at)
	}
	if to := r.here(p.URL); p.URL != at && to != "" && !samePage(to, page) {
		return nil, fmt.Errorf("%s is the Markdown of %s: %w", at, p.URL, errNoAlternate)
	}
	t.page, t.size = p, count.n
	return t, nil
}
