package web

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
)

// JSON Feed 1.1 does not define deletions. They are in the extension _deleted, which is an object,
// as required for extensions, with the member names of items.
const (
	jsonFeedVersion = "https://jsonfeed.org/version/1.1"
	jsonDeletedFrom = `"_deleted":{"about":"https://github.com/millrace/millrace/blob/main/docs/adr/0018-composed.md","items":[`
)

// alternateType is the media type of Markdown in links.
const alternateType = "text/markdown"

type jsonFeedHead struct {
	Version  string    `json:"version"`
	Title    string    `json:"title"`
	Home     string    `json:"home_page_url"`
	Self     string    `json:"feed_url"`
	Next     string    `json:"next_url,omitempty"`
	Language string    `json:"language,omitempty"`
	Hubs     []jsonHub `json:"hubs,omitempty"`
}

type jsonHub struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

type jsonFeedItem struct {
	ID        string           `json:"id"`
	URL       string           `json:"url"`
	Title     string           `json:"title,omitempty"`
	Content   string           `json:"content_text"` // an item must have content
	Summary   string           `json:"summary,omitempty"`
	Published string           `json:"date_published,omitempty"`
	Modified  string           `json:"date_modified"`
	Authors   []jsonAuthor     `json:"authors,omitempty"`
	Tags      []string         `json:"tags,omitempty"`
	Language  string           `json:"language,omitempty"`
	Files     []jsonAttachment `json:"attachments,omitempty"`
}

type jsonAuthor struct {
	Name string `json:"name"`
}

type jsonAttachment struct {
	URL  string `json:"url"`
	Type string `json:"mime_type"`
}

type jsonDeleted struct {
	ID      string `json:"id"`
	URL     string `json:"url"`
	Deleted string `json:"date_deleted"`
}

// writeJSONFeed writes a feed, item by item.
func writeJSONFeed(w io.Writer, h *feedHead, items []*feedItem) error {
	out := bufio.NewWriterSize(w, 64<<10)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	var failed error
	value := func(v any) []byte {
		b.Reset()
		if err := e.Encode(v); err != nil && failed == nil {
			failed = err
		}
		return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	}
	raw := func(s string) { _, _ = out.WriteString(s) } // Flush returns the error
	head := jsonFeedHead{Version: jsonFeedVersion, Title: h.Title, Home: h.Home, Self: h.Self, Next: h.Next}
	if isLanguage(h.Language) {
		head.Language = h.Language
	}
	for _, hub := range h.Hubs {
		head.Hubs = append(head.Hubs, jsonHub{"WebSub", hub})
	}
	_, _ = out.Write(bytes.TrimSuffix(value(head), []byte("}")))
	raw(`,"items":[`)
	comma := "\n"
	var gone []jsonDeleted
	for _, it := range items {
		if it.Gone {
			gone = append(gone, jsonDeleted{it.URL, it.URL, feedStamp(it.Changed)})
			continue
		}
		raw(comma)
		comma = ",\n"
		_, _ = out.Write(value(jsonItemOf(it)))
	}
	raw("]," + jsonDeletedFrom)
	comma = "\n"
	for _, d := range gone {
		raw(comma)
		comma = ",\n"
		_, _ = out.Write(value(d))
	}
	raw("]}}\n")
	if failed != nil {
		return failed
	}
	return out.Flush()
}

func jsonItemOf(it *feedItem) *jsonFeedItem {
	out := &jsonFeedItem{
		ID: it.URL, URL: it.URL, Title: it.Title, Content: it.Summary, Summary: it.Summary,
		Modified: feedStamp(it.Changed), Tags: it.Tags,
	}
	if out.Content == "" {
		out.Content = it.Title
	}
	if !it.Published.IsZero() {
		out.Published = feedStamp(it.Published)
	}
	if it.Author != "" {
		out.Authors = []jsonAuthor{{it.Author}}
	}
	if isLanguage(it.Language) {
		out.Language = it.Language
	}
	if it.Alternate != "" {
		out.Files = []jsonAttachment{{it.Alternate, alternateType}}
	}
	return out
}
