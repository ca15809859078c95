package dashboard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/config"
	"github.com/millrace/millrace/origin/folder"
)

// owned is a handbook site with its HTML, and with rules that can be saved. One of its pages
// contains an advertisement.
type owned struct {
	*handbook
	rules extract.RulesOptions
	saved int
	fail  error // of saving
}

func newOwned(t testing.TB) *owned {
	t.Helper()
	o := &owned{handbook: newHandbook(t, "https://handbook.test/", false)}
	o.write(t, "promo.html", `<!DOCTYPE html><html lang="en"><title>Promo &lt;b&gt;</title><main><h1>Promo</h1><p>What is in this page is about the mill, and is long enough to be taken for content.</p>
<div class="promo"><p>Buy a wheel of ours today, and get a second one for nothing at all.</p></div><p>The wheel turns again, and the mill goes on with its work.</p></main></html>`)
	o.write(t, "hostile.html", "<!DOCTYPE html><html lang=en><title>A <script>alert(1)</script> \u202e page</title><main><h1>Hostile</h1><p>&lt;img src=x onerror=alert(1)&gt; \u202e What stands here is long enough to be content, and is to be seen as it is.</p></main>")
	o.write(t, strings.Repeat("overshot", 14)+".html", "<!DOCTYPE html><html lang=de><title>"+strings.Repeat("Muehlrad", 20)+"</title><main><p>Ein Name ohne Ende steht in einer Tabelle, und was daneben steht, soll doch zu sehen sein.</p></main>")
	f, err := folder.New(o.dir, &folder.Options{Base: o.Base})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	o.take()
	if _, err := o.Server.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range f.Changes(t.Context(), "") { // Original works only after a complete walk
	}
	o.Original = f.Original
	o.Rules = &o.rules
	o.Save = func(_ context.Context, changes config.Changes) error {
		keep, drop := changes.Lists["keep"], changes.Lists["drop"]
		if o.fail != nil {
			return o.fail
		}
		o.saved++
		o.rules.Keep, o.rules.Drop = keep, drop
		return nil
	}
	return o
}

func (o *owned) write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// surfer is a logged-in client without a browser.
type surfer struct {
	t      *testing.T
	b      *board
	client *http.Client
}

func newSurfer(t *testing.T, b *board) *surfer {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &surfer{t, b, &http.Client{Jar: jar}}
	t.Cleanup(v.client.CloseIdleConnections)
	v.post("login", v.get("login"), "password", boardPassword)
	return v
}

func (v *surfer) read(resp *http.Response, err error) (int, string) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// get returns a page; its status is 200.
func (v *surfer) get(path string, query ...any) string {
	v.t.Helper()
	status, body := v.read(v.client.Get(v.b.url + withQuery(path, query...)))
	if status != http.StatusOK {
		v.t.Fatalf("%s %v: %d\n%s", path, query, status, body)
	}
	return body
}

var tokenInput = regexp.MustCompile(`name="csrf" value="([^"]*)"`)

// post sends a form of a page.
func (v *surfer) post(path, page string, values ...string) (int, string) {
	v.t.Helper()
	form := url.Values{}
	for i := 0; i < len(values); i += 2 {
		form.Set(values[i], values[i+1])
	}
	if m := tokenInput.FindStringSubmatch(page); m != nil {
		form.Set("csrf", m[1])
	}
	return v.read(v.client.PostForm(v.b.url+path, form))
}

// HTML of an error message and of an empty list.
const (
	badMessage = `<p class="message bad" role="alert">`
	emptyList  = `<div class="empty">`
)

func (v *surfer) holds(body string, want ...string) {
	v.t.Helper()
	for _, s := range want {
		if !strings.Contains(body, s) {
			v.t.Errorf("%q is missing in\n%s", s, body)
		}
	}
}

