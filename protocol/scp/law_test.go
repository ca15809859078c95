package scp

import (
	"testing"

	"github.com/millrace/millrace/protocol/protocoltest"
)

func TestLaw(t *testing.T) { protocoltest.Run(t, Protocol()) }

func FuzzProbe(f *testing.F) {
	protocoltest.FuzzProbe(f, Protocol(),
		`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:scp="https://scp-protocol.org/schemas/sitemap/1.0"><scp:collection section="all" type="snapshot" url="https://x.test/a.scp" generated="2026-03-01T00:00:00Z" expires="2026-04-01T00:00:00Z" pages="9" size="200"/></urlset>`)
}
