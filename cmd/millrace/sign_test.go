package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/webauth"
)

// signingKey creates a key with `millrace keys sign`, and returns its file and ID.
func signingKey(t *testing.T) (file, id string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "key.pem")
	code, out, errs := command(t, nil, "keys", "sign", file)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	return file, strings.TrimSpace(out)
}

// A site signs its documents, and a pull verifies them. It rejects a document changed
// in transit, and abandons that way.
func TestSignedSite(t *testing.T) {
	t.Parallel()
	key, id := signingKey(t)
	b := serveBehind(t, manyPages(t, 6), "--sign-responses", key)
	first := pullBest(t, b.url, filepath.Join(t.TempDir(), "mirror.db"))
	if first.Signed == nil || first.Signed.Verified == 0 || first.Signed.Invalid+first.Signed.Unverified > 0 || !cmp.Equal(first.Signed.Keys, []string{id}) {
		t.Errorf("signed: %+v", first.Signed)
	}
	// The changed bytes have a valid digest.
	b.set(func(w http.ResponseWriter, r *http.Request, site http.Handler) bool {
		if !strings.HasSuffix(r.URL.Path, "/p003.html/llm.json") {
			return false
		}
		was := httptest.NewRecorder()
		r.Header.Del("Accept-Encoding")
		site.ServeHTTP(was, r)
		body := strings.ReplaceAll(was.Body.String(), "word", "lies")
		for name, value := range was.Header() {
			w.Header()[name] = value
		}
		w.Header().Set("Content-Digest", canon.Digest([]byte(body)))
		_, _ = w.Write([]byte(body))
		return true
	})
	file := filepath.Join(t.TempDir(), "via.db")
	code, out, errs := command(t, nil, "pull", b.url, "--allow-private", "--store", file, "--json", "--via", "tct-01")
	var r agent.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, errs)
	}
	if code != 1 || !strings.HasPrefix(r.Code, "rfc9421/") || !strings.Contains(r.Error, "p003.html") || r.Signed.Invalid == 0 {
		t.Errorf("exit %d: %+v, %+v", code, r, r.Signed)
	}
	for u, p := range storedPages(t, file, b.url, b.url) {
		if strings.Contains(p.Text(), "lies") {
			t.Errorf("the changed page %s was stored", u)
		}
	}
	// Repeat with the best way.
	best := first.Via
	b.set(func(w http.ResponseWriter, r *http.Request, site http.Handler) bool {
		if r.Method != http.MethodGet || strings.HasSuffix(r.URL.Path, "/") || strings.HasSuffix(r.URL.Path, ".xml") || !strings.HasPrefix(r.URL.Path, "/"+best+"/") {
			return false
		}
		site.ServeHTTP(digestChanged{w}, r)
		return true
	})
	if best != "scp" {
		t.Fatalf("the best way is %s, whose documents are at other URLs", best)
	}
	next := pullBest(t, b.url, filepath.Join(t.TempDir(), "next.db"))
	if next.Via == best || len(next.Ways) < 2 || next.Ways[0].Protocol != best || !strings.HasPrefix(next.Ways[0].Code, "rfc9421/") || next.Signed.Invalid == 0 {
		t.Errorf("by %s, %+v, %+v", next.Via, next.Ways, next.Signed)
	}
}

