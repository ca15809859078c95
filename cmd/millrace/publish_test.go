package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/serving"
)

// outsideFingerprint lists the flags of serve that do not change what a publication
// stores.
var outsideFingerprint = map[string]string{
	"operation of the process":                                                 "json quiet log-level listen tls-cert tls-key request-log access-log",
	"the site; its title is part of an edition":                                "as source store artifacts site site-title rehost",
	"reading of the source; the pages change, with their versions":             "allow-private delay user-agent contact max-pages max-depth max-time keep drop comments exclude-types",
	"responses to requests":                                                    "rate proxies bot bot-ranges files-rate files-rate-total web-bot-auth private-agents place origin hosts origin-timeout",
	"site-wide documents, signatures and pages that are created at each start": "bots robots-content-signal robots-content-usage robots-license no-mcp sign-responses sign-directory dashboard dashboard-password metrics",
	"recipients of notifications":                                              "indexnow indexnow-key indexnow-url events events-hash-queries events-to events-secret",
	"search; embed-url decides whether there are embeddings":                   "embed-key embed-document-prefix embed-query-prefix embed-model",
}

// Every flag of serve changes the fingerprint of a publication, or is listed in
// outsideFingerprint.
func TestPublishingKey(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	fingerprint := func(args ...string) string {
		t.Helper()
		p := newProcess(environment(nil), nil, t.Output(), t.Output())
		line, _, _, err := p.parse(append([]string{"serve", source}, args...))
		if err != nil {
			t.Fatal(err)
		}
		c := &line.Serve
		p.start(&c.commonFlags)
		plan, err := c.plan(p)
		if err != nil {
			t.Fatal(err)
		}
		endpointBase, err := c.endpointBase(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1})
		if err != nil {
			t.Fatal(err)
		}
		config, err := c.configure(endpointBase, endpointBase)
		if err != nil {
			t.Fatal(err)
		}
		_, key, err := serving.Protocols(c.publisher(nil, false, false, plan.embedder != nil), c.needsKey)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal([]any{config.Base, config.EndpointBase, config.Visibility})
		if err != nil {
			t.Fatal(err)
		}
		return string(data) + key
	}

	p := newProcess(environment(nil), nil, t.Output(), t.Output())
	_, _, k, err := p.parse([]string{"serve", source})
	if err != nil {
		t.Fatal(err)
	}
	flags := flagsOf(k.Selected())
	values := map[string]string{
		"also": "tct-03", "arc-listed": "/x", "base-url": "https://x.example/", "crawl-priority": "/x=0.5", "embed-url": "http://localhost:1/v1",
		"exclude": "/x", "files-url": "https://x.example", "hide-kinds": "forum", "hub": "https://x.example/", "public-protocols": "tct-01", "sections": "/x",
	}
	var outside []string
	for _, names := range outsideFingerprint {
		outside = append(outside, strings.Fields(names)...)
	}
	seen := map[string]string{fingerprint(): "no flag"}
	for name, f := range flags {
		if slices.Contains(outside, name) {
			continue
		}
		given := []string{"--" + name + "=" + cmp.Or(values[name], "x")}
		switch {
		case f.IsBool():
			given = []string{fmt.Sprintf("--%s=%t", name, f.Default != "true")}
		case f.Enum != "":
			i := slices.IndexFunc(f.EnumSlice(), func(v string) bool { return v != "" && v != f.Default })
			given = []string{"--" + name + "=" + f.EnumSlice()[i]}
		}
		switch name {
		case "embed-url":
			given = append(given, "--embed-model=x")
		case "public-protocols":
			given = append(given, "--require-key")
		}
		is := fingerprint(given...)
		if was := seen[is]; was != "" {
			t.Errorf("%q has the same fingerprint as %s; set it in the options of the publisher, or add it to outsideFingerprint", given, was)
		}
		seen[is] = strings.Join(given, " ")
	}
	for _, name := range outside {
		if flags[name] == nil {
			t.Errorf("flag --%s not found", name)
		}
	}
}
