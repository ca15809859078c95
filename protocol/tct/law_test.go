package tct_test

import (
	"testing"

	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/protocol/tct"
)

func TestLaw00(t *testing.T) { protocoltest.Run(t, tct.Draft00()) }

func FuzzProbe00(f *testing.F) {
	protocoltest.FuzzProbe(f, tct.Draft00(),
		`{"version":1,"profile":"tct-1","items":[{"cUrl":"https://x.test/a","mUrl":"https://x.test/a/llm/","contentHash":"sha256-0"}],"canonical_url":"https://x.test/a","title":"A","content":"A","hash":"0"}`)
}

func TestLaw01(t *testing.T) { protocoltest.Run(t, tct.Draft01()) }

func FuzzProbe01(f *testing.F) {
	protocoltest.FuzzProbe(f, tct.Draft01(),
		`{"version":1,"profile":"tct-1","items":[{"cUrl":"https://x.test/a","mUrl":"https://x.test/a/llm.json","etag":"sha256-0"}],"canonical_url":"https://x.test/a","title":"A","content":"A","hash":"0"}`)
}

func TestLaw03(t *testing.T) { protocoltest.Run(t, tct.Draft03()) }

func FuzzProbe03(f *testing.F) {
	protocoltest.FuzzProbe(f, tct.Draft03(),
		`{"items":[{"cUrl":"https://x.test/a","mUrl":"https://x.test/a/tct.json","etag":"sha256-0"}],"profile":"https://www.ietf.org/archive/id/draft-jurkovikj-collab-tunnel-03.html#tct-m-sitemap-profile","version":2}`)
}
