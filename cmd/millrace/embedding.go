package main

import (
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/internal/search"
)

// embedding are the flags of every command that searches: a model that finds
// passages by their meaning. Without one, the site's own words have to do.
type embedding struct {
	EmbedURL            string `name:"embed-url" placeholder:"URL" help:"Base URL of a server for text embeddings with OpenAI's /v1/embeddings, such as http://localhost:11434/v1 (default: vectors are computed from the site's own words)."`
	EmbedModel          string `placeholder:"NAME" help:"Name of the embedding model."`
	EmbedKey            string `placeholder:"KEY" help:"Key of the embedding server. Better set MILLRACE_EMBED_KEY: other users can see the command line." hidden:""`
	EmbedDocumentPrefix string `placeholder:"TEXT" help:"Prefix that the model expects before each passage, such as \"search_document: \"." hidden:""`
	EmbedQueryPrefix    string `placeholder:"TEXT" help:"Prefix that the model expects before each query, such as \"search_query: \"." hidden:""`
}

// embedder makes the client that the flags ask for, nil for none. retries is
// how often it asks again for what it did not get: 0 for the usual, -1 for never.
func (c *embedding) embedder(retries int) (index.Embedder, error) {
	switch {
	case c.EmbedURL == "" && c.EmbedModel == "":
		if c.EmbedKey+c.EmbedDocumentPrefix+c.EmbedQueryPrefix != "" {
			return nil, usageError("--embed-url and --embed-model name the model that the other --embed flags are for")
		}
		return nil, nil //nolint:nilnil // none is asked for
	case c.EmbedURL == "":
		return nil, usageError("--embed-model: name the server that has it with --embed-url")
	case c.EmbedModel == "":
		return nil, usageError("--embed-url: name the model to ask for with --embed-model")
	}
	// The user has named this address, so it may be the machine's own. A model
	// may take longer over its first byte than a site may: no client of fetch.
	e, err := search.NewEmbedder(nil, c.EmbedURL, c.EmbedModel, &search.EmbedderOptions{
		Key: c.EmbedKey, DocumentPrefix: c.EmbedDocumentPrefix, QueryPrefix: c.EmbedQueryPrefix, Retries: retries,
	})
	if err != nil {
		return nil, usageError("--embed-url: " + err.Error())
	}
	return e, nil
}
