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

// noting is a view whose searches return a note and a corrected question.
type noting struct {
	*protocoltest.View
	asked string
}

func (n *noting) Search(ctx context.Context, q millrace.Query) (*millrace.Found, error) {
	n.asked = q.Text
	return &millrace.Found{Note: errors.New("less"), Corrected: "more"}, ctx.Err()
}

// The complete question is searched, and the response contains the search's note and
// correction.
func TestSearchNote(t *testing.T) {
	v, long := &noting{View: view(mill())}, strings.Repeat("水車 ", millrace.MaxQuery/3)+"end"
	d, err := get(t, NewPublisher(nil), v, "/openfeeder?q="+url.QueryEscape(long))
	if err != nil {
		t.Fatal(err)
	}
	x, err := decodeIndex([]byte(body(t, d)))
	if err != nil || x.Note != "less" || x.Corrected != "more" || v.asked != long {
		t.Errorf("%+v, %v; searched for %d of %d bytes", x, err, len(v.asked), len(long))
	}
}
