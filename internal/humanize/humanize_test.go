package humanize

import "testing"

func TestFigures(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{Quantity(1, "page"), "1 page"},
		{Quantity(0, "page"), "0 pages"},
		{Bytes(0), "0 bytes"},
		{Bytes(999), "999 bytes"},
		{Bytes(1234), "1.2 kB"},
		{Bytes(-5_000_000), "-5.0 MB"},
		{Bytes(1 << 50), "1125899.9 GB"},
		{Count(9999), "9999"},
		{Count(12_345), "12.3 thousand"},
		{Count(-2e6), "-2.0 million"},
		{Energy(2), "2.0 kWh"},
		{Energy(0.0051), "5.1 Wh"},
		{Energy(0), "0.00 mWh"},
		{Rate(new(0.98765)), " (98.8 %)"},
		{Rate(nil), ""},
	} {
		if c[0] != c[1] {
			t.Errorf("got %q, want %q", c[0], c[1])
		}
	}
}
