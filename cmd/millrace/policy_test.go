package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/testkit"
)

// Every document has the policy block. A changed block has a later date.
func TestServePolicy(t *testing.T) {
	t.Parallel()
	dir, conf, file := copySite(t, "handbook"), filepath.Join(t.TempDir(), "millrace.yaml"), filepath.Join(t.TempDir(), "served.db")
	args := []string{dir, "--config", conf, "--store", file, "--listen", "127.0.0.1:" + testkit.FreePort(t)}
	type answer struct {
		status       int
		body         string
		tag, date    string
		updated      string
		terms, train any
		link         string // of the list
	}
	ask := func(block string) (a answer) {
		t.Helper()
		write(t, conf, block)
		s := serve(t, args...)
		defer s.stop()
		var h http.Header
		a.status, h, a.body = get(t, s.url+"llm-policy.json")
		a.tag, a.date = h.Get("ETag"), h.Get("Last-Modified")
		var doc struct {
			Updated string
			URLs    struct {
				Terms any `json:"terms_of_service"`
			} `json:"policy_urls"`
			Purposes map[string]any
		}
		if a.status == 200 {
			if err := json.Unmarshal([]byte(a.body), &doc); err != nil {
				t.Fatalf("%v: %s", err, a.body)
			}
		}
		a.updated, a.terms, a.train = doc.Updated, doc.URLs.Terms, doc.Purposes["allow_ai_train"]
		_, h, _ = get(t, s.url+"llm-sitemap.json")
		a.link = strings.Join(h.Values("Link"), ", ")
		return a
	}
	none := ask("authors: name\n")
	if none.status != 404 || strings.Contains(none.link, "describedby") {
		t.Errorf("without a block: %+v", none)
	}
	first := ask("policy:\n  terms: https://example.com/terms\n  purposes: {ai-train: false}\n")
	if first.status != 200 || first.terms != "https://example.com/terms" || first.train != false || !strings.Contains(first.link, `rel="describedby"`) {
		t.Errorf("with a block: %+v", first)
	}
	at, err := time.Parse(time.RFC3339, first.updated)
	if err != nil || time.Since(at) > time.Minute || first.date != at.Format(http.TimeFormat) {
		t.Errorf("updated %q (%v), Last-Modified %q", first.updated, err, first.date)
	}
	if same := ask("# a remark\npolicy: {purposes: {ai-train: false}, terms: 'https://example.com/terms'}\n"); same != first {
		t.Errorf("the same policy in another form: %+v, was %+v", same, first)
	}
	second := ask("policy:\n  terms: https://example.com/terms\n  purposes: {ai-train: true}\n")
	if second.train != true || second.tag == first.tag || second.updated <= first.updated {
		t.Errorf("changed: %+v, was %+v", second, first)
	}
	published := ask("policy:\n  updated: 2026-01-01\n  terms: https://example.com/terms\n")
	if published.updated != "2026-01-01T00:00:00Z" {
		t.Errorf("the block's link: %+v", published)
	}
	if gone := ask("authors: name\n"); gone != none {
		t.Errorf("without the block again: %+v, was %+v", gone, none)
	}
}

func TestPolicyAgrees(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, conf, "policy:\n  rate: {per-second: 5}\n")
	exit, code, out := failure(t, nil, "serve", copySite(t, "handbook"), "--listen", "127.0.0.1:0", "--config", conf, "--rate", "2")
	if exit != exitUsage || code != "usage/rate" || !strings.Contains(out, "policy.rate.per-second") {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
}

// build writes the policy too. A changed block rewrites only the documents that contain
// it.
func TestBuildPolicy(t *testing.T) {
	t.Parallel()
	src, out, conf := copySite(t, "handbook"), filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "millrace.yaml")
	document := filepath.Join(out, "llm-policy.json")
	build := func(block string) (body string) {
		t.Helper()
		write(t, conf, block)
		built(t, src, out, "https://www.example.com/", "--config", conf, "--complete", "--store", filepath.Join(filepath.Dir(conf), "s.db"))
		b, err := os.ReadFile(document)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(b)
	}
	one := build("policy:\n  purposes: {ai-train: false}\n")
	before := folderState(t, out)
	if !strings.Contains(one, `"allow_ai_train":false`) || !strings.Contains(one, `"updated":"20`) {
		t.Errorf("the policy is %q", one)
	}
	if same := build("policy: {purposes: {ai-train: false}}\n"); same != one {
		t.Errorf("the same block changed %q to %q", same, one)
	}
	if other := build("policy:\n  purposes: {ai-train: true}\n"); !strings.Contains(other, `"allow_ai_train":true`) {
		t.Errorf("the policy is %q, and was %q", other, one)
	}
	after := folderState(t, out)
	for _, name := range []string{"/index.html", "/about/llm.json", "/llm-pages.json"} {
		if before[name] == "" || before[name] != after[name] {
			t.Errorf("%s was %q, is %q", name, before[name], after[name])
		}
	}
	if none := build("authors: name\n"); none != "" {
		t.Errorf("without a block: %q", none)
	}
}
