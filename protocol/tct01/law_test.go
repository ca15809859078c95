package tct01_test

import (
	"testing"

	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/protocol/tct01"
)

func TestLaw(t *testing.T) { protocoltest.Run(t, tct01.Protocol()) }

func FuzzLook(f *testing.F) {
	protocoltest.FuzzLook(f, tct01.Protocol(),
		`{"version":1,"profile":"tct-1","items":[{"cUrl":"https://x.test/a","mUrl":"https://x.test/a/llm.json","etag":"sha256-0"}],"canonical_url":"https://x.test/a","title":"A","content":"A","hash":"0"}`)
}
