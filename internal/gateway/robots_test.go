package gateway

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
)

// lister is a protocol that only adds a line to robots.txt.
type lister struct{}

func (lister) Find(context.Context, millrace.View, *http.Request) (*millrace.Document, error) {
	return nil, millrace.ErrNotFound
}

func (lister) All(context.Context, millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(func(*millrace.Document, error) bool) {}
}

func (lister) Advertise(millrace.View) millrace.Advertisement {
	return millrace.Advertisement{Robots: []string{"Sitemap: https://x.test/sitemap.xml"}}
}

// noter is a protocol that adds a permission to robots.txt.
type noter struct{ lister }

func (noter) Advertise(millrace.View) millrace.Advertisement {
	return millrace.Advertisement{Robots: []string{"# noters may use /notes"}, Allow: []string{"/notes"}}
}

func TestRobots(t *testing.T) {
	protocols := []edition.Protocol{{Name: "lister", Publisher: lister{}}}
	const line = "Sitemap: https://x.test/sitemap.xml\n"
	for _, c := range []struct {
		name, want string
		s          setup
	}{
		{"no file of its own", "User-agent: *\nDisallow:\n\n" + line, setup{files: site(), protocols: protocols}},
		{"a mirror", "User-agent: *\nDisallow:\n\n" + line, setup{protocols: protocols}},
		{"its own", "User-agent: x\nDisallow: /private\n\n" + line, setup{files: inMemory("robots.txt", "User-agent: x\nDisallow: /private"), protocols: protocols}},
		{"with the line", "User-agent: x\r\n" + strings.TrimSpace(line) + "\r\n", setup{files: inMemory("robots.txt", "User-agent: x\r\n"+strings.TrimSpace(line)+"\r\n"), protocols: protocols}},
		{"a page for every path", "User-agent: *\nDisallow:\n\n" + line, setup{files: inMemory("robots.txt", "<!doctype html>\n<p>User-agent: x"), protocols: protocols}},
		{"nothing to add", "User-agent: x\n", setup{files: inMemory("robots.txt", "User-agent: x\n")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := c.s.gateway(t)
			w := ask(g, "GET", "/robots.txt")
			if w.Code != 200 || w.Body.String() != c.want || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
				t.Errorf("%d %q, want %q", w.Code, w.Body, c.want)
			}
			if tag := w.Header().Get("ETag"); tag != "" {
				if w := ask(g, "GET", "/robots.txt", "If-None-Match", tag); w.Code != 304 {
					t.Errorf("conditional: %d", w.Code)
				}
			}
		})
	}
	// The comment is added if a general rule disallows the path, but not if a rule names it.
	for rule, want := range map[string]bool{"/": true, "/notes": false, "/private": true} {
		g := setup{files: inMemory("robots.txt", "User-agent: *\nDisallow: "+rule+"\n"), protocols: []edition.Protocol{{Name: "noter", Publisher: noter{}}}}.gateway(t)
		if w := ask(g, "GET", "/robots.txt"); w.Code != 200 || strings.Contains(w.Body.String(), "# noters may use /notes") != want {
			t.Errorf("Disallow: %s: %s", rule, w.Body)
		}
	}
	// If the policy refuses both uses by AI, the path is not allowed.
	for _, answers := range []bool{true, false} {
		o := Options{Policy: &millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AITrain: false, millrace.AIInput: answers}}}
		g := setup{files: inMemory("robots.txt", "User-agent: *\nDisallow: /\n"), protocols: []edition.Protocol{{Name: "noter", Publisher: noter{}}}, o: o}.gateway(t)
		if w := ask(g, "GET", "/robots.txt"); w.Code != 200 || strings.Contains(w.Body.String(), "\nAllow: /notes\n") != answers {
			t.Errorf("the policy allows ai-input: %t: %s", answers, w.Body)
		}
	}
	if w := ask(setup{base: "https://x.test/blog/", protocols: protocols}.gateway(t), "GET", "/blog/robots.txt"); w.Code != 404 {
		t.Errorf("robots.txt of a folder: %d", w.Code) // RFC 9309, section 2.3: robots.txt is at the root
	}
}
