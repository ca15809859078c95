package scp

import (
	"testing"

	"github.com/millrace/millrace/protocol/protocoltest"
)

func TestLaw(t *testing.T) { protocoltest.Run(t, Protocol()) }
