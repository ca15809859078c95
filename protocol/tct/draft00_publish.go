package tct

import (
	"context"
	"io"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"
	"github.com/millrace/millrace/policy"
)

// Paths of the site-wide documents, below the endpoint base.
const (
	policyName   = "/llm-policy.json"
	manifestName = "/llm-manifest.json"
)

// siteDocuments00 returns the policy descriptor (7), if the site has a policy, and the manifest
// with the patterns of M-URLs (3.3).
func siteDocuments00(d *draft, site millrace.Site, owner *millrace.Policy) (out []*millrace.Document) {
	if owner != nil {
		out = append(out, discovery(d, policyName, policy.WriteTCT(owner), lastChanged(owner)))
	}
	return append(out, discovery(d, manifestName, jsonio.Encode(newManifest(site, owner != nil)), time.Time{}))
}

// discovery returns a public site-wide document.
func discovery(d *draft, path string, body []byte, modified time.Time) *millrace.Document {
	return &millrace.Document{
		Path: path, ETag: hashPrefix + canon.SHA256Hex(body), Header: d.Header(modified), SharedETag: true, Subject: millrace.Subject{Public: true},
		Write: func(_ context.Context, w io.Writer) error {
			_, err := w.Write(body)
			return err
		},
	}
}
