package extract

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// Limits per page.
const (
	maxMedia      = 20
	maxChapters   = 500
	maxTranscript = 1 << 20 // maximum size of a transcript in bytes
)

// recording is the JSON-LD of a video or an audio recording.
type recording struct {
	ldObject
	content, embed, page string // absolute URLs, or "" if unknown
	audio                bool
}

// media completes the video and audio blocks of a page from its JSON-LD, and adds recordings that
// only scripts would show.
func (m *meta) media(blocks []millrace.Block) []millrace.Block {
	var found []*recording
	for _, t := range m.ldObjects {
		found = m.recordings(found, t, 0)
	}
	if len(found) == 0 {
		return blocks
	}
	var visible []*millrace.Block
	var walk func(list []millrace.Block, depth int)
	walk = func(list []millrace.Block, depth int) {
		for i := range list {
			b := &list[i]
			switch b.Type {
			case millrace.VideoBlock, millrace.AudioBlock, millrace.EmbedBlock:
				visible = append(visible, b)
			}
			if depth < 20 {
				walk(b.Blocks, depth+1)
				for j := range b.Items {
					walk(b.Items[j].Blocks, depth+1)
				}
			}
		}
	}
	walk(blocks, 0)
	var more []millrace.Block
	for _, r := range found {
		if b := r.among(visible, len(found)); b != nil {
			m.complete(b, r)
			continue
		}
		if u := cmpOr(r.content, r.embed); u != "" && !namedBy(visible, u) {
			b := millrace.Block{Type: millrace.VideoBlock, URL: u}
			if r.audio {
				b.Type = millrace.AudioBlock
			}
			m.complete(&b, r)
			b.Caption = "" // the page does not show the description of the recording
			more = append(more, b)
		}
	}
	return append(more, blocks...)
}

// recordings adds the recordings in a JSON-LD object to out: the object itself, or those of an
// episode, an article or a similar object.
func (m *meta) recordings(out []*recording, t ldObject, depth int) []*recording {
	if depth > 2 || len(out) >= maxMedia {
		return out
	}
	nested := func(keys ...string) {
		for _, key := range keys {
			for _, v := range list(t.values[key]) {
				if o, ok := v.(map[string]any); ok {
					out = m.recordings(out, ldObject{types: texts(o["@type"]), values: o}, depth+1)
				}
			}
		}
	}
	switch {
	case t.is("VideoObject", "AudioObject", "MusicRecording"):
		r := &recording{ldObject: t, audio: !t.is("VideoObject")}
		r.content, r.embed, r.page = m.absolute(t.text("contentUrl")), m.absolute(t.text("embedUrl")), m.absolute(t.text("url"))
		if r.content+r.embed+r.page != "" && len(out) < maxMedia {
			out = append(out, r)
		}
	case t.is("PodcastEpisode", "RadioEpisode"):
		before := len(out)
		nested("associatedMedia", "audio", "encoding")
		for _, r := range out[before:] {
			// A recording takes missing properties from its episode.
			r.audio = true
			for _, key := range []string{"name", "description", "duration", "timeRequired", "partOfSeries", "partOfSeason", "author", "creator", "image", "transcript", "hasPart"} {
				if v := t.values[key]; v != nil && r.values[key] == nil {
					r.values[key] = v
				}
			}
		}
	case t.isArticle() || t.is("WebPage", "ItemPage", "Product", "*Page", "LearningResource", "Course"):
		nested("video", "audio", "associatedMedia")
	}
	return out
}

func list(v any) []any {
	if l, ok := v.([]any); ok {
		return l[:min(len(l), 100)]
	}
	return []any{v}
}

func cmpOr(s ...string) string {
	for _, t := range s {
		if t != "" {
			return t
		}
	}
	return ""
}

// absolute resolves a URL in JSON-LD. It returns "" if the URL is not http or https.
func (m *meta) absolute(ref string) string {
	if ref == "" || len(ref) > canon.MaxURL {
		return ""
	}
	u, err := canon.Resolve(m.base, ref)
	if err != nil {
		return ""
	}
	return u
}

// among returns the block that shows the recording, or nil. count is the number of recordings that
// the page declares: if there is one recording and one block of its kind, they belong together.
func (r *recording) among(visible []*millrace.Block, count int) *millrace.Block {
	for _, b := range visible {
		for _, u := range []string{r.content, r.embed, r.page} {
			if u != "" && (sameMedia(b.URL, u) || namedBy([]*millrace.Block{b}, u)) {
				return b
			}
		}
	}
	var only *millrace.Block
	for _, b := range visible {
		if (b.Type == millrace.AudioBlock) == r.audio && b.Type != millrace.EmbedBlock {
			if only != nil || count > 1 {
				return nil
			}
			only = b
		}
	}
	return only
}

// namedBy reports whether u is the URL or a source of one of the blocks.
func namedBy(visible []*millrace.Block, u string) bool {
	for _, b := range visible {
		if b.URL == u {
			return true
		}
		for _, s := range b.Sources {
			if s.URL == u {
				return true
			}
		}
	}
	return false
}

// sameMedia reports whether two URLs belong to the same recording. It ignores queries, and knows the
// different URLs that large hosts use for one recording.
func sameMedia(a, b string) bool {
	return a != "" && mediaKey(a) == mediaKey(b)
}

var hostedID = regexp.MustCompile(`(?:youtube(?:-nocookie)?\.com/(?:embed/|watch\?v=|shorts/|v/)|youtu\.be/|vimeo\.com/(?:video/)?)([A-Za-z0-9_-]{6,})`)

