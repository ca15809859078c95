package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	readability "codeberg.org/readeck/go-readability/v2"
	"github.com/markusmobius/go-trafilatura"
	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"

	"github.com/millrace/millrace/extract"
)

// extracted is the result of one extractor for a page.
type extracted struct {
	text, title, author string
	published           time.Time
	node                *html.Node      // the content that a peer found
	ours                *extract.Result // the result of millrace
}

// extractor is an extractor with its name. Its function gets the bytes of a document and the
// document's URL.
type extractor struct {
	name string
	run  func(ctx context.Context, data []byte, pageURL string) (*extracted, error)
}

// extractors lists the extractors in the order of the table's columns.
var extractors = [3]extractor{
	{"readability", runReadability},
	{"trafilatura", runTrafilatura},
	{"millrace", runMillrace},
}

// try runs an extractor. A peer that fails or panics has an empty result. millrace must not fail.
func (e extractor) try(ctx context.Context, data []byte, pageURL string) (got *extracted, err error) {
	if e.name != extractors[oursAt].name {
		defer func() {
			if recover() != nil || err != nil {
				got, err = &extracted{}, ctx.Err()
			}
		}()
	}
	return e.run(ctx, data, pageURL)
}

// parsePeer parses a document for a peer. The peers' own readers guess the character set by
// statistics, which takes longer than parsing. parsePeer avoids that cost, in favor of the peers.
func parsePeer(data []byte, pageURL string) (*html.Node, *url.URL, error) {
	u, err := url.Parse(pageURL)
	if err != nil {
		return nil, nil, err
	}
	text, err := charset.NewReader(bytes.NewReader(data), "text/html")
	if err != nil {
		return nil, nil, err
	}
	doc, err := html.Parse(text)
	return doc, u, err
}

func runReadability(_ context.Context, data []byte, pageURL string) (*extracted, error) {
	doc, u, err := parsePeer(data, pageURL)
	if err != nil {
		return nil, err
	}
	p := readability.NewParser()
	a, err := p.ParseAndMutate(doc, u)
	if err != nil {
		return nil, err
	}
	got := &extracted{title: a.Title(), author: a.Byline(), node: a.Node}
	if t, err := a.PublishedTime(); err == nil {
		got.published = t
	}
	if a.Node != nil {
		var w strings.Builder
		if err := a.RenderText(&w); err != nil {
			return nil, err
		}
		got.text = w.String()
	}
	return got, nil
}

func runTrafilatura(_ context.Context, data []byte, pageURL string) (*extracted, error) {
	doc, u, err := parsePeer(data, pageURL)
	if err != nil {
		return nil, err
	}
	// With the fallback, the peer has its best results. Images and links do not change the text.
	r, err := trafilatura.ExtractDocument(doc, trafilatura.Options{
		OriginalURL: u, EnableFallback: true, IncludeImages: true, IncludeLinks: true,
	})
	if err != nil {
		return nil, err
	}
	return &extracted{text: r.ContentText, title: r.Metadata.Title, author: r.Metadata.Author, published: r.Metadata.Date, node: r.ContentNode}, nil
}

func runMillrace(ctx context.Context, data []byte, pageURL string) (*extracted, error) {
	r, err := extract.HTML(ctx, data, pageURL, nil)
	if err != nil {
		return nil, fmt.Errorf("millrace: %w", err)
	}
	p := r.Page
	return &extracted{text: p.Text(), title: p.Title, author: p.Author, published: p.Published, ours: r}, nil
}
