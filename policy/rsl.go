package policy

import (
	"encoding/xml"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/sitemap"
)

// RSLType is the media type of RSL 1.0 (https://rslstandard.org/rsl).
const RSLType = "application/rsl+xml"

const rslSpace = "https://rslstandard.org/rsl"

// usages contains the RSL words for each purpose (3.4.1). A permission uses word, a refusal
// prohibit. ai-index is an index that serves only to generate answers, so a refusal of ai-input
// includes ai-index. A permission of ai-input does not.
var usages = []struct {
	purpose        millrace.Purpose
	word, prohibit string
}{
	{millrace.AITrain, "ai-train", "ai-train"},
	{millrace.AIInput, "ai-input", "ai-input ai-index"},
	{millrace.Search, "search", "search"},
}

// WriteRSL returns a policy as a license for the content below a path. It returns nil if the policy
// names no purpose, because a license without usages would allow everything.
//
// Permitted use is free, but may require a credit. The license contains no prices, because a use
// that must be paid for would be allowed in RSL and refused in the other formats.
func WriteRSL(p *millrace.Policy, owner, path string) []byte {
	if p == nil {
		return nil
	}
	var permits, prohibits []string
	for _, u := range usages {
		if yes, stated := p.Purposes[u.purpose]; stated && yes {
			permits = append(permits, u.word)
		} else if stated {
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
