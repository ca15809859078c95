package main

import (
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/internal/search"
)

// embedFlags holds the flags of the embedding model that search commands use. Without a model,
// the index computes vectors from the site's own words.
type embedFlags struct {
	EmbedURL            string `name:"embed-url" placeholder:"URL" help:"Base URL of a server for text embeddings with OpenAI's /v1/embeddings, such as http://localhost:11434/v1 (default: vectors are computed from the site's own words)."`
	EmbedModel          string `placeholder:"NAME" help:"Name of the embedding model."`
	EmbedKey            string `placeholder:"KEY" help:"Key of the embedding server. Prefer MILLRACE_EMBED_KEY, because other users can see the command line." hidden:""`
	EmbedDocumentPrefix string `placeholder:"TEXT" help:"Prefix that the model expects before each passage, such as \"search_document: \"." hidden:""`
	EmbedQueryPrefix    string `placeholder:"TEXT" help:"Prefix that the model expects before each query, such as \"search_query: \"." hidden:""`
}

// embedder returns the client that the flags configure, or nil. retries is the number of
// retries: 0 = the default, -1 = none.
func (c *embedFlags) embedder(retries int) (index.Embedder, error) {
	switch {
	case c.EmbedURL == "" && c.EmbedModel == "":
		if c.EmbedKey+c.EmbedDocumentPrefix+c.EmbedQueryPrefix != "" {
			return nil, usageError("the other --embed flags require --embed-url and --embed-model")
		}
		return nil, nil //nolint:nilnil // no model is configured
	case c.EmbedURL == "":
		return nil, usageError("--embed-model: no server is set; set --embed-url")
	case c.EmbedModel == "":
		return nil, usageError("--embed-url: no model is set; set --embed-model")
	}
	// Do not use a client of package fetch. The user has configured this address, which may be on
	// this machine, and a model may take longer than a site to send its first byte.
	e, err := search.NewEmbedder(nil, c.EmbedURL, c.EmbedModel, &search.EmbedderOptions{
		Key: c.EmbedKey, DocumentPrefix: c.EmbedDocumentPrefix, QueryPrefix: c.EmbedQueryPrefix, Retries: retries,
	})
	if err != nil {
		return nil, usageError("--embed-url: " + err.Error())
	}
	return e, nil
}
