package tct01_test

import (
	"testing"

	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/protocol/tct01"
)

func TestLaw(t *testing.T) { protocoltest.Run(t, tct01.Protocol()) }
