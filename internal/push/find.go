package push

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/weblink"
)

const (
	maxStart  = 256 << 10 // maximum number of compressed bytes of a document to search for a hub
	maxFeeds  = 3         // maximum number of feeds to fetch for a site
	maxTokens = 20_000    // maximum number of tokens to read from a feed
	maxURL    = 2048      // maximum length of a URL in bytes
)

// Topic is a document that announces changes, and its hub.
type Topic struct {
	URL string `json:"url"` // URL by which the hub knows the topic
	Hub string `json:"hub"` // URL of the hub
}

// Find finds the topic of a site: a feed that has a hub and to which the root page links, else the
// root itself. It sends one request for the root, and one for each of at most three feeds. If the
// site has no hub, Find returns ErrNotFound. If the request for the root fails, it returns an error
// of [fetch.Do] or [fetch.CheckStatus].
func Find(ctx context.Context, client *http.Client, root string) (Topic, error) {
	home, err := start(ctx, client, root, "text/html, application/xhtml+xml, */*;q=0.1")
	if err != nil {
		return Topic{}, err
	}
	asked := 0
	for _, l := range home.links {
		if asked == maxFeeds || !slices.Contains(l.Rel, "alternate") || !feedTypes[l.Type] {
			continue
		}
		asked++
		feed, err := start(ctx, client, l.URL, "application/atom+xml, application/feed+json, application/rss+xml, */*;q=0.1")
		if err != nil {
			if ctx.Err() != nil {
				return Topic{}, err
			}
			continue
		}
		if t, ok := feed.topic(); ok {
			return t, nil
		}
	}
	if t, ok := home.topic(); ok {
		return t, nil
	}
	return Topic{}, fmt.Errorf("%s names no hub for its changes: %w", root, millrace.ErrNotFound)
}

// feedTypes contains the media types of feeds.
var feedTypes = map[string]bool{
	"application/atom+xml": true, "application/rss+xml": true, "application/feed+json": true,
}

// page is the start of a document.
type page struct {
	url   string
	links []weblink.Link // links of the header first (WebSub, section 4)
}

// start fetches a document and parses its start.
func start(ctx context.Context, client *http.Client, target, accept string) (*page, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, millrace.ErrInvalid)
	}
	req.Header.Set("Accept", accept)
	resp, err := fetch.Do(ctx, client, req)
	if err != nil {
		return nil, err
	}
	if err := fetch.CheckStatus(resp); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	at := resp.Request.URL
	p := &page{url: at.String(), links: weblink.Header(resp.Header, at)}
	b, err := fetch.ReadBeginning(resp, maxStart)
	if err != nil {
		return nil, err
	}
	if weblink.IsHTML(resp.Header) {
		p.links = append(p.links, weblink.HTML(bytes.NewReader(b.Content), at).Links...)
	} else {
		p.links = append(p.links, feedLinks(b.Content, at)...)
	}
	return p, nil
}

// topic returns the topic of a document with a hub. It uses the first valid hub. The hub of an https
// document must use https.
func (p *page) topic() (t Topic, ok bool) {
	t.URL = p.url
	for _, l := range slices.Backward(p.links) {
		if len(l.URL) > maxURL {
			continue
		}
		if slices.Contains(l.Rel, "self") {
			t.URL = l.URL
		}
		if slices.Contains(l.Rel, "hub") && (strings.HasPrefix(l.URL, "https:") || strings.HasPrefix(p.url, "http:")) {
			t.Hub = l.URL
		}
	}
	return t, t.Hub != ""
}

// feedLinks returns the links of a feed: link elements of Atom, also within RSS,
// before the first entry. The HTML tokenizer reads them in any character set that
// extends ASCII.
func feedLinks(content []byte, at *url.URL) (out []weblink.Link) {
	z := html.NewTokenizer(bytes.NewReader(content))
	z.AllowCDATA(true)
	for range maxTokens {
		switch z.Next() {
		case html.ErrorToken:
			return out
		case html.StartTagToken, html.SelfClosingTagToken:
		default:
			continue
		}
		t := z.Token()
		switch t.Data[strings.LastIndexByte(t.Data, ':')+1:] {
		case "entry", "item":
			return out
		case "link":
			var ref, rel string
			for _, a := range t.Attr {
				switch a.Key {
				case "href":
					ref = a.Val
				case "rel":
					rel = a.Val
				}
			}
			if u, err := canon.Resolve(at, strings.TrimSpace(ref)); err == nil && ref != "" {
				out = append(out, weblink.Link{URL: u, Rel: strings.Fields(strings.ToLower(rel))})
			}
		}
	}
	return out
}
