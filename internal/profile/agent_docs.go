package profile

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/commonmark"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/weblink"
)

// Limits of the specification.
const (
	maxChars    = 50_000    // characters of a text that an agent reads at once
	maxTransfer = 1_000_000 // bytes of a page
	maxAge      = 3600      // seconds for which a cache may use a document without revalidation
)

var (
	h1      = regexp.MustCompile(`(?m)^# \S`)
	quoted  = regexp.MustCompile(`(?m)^> \S`)
	section = regexp.MustCompile(`(?m)^## \S`)
	tabbed  = regexp.MustCompile(`(?i)role\s*=\s*["']?tabpanel`)
	panels  = regexp.MustCompile(`(?is)role\s*=\s*["']?tabpanel.*?</section>|role\s*=\s*["']?tabpanel.*?</div>`)
	heading = regexp.MustCompile(`(?is)<h[1-6]\b[^>]*>(.*?)</h[1-6]>`)
	paged   = regexp.MustCompile(`(?i)\b(next page|continued on|page \d+ of \d+)\b`)
	target  = regexp.MustCompile(`\]\([^)\n]*\)`)
	refresh = regexp.MustCompile(`(?i)<meta[^>]+http-equiv\s*=\s*["']?refresh`)
	bulky   = regexp.MustCompile(`(?is)<table\b.*?</table>|<pre\b.*?</pre>`)
)

