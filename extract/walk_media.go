package extract

import (
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// image emits an img or a picture element, with the source that a browser with a large screen would
// show.
func (w *walker) image(n *html.Node) {
	img := n
	if n.DataAtom == atom.Picture {
		if img = findTag(n, atom.Img); img == nil {
			img = n
		}
	}
	if tex := imageMath(img); tex != "" {
		w.math(tex, "tex", false)
		return
	}
	if alt := attr(img, "alt"); alt != "" && len(alt) <= 20 && alt[0] >= 0xE2 && (isTiny(img) || hasClass(img, "emoji", "wp-smiley", "twemoji")) {
		w.in.text(alt)
		return
	}
	src := w.imageURL(n, img)
	if src == "" || isTiny(img) || w.seen[src] && isDecor(img) {
		return
	}
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	w.seen[src] = true
	w.addAfterLine(millrace.Block{Type: millrace.ImageBlock, URL: src, Alt: folded(attr(img, "alt"))})
}

func isDecor(img *html.Node) bool { return attr(img, "alt") == "" }

// isTiny reports whether an image is a tracking pixel or a small icon.
func isTiny(img *html.Node) bool {
	w, h := pixels(attr(img, "width")), pixels(attr(img, "height"))
	return w >= 0 && w <= 2 || h >= 0 && h <= 2 || w >= 0 && h >= 0 && w <= 24 && h <= 24
}

// pixels returns a length in pixels, or -1 if s is not one.
func pixels(s string) int {
	if s == "" {
		return -1
	}
	n, err := strconv.Atoi(strings.TrimSuffix(s, "px"))
	if err != nil {
		return -1
	}
	return n
}

// imageURL returns the largest source of an image.
func (w *walker) imageURL(n, img *html.Node) string {
	best, size := "", 0.0
	consider := func(set string) {
		if url, s := largest(set); url != "" && s > size {
			if abs := w.resolve(url); abs != "" {
				best, size = abs, s
			}
		}
	}
	consider(attr(img, "srcset"))
	consider(attr(img, "data-srcset"))
	consider(attr(img, "data-lazy-srcset"))
	if n != img {
		for c := range children(n) {
			if c.DataAtom == atom.Source && best == "" {
				consider(attr(c, "srcset"))
				consider(attr(c, "data-srcset"))
			}
		}
	}
	if best != "" && size > 1 {
		return best
	}
	for _, key := range []string{"data-src", "data-original", "data-lazy-src", "data-lazy", "data-full-src", "data-orig-file", "src"} {
		if abs := w.resolve(attr(img, key)); abs != "" && (key == "src" || strings.ContainsAny(abs, ".?")) {
			if key == "src" && isPlaceholder(abs) {
				continue
			}
			return abs
		}
	}
	if best != "" {
		return best
	}
	for i := range img.Attr { // another attribute of an unknown lazy loader
		if v := img.Attr[i].Val; strings.HasPrefix(img.Attr[i].Key, "data-") && isImageName(v) {
			if abs := w.resolve(v); abs != "" {
				return abs
			}
		}
	}
	return ""
}

// isImageName reports whether a value ends like the URL of an image file.
func isImageName(v string) bool {
	v, _, _ = strings.Cut(v, "?")
	if len(v) < 5 || len(v) > 2000 || strings.ContainsAny(v, " {<") || !strings.Contains(v, "/") {
		return false
	}
	v = strings.ToLower(v[max(0, len(v)-5):])
	for _, end := range []string{".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".svg"} {
		if strings.HasSuffix(v, end) {
			return true
		}
	}
	return false
}

func isPlaceholder(u string) bool {
	i := strings.LastIndexByte(u, '/')
	name := strings.ToLower(u[i+1:])
	return strings.HasPrefix(name, "placeholder.") || strings.HasPrefix(name, "blank.") || strings.HasPrefix(name, "spacer.") ||
		strings.HasPrefix(name, "pixel.") || strings.HasPrefix(name, "1x1.") || strings.HasPrefix(name, "transparent.")
}

// largest returns the candidate of a srcset with the greatest width or density, and that number.
func largest(set string) (string, float64) {
	best, size := "", 0.0
	for set != "" {
		set = strings.TrimLeft(set, " \t\n\r\f,")
		end := strings.IndexAny(set, " \t\n\r\f")
		if end < 0 {
			end = len(set)
		}
		u := set[:end]
		set = set[end:]
		s := 1.0
		if trimmed := strings.TrimRight(u, ","); trimmed != u {
			u = trimmed
		} else {
			var d string
			d, set, _ = strings.Cut(set, ",")
			if d = strings.TrimSpace(d); d != "" {
				if v, err := strconv.ParseFloat(d[:len(d)-1], 64); err == nil {
					s = v
				}
			}
		}
		if u != "" && s > size && !strings.HasPrefix(u, "data:") {
			best, size = u, s
		}
	}
	return best, size
}

// noscript emits the content of a noscript element: the image that a script would load later, or the
// text for readers without scripts.
func (w *walker) noscript(n *html.Node) {
	if wantsScripts(n) {
		return
	}
	if img := findTag(n, atom.Img); img != nil && strings.TrimSpace(plainText(n)) == "" {
		src := w.imageURL(img, img)
		if src == "" || w.seen[src] {
			return
		}
		if s := sibling(n, false); s != nil && isHidden(s) == "" && (s.DataAtom == atom.Img || s.DataAtom == atom.Picture) && w.imageURL(s, s) != "" && attr(s, "alt") == attr(img, "alt") {
			return
		}
		w.image(img)
		return
	}
	if wordCount(plainText(n)) >= 40 || findTag(n, atom.Iframe) != nil && !within(n, 1, atom.Body) {
		w.children(n)
	}
}

// figure emits the content of a figure, with the caption on its media, table, code or quote.
func (w *walker) figure(n *html.Node) {
	if w.tooDeep(n) {
		return
	}
	w.flush()
	captionNode := captionOf(n)
	caption := ""
	var spans []millrace.Span
	if captionNode != nil && !w.l.skip[captionNode] {
		find(captionNode, func(e *html.Node) bool {
			if hasClass(e, "sr-only", "visually-hidden", "screen-reader-text") {
				w.l.skip[e] = true // a description for screen readers
			}
			return false
		})
		caption, spans = w.line(func() { w.children(captionNode) })
	}
	extra := w.pending
	w.pending = nil
	blocks := w.inside(func() { w.except(n, captionNode) })
	blocks = append(blocks, extra...)
	gallery := findTag(n, atom.Figure) != nil // inner figures have their own captions
	for i := range blocks {
		if caption == "" || gallery {
			break
		}
		switch b := &blocks[i]; b.Type {
		case millrace.ImageBlock, millrace.VideoBlock, millrace.AudioBlock, millrace.TableBlock, millrace.CodeBlock:
			if len(blocks) == 1 || b.Type == millrace.ImageBlock || b.Type == millrace.VideoBlock || b.Type == millrace.AudioBlock {
				if b.Caption == "" {
					b.Caption, caption = strings.ReplaceAll(caption, "\n", " "), ""
				} else if b.Type == millrace.CodeBlock {
					b.Caption, caption = b.Caption+": "+strings.ReplaceAll(caption, "\n", " "), ""
				}
			}
		case millrace.QuoteBlock:
			if b.Cite == "" {
				b.Cite, caption = strings.TrimSpace(strings.TrimLeft(caption, "—–- ")), ""
			}
		}
	}
	if caption != "" {
		b := millrace.Block{Type: millrace.TextBlock, Text: caption, Spans: spans}
		if sibling(captionNode, false) == nil {
			blocks = append([]millrace.Block{b}, blocks...)
		} else {
			blocks = append(blocks, b)
		}
	}
	w.out = append(w.out, blocks...)
}

// captionOf returns the caption element of a figure.
func captionOf(n *html.Node) *html.Node {
	var last *html.Node
	for c := range children(n) {
		if c.DataAtom == atom.Figcaption || n.DataAtom == atom.Div && isFormalTitle(c) {
			return c
		}
		last = c
	}
	if c := findTag(n, atom.Figcaption); c != nil && n.DataAtom == atom.Figure {
		for p := c.Parent; p != n; p = p.Parent {
			if p.DataAtom == atom.Figure {
				return nil // it belongs to an inner figure
			}
		}
		return c
	}
	if last != nil && sibling(last, false) != nil && isCaptionClass(last) {
		return last
	}
	return nil
}

// isFormal reports whether an element is a formal object of DocBook: a figure, a table or a listing
// with a title.
func isFormal(n *html.Node) bool {
	if !hasClass(n, "figure", "table", "example") {
		return false
	}
	parts, title := 0, false
	for c := range children(n) {
		switch {
		case c.DataAtom == atom.A && c.FirstChild == nil, c.DataAtom == atom.Br:
		case isFormalTitle(c):
			title = true
		default:
			parts++
		}
	}
	return title && parts == 1
}

func isFormalTitle(n *html.Node) bool { return n.DataAtom == atom.P && hasClass(n, "title") }

func isCaptionClass(n *html.Node) bool {
	class := attr(n, "class")
	return len(class) > 6 && len(class) < 200 && strings.Contains(strings.ToLower(class), "caption")
}

// isFigure reports whether an element has the structure of a figure: one picture or video, and an
// element whose class marks a caption.
func isFigure(n *html.Node) bool {
	var media, caption *html.Node
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode && strings.TrimSpace(c.Data) != "":
			return false
		case c.Type != html.ElementNode:
		case media == nil && caption == nil:
			media = c
		case caption == nil && isCaptionClass(c):
			caption = c
		default:
			return false
		}
	}
	if caption == nil {
		return false
	}
	steps := 0
	is := func(e *html.Node) bool {
		steps++
		return steps > 200 || e.DataAtom == atom.Img || e.DataAtom == atom.Video || e.DataAtom == atom.Audio || e.DataAtom == atom.Iframe
	}
	return (is(media) || find(media, is) != nil) && steps <= 200 && plainText(media) == "" && findTag(caption, atom.Img) == nil
}

