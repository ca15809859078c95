package arc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/snapshot"
)

// maxPage is the maximum size in bytes of a page that is fetched from its own URL.
const maxPage = 50 << 20

// Page fetches a page that is listed without a snapshot from its own URL (E.11). For a page with a
// snapshot in the list, the error is [errors.ErrUnsupported].
func (r *reader) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	var err error
	if have.URL, err = r.Resolve(have.URL); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if have.Location == "" {
		return nil, fmt.Errorf("%s: page %s: no location to fetch: %w", Name, have.URL, errors.ErrUnsupported)
	}
	rules, err := extract.NewRules(&extract.RulesOptions{Extra: snapshot.Extra()})
	if err != nil {
		return nil, fmt.Errorf("%s: page: %w", Name, err)
	}
	by := strconv.Itoa(extract.Version) + " " + rules.Fingerprint()
	was, listed := parsePageState(have.Version), ""
	if v, ok := r.listed.Take(have.URL); ok {
		listed = v
	}
	switch {
	case was.By != by:
		was = pageState{} // the rules have changed and may give a different page
	case listed != "" && was.Listed == listed:
		return nil, fmt.Errorf("%s: page %s: the list entry has not changed: %w", Name, have.URL, millrace.ErrUnmodified)
	}
	if err := r.pace.wait(ctx); err != nil {
		return nil, fmt.Errorf("%s: page %s: %w", Name, have.URL, err)
	}
	p, v, err := r.ask(ctx, have.URL, was.Validators, rules)
	if err != nil {
		return nil, err
	}
	p.Version = pageState{listed, v, by}.encode()
	return p, nil
}

// pageState is the version of a page that was fetched from its own URL: its version in the list,
// the validators of its server, and the extraction rules. If the list has the same version again,
// no request is needed. Otherwise the request is conditional.
type pageState struct {
	Listed string `json:"listed,omitempty"`
	fetch.Validators
	By string `json:"by"`
}

func (h pageState) encode() string {
	b, err := json.Marshal(h)
	if err != nil {
		panic("arc: encode strings: " + err.Error())
	}
	return string(b)
}

// parsePageState parses the version of a page that was fetched from its own URL. For any other
// version, such as that of a page with a snapshot, it returns the zero value.
func parsePageState(version string) (h pageState) {
	if json.Unmarshal([]byte(version), &h) != nil {
		return pageState{}
	}
	return h
}

// ask fetches the HTML of a page.
func (r *reader) ask(ctx context.Context, page string, v fetch.Validators, rules *extract.Rules) (*millrace.Page, fetch.Validators, error) {
	fail := func(err error) (*millrace.Page, fetch.Validators, error) {
		return nil, fetch.Validators{}, err
	}
	resp, err := r.Get(ctx, page, "text/html, application/xhtml+xml, */*;q=0.1", v)
	if err != nil {
		return fail(fmt.Errorf("%s: page: %w", Name, err))
	}
	defer resp.Body.Close()
	final, err := canon.URL(resp.Request.URL.String())
	if err != nil || canon.Origin(final) != canon.Origin(page) && canon.Origin(final) != canon.Origin(r.Root) {
		return fail(r.FormatError(page, "E.4", "redirects to another origin: "+canon.Origin(final), err))
	}
	if resp.StatusCode == http.StatusNotModified && v == (fetch.Validators{}) {
		return fail(r.FormatError(page, "E.5", "304 for an unconditional request", nil))
	}
	if err := fetch.CheckStatus(resp); err != nil {
		return fail(fmt.Errorf("%s: page: %w", Name, err))
	}
	if v.ETag != "" && resp.Header.Get("ETag") == v.ETag {
		r.Note("reader/conditional", page, "sent the whole page although the ETag has not changed")
		return fail(fmt.Errorf("%s: page %s: %w", Name, page, millrace.ErrUnmodified))
	}
	body, err := fetch.ReadBody(resp, maxPage)
	if err != nil {
		return fail(fmt.Errorf("%s: page: %w", Name, err))
	}
	res, err := extract.HTML(ctx, body, final, &extract.Options{
		ContentType: resp.Header.Get("Content-Type"), Robots: resp.Header.Values("X-Robots-Tag"), Rules: rules, MaxBytes: maxPage,
	})
	if err != nil {
		return fail(fmt.Errorf("%s: page %s: %w", Name, page, err))
	}
	p := annotated(res.Page)
	if res.Reason != nil && p == res.Page {
		return fail(fmt.Errorf("%s: page %s: no content: %w: %w", Name, page, res.Reason, millrace.ErrInvalid))
	}
	p.URL = page
	return p, fetch.ValidatorsOf(resp), nil
}

// annotated returns the page with the values of its attributes, as if the list contained its
// snapshot. Other values come from the HTML. If p has no attributes, annotated returns p.
func annotated(p *millrace.Page) *millrace.Page {
	root := parseNode(p.Extra[Name])
	if root == nil || root.text("page") == "" {
		return p
	}
	own := (&entry{Indexable: true, Snapshot: p.Extra[Name]}).page()
	out := p.Clone()
	out.Title = cmp.Or(own.Title, out.Title)
	out.Summary = cmp.Or(cutSpace(root.text("summary")), out.Summary)
	if own.Kind != "" {
		out.Kind = own.Kind
	}
	// The HTML must not restore the text of a part that the snapshot omits.
	if len(own.Blocks) > 0 || len(root.sensitive()) > 0 {
		out.Blocks, out.Detail = own.Blocks, own.Detail
	}
	return out
}
