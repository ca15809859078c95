package agent

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol"
)

func TestBudgetRefuses(t *testing.T) {
	t.Parallel()
	snapshot := &protocol.Offer{Pages: 100, First: protocol.Cost{Requests: 2, Bytes: 1e6}}
	single := &protocol.Offer{Pages: 100, First: protocol.Cost{Requests: 101, Bytes: 1e6}}
	for _, c := range []struct {
		pages  int
		bytes  int64
		offer  *protocol.Offer
		option string // "" = the offer is accepted
	}{
		{99, 0, snapshot, "Options.MaxPages"},
		{100, 1e6, snapshot, ""},
		{0, 999_999, snapshot, "Options.MaxBytes"},
		{1, 10, single, ""},
		{1, 10, nil, ""},
	} {
		err := (&budget{maxPages: c.pages, maxBytes: c.bytes, client: fetch.New(nil)}).refuse("scp", c.offer)
		if c.option == "" && err != nil || c.option != "" && (!errors.Is(err, millrace.ErrTooLarge) || !strings.Contains(err.Error(), c.option)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
