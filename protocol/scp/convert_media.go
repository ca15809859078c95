package scp

import (
	"net/url"
	"path"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
)

// videoProviders lists the providers whose embeds contain only a video.
var videoProviders = map[string]bool{"youtube": true, "vimeo": true, "dailymotion": true, "ted": true}

// mediaTypes maps file name extensions to media types, for sources without a media type.
var mediaTypes = map[string]string{
	".mp4": "video/mp4", ".m4v": "video/mp4", ".webm": "video/webm", ".ogv": "video/ogg", ".mov": "video/quicktime",
	".mp3": "audio/mpeg", ".m4a": "audio/mp4", ".aac": "audio/aac", ".ogg": "audio/ogg", ".oga": "audio/ogg",
	".opus": "audio/ogg", ".wav": "audio/wav", ".flac": "audio/flac", ".m3u8": "application/vnd.apple.mpegurl",
	".mpd": "application/dash+xml",
}

// appendMedia appends a video or audio block, or its text if it has no usable URL.
func appendMedia(out []block, b *millrace.Block) []block {
	m := &media{Name: canon.ValidUTF8(b.Title), Summary: canon.ValidUTF8(b.Caption), Icon: webURL(b.Poster)}
	srcs := sourcesOf(b)
	if blank(m.Name) && !blank(m.Summary) {
		m.Name, m.Summary = m.Summary, ""
	}
	if blank(m.Summary) || m.Summary == m.Name {
		m.Summary = ""
	}
	if b.Media != nil {
		m.Transcript = canon.ValidUTF8(b.Media.Transcript)
	}
	if len(srcs) == 0 {
		return text(text(text(out, m.Name), m.Summary), m.Transcript)
	}
	if blank(m.Name) {
		m.Name = mediaName(srcs[0].Href)
	}
	if len(srcs) == 1 && srcs[0].MediaType == "" {
		m.URL = srcs[0].Href
	} else {
		m.Sources = srcs
		for i := range srcs {
			if srcs[i].MediaType == "" {
				srcs[i].MediaType = mediaType(b.Type, srcs[i].Href)
			}
		}
	}
	w := block{Type: videoBlock, Media: m}
	if b.Type == millrace.AudioBlock {
		w.Type = audioBlock
	} else {
		m.Captions = captionsOf(b.Tracks)
	}
	if k := b.Media; k != nil {
		if isDuration(k.Duration) {
			m.Duration = k.Duration
		}
		if w.Type == audioBlock {
			m.AttributedTo, m.PartOf = canon.ValidUTF8(k.Creator), canon.ValidUTF8(k.Series)
		} else {
			m.Width, m.Height = within(k.Width), within(k.Height)
		}
		for _, c := range k.Chapters {
			m.Chapters = append(m.Chapters, chapter{Time: within(c.Time), Title: canon.ValidUTF8(c.Title)})
		}
	}
	return append(out, w)
}

// maxInt is the maximum value of a stored integer.
const maxInt = 1<<31 - 1

func within(n int) int { return min(max(n, 0), maxInt) }

// sourcesOf returns the distinct sources of a video or audio block, starting with its URL.
func sourcesOf(b *millrace.Block) []source {
	var out []source
	add := func(u, mediaType string) {
		if u = webURL(u); u == "" {
			return
		}
		for i := range out {
			if out[i].Href == u {
				if out[i].MediaType == "" {
					out[i].MediaType = mediaType
				}
				return
			}
		}
		out = append(out, source{u, mediaType})
	}
	add(b.URL, "")
	for _, s := range b.Sources {
		add(s.URL, canon.ValidUTF8(s.Type))
	}
	return out
}

// mediaType guesses the media type of href by its extension, because SCP requires a media type.
func mediaType(t millrace.BlockType, href string) string {
	u, err := url.Parse(href)
	if err != nil {
		return "application/octet-stream"
	}
	ext := strings.ToLower(path.Ext(u.Path))
	switch {
	case ext == ".ogg" && t == millrace.VideoBlock:
		return "video/ogg"
	case mediaTypes[ext] != "":
		return mediaTypes[ext]
	}
	return "application/octet-stream"
}

// mediaName returns a name for a recording without a title.
func mediaName(href string) string {
	u, err := url.Parse(href)
	if err != nil || strings.Trim(u.EscapedPath(), "/") == "" {
		return href
	}
	return kit.LastSegment(u.EscapedPath())
}

// captionsOf converts the tracks that are captions or subtitles, or have no kind. SCP requires all
// members of a caption, so a missing language or label gets a default.
func captionsOf(tracks []millrace.Track) []caption {
	var out []caption
	for _, t := range tracks {
		u := webURL(t.URL)
		if u == "" || t.Kind != "" && t.Kind != "captions" && t.Kind != "subtitles" {
			continue
		}
		c := caption{Language: canon.ValidUTF8(t.Language), URL: u, Label: canon.ValidUTF8(t.Label)}
		if blank(c.Language) {
			c.Language = "und"
		}
		if blank(c.Label) {
			c.Label = c.Language
		}
		out = append(out, c)
	}
	return out
}

// webURL converts s to an http or https URL in the form of RFC 3986. If this is impossible, it
// returns "".
func webURL(s string) string {
	if isURI(s) && isWeb(s) {
		return s
	}
	u, err := url.Parse(strings.TrimSpace(canon.ValidUTF8(s)))
	if err != nil {
		return ""
	}
	if s = u.String(); !isURI(s) || !isWeb(s) {
		return ""
	}
	return s
}
