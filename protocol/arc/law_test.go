package arc_test

import (
	"testing"

	"github.com/millrace/millrace/protocol/arc"
	"github.com/millrace/millrace/protocol/protocoltest"
)

func TestLaw(t *testing.T) { protocoltest.Run(t, arc.Protocol()) }

func FuzzProbe(f *testing.F) {
	protocoltest.FuzzProbe(f, arc.Protocol(),
		`{"arc_sitemap_version":"2.1","site":"https://x.test","generated_at":"2026-01-01T00:00:00Z","pages":[{"url":"https://x.test/a","ai_indexable":true},{"url":"https://x.test/b","ai_indexable":true,"ai_snapshot":{"page":"article"}}]}`)
}
