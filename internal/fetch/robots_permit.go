package fetch

import (
	"context"
	"net/url"
	"strings"
)

// maxComments limits the stored comments of a robots.txt.
const maxComments = 100

// comment stores a comment line.
func (p *robotsParser) comment(s string) {
	text, ok := strings.CutPrefix(strings.TrimSpace(s), "#")
	if ok && len(p.comments) < maxComments && len(text) <= maxOther {
		p.comments = append(p.comments, strings.TrimSpace(strings.ToValidUTF8(text, "\ufffd")))
	}
}

// Comments returns the comment lines of the file without "#": the first 100, of up to 2,048 bytes
// each. It returns none if a group names the product, since in that case the comments address other
// products.
func (r *Robots) Comments() []string {
	if r == nil {
		return nil
	}
	return r.comments
}

type permit struct{}

// Permit returns a context in which requests for target, with any query, are allowed even if
// robots.txt disallows them. Use it for URLs that the owner allows elsewhere, such as in a comment
// of the file. A target that ends in "/" includes all URLs below it.
func Permit(ctx context.Context, target string) context.Context {
	target, _, _ = strings.Cut(target, "?")
	return context.WithValue(ctx, permit{}, target)
}

// Permitted reports whether [Permit] covers u in ctx.
func Permitted(ctx context.Context, u *url.URL) bool {
	target, ok := ctx.Value(permit{}).(string)
	pageOnly := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return ok && (pageOnly.String() == target || strings.HasSuffix(target, "/") && strings.HasPrefix(pageOnly.String(), target))
}

// Overruled reports whether the rule that disallows target also covers list, which a longer rule
// allows. An owner who disallows the site but allows its list also allows the URLs in that list.
func (r *Robots) Overruled(target, list string) bool {
	rule := r.refusal(target)
	return rule != nil && r.Allowed(list) && rule.matches(normalTarget(list, false))
}
