package tct00_test

import (
	"testing"

	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/protocol/tct00"
)

func TestLaw(t *testing.T) { protocoltest.Run(t, tct00.Protocol()) }

func FuzzLook(f *testing.F) {
	protocoltest.FuzzLook(f, tct00.Protocol(),
		`{"version":1,"profile":"tct-1","items":[{"cUrl":"https://x.test/a","mUrl":"https://x.test/a/llm/","contentHash":"sha256-0"}],"canonical_url":"https://x.test/a","title":"A","content":"A","hash":"0"}`)
}
