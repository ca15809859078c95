package scp

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/protocol"
)

// bothSchemas writes a schema that imports the schema of sitemaps.org, from the file that
// MILLRACE_TEST_SITEMAP_XSD names, and the schema of Appendix A. The first one allows foreign
// elements only if their schema is known.
func bothSchemas(t *testing.T) string {
	t.Helper()
	testkit.Real(t, "xmllint")
	sitemaps := testkit.Data(t, "MILLRACE_TEST_SITEMAP_XSD")
	_, rest, found := strings.Cut(specification(t), "## Appendix A.")
	_, rest, fenced := strings.Cut(rest, "```xml\n")
	extension, _, closed := strings.Cut(rest, "```")
	if !found || !fenced || !closed {
		t.Fatal("the specification has no schema in Appendix A")
	}
	out := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(out, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("both.xsd", fmt.Sprintf(`<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
<xs:import namespace="http://www.sitemaps.org/schemas/sitemap/0.9" schemaLocation="%s"/>
<xs:import namespace="%s" schemaLocation="%s"/>
</xs:schema>`, sitemaps, namespace, write("scp.xsd", extension)))
}

// validate validates a document with xmllint and returns its errors.
func validate(t *testing.T, schema, text string) error {
	t.Helper()
	c := exec.CommandContext(t.Context(), "xmllint", "--noout", "--nonet", "--schema", schema, "-")
	c.Stdin = strings.NewReader(text)
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %.2000s", err, out)
	}
	return nil
}

// Every sitemap is valid against the schemas of sitemaps.org and of SCP.
func TestRealSitemapSchemas(t *testing.T) {
	schema := bothSchemas(t)
	p := publishing(t, nil)
	if err := validate(t, schema, p.publish(t)); err != nil {
		t.Errorf("a site without pages: %v", err)
	}
	p.put(t, handbook()...)
	p.put(t, "/%C3%A9t%C3%A9/?a=1&b='%22", "odd", "/%C3%A9t%C3%A9/2", "odd")
	p.publish(t)
	p.now = p.now.AddDate(0, 0, 1)
	p.put(t, "/blog/3", "changed", "/docs/4/", "changed")
	text := p.publish(t)
	if len(elements(text, "delta", "")) == 0 {
		t.Fatal("no delta was published")
	}
	if err := validate(t, schema, text); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	for _, broken := range [][2]string{
		{`updateFreq="daily"`, `updateFreq="often"`}, {`type="snapshot"`, `type="delta"`}, {`pages="`, `pages="many`}, {"<scp:version>0.1", "<scp:version>one"}, {"<scp:compression>", "<scp:compressed>"},
	} {
		if validate(t, schema, strings.ReplaceAll(text, broken[0], broken[1])) == nil {
			t.Errorf("%s instead of %s is valid", broken[1], broken[0])
		}
	}
	p = publishing(t, &protocol.PublisherOptions{ListItems: 8})
	p.put(t, handbook()...)
	p.publish(t)
	if err := validate(t, schema, p.get(t, "/sitemap-2-of-4.xml")); err != nil {
		t.Errorf("a sitemap with only pages: %v", err)
	}
}
