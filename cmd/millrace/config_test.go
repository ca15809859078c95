package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/config"
)

// config shows each value with its origin and without secrets. The environment
// overrides the file.
func TestConfig(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, conf, `base-url: https://example.com/
exclude: [/drafts, /hidden]
authors: name
embed-url: http://user:hunter2@localhost:11434/v1?key=hunter2
embed-model: some
embed-key: hunter2
hub: ["https://hub.example/?key=hunter2", https://other.example/]
webhook: https://hooks.example/hunter2?token=hunter2
policy:
  terms: https://example.com/terms
  purposes:
    ai-train: false
  consumers: [A, B]
`)
	env := map[string]string{"MILLRACE_AUTHORS": "hidden", "MILLRACE_DELAY": "90s", "MILLRACE_KEY": "hunter2"}
	code, out, errs := command(t, env, "config", "--config", conf, "--json")
	var r config.Report
	if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil {
		t.Fatalf("exit %d, %v:\n%s%s", code, err, out, errs)
	}
	got := map[string]config.Value{}
	for _, list := range [][]config.Value{r.Values, r.Policy, r.Other} {
		for _, v := range list {
			v.From, _ = strings.CutPrefix(v.From, conf+":")
			got[v.Key] = v
		}
	}
	for _, want := range []config.Value{
		{Key: "base-url", Value: "https://example.com/", From: "1:1"},
		{Key: "exclude", Value: []any{"/drafts", "/hidden"}, From: "2:1"},
		{Key: "authors", Value: "hidden", From: "environment variable MILLRACE_AUTHORS"},
		{Key: "delay", Value: "1m30s", From: "environment variable MILLRACE_DELAY"},
		{Key: "embed-url", Value: "http://(hidden)@localhost:11434/v1?(hidden)", From: "4:1", Hidden: true},
		{Key: "embed-key", Value: "(hidden)", From: "6:1", Hidden: true},
		{Key: "hub", Value: []any{"https://hub.example/?(hidden)", "https://other.example/"}, From: "7:1", Hidden: true},
		{Key: "webhook", Value: "https://hooks.example/(hidden)", From: "8:1", Hidden: true},
		{Key: "MILLRACE_KEY", Value: "(hidden)", From: "environment variable MILLRACE_KEY", Hidden: true},
		{Key: "listen", Value: "127.0.0.1:8080", From: "default"},
		{Key: "rate", Value: nil, From: "default"},
		{Key: "allow-private", Value: false, From: "default"},
		{Key: "store", Value: nil, From: "default"},
		{Key: "policy.terms", Value: "https://example.com/terms", From: "10:3"},
		{Key: "policy.purposes.ai-train", Value: false, From: "12:5"},
		{Key: "policy.consumers", Value: []any{"A", "B"}, From: "13:3"},
	} {
		if d := cmp.Diff(want, got[want.Key]); d != "" {
			t.Errorf("%s (-want +got):\n%s", want.Key, d)
		}
	}
	if r.File != conf || r.Command != "serve" || len(r.Other) != 1 || strings.Contains(out, "hunter2") {
		t.Errorf("%s", out)
	}

	_, out, _ = command(t, env, "config", "watch", "--config", conf)
	if !strings.Contains(out, "webhook") || !strings.Contains(out, ", embed-key: ") || !strings.Contains(out, ", policy.terms: ") ||
		strings.Contains(out, "hunter2") || strings.Contains(out, "allow-private") {
		t.Error(out)
	}
	write(t, conf, "embed-key: hunter2\nindexnow-key: hunter2hunter2\nembed-url: u:hunter2@localhost/v1\n")
	for _, of := range []string{"serve", "watch", "build"} {
		if code, out, errs := command(t, nil, "config", of, "--config", conf, "--json"); strings.Contains(out+errs, "hunter2") || of != "serve" && code != 0 {
			t.Errorf("%s: exit %d\n%s%s", of, code, out, errs)
		}
	}
}

// config rejects a configuration that a command would reject.
func TestConfigWrong(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, conf, "rate: -1\npolicy:\n  purposes:\n    search: false\n")
	for _, tt := range []struct {
		env  map[string]string
		args []string
		code string
		part string // expected in the message
	}{
		{nil, nil, "usage/rate", conf + ":1:1"},
		{map[string]string{"MILLRACE_RATE": "fast"}, nil, "usage/rate", "MILLRACE_RATE"},
		{map[string]string{"MILLRACE_AUTHORS": "some"}, nil, "usage/authors", "MILLRACE_AUTHORS"},
		{map[string]string{"MILLRACE_RATE": "1", "MILLRACE_INDEXNOW": "true"}, nil, "usage/indexnow", ""},
		{map[string]string{"MILLRACE_RATE": "1", "MILLRACE_HUB": "hub.example"}, nil, "usage/hub", ""},
		{nil, []string{"keys"}, "usage", "add"},
		{nil, []string{"sevre"}, "usage", "sevre"},
	} {
		exit, code, out := failure(t, tt.env, append([]string{"config", "--config", conf}, tt.args...)...)
		if exit != exitUsage || code != tt.code || !strings.Contains(out, tt.part) {
			t.Errorf("%v %v: exit %d %s, want %s with %q:\n%s", tt.env, tt.args, exit, code, tt.code, tt.part, out)
		}
	}
}
