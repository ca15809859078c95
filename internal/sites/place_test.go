package sites

import (
	"errors"
	"testing"

	"github.com/millrace/millrace"
)

func TestPlaceOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		configured     Place
		source, origin string
		want           Place // "" = an error
	}{
		{"", "https://x.test/", "", Alongside},
		{"", "https://x.test/", "http://127.0.0.1:8000", Front},
		{"", "HTTP://x.test/", "", Alongside},
		{"", "public", "", Standalone},
		{"", "postgres://db.test/mirror", "", Standalone},
		{"", "public", "http://127.0.0.1:8000", Front},
		{Standalone, "https://x.test/", "", Standalone},
		{Alongside, "public", "", Alongside},
		{Front, "https://x.test/", "http://127.0.0.1:8000", Front},
		{Front, "https://x.test/", "", ""},
		{Alongside, "https://x.test/", "http://127.0.0.1:8000", ""},
		{Standalone, "https://x.test/", "http://127.0.0.1:8000", ""},
	} {
		got, err := PlaceOf(tt.configured, tt.source, tt.origin)
		if got != tt.want || (tt.want == "") != errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("%q, %s, %s: %q, %v", tt.configured, tt.source, tt.origin, got, err)
		}
	}
}
