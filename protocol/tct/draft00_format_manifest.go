package tct

import (
	"strings"
	"time"

	"github.com/millrace/millrace"
)

// manifestDocument maps URLs to M-URLs (3.3). The draft requires a site-level manifest but defines
// no format, so this format is specific to millrace.
type manifestDocument struct {
	Profile  string      `json:"profile"`
	Version  int         `json:"version"`
	Sitemap  string      `json:"sitemap"`
	Policy   string      `json:"policy,omitempty"`
	Patterns []pattern00 `json:"patterns"`
}

// pattern00 is a pair of URI templates (RFC 6570): a page whose C-URL matches the first template
// has an M-URL that matches the second. {+path} starts with "/" unless it is empty.
type pattern00 struct {
	CURL string `json:"cUrl"`
	MURL string `json:"mUrl"`
	Note string `json:"note,omitempty"`
}

// newManifest returns the manifest of a site.
func newManifest(site millrace.Site, policy bool) *manifestDocument {
	base, docs := strings.TrimSuffix(site.Base, "/"), strings.TrimSuffix(site.EndpointBase, "/")
	m := &manifestDocument{
		Profile: profileName, Version: 1, Sitemap: docs + listName00,
		Patterns: []pattern00{
			{CURL: base + "{+path}/", MURL: docs + "{+path}" + docName00},
			{CURL: base + "{+path}", MURL: docs + "{+path}" + docName00},
			{CURL: base + "{+path}?{+query}", MURL: docs + "{+path}" + docName00 + "?{+query}"},
			{CURL: "{scheme}://{host}{+path}", MURL: docs + "/~{host}{+path}" + docName00, Note: "pages whose canonical URL is on another host"},
			{CURL: base + "{+path}", MURL: docs + "{+path}/~{n}" + docName00, Note: "pages whose M-URL is taken by another page; n counts from 2"},
		},
	}
	if policy {
		m.Policy = docs + policyName
	}
	return m
}

// lastChanged returns the time of a policy's last change. If that is unknown, it returns the time
// from which the policy applies, which may be zero.
func lastChanged(p *millrace.Policy) time.Time {
	if p.Updated.IsZero() {
		return p.Effective
	}
	return p.Updated
}