// docsRules returns the rules of the Agent-Friendly Documentation Spec.
func docsRules(rule func(section, word, sentence, fix string, f check.SiteCheck[*site]) check.Rule) []check.Rule {
	const byMillrace = " millrace serve does this."
	return []check.Rule{
		rule(afdocs, "llms-txt-exists", "The site has an llms.txt.", "Publish /llms.txt."+byMillrace, func(_ context.Context, s *site, fail check.Fail) error {
			if s.llms == nil {
				fail(s.At("/llms.txt"), "no llms.txt", "a list of the pages with links to their Markdown")
			}
			return nil
		}),
		rule(afdocs, "llms-txt-valid", "llms.txt has a title, a summary in a quote, and sections with links.", "Complete llms.txt. millrace takes the summary from the description of the home page.", onLLMs(func(s *site, fail check.Fail) {
			for re, want := range map[*regexp.Regexp]string{h1: "# TITLE", quoted: "> SUMMARY", section: "## SECTION"} {
				if !re.Match(s.llms.Body) {
					fail(s.llms.URL, "no "+want, want)
				}
			}
			if len(s.links) == 0 {
				fail(s.llms.URL, "no links", "- [name](url): notes")
			}
		})),
		rule(afdocs, "llms-txt-size", "llms.txt has at most 50,000 characters.", "Split it by folder."+byMillrace, onLLMs(func(s *site, fail check.Fail) {
			if n := utf8.RuneCount(s.llms.Body); n > maxChars {
				fail(s.llms.URL, fmt.Sprintf("%d characters", n), "at most 50,000")
			}
		})),
		rule(afdocs, "llms-txt-links-resolve", "The links of llms.txt lead to documents.", "Remove or correct the links.", onLinks(func(r *check.Response, fail func(got, want string)) {
			if r.Status >= http.StatusBadRequest {
				fail(r.StatusText(), "200 OK")
			}
		})),
		rule(afdocs, "llms-txt-links-markdown", "At least nine of ten links of llms.txt lead to Markdown.", "Link to the Markdown of the pages."+byMillrace, func(ctx context.Context, s *site, fail check.Fail) error {
			plain := ""
			n, html := 0, 0
			err := onLinks(func(r *check.Response, _ func(got, want string)) {
				if n++; weblink.IsHTML(r.Header) {
					html++
					plain = cmp.Or(plain, r.URL)
				}
			})(ctx, s, fail)
			if err == nil && 10*html > n {
				fail(s.llms.URL, fmt.Sprintf("%d of %d links lead to HTML, such as %s", html, n, plain), "links to Markdown")
			}
			return err
		}),
		rule(afdocs, "llms-txt-directive-html", "The body of a page links to llms.txt.", "Link to /llms.txt in your template, near the start of the body; it may be hidden. millrace does not change what people see.", checkPages(func(p *page, fail func(got, want string)) bool {
			if !strings.Contains(strings.ToLower(body(p.html.Body)), "/llms.txt") {
				fail("no link in the body", `<a href="/llms.txt">`)
			}
			return true
		})),
		rule(afdocs, "llms-txt-directive-md", "The Markdown of a page names llms.txt.", "Name /llms.txt at the start of the Markdown."+byMillrace, onMarkdown(func(_ *page, md *check.Response, fail func(got, want string)) {
			if !strings.Contains(string(md.Body), "/llms.txt") {
				fail("no link", "the URL of llms.txt")
			}
		})),
		rule(afdocs, "markdown-url-support", "The Markdown of a page is at the page's URL with .md appended.", "Publish the Markdown of each page."+byMillrace, checkPages(func(p *page, fail func(got, want string)) bool {
			if p.md == nil {
				fail("no Markdown", "Markdown at a URL that ends in .md")
			}
			return true
		})),
		rule(afdocs, "content-negotiation", "A request for a page with Accept: text/markdown gets Markdown.", "Answer Accept: text/markdown with Markdown."+byMillrace+" Alongside another server, use the output of millrace snippet.", checkPages(func(p *page, fail func(got, want string)) bool {
			if p.own == nil {
				fail("no Markdown for Accept: text/markdown", "text/markdown")
			}
			return true
		})),
		rule(afdocs, "rendering-strategy", "The HTML of a page has its content without scripts.", "Render the pages on the server or at build time.", checkPages(func(p *page, fail func(got, want string)) bool {
			if len(p.text) < 100 && strings.Contains(string(p.html.Body), "<script") {
				fail(fmt.Sprintf("%d bytes of text, and scripts", len(p.text)), "the content as HTML")
			}
			return true
		})),
		rule(afdocs, "page-size-markdown", "The Markdown of a page has at most 50,000 characters.", "Split the page.", onMarkdown(func(_ *page, md *check.Response, fail func(got, want string)) {
			atMost(utf8.RuneCount(md.Body), maxChars, "characters", fail)
		})),
		rule(afdocs, "page-size-html", "The text of a page has at most 50,000 characters.", "Split the page, or shorten its menus.", checkPages(func(p *page, fail func(got, want string)) bool {
			atMost(utf8.RuneCountInString(p.text), maxChars, "characters of text", fail)
			return true
		})),
		rule(afdocs, "page-size-transfer", "The size of a page is at most 1 MB.", "Move styles, scripts and images out of the page.", checkPages(func(p *page, fail func(got, want string)) bool {
			atMost(len(p.html.Coded), maxTransfer, "bytes", fail)
			return true
		})),
		rule(afdocs, "content-start-position", "The content begins in the first half of a page's text.", "Put menus after the content, or shorten them.", checkPages(func(p *page, fail func(got, want string)) bool {
			first := ""
			if p.main != nil {
				commonmark.Texts(p.main.Blocks, func(text string, _ []millrace.Span) {
					if first == "" && len(text) >= 20 {
						first = strings.Join(strings.Fields(text), " ")
					}
				})
			}
			at := strings.Index(p.text, first[:min(len(first), 20)])
			if first == "" || at < 0 {
				return false
			}
			if 2*at > len(p.text) {
				fail(fmt.Sprintf("at %d%% of the text", 100*at/len(p.text)), "in the first half")
			}
			return true
		})),
		rule(afdocs, "single-fetch-completeness", "The Markdown of a page is one complete document.", "Publish the whole page in one document."+byMillrace, onMarkdown(func(_ *page, md *check.Response, fail func(got, want string)) {
			for _, l := range kit.FieldLinks(md) {
				if l.Is("next", "") {
					fail("a Link with rel=next", "the whole page")
				}
			}
			if m := paged.Find(md.Body); m != nil && len(md.Body) < 2000 {
				fail(string(m), "the whole page")
			}
		})),
		rule(afdocs, "tabbed-content-serialization", "A page with tabs has at most 50,000 characters.", "Give each variant its own page.", checkPages(func(p *page, fail func(got, want string)) bool {
			if !tabbed.Match(p.html.Body) {
				return false
			}
			atMost(utf8.RuneCountInString(p.text), maxChars, "characters with all tabs", fail)
			return true
		})),
		rule(afdocs, "section-header-quality", "Headings inside tabs name the variant.", "Name the variant in each heading, such as Install on Linux.", checkPages(func(p *page, fail func(got, want string)) bool {
			seen := make(map[string]bool)
			for _, panel := range panels.FindAllString(string(p.html.Body), -1) {
				for _, m := range heading.FindAllStringSubmatch(panel, -1) {
					if seen[m[1]] {
						fail("the heading "+kit.Short(m[1])+" in two tabs", "headings that name the variant")
						return true
					}
					seen[m[1]] = true
				}
			}
			return len(seen) > 0
		})),
		rule(afdocs, "markdown-code-fence-validity", "The code fences of Markdown are closed.", "Close the fences."+byMillrace, onMarkdown(func(_ *page, md *check.Response, fail func(got, want string)) {
			open := ""
			for line := range strings.Lines(string(md.Body)) {
				line = strings.TrimSpace(line)
				switch fence := commonmark.Fence([]byte(line)); {
				case open == "" && fence != "":
					open = fence
				case open != "" && commonmark.Closes([]byte(line), open):
					open = ""
				}
			}
			if open != "" {
				fail("an unclosed fence "+open, "closed fences")
			}
		})),
		rule(afdocs, "markdown-link-portability", "The links of Markdown are absolute.", "Write absolute URLs."+byMillrace, onMarkdown(func(_ *page, md *check.Response, fail func(got, want string)) {
			for _, m := range mdLink.FindAllStringSubmatch(string(md.Body), -1) {
				if !strings.Contains(m[1], ":") && !strings.HasPrefix(m[1], "#") && !strings.HasPrefix(m[1], "/") {
					fail("the link "+kit.Short(m[1]), "an absolute URL")
					return
				}
			}
		})),
		rule(afdocs, "embedded-data-serialization", "Tables and data are at most half of a long page.", "Split large tables, and load data on demand.", checkPages(func(p *page, fail func(got, want string)) bool {
			if utf8.RuneCountInString(p.text) <= maxChars {
				return true
			}
			n := 0
			for _, data := range bulky.FindAll(p.html.Body, -1) {
				n += len(visible(data))
			}
			if 2*n > len(p.text) {
				fail(fmt.Sprintf("%d%% of %d bytes are tables and data", 100*n/len(p.text), len(p.text)), "at most half")
			}
			return true
		})),
		rule(afdocs, "http-status-codes", "The response for a missing page is 404.", "Respond to unknown paths with 404, not with a page and 200.", func(ctx context.Context, s *site, fail check.Fail) error {
			resp, err := s.Get(ctx, s.At("/millrace-check-no-such-page"))
			if err != nil {
				return err
			}
			if resp.Status < http.StatusBadRequest {
				fail(s.At("/millrace-check-no-such-page"), resp.StatusText(), "404 Not Found")
			}
			return nil
		}),
		rule(afdocs, "redirect-behavior", "Redirects use HTTP and stay on the same host.", "Redirect with a 3xx status and a Location on the same host.", checkPages(func(p *page, fail func(got, want string)) bool {
			switch {
			case check.HostOf(p.asked) != check.HostOf(p.html.URL):
				fail("a redirect from "+p.asked, "a page on its own host")
			case refresh.Match(p.html.Body):
				fail("a redirect by meta refresh", "a redirect with a 3xx status and Location")
			}
			return true
		})),
		rule(afdocs, "llms-txt-coverage", "llms.txt lists at least 95 % of the pages in the sitemap.", "Add the missing pages to llms.txt, or link to further .txt files that list them."+byMillrace, func(ctx context.Context, s *site, fail check.Fail) error {
			if s.llms == nil || len(s.listed) == 0 {
				return check.ErrNotApplicable
			}
			links := slices.Clone(s.links)
			for _, u := range s.links[:min(len(s.links), 20)] { // files for parts of the site
				if strings.HasSuffix(u, ".txt") && s.HasHost(u) {
					if part, _, err := s.Document(ctx, u); err != nil {
						return err
					} else if part != nil {
						links = append(links, linksOf(part)...)
					}
				}
			}
			have := make(map[string]bool)
			for _, u := range links {
				have[documentKey(u)] = true
			}
			missing, first := 0, ""
			for _, u := range s.listed {
				if !have[documentKey(u)] {
					missing++
					first = cmp.Or(first, u)
				}
			}
			if 20*missing > len(s.listed) {
				fail(s.llms.URL, fmt.Sprintf("%d of %d pages are missing, such as %s", missing, len(s.listed), first), "a link to each page")
			}
			return nil
		}),
		rule(afdocs, "markdown-content-parity", "The Markdown of a page has the content of its HTML.", "Correct the Markdown. For millrace, run millrace extract --explain to see what it drops, and use --keep.", onMarkdown(func(p *page, md *check.Response, fail func(got, want string)) {
			n, missing := 0, 0
			have := letters(target.ReplaceAllString(string(md.Body), "]"))
			if p.main != nil {
				commonmark.Texts(p.main.Blocks, func(text string, _ []millrace.Span) {
					if text = letters(text); len(text) >= 20 {
						if n++; !strings.Contains(have, text) {
							missing++
						}
					}
				})
			}
			if 5*missing > n {
				fail(fmt.Sprintf("%d of %d passages are missing", missing, n), "the content of the page")
			}
		})),
		rule(afdocs, "cache-header-hygiene", "Caches revalidate a page at least once an hour.", "Send ETag or Last-Modified, and a max-age of at most 3600.", checkPages(func(p *page, fail func(got, want string)) bool {
			d := kit.Directives(p.html)
			age, err := strconv.Atoi(cmp.Or(d["s-maxage"], d["max-age"], "0"))
			_, fresh := d["no-cache"]
			_, never := d["no-store"]
			switch {
			case err == nil && age > maxAge && !fresh:
				fail("Cache-Control: "+p.html.Field("Cache-Control"), "max-age=3600 or less")
			case d == nil && p.html.Header.Get("ETag") == "" && p.html.Header.Get("Last-Modified") == "" && !never:
				fail("no Cache-Control, ETag or Last-Modified", "a validator")
			}
			return true
		})),
		rule(afdocs, "auth-gate-detection", "Pages do not require a login.", "Publish the pages, or remove them from the sitemap.", func(_ context.Context, s *site, fail check.Fail) error {
			for _, r := range s.gated {
				fail(r.URL, r.StatusText(), "the page")
			}
			return check.Applied(len(s.pages)+len(s.gated) > 0)
		}),
		rule(afdocs, "auth-alternative-access", "A site whose pages require a login has a public llms.txt.", "Publish llms.txt, and the Markdown of the pages that may be public.", func(_ context.Context, s *site, fail check.Fail) error {
			if len(s.gated) > 0 && s.llms == nil {
				fail(s.gated[0].URL, "a login, and no llms.txt", "a public llms.txt")
			}
			return check.Applied(len(s.gated) > 0)
		}),
		rule(afdocs, "bot-protection-interference", "No bot protection responds in place of the site.", "Let agents pass: exclude machine documents from challenges of your CDN or firewall.", func(_ context.Context, s *site, fail check.Fail) error {
			for _, r := range append([]*check.Response{s.home}, s.gated...) {
				if r.Header.Get("Cf-Mitigated") != "" || r.Status == http.StatusForbidden || strings.Contains(string(r.Body[:min(len(r.Body), 4096)]), "Just a moment...") {
					fail(r.URL, through(r, r.StatusText()+", a challenge"), "the page")
				}
			}
			return nil
		}),
	}
}

