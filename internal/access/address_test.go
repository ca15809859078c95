package access

import (
	"errors"
	"slices"
	"testing"

	"github.com/millrace/millrace"
)

func TestParseNetworks(t *testing.T) {
	t.Parallel()
	got, err := ParseNetworks([]string{"10.1.2.3/8", "192.0.2.1", "2001:db8::/32", "::ffff:192.0.2.2"})
	var names []string
	for _, n := range got {
		names = append(names, n.String())
	}
	if err != nil || !slices.Equal(names, []string{"10.0.0.0/8", "192.0.2.1/32", "2001:db8::/32", "192.0.2.2/32"}) {
		t.Errorf("%q %v", names, err)
	}
	for _, s := range []string{"", "localhost", "0.0.0.0/0", "::/0", "::ffff:10.0.0.0/104", "fe80::1%eth0"} {
		if got, err := ParseNetworks([]string{s}); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
}
