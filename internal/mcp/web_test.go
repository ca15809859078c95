package mcp

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
)

// fakeWeb has one page, and a site that takes longer to read than any client waits.
type fakeWeb struct{ asked int }

const webPage = "https://web.example/long"

func (w *fakeWeb) Page(_ context.Context, url string) (*millrace.Page, []protocol.Terms, error) {
	w.asked++
	if url != webPage {
		return nil, nil, fmt.Errorf("page \x1b[2J%s: %w", url, millrace.ErrForbidden)
	}
	p := &millrace.Page{URL: url, Title: "Long", Version: "0123456789abcdef"}
	for i := range 40 {
		p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.TextBlock, Text: fmt.Sprint("Paragraph ", i, strings.Repeat(" of the long page", 5))})
	}
	return p, []protocol.Terms{{URL: "https://web.example/robots.txt", Policy: &millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AITrain: false}}}}, nil
}

func (w *fakeWeb) Add(ctx context.Context, url string) (name string, pages int, err error) {
	if strings.Contains(url, "forbidden") {
		return "", 0, millrace.ErrForbidden
	}
	if strings.Contains(url, "slow") {
		<-ctx.Done()
		return url, -1, nil
	}
	return url, 7, nil
}

func TestWeb(t *testing.T) {
	web := new(fakeWeb)
	c := connect(t, New(mills(t), &Options{Web: web, Time: 1e9}), nil)
	out, _ := asked[readOut](t, c, "read_page", map[string]any{"url": mill + "wheels/"})
	if web.asked != 0 || out.Site != mill {
		t.Errorf("a page of the library is read from %s, after %d requests", out.Site, web.asked)
	}
	var whole strings.Builder
	cursor := ""
	for range 20 {
		out, said := asked[readOut](t, c, "read_page", map[string]any{"url": webPage, "max_characters": minPart, "cursor": cursor})
		if out.Site != "https://web.example/" || out.Terms == nil || !strings.Contains(said, "Paragraph") {
			t.Fatalf("%+v", out)
		}
		whole.WriteString(out.Markdown)
		if cursor = out.Cursor; cursor == "" {
			break
		}
	}
	for i := range 40 {
		if !strings.Contains(whole.String(), fmt.Sprint("Paragraph ", i, " ")) {
			t.Errorf("paragraph %d is missing in all parts", i)
		}
	}
	if code, why := refused(t, c, "read_page", map[string]any{"url": "https://web.example/other"}); code != "forbidden" || strings.ContainsRune(why, 0x1b) {
		t.Errorf("%s: %q", code, why)
	}
	if code, _ := refused(t, c, "read_page", map[string]any{"url": webPage, "site": mill}); code != "no-page" {
		t.Errorf("in one site: %s", code)
	}
	if code, _ := refused(t, c, "add_site", map[string]any{"url": "https://ann:secret@web.example/"}); code != "url-credentials" {
		t.Errorf("with a password: %s", code)
	}
	for _, bad := range []string{"example.com", "/about/", "ftp://example.com/"} {
		if code, why := refused(t, c, "add_site", map[string]any{"url": bad}); code != "bad-url" || strings.Contains(why, "search") || !strings.Contains(why, "https://") {
			t.Errorf("add_site %s: %s, %s", bad, code, why)
		}
	}
	if code, _ := refused(t, c, "add_site", map[string]any{"url": "https://forbidden.example/"}); code != "forbidden" {
		t.Errorf("a site that disallows reading: %s", code)
	}
	if out, _ := asked[addOut](t, c, "add_site", map[string]any{"url": "https://web.example/"}); out.Pages != 7 || !out.Complete {
		t.Errorf("%+v", out)
	}
	if out, said := asked[addOut](t, c, "add_site", map[string]any{"url": "https://slow.example/"}); out.Complete || !strings.Contains(said, "list_sites") {
		t.Errorf("%+v: %s", out, said)
	}
	if code, _ := refused(t, connect(t, New(mills(t), nil), nil), "read_page", map[string]any{"url": webPage}); code != "no-page" {
		t.Errorf("without the web: %s", code)
	}
}

// The result labels the contact of a policy as a contact.
func TestTermsContact(t *testing.T) {
	t.Parallel()
	if said := (&TermsOut{Contact: "mailto:mill@web.example"}).sentence(); !strings.Contains(said, "contact: mailto:mill@web.example") {
		t.Error(said)
	}
}
