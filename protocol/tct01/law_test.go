package tct01_test

import (
	"testing"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/protocol/tct01"
)

func TestLaw(t *testing.T) {
	p := tct01.Protocol()
	if p.Rules == nil {
		p.Rules = func() []check.Rule { return nil }
	}
	protocoltest.Run(t, p)
}
