package openfeeder

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// noting is a view whose searches say more than their hits.
type noting struct {
	*protocoltest.View
	asked string
}

func (n *noting) Search(ctx context.Context, q millrace.Query) (*millrace.Found, error) {
	n.asked = q.Text
	return &millrace.Found{Note: errors.New("less"), Corrected: "more"}, ctx.Err()
}

// A question is asked whole, and what the search says of it is in the answer.
func TestSearchNote(t *testing.T) {
	v, long := &noting{View: view(mill())}, strings.Repeat("水車 ", millrace.MaxQuery/3)+"end"
	d, err := get(t, NewPublisher(nil), v, "/openfeeder?q="+url.QueryEscape(long))
	if err != nil {
		t.Fatal(err)
	}
	x, err := decodeIndex([]byte(body(t, d)))
	if err != nil || x.Note != "less" || x.Corrected != "more" || v.asked != long {
		t.Errorf("%+v, %v; asked %d bytes of %d", x, err, len(v.asked), len(long))
	}
}