// The list of pages can be read in parts, searched by prefix or words, and ordered by traffic.
func TestPages(t *testing.T) {
	t.Parallel()
	o := newOwned(t)
	for i := range 60 {
		o.write(t, fmt.Sprintf("many-%02d.html", i), fmt.Sprintf("<!DOCTYPE html><title>Many %02d</title><main><h1>Many</h1><p>The page of number %d, which says enough to be content of its own.</p></main>", i, i))
	}
	o.take()
	if _, err := o.Server.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	seed(t, o.handbook, 3)
	v := newSurfer(t, newBoard(t, o.SiteOptions, seedTime))
	rows := func(body string) []string {
		var out []string
		for _, m := range regexp.MustCompile(`<span class="address">([^<]*)</span>`).FindAllStringSubmatch(body, -1) {
			out = append(out, m[1])
		}
		return out
	}
	all := v.get("pages")
	next := regexp.MustCompile(`href="/dashboard/(pages\?[^"]*)" rel="next"`).FindStringSubmatch(all)
	if got := rows(all); len(got) != rowsPerPage || next == nil {
		t.Fatalf("%d pages, next %q", len(got), next)
	}
	rest := v.get(strings.ReplaceAll(next[1], "&amp;", "&"))
	if got := append(rows(all), rows(rest)...); len(got) != o.Server.Current().View.Site().Pages {
		t.Errorf("%d pages in two parts: %q", len(got), got)
	}
	v.holds(rest, "Back to the start")
	for query, want := range map[string]string{"/many-0": "/many-00.html", "/promo.html": "/promo.html", "many 07": "/many-07.html", "PROMO": "/promo.html"} {
		got := rows(v.get("pages", "q", query))
		if len(got) == 0 || got[0] != want || query == "/many-0" && len(got) != 10 || query == "/promo.html" && len(got) != 1 {
			t.Errorf("%q finds %q", query, got)
		}
	}
	v.holds(v.get("pages", "q", "/nothing-like-this"), emptyList)
	v.holds(v.get("pages", "order", byChange, "after", "/no-such-page.html"), badMessage)
	if got := rows(v.get("pages", "order", byTraffic)); len(got) == 0 || got[0] == "/many-00.html" {
		t.Errorf("most read: %q", got)
	}
	hostile := v.get("pages", "q", "hostile")
	v.holds(hostile, "A &lt;script&gt;alert(1)&lt;/script&gt; \ufffd page")
	if strings.Contains(hostile, "<script>alert") || strings.Contains(hostile, "\u202e") {
		t.Error("a title is not shown as text")
	}
}

// A page is shown in every protocol: the response of the gateway, or the page's part of a
// document of many pages.
func TestPageForms(t *testing.T) {
	t.Parallel()
	for _, guarded := range []bool{false, true} {
		h := newHandbook(t, "https://handbook.test/", guarded)
		b := newBoard(t, h.SiteOptions, seedTime)
		view := h.Server.Current().View
		page, err := view.Page(t.Context(), millrace.Ref{URL: "/about/"})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range b.forms(t.Context(), view, page) {
			if !f.Carried || f.Err != nil || len(f.Bodies) == 0 {
				t.Errorf("%s: %+v", f.Name, f)
				continue
			}
			body := f.Bodies[0]
			if !body.Part && body.Status != http.StatusOK || !strings.Contains(body.Text, "about") || body.Size == 0 {
				t.Errorf("guarded %t, %s: %+v", guarded, f.Name, body)
			}
			t.Logf("guarded %t, %s: %s, part %t, %d bytes, without %q", guarded, f.Name, body.Path, body.Part, body.Size, f.Lost)
		}
		if guarded {
			continue
		}
		v := newSurfer(t, b)
		for _, proto := range h.Protocols {
			v.holds(v.get("page", "url", "/about/", "protocol", proto.Name), "In each protocol", proto.Name)
		}
		v.holds(v.get("page", "url", "/about/", "as", asHTML), emptyList)
		v.holds(v.get("page", "url", "/about/", "as", asRules), emptyList)
		if status, _ := v.read(v.client.Get(b.url + "page?url=/no-such-page")); status != http.StatusNotFound {
			t.Errorf("a missing page: %d", status)
		}
	}
}