// media emits a video or an audio element.
func (w *walker) media(n *html.Node) {
	b := millrace.Block{Type: millrace.VideoBlock, URL: w.lazy(n, "src")}
	if n.DataAtom == atom.Audio {
		b.Type = millrace.AudioBlock
	} else {
		b.Poster = w.lazy(n, "poster")
	}
	for c := range children(n) {
		u := w.lazy(c, "src")
		if u == "" {
			continue
		}
		switch c.DataAtom {
		case atom.Source:
			if b.URL == "" {
				b.URL = u
			}
			b.Sources = append(b.Sources, millrace.MediaSource{URL: u, Type: attr(c, "type")})
		case atom.Track:
			b.Tracks = append(b.Tracks, millrace.Track{URL: u, Kind: attr(c, "kind"), Language: attr(c, "srclang"), Label: attr(c, "label")})
		}
	}
	if len(b.Sources) == 1 && b.Sources[0].URL == b.URL && b.Sources[0].Type == "" {
		b.Sources = nil
	}
	if b.URL == "" {
		return
	}
	w.emit(b)
}

// object handles an object element, which a plug-in may show. The content of the element is a
// fallback: a picture, a link, or a notice that the browser cannot show the object.
func (w *walker) object(n *html.Node) {
	src := w.resolve(attr(n, "data"))
	kind := strings.ToLower(attr(n, "type"))
	inner := find(n, func(e *html.Node) bool {
		switch e.DataAtom {
		case atom.A, atom.Img, atom.Embed, atom.Iframe, atom.Video, atom.Audio, atom.Object, atom.Table, atom.Pre:
			return true
		}
		return false
	})
	switch {
	case src == "" || inner != nil || w.l.skip[n] || kind != "" && !contains(kind, []string{"image/", "video/", "audio/", "text/html", "application/pdf"}):
		w.children(n)
	case strings.HasPrefix(kind, "image/") || kind == "" && isImageName(src):
		w.addAfterLine(millrace.Block{Type: millrace.ImageBlock, URL: src, Alt: folded(attr(n, "aria-label"))})
	default:
		w.emit(millrace.Block{Type: millrace.EmbedBlock, URL: src, Title: folded(attr(n, "title"))})
	}
}

