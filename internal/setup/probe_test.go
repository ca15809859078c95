package setup

import (
	"testing"
)

func TestPrivate(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "0.0.0.0": true, "10.1.2.3": true, "fd00::1": true, "203.0.113.9": false, "": false} {
		if got := isPrivate(t.Context(), host); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
}
