package web

import (
	"encoding/xml"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/sitemap"
)

// RSL 1.0 (https://rslstandard.org/rsl).
const (
	rslSpace = "https://rslstandard.org/rsl"
	rslType  = "application/rsl+xml"
)

// usages are the words of RSL for a purpose (3.4.1): those that are allowed with
// it, and those that are refused with it. An index for machines that answer is of
// use for nothing else, so that it is refused with answering, and allowed by name
// alone.
var usages = []struct {
	purpose           millrace.Purpose
	permits, prohibit string
}{
	{millrace.AITrain, "ai-train", "ai-train"},
	{millrace.AIInput, "ai-input", "ai-input ai-index"},
	{millrace.Search, "search", "search"},
}

// encodeLicense gives a policy as a licence for the content below a path, nil
// for one that speaks of no purpose: without a word about uses a licence would
// allow them all.
//
// What is allowed is free, but for the credit that may be asked for. A price is
// not in it: what can be bought would be allowed here and refused elsewhere.
func encodeLicense(p *millrace.Policy, owner, path string) []byte {
	if p == nil {
		return nil
	}
	var permits, prohibits []string
	for _, u := range usages {
		if yes, said := p.Purposes[u.purpose]; said && yes {
			permits = append(permits, u.permits)
		} else if said {
			prohibits = append(prohibits, u.prohibit)
		}
	}
	if permits == nil && prohibits == nil {
		return nil
	}
	var b strings.Builder
	element := func(indent, name, attributes, text string) {
		b.WriteString(indent + "<" + name + attributes + ">" + sitemap.Escape(text) + "</" + name + ">\n")
	}
	b.WriteString(xml.Header + `<rsl xmlns="` + rslSpace + `" max-age="1">` + "\n")
	b.WriteString(`  <content url="` + sitemap.Escape(path) + `"`)
	if !p.Updated.IsZero() {
		b.WriteString(` lastmod="` + p.Updated.UTC().Format(time.RFC3339) + `"`)
	}
	b.WriteString(">\n    <license>\n")
	if permits != nil {
		element("      ", "permits", ` type="usage"`, strings.Join(permits, " "))
	}
	if prohibits != nil {
		element("      ", "prohibits", ` type="usage"`, strings.Join(prohibits, " "))
	}
	if permits != nil {
		payment := "free"
		if p.Requirements.Attribution || p.Requirements.LinkBack {
			payment = "attribution"
		}
		b.WriteString(`      <payment type="` + payment + "\"/>\n")
	}
	b.WriteString("    </license>\n")
	if p.Contact != "" {
		contact := ` contactUrl="` + sitemap.Escape(p.Contact) + `"`
		if u, err := url.Parse(p.Contact); err == nil && u.Scheme == "mailto" {
			contact = ` contactEmail="` + sitemap.Escape(u.Opaque) + `"`
		}
		element("    ", "copyright", contact, owner)
	}
	if p.Terms != "" {
		element("    ", "terms", "", p.Terms)
	}
	b.WriteString("  </content>\n</rsl>\n")
	return []byte(b.String())
}
