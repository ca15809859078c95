package web

import (
	"bufio"
	"encoding/xml"
	"io"
	"time"

	"github.com/millrace/millrace/internal/sitemap"
)

// feedHead contains the metadata of a feed.
type feedHead struct {
	ID       string // absolute URL, which is the same in all documents of the feed
	Self     string
	Home     string
	First    string // URL of the document with the newest entries. If empty, this document.
	Next     string // URL of the document with older entries. If empty, this document has the oldest.
	Previous string
	Title    string
	Language string
	Updated  time.Time
	Hubs     []string
}

// feedItem is the entry of one page, or the deletion of the page.
type feedItem struct {
	URL       string
	Gone      bool
	Changed   time.Time // time when the change was published
	Modified  time.Time // modification time of the page, as in its Markdown; zero = unknown
	Published time.Time // zero = unknown
	Title     string
	Summary   string // may be empty
	Author    string
	Language  string
	Tags      []string
	Alternate string // absolute URL of the page's Markdown, or ""
}

// atomWriter writes an Atom feed (RFC 4287) with tombstones (RFC 6721). Close returns the errors of
// the underlying writer.
type atomWriter struct{ w *bufio.Writer }

func (a atomWriter) raw(parts ...string) {
	for _, s := range parts {
		_, _ = a.w.WriteString(s) // Flush returns the error
	}
}

// element writes an element that contains text, unless text is empty.
func (a atomWriter) element(name, text string) {
	if text != "" {
		a.raw("<", name, ">", sitemap.Escape(text), "</", name, ">\n")
	}
}

func (a atomWriter) link(rel, mediaType, href string) {
	if href == "" {
		return
	}
	a.raw(`<link rel="`, rel, `"`)
	if mediaType != "" {
		a.raw(` type="`, sitemap.Escape(mediaType), `"`)
	}
	a.raw(` href="`, sitemap.Escape(href), "\"/>\n")
}

// newAtom starts a feed (section 4.1.1).
func newAtom(w io.Writer, h *feedHead) atomWriter {
	a := atomWriter{bufio.NewWriterSize(w, 64<<10)}
	a.raw(xml.Header, `<feed xmlns="`, atomSpace, `" xmlns:at="`, tombstoneSpace, `" xmlns:dcterms="`, termsSpace, `"`, language(h.Language), ">\n")
	a.element("id", h.ID)
	a.element("title", h.Title)
	a.element("updated", feedStamp(h.Updated))
	a.raw("<author><name>", sitemap.Escape(h.Title), "</name></author>\n") // entries then need no author (4.2.1)
	a.link("self", atomType, h.Self)
	a.link("alternate", "text/html", h.Home)
	for _, hub := range h.Hubs {
		a.link("hub", "", hub)
	}
	a.link("first", atomType, h.First) // RFC 5005, section 3
	a.link("previous", atomType, h.Previous)
	a.link("next", atomType, h.Next)
	return a
}

// item writes an entry (section 4.1.2), or a tombstone if the page was deleted.
func (a atomWriter) item(it *feedItem) {
	if it.Gone {
		a.raw(`<at:deleted-entry ref="`, sitemap.Escape(it.URL), `" when="`, feedStamp(it.Changed), "\"/>\n")
		return
	}
	a.raw("<entry", language(it.Language), ">\n")
	a.element("id", it.URL)
	a.raw("<title>", sitemap.Escape(it.Title), "</title>\n") // a title is required and may be empty
	a.element("updated", feedStamp(it.Changed))
	if !it.Modified.IsZero() {
		a.element("dcterms:modified", feedStamp(it.Modified))
	}
	if !it.Published.IsZero() {
		a.element("published", feedStamp(it.Published))
	}
	a.link("alternate", "text/html", it.URL)
	a.link("alternate", alternateType, it.Alternate)
	if it.Author != "" {
		a.raw("<author><name>", sitemap.Escape(it.Author), "</name></author>\n")
	}
	for _, tag := range it.Tags {
		a.raw(`<category term="`, sitemap.Escape(tag), "\"/>\n")
	}
	a.element("summary", it.Summary)
	a.raw("</entry>\n")
}

// Close ends the feed. It does not close the underlying writer.
func (a atomWriter) Close() error {
	a.raw("</feed>\n")
	return a.w.Flush()
}

// language returns the attribute xml:lang with a preceding space. If tag is not a language tag (RFC
// 5646), it returns "".
func language(tag string) string {
	if !isLanguage(tag) {
		return ""
	}
	return ` xml:lang="` + tag + `"`
}

func isLanguage(tag string) bool {
	part := 0
	for i := range len(tag) {
		switch c := tag[i]; {
		case c == '-' && part > 0:
			part = 0
			continue
		case part < 8 && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 1 && c >= '0' && c <= '9'):
		default:
			return false
		}
		part++
	}
	return part > 0
}

// feedStamp formats a time for feeds, with milliseconds like the times of the log. A time that RFC
// 3339 cannot express becomes the Unix epoch.
func feedStamp(t time.Time) string {
	if t.Year() < 1 || t.Year() > 9999 {
		t = time.Unix(0, 0)
	}
	return t.UTC().Format("2006-01-02T15:04:05.999Z07:00")
}
