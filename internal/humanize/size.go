package humanize

import (
	"fmt"
	"strconv"
	"strings"
)

// Size is a number of bytes that people write as 500000, 500kB, 20MB or 1.5GiB.
type Size int64

// UnmarshalText parses a size of at least one byte.
func (s *Size) UnmarshalText(text []byte) error {
	digits := strings.TrimSpace(string(text))
	unit := 1.0
	for _, u := range []struct {
		name string
		size float64
	}{
		{"KiB", 1 << 10},
		{"MiB", 1 << 20},
		{"GiB", 1 << 30},
		{"TiB", 1 << 40},
		{"kB", 1e3},
		{"MB", 1e6},
		{"GB", 1e9},
		{"TB", 1e12},
		{"k", 1e3},
		{"M", 1e6},
		{"G", 1e9},
		{"B", 1},
	} {
		if n := len(digits) - len(u.name); n > 0 && strings.EqualFold(digits[n:], u.name) {
			digits, unit = strings.TrimSpace(digits[:n]), u.size
			break
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(n*unit >= 1 && n*unit < 1<<62) {
		return fmt.Errorf("%.40q is not a size, such as 500kB, 20MB or 1.5GiB", text)
	}
	*s = Size(n * unit)
	return nil
}
