package access

import (
	"errors"
	"testing"

	"github.com/millrace/millrace"
)

func TestParseRule(t *testing.T) {
	for s, want := range map[string]Rule{
		"training=403": {Name: "training", Action: Forbid}, "GPTBot = 2/s": {Name: "GPTBot", Action: Limit, Rate: 2},
		"x=0.5/s": {Name: "x", Action: Limit, Rate: 0.5}, "bots=allow": {Name: "bots"}, "a.example=402": {Name: "a.example", Action: PaymentRequired},
	} {
		if got, err := ParseRule(s); err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "training", "=403", "x=", "x=404", "x=2", "x=0/s", "x=-1/s", "x=NaN/s", "x=Inf/s", "x=0.0001/s", "x=a/s"} {
		if got, err := ParseRule(s); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%q: %+v, %v", s, got, err)
		}
	}
}
