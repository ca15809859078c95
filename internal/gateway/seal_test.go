package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/reply"
)

// notary signs as configured and counts its signatures.
type notary struct{ count int }

func (n *notary) Sign(target string, status int, h http.Header) (input, signature string, again time.Time, err error) {
	n.count++
	return "by me", fmt.Sprint(target, " ", status, " ", h.Get("Content-Digest"), " ", h.Get("Content-Type")), time.Now().Add(time.Hour), nil
}

// Documents that the gateway composes are signed like those of protocols: over all bytes, and
// once per version.
func TestComposedAreSigned(t *testing.T) {
	n := new(notary)
	const own = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://x.test/a/</loc></url></urlset>`
	files := inMemory("index.html", "<p>home", "sitemap.xml", own)
	g := setup{files: files, protocols: []edition.Protocol{{Name: "mapper", Publisher: mapper{}}}, o: Options{Signer: n}}.gateway(t)
	for i, target := range []string{"/sitemap.xml", "/.well-known/api-catalog"} {
		for range 3 {
			w := ask(g, "GET", target)
			h := w.Header()
			digest := canon.Digest(w.Body.Bytes())
			if w.Code != 200 || h.Get("Content-Digest") != digest || h.Get("Signature") != target+" 200 "+digest+" "+h.Get("Content-Type") || h.Get("Signature-Input") == "" {
				t.Errorf("%s: %d %v", target, w.Code, h)
			}
		}
		if n.count != i+1 {
			t.Errorf("%s: %d signatures", target, n.count)
		}
		tag := ask(g, "GET", target).Header().Get("Etag")
		for _, c := range []struct {
			method, name, value string
			status              int
		}{{"GET", "If-None-Match", tag, 304}, {"GET", "Range", "bytes=0-3", 206}, {"HEAD", "X-None", "", 200}} {
			w := ask(g, c.method, target, c.name, c.value)
			h := w.Header()
			if w.Code != c.status || h["Signature"] != nil || h["Content-Digest"] != nil || (c.status != 304) != (h["Repr-Digest"] != nil) {
				t.Errorf("%s %s with %s: %d %v", c.method, target, c.name, w.Code, h)
			}
		}
	}
	was := n.count
	if w := ask(g, "GET", "/sitemap.xml?a=b"); w.Header().Get("Signature") == ask(g, "GET", "/sitemap.xml").Header().Get("Signature") || n.count != was+1 {
		t.Errorf("with a query: %v, %d more signatures", w.Header(), n.count-was)
	}
	for _, target := range []string{"/.well-known/api-catalo%67", "/.well-known/api-cat%61log", "/%2ewell-known/api-catalog"} {
		if w := ask(g, "GET", target); w.Code != 200 || !strings.HasPrefix(w.Header().Get("Signature"), target+" ") {
			t.Errorf("%s: %d %v", target, w.Code, w.Header())
		}
	}
}

// The host's keys are public, whatever the rules.
func TestDirectoryPath(t *testing.T) {
	keys := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { reply.Text(w, r, http.StatusOK, "keys") })
	g := setup{files: site(), base: "https://x.test/sub/", guarded: true, o: Options{Directory: keys}}.gateway(t)
	if w := ask(g, "GET", "/.well-known/http-message-signatures-directory"); w.Code != 200 || w.Body.String() != "keys" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(setup{files: site()}.gateway(t), "GET", "/.well-known/http-message-signatures-directory"); w.Code != 404 {
		t.Errorf("a host without keys: %d", w.Code)
	}
}

// A refused client without a verified identity gets Accept-Signature.
func TestAskedToSign(t *testing.T) {
	for _, c := range []struct {
		agents    access.Agents
		signed    string
		asked     bool
		explained bool // the response explains what is wrong with the signature
	}{
		{new(signers), "", true, false},
		{new(signers), "wrong", true, true},
		{new(signers), "away", true, true},
		{new(signers), "bot.example.com", true, true},
		{new(signers), "chatgpt.com", false, false}, // identified, and refused by a rule
		{nil, "", false, false},                     // signatures are not verified
	} {
		ask := visitor(t, Options{Access: access.Options{Rules: rules(t, "openai=403"), Agents: c.agents}})
		w := ask(nowhere, "GPTBot/1.0", "/a/llm.json", "Signature", c.signed)
		if got := w.Header().Get("Accept-Signature"); w.Code != 403 || (got == askToSign) != c.asked || !c.asked && got != "" {
			t.Errorf("signed %q: %d, Accept-Signature %q", c.signed, w.Code, got)
		}
		if body := w.Body.String(); strings.Contains(body, `"signature":"`) != c.explained {
			t.Errorf("signed %q: %s", c.signed, body)
		}
	}
}
