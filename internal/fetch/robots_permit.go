package fetch

import (
	"context"
	"net/url"
	"strings"
)

// maxComments is how many comments of a robots.txt are kept.
const maxComments = 100

// comment keeps a line that is a comment.
func (p *robotsParser) comment(s string) {
	text, ok := strings.CutPrefix(strings.TrimSpace(s), "#")
	if ok && len(p.comments) < maxComments && len(text) <= maxOther {
		p.comments = append(p.comments, strings.TrimSpace(strings.ToValidUTF8(text, "\ufffd")))
	}
}

// Comments returns the lines of the file that are comments, without "#": the
// first 100, of up to 2,048 bytes each. A file with a group for the product by
// name has none: what it says to everybody else is not said to the product.
func (r *Robots) Comments() []string {
	if r == nil {
		return nil
	}
	return r.comments
}

type permit struct{}

// Permit returns a context in which robots.txt does not refuse a URL, whatever
// its query, because the owner has said otherwise elsewhere, such as in a comment
// of that file. One that ends in "/" stands for all below it.
func Permit(ctx context.Context, target string) context.Context {
	target, _, _ = strings.Cut(target, "?")
	return context.WithValue(ctx, permit{}, target)
}

// Permitted reports whether [Permit] names a URL.
func Permitted(ctx context.Context, u *url.URL) bool {
	target, ok := ctx.Value(permit{}).(string)
	bare := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return ok && (bare.String() == target || strings.HasSuffix(target, "/") && strings.HasPrefix(bare.String(), target))
}

// Overruled reports whether the rule that disallows a target would also disallow
// a list, which a longer rule allows: the owner who keeps robots out of the site
// and lets them have its list lets them have what the list says.
func (r *Robots) Overruled(target, list string) bool {
	rule := r.refusal(target)
	return rule != nil && r.Allowed(list) && rule.matches(normalTarget(list, false))
}
