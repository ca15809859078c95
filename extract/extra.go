package extract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/millrace/millrace"
)

// Extra computes the data of one protocol from a document: an element of [millrace.Page.Extra], in
// addition to the fields of every page. Pages do not keep their HTML, so a protocol must compute
// here whatever it needs from the HTML.
type Extra struct {
	// Version increases whenever the same document may give a different value. It is part of
	// [Rules.Fingerprint], so pages are then extracted again.
	Version int
	// Prefix is the common prefix of the attribute names that Make reads, in lower case, such as
	// "data-ai-". Make is called only for documents with such an attribute, unless Forms applies.
	// The check costs almost nothing. If Prefix is empty, Make is called for every document.
	Prefix string
	// Forms reports whether Make is also called for documents with forms in their content.
	Forms bool
	// Prepare changes a tree that contains attributes with Prefix, before the extraction reads the
	// tree. Elements that Prepare removes appear in no field of the page. If Prepare is nil, nothing
	// changes. Prepare may be called concurrently.
	Prepare func(tree *html.Node)
	// Make returns valid JSON, or nil for no value. It neither changes nor retains the document,
	// and may be called concurrently. If it returns an error, the page has no value, and
	// [Result.Failed] reports the error. Only an error of the context ends the extraction.
	Make func(ctx context.Context, d *Document) (json.RawMessage, error)
}

// Document is the input of an [Extra].
type Document struct {
	// Tree is the whole document without the elements that rules drop. For a fragment, it is a
	// document whose body contains only the fragment.
	Tree *html.Node
	// Content is the root of the content, which may include boilerplate. If nil, the document has no
	// content.
	Content *html.Node
	// Forms are the visible forms of the content in document order, at most 100. They exclude
	// search forms and the forms of menus, footers and comments.
	Forms []*html.Node
	Page  *millrace.Page // the page without its Extra; for a fragment, only URL, Blocks, Known and Detail are set
	Base  *url.URL       // base URL of references

	l      *located
	wanted []bool // for each extra, whether the document has attributes with its Prefix
}

// Skipped reports whether an element of the content is left out with its whole subtree.
func (d *Document) Skipped(n *html.Node) bool { return d.l != nil && d.l.skip[n] }

// maxForms is the maximum length of [Document.Forms].
const maxForms = 100

// extra is an Extra with its protocol.
type extra struct {
	Extra
	proto string
}

// extras returns the extras in a fixed order.
func extras(of map[string]Extra) []extra {
	list := make([]extra, 0, len(of))
	for _, proto := range slices.Sorted(maps.Keys(of)) {
		list = append(list, extra{of[proto], proto})
	}
	return list
}

// prepare reports, for each extra, whether the tree has attributes with its Prefix. If so, it calls
// Prepare.
func (r *Rules) prepare(tree *html.Node) (wanted []bool) {
	if r == nil || len(r.extras) == 0 {
		return nil
	}
	wanted = make([]bool, len(r.extras))
	for i := range r.extras {
		e := &r.extras[i]
		wanted[i] = e.Prefix == "" || hasPrefix(tree, e.Prefix)
		if wanted[i] && e.Prepare != nil {
			e.Prepare(tree)
		}
	}
	return wanted
}

// extra computes the extras that apply to a document. It marks Extra as known even if there are no
// values.
func (r *Rules) extra(ctx context.Context, d *Document, res *Result) error {
	if r == nil || len(r.extras) == 0 {
		return nil
	}
	d.Page.Known |= millrace.FieldExtra
	d.Forms = d.l.forms()
	for i := range r.extras {
		e := &r.extras[i]
		if !d.wanted[i] && !(e.Forms && len(d.Forms) > 0) {
			continue
		}
		value, err := e.Make(ctx, d)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && value != nil && !json.Valid(value):
			err = fmt.Errorf("%w: the result is not JSON", millrace.ErrInvalid)
			fallthrough
		case err != nil:
			if res != nil {
				if res.Failed == nil {
					res.Failed = map[string]error{}
				}
				res.Failed[e.proto] = err
			}
		case value != nil:
			if d.Page.Extra == nil {
				d.Page.Extra = map[string]json.RawMessage{}
			}
			d.Page.Extra[e.proto] = value
		}
	}
	return nil
}

// content returns the root, or nil if there is no content.
func (l *located) content() *html.Node {
	if l.why != nil {
		return nil
	}
	return l.root
}

// forms returns the forms of the content.
func (l *located) forms() (list []*html.Node) {
	if l.why != nil {
		return nil
	}
	for _, i := range l.c.forms {
		b := &l.c.boxes[i]
		if b.drop != "" && b.drop != formTag || isHidden(b.n) != "" {
			continue
		}
		p := b.n
		for p != nil && p != l.root && (p == b.n || !l.skip[p] && isHidden(p) == "") {
			p = p.Parent
		}
		if p == l.root {
			list = append(list, b.n)
		}
	}
	return list
}

// formTag is the reason for leaving out a form that consists only of fields.
const formTag = "tag form"

// hasPrefix reports whether an element has an attribute whose name starts with a prefix. The names
// in a tree are in lower case.
func hasPrefix(n *html.Node, prefix string) bool {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		for i := range c.Attr {
			if strings.HasPrefix(c.Attr[i].Key, prefix) {
				return true
			}
		}
		if c.FirstChild != nil && hasPrefix(c, prefix) {
			return true
		}
	}
	return false
}

var errNoMake = errors.New("option Make is nil")
