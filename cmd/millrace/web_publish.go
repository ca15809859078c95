package main

import (
	"github.com/millrace/millrace/internal/push"
	"github.com/millrace/millrace/protocol/web"
)

// webPublishing holds the flags of Markdown, llms.txt and feeds.
type webPublishing struct {
	MarkdownPublic bool     `help:"Let shared caches store the Markdown that a page's URL returns for Accept: text/markdown (default: only private caches). All caches in front of the site must support Vary." hidden:""`
	LLMsFull       bool     `name:"llms-full" help:"Publish /llms-full.txt, the Markdown of all pages in one file."`
	Hub            []string `placeholder:"URL" help:"WebSub hubs that the feeds name (default: none). serve notifies them of every edition."`
}

func (c *webPublishing) validate() error {
	for i, h := range c.Hub {
		u, err := push.CheckHub(h)
		if err != nil {
			return usageError("--hub: " + err.Error())
		}
		c.Hub[i] = u
	}
	return nil
}

func (c *webPublishing) options() *web.PublisherOptions {
	return &web.PublisherOptions{MarkdownPublic: c.MarkdownPublic, LLMsFull: c.LLMsFull, Hubs: c.Hub}
}
