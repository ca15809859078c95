package extract

import (
	"bytes"
	"context"
	"fmt"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// Fragment returns the blocks of HTML that consists only of content, such as the rendered content
// of a post from a REST interface, or an entry of a feed. It does not search for the content. It
// leaves out only what is never content: scripts, styles, forms, hidden elements, and additions of
// plugins, such as share buttons and lists of other posts. It keeps every heading, because the title
// of the post is elsewhere.
//
// data is UTF-8. [Options.ContentType] and [Options.Robots] are ignored. References are resolved
// against pageURL, which is absolute or a path under [Options.Base]. The errors are those of
// [HTML]. A fragment without content has no blocks.
func Fragment(ctx context.Context, data []byte, pageURL string, o *Options) ([]millrace.Block, error) {
	f, err := newPiece(ctx, data, pageURL, o)
	if err == nil {
		return f.blocks, nil
	}
	return nil, fmt.Errorf("extract %s: %w", pageURL, err)
}

// Content is like [Fragment] for HTML that is the complete content of a page. The page has its URL,
// its blocks and its [Extra]; only these fields are known.
func Content(ctx context.Context, data []byte, pageURL string, o *Options) (*millrace.Page, error) {
	f, err := newPiece(ctx, data, pageURL, o)
	if err != nil {
		return nil, fmt.Errorf("extract %s: %w", pageURL, err)
	}
	p := &millrace.Page{URL: pageURL, Blocks: f.blocks, Known: millrace.FieldContent, Detail: millrace.DetailBlocks}
	if o != nil {
		f.Page = p
		if err := o.Rules.extra(ctx, &f.Document, nil); err != nil {
			return nil, fmt.Errorf("extract %s: %w", pageURL, err)
		}
	}
	return p, nil
}

// piece is a parsed fragment.
type piece struct {
	Document
	blocks []millrace.Block
}

func newPiece(ctx context.Context, data []byte, pageURL string, o *Options) (*piece, error) {
	if o == nil {
		o = &Options{}
	}
	base, err := pageBase(pageURL, o.Base)
	if err != nil {
		return nil, err
	}
	if err := o.fits(data); err != nil {
		return nil, err
	}
	// Inside a body element, the parser does not move the first elements to the head, and ignores
	// framesets.
	text := append([]byte("<!DOCTYPE html><body>"), bytes.ToValidUTF8(data, []byte("\uFFFD"))...)
	doc, err := parse(ctx, text, o.nodes())
	if err != nil {
		return nil, err
	}
	wanted := o.Rules.prepare(doc)
	c, err := collect(ctx, doc, nil)
	if err != nil {
		return nil, err
	}
	if k, _ := o.Rules.match(c, doc, nil); k != nil {
		k.run()
		if c, err = collect(ctx, doc, k); err != nil {
			return nil, err
		}
	}
	l := &located{c: c, root: c.body, skip: map[*html.Node]bool{}, total: c.boxes[0]}
	for i := int32(1); i < int32(len(c.boxes)); {
		b := &c.boxes[i]
		if b.drop = l.foreign(b); b.drop != "" && (c.rules == nil || !c.rules.around[b.n]) {
			i = b.end
			continue
		}
		i++
	}
	l.leaveOut()
	blocks, err := newWalker(ctx, c, l, base, base.String()).run(l.root)
	if err != nil {
		return nil, err
	}
	return &piece{Document{Tree: doc, Content: l.root, Base: base, l: l, wanted: wanted}, blocks}, nil
}

// foreign returns the reason why a box is never content, wherever it is, or "" if it may be
// content.
func (l *located) foreign(b *box) string {
	n := b.n
	if why := isHidden(n); why != "" {
		if l.holdsNotes(n) || l.c.controlled[attr(n, "id")] {
			return ""
		}
		return why
	}
	switch role := attr(n, "role"); role {
	case "search", "toolbar", "menu", "menubar", "tooltip", "dialog", "alertdialog":
		return "role " + role
	}
	switch {
	case n.DataAtom == atom.Form:
		if b.prose < 40 {
			return formTag
		}
	case hasClass(n, pluginClasses...):
		return "plugin"
	case consentTools[attr(n, "id")]:
		return "consent"
	}
	return ""
}

// pluginClasses are the classes of elements that common plugins add to the content of a post:
// share buttons, lists of other posts, counters.
var pluginClasses = []string{
	"sharedaddy", "jp-relatedposts", "addtoany_share_save_container", "addtoany_content", "heateor_sss_sharing_container", "essb_links",
	"ssba", "shareaholic-canvas", "social-share", "share-buttons", "post-views", "yarpp", "yarpp-related", "rp4wp-related-posts", "crp_related",
	"wp-block-search", "wp-block-login", "wp-block-comments", "wp-block-post-comments-form", "post-password-form",
}
