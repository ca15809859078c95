package openfeeder

import "strconv"

// encode returns the discovery document.
func (a *discoveryDocument) encode() []byte {
	b := member([]byte{'{'}, "version", a.Version)
	b = append(key(b, "site"), '{')
	b = member(b, "name", a.Site.Name)
	b = member(b, "url", a.Site.URL)
	b = member(b, "language", a.Site.Language)
	if a.Site.Description != "" {
		b = member(b, "description", a.Site.Description)
	}
	b = append(key(append(b, '}'), "feed"), '{')
	b = member(b, "endpoint", a.Feed.Endpoint)
	b = append(member(b, "type", a.Feed.Type), '}')
	b = append(key(b, "capabilities"), '[')
	for i, c := range a.Capabilities {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendQuote(b, c)
	}
	b = append(b, ']')
	if a.Contact != "" {
		b = member(b, "contact", a.Contact)
	}
	if a.Events != nil {
		b = append(key(b, "events"), '{')
		b = member(b, "endpoint", a.Events.Endpoint)
		b = append(member(b, "type", a.Events.Type), '}')
	}
	return append(b, '}')
}

// encode returns the document of a page.
func (p *page) encode() []byte {
	n := 512 + len(p.Title) + len(p.Summary)
	for i := range p.Chunks {
		n += 96 + len(p.Chunks[i].Text) + len(p.Chunks[i].Text)/16
	}
	b := member(append(make([]byte, 0, n), '{'), "schema", schema)
	b = member(b, "url", p.URL)
	b = member(b, "title", p.Title)
	b = nullable(b, "author", p.Author)
	b = nullable(b, "published", p.Published)
	b = nullable(b, "updated", p.Updated)
	b = member(b, "language", p.Language)
	b = member(b, "summary", p.Summary)
	if p.Revision != "" {
		b = member(b, "revision", p.Revision)
	}
	b = appendPieces(b, p.Chunks)
	return append(p.Meta.append(b), '}')
}

func appendPieces(b []byte, pieces []piece) []byte {
	b = append(key(b, "chunks"), '[')
	for i := range pieces {
		if i > 0 {
			b = append(b, ',')
		}
		b = pieces[i].append(b)
	}
	return append(b, ']')
}

func (c *piece) append(b []byte) []byte {
	b = member(append(b, '{'), "id", c.ID)
	if c.URL != "" {
		b = member(b, "url", c.URL)
	}
	b = member(b, "text", c.Text)
	b = member(b, "type", c.Type)
	if c.Blocks != "" {
		b = member(b, "blocks", c.Blocks)
	}
	return append(fraction(b, "relevance", c.Relevance), '}')
}

func (m *meta) append(b []byte) []byte {
	b = append(key(b, "meta"), '{')
	b = number(b, "total_chunks", m.TotalChunks)
	b = number(b, "returned_chunks", m.ReturnedChunks)
	b = number(b, "page", m.Page)
	b = number(b, "total_pages", m.TotalPages)
	return append(b, `,"cached":false,"cache_age_seconds":null}`...)
}

func (it *item) append(b []byte) []byte {
	b = member(append(b, '{'), "url", it.URL)
	b = member(b, "title", it.Title)
	b = nullable(b, "published", it.Published)
	b = nullable(b, "updated", it.Updated)
	b = member(b, "summary", it.Summary)
	if it.Revision != "" {
		b = member(b, "revision", it.Revision)
	}
	if it.Document != "" {
		b = member(b, "document", it.Document)
	}
	if it.Relevance != nil {
		b = fraction(b, "relevance", it.Relevance)
	}
	return append(b, '}')
}

func appendItems(b []byte, name string, items []item) []byte {
	b = append(key(b, name), '[')
	for i := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = items[i].append(b)
	}
	return append(b, ']')
}

// head returns an index up to its first item, and tail appends the part after its last item. They
// allow a large index to be streamed.
func (x *index) head() []byte {
	b := member([]byte{'{'}, "schema", schema)
	b = member(b, "type", "index")
	b = number(b, "page", x.Page)
	b = number(b, "total_pages", x.TotalPages)
	if x.SyncToken != "" {
		b = member(b, "sync_token", x.SyncToken)
	}
	if x.Next != "" {
		b = member(b, "next", x.Next)
	}
	if x.Note != "" {
		b = member(b, "note", x.Note)
	}
	if x.Corrected != "" {
		b = member(b, "corrected", x.Corrected)
	}
	return append(key(b, "items"), '[')
}

func (x *index) tail(b []byte) []byte {
	b = append(b, ']')
	if x.Meta != nil {
		b = x.Meta.append(appendPieces(b, x.Chunks))
	}
	return append(b, '}')
}

// encode returns the whole index.
func (x *index) encode() []byte {
	b := x.head()
	for i := range x.Items {
		if i > 0 {
			b = append(b, ',')
		}
		b = x.Items[i].append(b)
	}
	return x.tail(b)
}

// encode returns the sync reply. It computes the counts from the lists.
func (c *changes) encode() []byte {
	b := member([]byte{'{'}, "schema", schema)
	b = member(b, "openfeeder_version", version)
	b = append(key(b, "sync"), '{')
	if c.Sync.Since != "" {
		b = member(b, "since", c.Sync.Since)
	}
	if c.Sync.Until != "" {
		b = member(b, "until", c.Sync.Until)
	}
	b = member(b, "as_of", c.Sync.AsOf)
	b = member(b, "sync_token", c.Sync.SyncToken)
	b = append(key(b, "counts"), '{')
	b = number(b, "added", len(c.Added))
	b = number(b, "updated", len(c.Updated))
	b = append(number(b, "deleted", len(c.Deleted)), '}')
	if c.Sync.DeletedTracking != nil {
		b = strconv.AppendBool(key(b, "deleted_tracking"), *c.Sync.DeletedTracking)
	}
	if c.Sync.Next != "" {
		b = member(b, "next", c.Sync.Next)
	}
	b = append(b, '}')
	b = appendItems(b, "added", c.Added)
	b = appendItems(b, "updated", c.Updated)
	b = append(key(b, "deleted"), '[')
	for i := range c.Deleted {
		if i > 0 {
			b = append(b, ',')
		}
		b = c.Deleted[i].append(b)
	}
	return append(b, "]}"...)
}

func (t *tombstone) append(b []byte) []byte {
	b = member(append(b, '{'), "url", t.URL)
	return append(member(b, "deleted_at", t.DeletedAt), '}')
}

// encode returns the body of the error.
func (f failure) encode() []byte {
	b := member([]byte{'{'}, "schema", schema)
	b = append(key(b, "error"), '{')
	b = member(b, "code", f.Code)
	return append(member(b, "message", f.Message), "}}"...)
}
