package web_test

import (
	"testing"

	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/protocol/web"
)

func TestLaw(t *testing.T) { protocoltest.Run(t, web.Protocol()) }

func FuzzProbe(f *testing.F) {
	protocoltest.FuzzProbe(f, web.Protocol(),
		"---\nurl: https://x.test/a\n---\n# A\n", "# A\n\n## B\n\n- [c](/c.md)\n",
		`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://x.test/a</loc></url></urlset>`,
		`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:at="http://purl.org/atompub/tombstones/1.0"><updated>2026-01-01T00:00:00Z</updated></feed>`)
}