// digestChanged changes the digest of a response.
type digestChanged struct{ http.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (d digestChanged) WriteHeader(status int) {
	d.Header().Set("Content-Digest", canon.Digest([]byte("other bytes")))
	d.ResponseWriter.WriteHeader(status)
}

// Unwrap serves [http.ResponseController].
func (d digestChanged) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// A pull signs its requests, and a site rejects other clients that claim to be a bot.
func TestSignedPull(t *testing.T) {
	t.Parallel()
	key, _ := signingKey(t)
	other, _ := signingKey(t)
	bot := serve(t, manyPages(t, 1), "--sign-directory", key)
	host := strings.TrimPrefix(strings.TrimSuffix(bot.url, "/"), "http://")
	site := serve(t, manyPages(t, 3), "--web-bot-auth", "--private-agents", "--bot", "bots=403", "--bot", host+"=allow")
	for _, c := range []struct {
		name string
		args []string
		code int
	}{
		{"unsigned", nil, 1},
		{"signed", []string{"--sign-key", key, "--sign-agent", bot.url}, 0},
		{"signed for the whole URL", []string{"--sign-key", key, "--sign-agent", bot.url + webauth.DirectoryPath[1:]}, 0},
		{"forged", []string{"--sign-key", other, "--sign-agent", bot.url}, 1},
	} {
		args := append([]string{
			"pull", site.url, "--allow-private", "--store", filepath.Join(t.TempDir(), "m.db"), "--user-agent", "ExampleBot/1.0", "--via", "tct-01",
		}, c.args...)
		code, out, errs := command(t, nil, args...)
		if code != c.code {
			t.Errorf("%s: exit %d, want %d\n%s%s", c.name, code, c.code, out, errs)
		}
	}
}

func TestSigningUsage(t *testing.T) {
	t.Parallel()
	key, id := signingKey(t)
	dir := t.TempDir()
	words := filepath.Join(dir, "words")
	write(t, words, "no key")
	for _, c := range []struct {
		args []string
		code string
	}{
		{[]string{"pull", "https://x.test", "--sign-key", key}, "usage/sign-key"},
		{[]string{"pull", "https://x.test", "--sign-agent", "https://bot.test"}, "usage/sign-agent"},
		{[]string{"pull", "https://x.test", "--sign-key", words, "--sign-agent", "https://bot.test"}, "usage/sign-key"},
		{[]string{"pull", "https://x.test", "--sign-key", key, "--sign-agent", "bot.test"}, "usage/sign-agent"},
		{[]string{"watch", "https://x.test", "--sign-key", key + "x", "--sign-agent", "https://bot.test"}, "usage/sign-key"},
		{[]string{"serve", dir, "--sign-responses", words}, "usage/sign-responses"},
		{[]string{"serve", dir, "--sign-directory", words}, "usage/sign-directory"},
		{[]string{"serve", dir, "--private-agents"}, "usage/private-agents"},
		{[]string{"keys", "sign", key}, "usage"},
		{[]string{"keys", "directory", words}, "usage"},
		{[]string{"keys", "directory", key, "--base-url", "bot.test"}, "usage/base-url"},
	} {
		if exit, code, out := failure(t, nil, c.args...); exit != exitUsage || code != c.code || strings.Contains(out, "PRIVATE KEY-----") {
			t.Errorf("%v: exit %d %s, want %s: %s", c.args, exit, code, c.code, out)
		}
	}
	info, err := os.Stat(key)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of the key is %v, %v", info.Mode(), err)
	}
	// A verifier can read the directory that was written for use on another host.
	out := filepath.Join(dir, "directory.json")
	code, report, errs := command(t, nil, "keys", "directory", key, key, "--base-url", "https://bot.test/x", "--out", out, "--json")
	var r directoryReport
	if err := json.Unmarshal([]byte(report), &r); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s", code, err, errs)
	}
	b, err := os.ReadFile(out)
	if err != nil || string(b) != r.Body || !cmp.Equal(r.Keys, []string{id}) || r.Header.Get("Content-Digest") != canon.Digest(b) ||
		!strings.Contains(r.Header.Get("Signature-Input"), id) || r.Expires == nil {
		t.Errorf("%v: %+v", err, r)
	}
	if _, err := webauth.ParseDirectory(b); err != nil {
		t.Error(errors.Unwrap(err))
	}
}

// In front of a site, a bot may sign for any of the site's names.
func TestSignedFront(t *testing.T) {
	t.Parallel()
	key, _ := signingKey(t)
	bot := serve(t, manyPages(t, 1), "--sign-directory", key)
	s := serve(t, "http://handbook.test/", "--origin", newBehind(t, copySite(t, "handbook")).URL, "--hosts", "Old.test",
		"--web-bot-auth", "--private-agents", "--bot", "bots=403", "--bot", strings.Trim(bot.url, "htp:/")+"=allow")
	b, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	own, err := webauth.ParseKey(b)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := webauth.NewSigner(own, bot.url)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		signed, asked string
		code          int
	}{
		{"handbook.test", "handbook.test", 200},
		{"www.handbook.test", "www.handbook.test", 200},
		{"old.test", "old.test", 200},
		{"other.test", "handbook.test", 403},
		{"other.test", "other.test", 421},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address(s)+"about/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("User-Agent", "ExampleBot/1.0")
		r.Host = c.signed
		if err := signer.Sign(r); err != nil {
			t.Fatal(err)
		}
		r.Host = c.asked
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.code {
			t.Errorf("signed for %s, sent to %s: %d, want %d", c.signed, c.asked, resp.StatusCode, c.code)
		}
	}
}
