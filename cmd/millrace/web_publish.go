package main

import "github.com/millrace/millrace/protocol"

// webPublishing are the flags of Markdown and llms.txt.
type webPublishing struct {
	MarkdownPublic bool `help:"Let shared caches keep the Markdown that pages give to those who ask for it by Accept: only if all caches in front of the site mind Vary (default: browsers' own caches keep it)." hidden:""`
	LLMsFull       bool `name:"llms-full" help:"Publish /llms-full.txt, the Markdown of all pages in one file."`
}

// apply tells the rooms.
func (c *webPublishing) apply(o *protocol.PublisherOptions) {
	o.MarkdownPublic, o.LLMsFull = c.MarkdownPublic, c.LLMsFull
}