func mediaKey(u string) string {
	if id := hostedID.FindStringSubmatch(u); id != nil {
		return id[1]
	}
	_, u, _ = strings.Cut(u, "://")
	u, _, _ = strings.Cut(u, "?")
	return u
}

// complete adds the data of a recording to a block.
func (m *meta) complete(b *millrace.Block, r *recording) {
	if b.Type == millrace.EmbedBlock {
		b.Type, b.Kind = millrace.VideoBlock, ""
		if r.audio {
			b.Type = millrace.AudioBlock
		}
		if b.URL != "" {
			b.Sources = append(b.Sources, millrace.MediaSource{URL: b.URL, Type: "text/html"})
		}
	}
	for _, s := range []millrace.MediaSource{{URL: r.content, Type: strings.ToLower(r.text("encodingFormat"))}, {URL: r.embed, Type: "text/html"}} {
		if s.URL != "" && s.URL != b.URL && !namedBy([]*millrace.Block{b}, s.URL) {
			if len(b.Sources) == 0 && b.URL != "" && s.Type != "" {
				b.Sources = append(b.Sources, millrace.MediaSource{URL: b.URL})
			}
			b.Sources = append(b.Sources, s)
		}
	}
	if name := r.text("name"); b.Title == "" && name != m.page.Title {
		b.Title = name
	}
	if b.Caption == "" {
		b.Caption = r.text("description")
	}
	if b.Poster == "" {
		b.Poster = m.absolute(cmpOr(r.text("thumbnailUrl"), r.address("thumbnail"), r.address("image")))
	}
	v := millrace.Media{
		Duration: duration(cmpOr(r.text("duration"), r.text("timeRequired"))), Width: size(r.values["width"]), Height: size(r.values["height"]),
		Creator: cmpOr(r.text("creator"), r.text("author"), r.text("byArtist")), Series: cmpOr(r.text("partOfSeason"), r.text("partOfSeries"), r.text("inAlbum")),
		Chapters: chapters(r.values["hasPart"]), Transcript: transcript(r.values["transcript"]),
	}
	if strings.Contains(v.Creator, "@") {
		v.Creator = ""
	}
	if v.Duration != "" || v.Width > 0 || v.Height > 0 || v.Creator != "" || v.Series != "" || len(v.Chapters) > 0 || v.Transcript != "" {
		b.Media = &v
	}
}

// address returns the first URL in a property, whose values are strings or objects, or "".
func (r *recording) address(key string) string {
	for _, v := range list(r.values[key]) {
		switch v := v.(type) {
		case string:
			return v
		case map[string]any:
			if u, ok := v["url"].(string); ok {
				return u
			}
			if u, ok := v["contentUrl"].(string); ok {
				return u
			}
		}
	}
	return ""
}

var isoDuration = regexp.MustCompile(`^P(?:(\d{1,4})D)?(?:T(?:(\d{1,5})H)?(?:(\d{1,6})M)?(?:(\d{1,8})(?:[.,]\d+)?S)?)?$`)

// duration returns an ISO 8601 duration in hours, minutes and whole seconds. For invalid input and
// for zero, it returns "".
func duration(s string) string {
	g := isoDuration.FindStringSubmatch(strings.ToUpper(strings.TrimSpace(s)))
	if g == nil {
		return ""
	}
	seconds := 0
	for i, unit := range []int{86400, 3600, 60, 1} {
		n, _ := strconv.Atoi(g[i+1])
		seconds += n * unit
	}
	if seconds == 0 {
		return ""
	}
	out := "PT"
	for _, u := range []struct {
		unit int
		name string
	}{{3600, "H"}, {60, "M"}, {1, "S"}} {
		if n := seconds / u.unit; n > 0 {
			out += fmt.Sprint(n, u.name)
			seconds %= u.unit
		}
	}
	return out
}

// size returns a width or height in pixels, or 0 if the value has no size.
func size(v any) int {
	switch v := v.(type) {
	case float64:
		if v > 0 && v < 100_000 && v == math.Trunc(v) {
			return int(v)
		}
	case string:
		if n := pixels(strings.TrimSpace(v)); n > 0 && n < 100_000 {
			return n
		}
	case map[string]any:
		if _, nested := v["value"].(map[string]any); !nested {
			return size(v["value"])
		}
	}
	return 0
}

// chapters returns the clips of a recording as chapters.
func chapters(v any) []millrace.Chapter {
	var out []millrace.Chapter
	for _, e := range list(v) {
		clip, ok := e.(map[string]any)
		if !ok || len(out) == maxChapters {
			continue
		}
		t := ldObject{types: texts(clip["@type"]), values: clip}
		at, timed := clip["startOffset"].(float64)
		if s, ok := clip["startOffset"].(string); ok {
			n, err := strconv.ParseFloat(s, 64)
			at, timed = n, err == nil
		}
		if title := t.text("name"); t.is("Clip") && timed && at >= 0 && at < 1e7 && title != "" {
			out = append(out, millrace.Chapter{Time: int(at), Title: title})
		}
	}
	return out
}

// transcript returns the transcript of a recording, with an empty line between paragraphs.
func transcript(v any) string {
	s, ok := v.(string)
	if !ok || len(s) > maxTranscript {
		return ""
	}
	var out []string
	for p := range strings.SplitSeq(strings.ReplaceAll(s, "\r\n", "\n"), "\n") {
		if p = oneLine(p); p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, "\n\n")
}
