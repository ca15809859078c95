package scp

import (
	"testing"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/protocol/protocoltest"
)

func TestLaw(t *testing.T) {
	p := Protocol()
	p.NewPublisher = NewPublisher
	if p.Rules == nil {
		p.Rules = func() []check.Rule { return nil }
	}
	protocoltest.Run(t, p)
}
