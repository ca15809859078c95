package humanize

import "testing"

func TestSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Size{"1": 1, "500000": 500000, "20MB": 20e6, "20 mb": 20e6, "1.5GiB": 3 << 29, "64k": 64000, "2KiB": 2048, "7B": 7} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "MB", "-5", "1e99", "12 apples", "NaN", "0.1B"} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}
