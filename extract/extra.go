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

// Extra computes the data of one protocol from a document, beside the fields
// that every page has: an element of [millrace.Page.Extra]. There is no HTML
// left once a page is made, so whatever a protocol wants of it is made here.
type Extra struct {
	// Version rises whenever the same document may give another value: it is a
	// part of [Rules.Fingerprint], so that pages are made again.
	Version int
	// Prefix is what the names of the attributes begin with that Make reads,
	// in lower case, such as "data-ai-"; "" = it reads all. To find out costs
	// next to nothing: a document that has none is none for Make, unless Forms
	// says so.
	Prefix string
	// Forms: documents with forms in their content are for Make, too.
	Forms bool
	// Prepare changes a tree that is for Make by its Prefix before anything is
	// read of it, so that what it takes out is in no field of the page; nil =
	// nothing. It may be called concurrently.
	Prepare func(tree *html.Node)
	// Make returns valid JSON, or nil for nothing. It neither changes the
	// document nor keeps it, and may be called concurrently. An error leaves
	// the page without a value, and [Result.Failed] reports it; only an error
	// of the context ends the extraction.
	Make func(ctx context.Context, d *Document) (json.RawMessage, error)
}

// Document is what an [Extra] is made of.
type Document struct {
	// Tree is the whole document, without what rules drop. Of a fragment it is
	// a document whose body holds that and nothing else.
	Tree *html.Node
	// Content is where the content is, with furniture that may be in it; nil if
	// none.
	Content *html.Node
	// Forms are those of the content in document order, 100 at most: not those
	// that search, nor those of menus, footers and comments. Hidden ones are
	// not among them.
	Forms []*html.Node
	Page  *millrace.Page // done but for its Extra; of a fragment only URL, Blocks and Detail
	Base  *url.URL       // which references are resolved against

	l      *located
	wanted []bool // by whom, for its attributes
}

// Skipped reports whether an element of the content is left out with all that it
// holds.
func (d *Document) Skipped(n *html.Node) bool { return d.l != nil && d.l.skip[n] }

// maxForms is the maximum length of [Document.Forms].
const maxForms = 100

// extra is an Extra and the protocol that it is for.
type extra struct {
	Extra
	proto string
}

// extras puts what is to be made into an order.
func extras(of map[string]Extra) []extra {
	list := make([]extra, 0, len(of))
	for _, proto := range slices.Sorted(maps.Keys(of)) {
		list = append(list, extra{of[proto], proto})
	}
	return list
}

// prepare says which extras a tree is for by its attributes, and lets these
// change it.
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

// extra makes all that the rules ask for of a document. It speaks for what a page
// has beside its fields, also if that is nothing.
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

// formTag is why a form is left out that says nothing but what to fill in.
const formTag = "tag form"

// hasPrefix reports whether an element has an attribute whose name begins in
// some way. Names in a tree are in lower case.
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

var errNoMake = errors.New("Make is nil")