// The dashboard explains the extraction of a page, tries rules without saving them, and saves
// rules.
func TestPageRules(t *testing.T) {
	t.Parallel()
	o := newOwned(t)
	v := newSurfer(t, newBoard(t, o.SiteOptions, seedTime))
	v.holds(v.get("page", "url", "/hostile.html", "as", asHTML), "&lt;script&gt;alert(1)&lt;/script&gt;", "Sources of the fields")
	v.holds(v.get("page", "url", "/about/", "as", asHTML), "site-footer", "tag footer", "Try to keep")
	tried := v.get("page", "url", "/promo.html", "as", asRules, "keep", "", "drop", ".promo\n\n .nowhere ")
	v.holds(tried, "<del>Buy a wheel of ours today, and get a second one for nothing at all.</del>", "<code>drop .nowhere</code>", "Save rules", "  - &#34;.promo&#34;")
	if o.saved != 0 {
		t.Fatal("a trial saved the rules")
	}
	v.holds(v.get("page", "url", "/promo.html", "as", asRules, "drop", "a:hover"), `&#34;a:hover&#34;`, badMessage)
	v.holds(v.get("page", "url", "/promo.html", "as", asRules, "drop", "html"), `<div class="tile bad">`)
	if status, body := v.post("page/rules", "", "url", "/promo.html", "drop", ".promo"); status != http.StatusForbidden || o.saved != 0 {
		t.Errorf("without a token: %d\n%s", status, body)
	}
	o.fail = fmt.Errorf("millrace.yaml: %w: the file has changed", millrace.ErrConflict)
	if status, body := v.post("page/rules", tried, "url", "/promo.html", "drop", ".promo"); status != http.StatusConflict || !strings.Contains(body, badMessage) || !strings.Contains(body, "millrace.yaml") {
		t.Errorf("%d\n%s", status, body)
	}
	o.fail = nil
	if status, body := v.post("page/rules", tried, "url", "/promo.html", "keep", "", "drop", ".promo\r\n.x > b"); status != http.StatusOK || strings.Contains(body, badMessage) {
		t.Errorf("%d\n%s", status, body)
	}
	if diff := cmp.Diff([]string{".promo", ".x > b"}, o.rules.Drop); diff != "" || o.saved != 1 || len(o.rules.Keep) != 0 {
		t.Error(diff, o.saved, o.rules.Keep)
	}
	v.holds(v.get("page", "url", "/promo.html", "as", asRules), ".promo\n.x &gt; b")
	if status, body := v.post("page/rules", tried, "url", "/promo.html", "drop", ".promo\n.x > b"); status != http.StatusOK || o.saved != 1 || strings.Contains(body, badMessage) {
		t.Errorf("%d\n%s", status, body)
	}
	o.Save = nil
	v.holds(v.get("page", "url", "/promo.html", "as", asRules, "drop", ".banner"), "drop:\n  - &#34;.banner&#34;")
}

// A trial counts the pages whose HTML is no longer stored, and tries the others.
func TestTrialWithoutOriginals(t *testing.T) {
	t.Parallel()
	o := newOwned(t)
	read := o.Original
	o.Original = func(ctx context.Context, ref millrace.Ref) ([]byte, *extract.Options, error) {
		if strings.Contains(ref.URL, "promo") || strings.Contains(ref.URL, "about") {
			return nil, nil, millrace.ErrNotFound
		}
		return read(ctx, ref)
	}
	view := o.Server.Current().View
	page, err := view.Page(t.Context(), millrace.Ref{URL: "/promo.html"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := o.try(t.Context(), view, page, &o.rules, nil, []string{"h2"})
	if err != nil || got.Page != nil || got.Missing == 0 || len(got.Others) == 0 || got.Changed() == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	failure := errors.New("the disk has failed")
	o.Original = func(context.Context, millrace.Ref) ([]byte, *extract.Options, error) { return nil, nil, failure }
	if got, err := o.try(t.Context(), view, page, &o.rules, nil, []string{"h2"}); !errors.Is(err, failure) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	lines := strings.Fields
	write := func(d []diffLine) string {
		var out []string
		for _, l := range d {
			switch {
			case l.Omitted > 0:
				out = append(out, fmt.Sprintf("~%d", l.Omitted))
			case l.Other:
				out = append(out, "!"+l.Text)
			default:
				out = append(out, l.Text)
			}
		}
		return strings.Join(out, " ")
	}
	long := strings.Repeat("x ", 3000)
	for _, c := range []struct{ before, after, was, is string }{
		{"", "", "", ""},
		{"a b c", "a b c", "a b c", "a b c"},
		{"a b c", "a c", "a !b c", "a c"},
		{"a c", "a b c d", "a c", "a !b c !d"},
		{"a b c d e f g h i j", "a b c d e f g h X j", "~5 f g h !i j", "~5 f g h !X j"},
		{"1 2 3 4 5 6 7 8 9", "1 2 3 4 5 6 7 8 9", "1 2 3 4 5 6 ~3", "1 2 3 4 5 6 ~3"},
		{"", "a", "", "!a"},
		{"a b a b", "b a b a", "!a b a b", "b a b !a"},
		{"p " + long + " q", "r s", "", ""},
	} {
		before, after := diff(lines(c.before), lines(c.after))
		if len(c.before) > 1000 {
			continue // checks only that diff returns
		}
		if write(before) != c.was || write(after) != c.is {
			t.Errorf("%q, %q: %q, %q", c.before, c.after, write(before), write(after))
		}
	}
}