// lazy returns the URL in an attribute, or in the attribute where a lazy loader keeps the URL until
// it is needed.
func (w *walker) lazy(n *html.Node, key string) string {
	if u := w.resolve(attr(n, key)); u != "" {
		return u
	}
	return w.resolve(attr(n, "data-"+key))
}

// facade adds the video that an element without a frame loads on a click, and reports whether n is
// such an element.
func (w *walker) facade(n *html.Node) bool {
	name := n.Data + " " + attr(n, "class")
	for kind, frame := range map[string]string{"youtube": "https://www.youtube.com/embed/", "vimeo": "https://player.vimeo.com/video/"} {
		if len(n.Attr) == 0 || !strings.Contains(name, kind) {
			continue
		}
		for _, key := range []string{"videoid", "data-videoid", "video-id", "data-video-id", "data-id", "data-youtube-id"} {
			if id := attr(n, key); id != "" && plainName("x"+id) {
				w.emit(millrace.Block{Type: millrace.EmbedBlock, Kind: kind, URL: frame + id, Title: attr(n, "title")})
				return true
			}
		}
	}
	return false
}

// providers are the hosts of embedded content. The name of a provider is the first label of its
// host, or the name after the colon.
const providers = `youtube.com youtube-nocookie.com:youtube youtu.be:youtube vimeo.com dailymotion.com twitter.com:x x.com instagram.com facebook.com
	tiktok.com spotify.com soundcloud.com codepen.io jsfiddle.net codesandbox.io stackblitz.com github.com google.com openstreetmap.org twitch.tv
	loom.com wistia.net bsky.app:bluesky datawrapper.de figma.com observablehq.com:observable ted.com`

// embed emits a frame with content from another site.
func (w *walker) embed(n *html.Node) {
	if isTiny(n) || isHidden(n) != "" {
		return
	}
	src := w.lazy(n, "src")
	if src == "" {
		src = w.resolve(attr(n, "data-lazy-src"))
	}
	u, err := url.Parse(src)
	if src == "" || err != nil {
		return
	}
	host := u.Hostname()
	if under(host, "googletagmanager.com") || under(host, "doubleclick.net") || under(host, "googlesyndication.com") || under(host, "recaptcha.net") ||
		strings.HasPrefix(u.Path, "/recaptcha/") {
		return
	}
	w.emit(millrace.Block{Type: millrace.EmbedBlock, URL: src, Kind: providerOf(host), Title: folded(attr(n, "title"))})
}

// providerOf returns the name of a host's provider, or the host itself.
func providerOf(host string) string {
	for p := range strings.FieldsSeq(providers) {
		domain, name, named := strings.Cut(p, ":")
		if under(host, domain) {
			if !named {
				name, _, _ = strings.Cut(domain, ".")
			}
			return name
		}
	}
	return strings.TrimPrefix(host, "www.")
}

func under(host, domain string) bool {
	return host == domain || strings.HasSuffix(host, "."+domain)
}
