package arc_test

import (
	"testing"

	"github.com/millrace/millrace/protocol/arc"
	"github.com/millrace/millrace/protocol/protocoltest"
)

func TestLaw(t *testing.T) { protocoltest.Run(t, arc.Protocol()) }