func onLLMs(f func(s *site, fail check.Fail)) check.SiteCheck[*site] {
	return func(_ context.Context, s *site, fail check.Fail) error {
		if s.llms == nil {
			return check.ErrNotApplicable
		}
		f(s, fail)
		return nil
	}
}

// onLinks returns a check that runs f on the targets of a sample of the links in llms.txt.
func onLinks(f func(r *check.Response, fail func(got, want string))) check.SiteCheck[*site] {
	return func(ctx context.Context, s *site, fail check.Fail) error {
		applied := false
		for _, u := range check.Sample(s.Target, s.links) {
			if !s.HasHost(u) {
				continue
			}
			resp, err := s.Get(ctx, u)
			if err != nil {
				return err
			}
			applied = true
			f(resp, func(got, want string) { fail(u, got, want) })
		}
		return check.Applied(applied)
	}
}

func onMarkdown(f func(p *page, md *check.Response, fail func(got, want string))) check.SiteCheck[*site] {
	return check.All(func(s *site) []*page { return s.pages }, func(_ *site, p *page, fail check.Fail) bool {
		md := p.markdown()
		if md != nil {
			f(p, md, func(got, want string) { fail(md.URL, got, want) })
		}
		return md != nil
	})
}

func atMost(n, most int, unit string, fail func(got, want string)) {
	if n > most {
		fail(fmt.Sprintf("%d %s", n, unit), fmt.Sprintf("at most %d", most))
	}
}

// documentKey returns a key that is equal for the URLs of a page and of its Markdown.
func documentKey(u string) string {
	u, _, _ = strings.Cut(u, "?")
	u = strings.TrimSuffix(strings.TrimSuffix(u, ".md"), "index")
	return strings.TrimSuffix(strings.TrimSuffix(u, ".html"), "/")
}

// letters returns the letters and digits of a text, to compare texts with different formatting.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0x80 {
			return r
		}
		return -1
	}, s)
}
