package web

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/policy"
)

const licensePath = "/license.xml"

// licenseDocument returns the license as RSL, or nil if the site has no license.
func (d *siteDocuments) licenseDocument(site millrace.Site) *millrace.Document {
	path := "/"
	if u, err := url.Parse(site.Base); err == nil {
		path = u.EscapedPath()
	}
	body := policy.WriteRSL(d.policy, site.Title, path)
	if body == nil {
		return nil
	}
	h := http.Header{"Content-Type": {policy.RSLType + "; charset=utf-8"}, "Cache-Control": {"max-age=3600"}}
	if at := d.policy.Updated; !at.IsZero() && at.Before(time.Now()) {
		h["Last-Modified"] = []string{at.UTC().Format(http.TimeFormat)}
	}
	return &millrace.Document{
		Path: licensePath, ETag: "license-" + canon.SHA256Hex(body)[:32], Header: h, Subject: millrace.Subject{Public: true},
		Write: func(_ context.Context, w io.Writer) error {
			_, err := w.Write(body)
			return err
		},
	}
}

// advertiseLicense adds a link to the license to the home page (RSL 1.0, section 4.5).
func (d *siteDocuments) advertiseLicense(site millrace.Site, n *millrace.Advertisement) {
	if d.licenseDocument(site) == nil {
		return
	}
	at := strings.TrimSuffix(site.EndpointBase, "/") + licensePath
	n.Root = append(n.Root, millrace.Link{URL: at, Rel: "license", Type: policy.RSLType})
	n.Public = append(n.Public, licensePath)
}
