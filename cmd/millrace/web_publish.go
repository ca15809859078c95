package main

import (
	"github.com/millrace/millrace/internal/push"
	"github.com/millrace/millrace/protocol/web"
)

// webPublishing are the flags of Markdown, llms.txt and feeds.
type webPublishing struct {
	MarkdownPublic bool     `help:"Let shared caches keep the Markdown that pages give to those who ask for it by Accept: only if all caches in front of the site mind Vary (default: browsers' own caches keep it)." hidden:""`
	LLMsFull       bool     `name:"llms-full" help:"Publish /llms-full.txt, the Markdown of all pages in one file."`
	Hub            []string `placeholder:"URL" help:"Hubs that the feeds name (WebSub), so that readers can be told at once; serve tells the hubs of every edition (default: none)."`
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
