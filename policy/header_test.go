package policy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// Header fields and robots.txt contain the same policy when they are read again.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, purposes := range []map[millrace.Purpose]bool{
		nil, {millrace.Search: true}, {millrace.AIInput: false}, {millrace.Search: true, millrace.AIInput: true, millrace.AITrain: false},
	} {
		p := &millrace.Policy{Purposes: purposes, Rate: millrace.RateHints{PerSecond: 1}}
		h := make(http.Header)
		NewHeader(p).Write(h)
		if d := cmp.Diff(purposes, ReadHeader(h).Purposes); d != "" {
			t.Errorf("%v (-written +read):\n%s", h, d)
		}
		text := NewRobots(p, new(RobotsOptions)).Write("")
		var values []string
		for _, r := range fetch.ParseRobots([]byte(text), "millrace").Records() {
			if strings.HasPrefix(r.Name, "content-") {
				values = append(values, r.Value)
			}
		}
		if d := cmp.Diff(purposes, ReadSignals(values...)); d != "" {
			t.Errorf("%s (-written +read):\n%s", text, d)
		}
	}
}

// If a response and the policy differ, the stricter one takes precedence.
func TestHeaderWrite(t *testing.T) {
	t.Parallel()
	h := http.Header{"Content-Signal": {"search=no, ai-train=yes"}, "Content-Usage": {"bots=n;x=1", "TRAIN-AI=y"}}
	NewHeader(&millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.Search: true, millrace.AITrain: false}}).Write(h)
	want := http.Header{"Content-Signal": {"search=no, ai-train=no"}, "Content-Usage": {"search=n, train-ai=n, bots=n;x=1"}}
	if d := cmp.Diff(want, h); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
